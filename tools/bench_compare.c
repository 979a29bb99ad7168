/* bench_compare: sbxbench compare: what a user would pick instead does the same work, in turn with
 * sbxd. Holds no state. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/clock.h"
#include "tools/bench.h"
#include "tools/bench_command.h"
#include "tools/bench_peer.h"
#include "tools/bench_table.h"

#define PEERS 8
#define EACH 3	     /* of everything, in a round */
#define SETTLE_MS 60 /* namespaces are taken apart in the background: nobody pays for others' */

/* ---- what sbxd does ---- */

enum ours { OURS_ONCE, OURS_TURN, OURS_RUN, OURS };

static const char *const our_names[OURS] = {
    [OURS_ONCE] = "new box, `true`, removed",
    [OURS_TURN] = "warm box, `true`, released",
    [OURS_RUN] = "`true` in a box that is held",
};

struct side {
	struct daemon d;
	struct wire w;
	char held[64];
	unsigned int serial;
	struct samples all[OURS];
	struct samples round[OURS];
};

static void run_true(struct side *s, const char *id)
{
	char request[512];
	char path[160];

	(void)snprintf(path, sizeof(path), "/v1/boxes/%s/run", id);
	wire_call(&s->w, request,
	    wire_build(request, sizeof(request), "POST", path, "{\"argv\":[\"/bin/true\"]}"));
	if (s->w.status != 200 || wire_json_int(&s->w, "exit_code") != 0)
		bench_give_up("`true` fails");
}

static void do_once(struct side *s)
{
	struct acquired a;
	char thread[32];

	(void)snprintf(thread, sizeof(thread), "once-%u", s->serial++);
	call_acquire(&s->w, thread, &a);
	run_true(s, a.id);
	call_remove(&s->w, a.id);
}

static void do_turn(struct side *s)
{
	struct acquired a;

	call_acquire(&s->w, "turn", &a);
	run_true(s, a.id);
	call_release(&s->w, a.id);
}

static void do_run(struct side *s)
{
	run_true(s, s->held);
}

static void (*const our_work[OURS])(struct side *s) = {
    [OURS_ONCE] = do_once,
    [OURS_TURN] = do_turn,
    [OURS_RUN] = do_run,
};

static void add(struct samples *round, struct samples *all, uint64_t ns)
{
	samples_add(round, ns);
	samples_add(all, ns);
}

static void measure_ours(struct side *s)
{
	for (int k = 0; k < OURS; k++) {
		samples_free(&s->round[k]);
		bench_settle(SETTLE_MS);
		for (int i = 0; i < EACH; i++) {
			uint64_t begin = clock_now_ns();

			our_work[k](s);
			add(&s->round[k], &s->all[k], clock_now_ns() - begin);
		}
	}
}

static void side_open(struct side *s)
{
	struct acquired a;

	*s = (struct side){.serial = 0};
	daemon_start(&s->d, "replicas: 1000\n");
	wire_open(&s->w, &s->d);
	call_acquire(&s->w, "held", &a);
	(void)snprintf(s->held, sizeof(s->held), "%s", a.id);
	for (int k = 0; k < OURS; k++)
		our_work[k](s); /* what is made once */
}

static void side_close(struct side *s)
{
	wire_close(&s->w);
	daemon_stop(&s->d);
	for (int k = 0; k < OURS; k++) {
		samples_free(&s->all[k]);
		samples_free(&s->round[k]);
	}
}

/* ---- what others do ---- */

enum theirs { THEIRS_RUN, THEIRS_EXEC, THEIRS };

static const char *const their_names[THEIRS] = {
    [THEIRS_RUN] = "new sandbox, `true`, removed",
    [THEIRS_EXEC] = "`true` in a sandbox that is held",
};

/* Which of ours theirs stands for: somebody who has no warm boxes makes a new one every time. */
static const struct match {
	enum theirs theirs;
	enum ours ours;
} matches[] = {{THEIRS_RUN, OURS_ONCE}, {THEIRS_RUN, OURS_TURN}, {THEIRS_EXEC, OURS_RUN}};

#define MATCHES (sizeof(matches) / sizeof(matches[0]))

struct rival {
	struct peer p;
	struct samples all[THEIRS];
	struct samples round[THEIRS];
	struct samples ratios[MATCHES]; /* of rounds, in thousandths */
};

static const char *const *line_of(const struct rival *r, enum theirs what)
{
	return what == THEIRS_RUN ? r->p.tool->run : r->p.tool->exec;
}

