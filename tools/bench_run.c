/* bench_run: sbxbench run: its options, its private sbxd, and what is left in a service that
 * is not ours. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/fd.h"
#include "tools/bench.h"
#include "tools/bench_client.h"
#include "tools/bench_command.h"
#include "tools/bench_turns.h"
#include "tools/cli.h"

#define REPLICAS 3
#define IDLE_S 600.0
#define IDLE_SHORT_S 1.0 /* where the timeout is waited for */
#define BOXES_MIN 1024U
#define CONFIG_MAX 65536U
#define YEAR_S 31536000.0
#define MANY 1000000000.0

/* What was given on the command line, where it matters. */
struct given {
	bool replicas;
	bool idle_timeout;
	bool skip_seconds;
	uint32_t replica_count;
	const char *scenario;
	const char *workload;
};

static int list_names(const struct bench_command *self, const char *option, const char *name)
{
	bool scenario = strcmp(option, "scenario") == 0;

	for (unsigned int i = 0;; i++) {
		const struct bench_scenario *s = bench_scenario_at(i);
		const struct bench_workload *w = bench_workload_at(i);

		if (scenario ? !s : !w)
			break;
		(void)fprintf(stderr, "  %-24s %s\n", scenario ? s->name : w->name,
		    scenario ? s->what : w->what);
	}
	return bench_usage(self, "--%s: no '%s'", option, name);
}

/* What does not go together. */
static int check(const struct bench_command *self, struct bench_plan *p, const struct given *g)
{
	p->scenario = bench_scenario_find(g->scenario);
	p->workload = bench_workload_find(g->workload);
	if (!p->scenario)
		return list_names(self, "scenario", g->scenario);
	if (!p->workload)
		return list_names(self, "workload", g->workload);
	if (p->workload == bench_workload_find("state_reuse") &&
	    (p->scenario != bench_scenario_find("warm_same_thread") || p->concurrency != 1))
		return bench_usage(
		    self, "state_reuse needs --scenario warm_same_thread and --concurrency 1");
	if (p->socket && (g->replicas || g->idle_timeout || g->skip_seconds || p->driver))
		return bench_usage(self,
		    "--replicas, --idle-timeout, --health-check-skip-seconds and --driver set "
		    "a private sbxd, not the one of --socket");
	if (p->socket && p->scenario->pairs)
		return bench_usage(
		    self, "%s needs a private sbxd: its timeout is known", p->scenario->name);
	p->replicas = p->socket ? -1.0 : (double)g->replica_count;
	if (p->socket)
		p->idle_timeout = p->skip_seconds = -1;
	else if (p->scenario->pairs && !g->idle_timeout)
		p->idle_timeout = IDLE_SHORT_S;
	return BENCH_OK;
}

/* ---- the service ---- */

/* YAML takes JSON as it is. */
static int write_config(const struct bench_plan *p, struct buf *out)
{
	uint32_t boxes = (uint32_t)p->replicas + p->concurrency + 1;
	struct json_out j;

	json_out_init(&j, out);
	json_object_begin(&j, NULL);
	json_put_uint(&j, "replicas", (uint64_t)p->replicas);
	json_put_double(&j, "idle_timeout", p->idle_timeout);
	json_put_double(&j, "health_check_skip_seconds", p->skip_seconds);
	json_put_uint(&j, "max_boxes", boxes > BOXES_MIN ? boxes : BOXES_MIN);
	if (p->image)
		json_put_string(&j, "image", p->image);
	if (p->driver)
		json_put_string(&j, "driver", p->driver);
	json_object_end(&j);
	return json_out_error(&j) ? json_out_error(&j) : buf_terminate(out);
}

static void start_private(const struct bench_plan *p, struct daemon *d)
{
	struct buf config;

	buf_init(&config, CONFIG_MAX);
	if (write_config(p, &config) < 0)
		bench_give_up("the image or the driver has too long a name");
	daemon_start(d, (const char *)buf_head(&config));
	buf_free(&config);
}

/* Which driver it has, and what else it says. 0 or -errno with *err. */
static int ask_service(struct bench_plan *p, const char *socket, struct err *err)
{
	struct bench_client cl;
	json_t *pool = NULL;
	const char *driver;
	int rc;

	bench_client_init(&cl, socket, -1, p->timeout);
	bench_client_begin(&cl, "/v1/pool", NULL, NULL);
	rc = bench_client_call(&cl, "GET", NULL, &pool, err);
	bench_client_close(&cl);
	if (rc < 0)
		return rc;
	driver = json_string_value(json_object_get(pool, "driver"));
	(void)snprintf(p->provider, sizeof(p->provider), "sbxd-%s", driver ? driver : "unknown");
	if (p->socket)
		p->replicas = (double)json_integer_value(json_object_get(pool, "replicas"));
	json_decref(pool);
	return 0;
}

static void remove_ours(struct bench_client *cl, const json_t *boxes)
{
	size_t i;
	const json_t *box;

	json_array_foreach(boxes, i, box)
	{
		const char *user = json_string_value(json_object_get(box, "user_id"));
		const char *id = json_string_value(json_object_get(box, "box_id"));
		struct err err;

		if (user && id && strcmp(user, BENCH_USER) == 0)
			(void)bench_client_remove(cl, id, &err); /* it times out otherwise */
	}
}