static void measure_theirs(struct rival *r)
{
	struct err err;

	for (int k = 0; k < THEIRS; k++) {
		const char *const *line = line_of(r, (enum theirs)k);

		samples_free(&r->round[k]);
		bench_settle(SETTLE_MS);
		for (int i = 0; line && i < EACH; i++) {
			uint64_t ns;

			if (peer_call(&r->p, line, &ns, &err) < 0)
				bench_give_up(err.text);
			add(&r->round[k], &r->all[k], ns);
		}
	}
}

static void add_ratios(struct side *s, struct rival *r)
{
	for (size_t m = 0; m < MATCHES; m++) {
		uint64_t theirs = samples_quantile(&r->round[matches[m].theirs], 0.5);
		uint64_t ours = samples_quantile(&s->round[matches[m].ours], 0.5);

		if (theirs)
			samples_add(&r->ratios[m], theirs * 1000 / ours);
	}
}

static void rival_close(struct rival *r)
{
	peer_close(&r->p);
	for (int k = 0; k < THEIRS; k++) {
		samples_free(&r->all[k]);
		samples_free(&r->round[k]);
	}
	for (size_t m = 0; m < MATCHES; m++)
		samples_free(&r->ratios[m]);
}

/* Says of those that are not measured why. How many there are. */
static size_t open_rivals(struct rival rivals[PEERS], const struct peer_site *site)
{
	const struct peer_tool *tool;
	size_t n = 0;

	for (size_t i = 0; n < PEERS && (tool = peer_tool_at(i)); i++) {
		struct err err;
		int rc = peer_open(&rivals[n].p, tool, site, &err);

		if (rc == -ENOENT)
			(void)printf("- %s is not installed (%s)\n", tool->name, tool->package);
		else if (rc < 0)
			(void)printf("- %s does not work here: %s\n", tool->name, err.text);
		else
			(void)printf("- %s: %s\n", tool->name, rivals[n++].p.version);
	}
	return n;
}

/* ---- the table ---- */

static void add_matches(struct bench_table *t, struct side *s, struct rival *r)
{
	static const double quantiles[] = {0, 0.5, 1};

	for (size_t m = 0; m < MATCHES; m++) {
		const struct match *x = &matches[m];

		if (r->ratios[m].count == 0)
			continue;
		bench_table_add(t, "%s", r->p.tool->name);
		bench_table_add(t, "%s", their_names[x->theirs]);
		bench_table_add(t, "%s", our_names[x->ours]);
		bench_table_add(t, "%.2f", samples_ms(&r->all[x->theirs], 0.5));
		bench_table_add(t, "%.2f", samples_ms(&s->all[x->ours], 0.5));
		for (int q = 0; q < 3; q++)
			bench_table_add(t, "%.1f",
			    (double)samples_quantile(&r->ratios[m], quantiles[q]) / 1000);
	}
}

static void print_table(struct side *s, struct rival *rivals, size_t n)
{
	static const char *const head[] = {"instead", "what it does", "what sbxd does", "its ms",
	    "sbxd's ms", "ratio min", "median", "max"};
	struct bench_table t;

	bench_table_init(&t, 8, 3);
	for (size_t i = 0; i < 8; i++)
		bench_table_add(&t, "%s", head[i]);
	for (size_t i = 0; i < n; i++)
		add_matches(&t, s, &rivals[i]);
	(void)printf("\nMedians, and the ratio of its time to sbxd's, of all rounds:\n\n");
	bench_table_print(&t, BENCH_MARKDOWN, stdout);
	bench_table_free(&t);
}

int bench_compare_main(const struct bench_command *self, int argc, char **argv)
{
	uint32_t rounds = 15;
	const struct bench_option options[] = {
	    {"rounds", BENCH_COUNT, &rounds, "N", "each in turn, three times, so often (15)", 1,
		100000, NULL},
	};
	static struct rival rivals[PEERS];
	struct peer_site site;
	struct side ours;
	size_t n;
	int status;
	int at = bench_parse(self, options, 1, argc, argv, &status);

	if (at < 0)
		return status;
	if (at < argc)
		return bench_usage(self, "unexpected argument '%s'", argv[at]);
	peer_site_open(&site);
	n = open_rivals(rivals, &site);
	side_open(&ours);
	for (uint32_t r = 0; r < rounds; r++) {
		measure_ours(&ours);
		for (size_t i = 0; i < n; i++) {
			measure_theirs(&rivals[i]);
			add_ratios(&ours, &rivals[i]);
		}
	}
	print_table(&ours, rivals, n);
	side_close(&ours);
	for (size_t i = 0; i < n; i++)
		rival_close(&rivals[i]);
	peer_site_close(&site);
	return BENCH_OK;
}