/* A service that goes on shall not keep our boxes. */
static void clean_service(const struct bench_plan *p)
{
	struct bench_client cl;
	json_t *list = NULL;
	struct err err;

	bench_client_init(&cl, p->socket, -1, p->timeout);
	bench_client_begin(&cl, "/v1/boxes", NULL, NULL);
	if (bench_client_call(&cl, "GET", NULL, &list, &err) == 0)
		remove_ours(&cl, json_object_get(list, "boxes"));
	json_decref(list);
	bench_client_close(&cl);
}

/* ---- the command ---- */

static int fail(const char *what, const struct err *err)
{
	(void)fprintf(stderr, "sbxbench: %s%s%s\n", what, *what ? ": " : "", err->text);
	return BENCH_FAILED;
}

static int make_turns(struct bench_plan *p, const char *socket, int out_fd)
{
	struct bench_counts counts = {0};
	struct cli cli = {.signal_fd = -1};
	struct err err;
	int sig;
	int rc = cli_catch_signals(&cli);

	if (rc < 0)
		(void)err_sys(&err, -rc, "cannot catch signals");
	if (rc == 0)
		rc = ask_service(p, socket, &err);
	if (rc == 0)
		rc = bench_turns(p, socket, cli.signal_fd, out_fd, &counts, &err);
	sig = cli_caught_signal(&cli);
	fd_close(&cli.signal_fd);
	if (sig)
		return BENCH_SIGNAL + sig;
	if (rc < 0)
		return fail("", &err);
	return counts.failed ? BENCH_WRONG : BENCH_OK;
}

static int with_service(struct bench_plan *p, int out_fd)
{
	struct daemon d;
	int status;

	if (p->socket) {
		status = make_turns(p, p->socket, out_fd);
		clean_service(p);
		return status;
	}
	start_private(p, &d);
	status = make_turns(p, d.socket, out_fd);
	daemon_stop(&d);
	return status;
}

int bench_run_main(const struct bench_command *self, int argc, char **argv)
{
	struct given g = {
	    .scenario = "warm_same_thread", .workload = "noop", .replica_count = REPLICAS};
	struct bench_plan p = {
	    .iterations = 50, .concurrency = 1, .warmup = 1, .timeout = 30, .idle_timeout = IDLE_S};
	const struct bench_option options[] = {
	    {"scenario", BENCH_TEXT, &g.scenario, "NAME", "whose boxes (warm_same_thread)", 0, 0,
		NULL},
	    {"workload", BENCH_TEXT, &g.workload, "NAME", "which command (noop)", 0, 0, NULL},
	    {"iterations", BENCH_COUNT, &p.iterations, "N", "turns (50)", 1, MANY, NULL},
	    {"concurrency", BENCH_COUNT, &p.concurrency, "N", "clients at once (1)", 1, 1024, NULL},
	    {"warmup-iterations", BENCH_COUNT, &p.warmup, "N",
		"turns before, which are not measured (1)", 0, MANY, NULL},
	    {"no-warmpool", BENCH_FLAG, &p.no_warmpool, NULL, "remove the box after each turn", 0,
		0, NULL},
	    {"fault-inject", BENCH_COUNT, &p.fault_after, "N", "kill the box after turn N", 0, MANY,
		&p.has_fault},
	    {"timeout", BENCH_SECONDS, &p.timeout, "S", "of each request and command (30)", 0.01,
		86400, NULL},
	    {"replicas", BENCH_COUNT, &g.replica_count, "N", "of the private sbxd (3)", 1, 16000,
		&g.replicas},
	    {"idle-timeout", BENCH_SECONDS, &p.idle_timeout, "S",
		"of the private sbxd (600; 1 where it is waited for)", 0.001, YEAR_S,
		&g.idle_timeout},
	    {"health-check-skip-seconds", BENCH_SECONDS, &p.skip_seconds, "S",
		"of the private sbxd (0)", 0, YEAR_S, &g.skip_seconds},
	    {"image", BENCH_TEXT, &p.image, "REF", "what boxes are made of", 0, 0, NULL},
	    {"driver", BENCH_TEXT, &p.driver, "NAME", "of the private sbxd (auto)", 0, 0, NULL},
	    {"socket", BENCH_TEXT, &p.socket, "PATH", "measure the sbxd that listens there", 0, 0,
		NULL},
	    {"output", BENCH_TEXT, &p.output, "FILE", "append the rows to it (standard output)", 0,
		0, NULL},
	};
	FD_SCOPED int file = -1;
	int status;
	int at =
	    bench_parse(self, options, sizeof(options) / sizeof(options[0]), argc, argv, &status);

	if (at < 0)
		return status;
	if (at < argc)
		return bench_usage(self, "unexpected argument '%s'", argv[at]);
	status = check(self, &p, &g);
	if (status != BENCH_OK)
		return status;
	if (p.output)
		file = open(p.output, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	if (p.output && file < 0) {
		(void)fprintf(stderr, "sbxbench: %s: %s\n", p.output, strerror(errno));
		return BENCH_FAILED;
	}
	return with_service(&p, file < 0 ? STDOUT_FILENO : file);
}
