/*
 * cli_shm: sbxctl shm dump: everything in a shared table, and whether it keeps what its layout
 * promises. Read-only; works on a live one, a hung one, and one that a dead sbxd left.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/clock.h"
#include "shm/hist.h"
#include "shm/names.h"
#include "shm/reader.h"
#include "shm/ring.h"
#include "shm/slot.h"
#include "shm/warm.h"
#include "tools/cli.h"
#include "tools/cli_show.h"
#include "tools/cli_view.h"

#define FINDINGS_MAX 64
#define SEQ_COLUMNS 7 /* before an event */
#define EVENTS_MAX 32 /* newest ones that are shown */

static const char *const supervisor_states[] = {
    [SUPERVISOR_STARTING] = "starting",
    [SUPERVISOR_SERVING] = "serving",
    [SUPERVISOR_SHUTTING_DOWN] = "shutting_down",
    [SUPERVISOR_GONE] = "gone",
};

static const char *supervisor_state(uint32_t state)
{
	return state < sizeof(supervisor_states) / sizeof(supervisor_states[0])
		   ? supervisor_states[state]
		   : "?";
}

static void put(json_t *o, const char *key, uint64_t value)
{
	(void)json_object_set_new(o, key, json_integer((json_int_t)value)); /* o may be NULL too */
}

static json_t *header_json(const struct reader *r, const struct reader_summary *sum)
{
	const struct shm_header *h = r->seg.header;
	char instance[sizeof(h->instance) + 1] = "";
	json_t *o = json_object();
	int permits = 0;

	memcpy(instance, h->instance, sizeof(h->instance));
	(void)json_object_set_new(o, "instance", cli_text_json(instance));
	put(o, "version", h->version);
	put(o, "size", r->seg.size);
	put(o, "slots", sum->slots);
	put(o, "owner_uid", h->owner_uid);
	put(o, "pid", (uint64_t)sum->pid);
	(void)json_object_set_new(o, "alive", json_boolean(sum->alive));
	(void)json_object_set_new(o, "state", json_string(supervisor_state(sum->state)));
	put(o, "generation", sum->generation);
	(void)json_object_set_new(
	    o, "uptime_seconds", json_real((double)sum->uptime_ns / (double)NS_PER_S));
	(void)json_object_set_new(o, "heartbeat_age_seconds",
	    json_real((double)sum->heartbeat_age_ns / (double)NS_PER_S));
	put(o, "replicas", sum->replicas);
	put(o, "waiters", sum->waiters);
	/* It only reads; its declaration does not say so. */
	if (sem_getvalue((sem_t *)(uintptr_t)&h->boot_slots, &permits) == 0)
		put(o, "boot_permits", (uint64_t)permits);
	put(o, "boot_permits_max", atomic_load(&h->boot_slots_max));
	return o;
}

static json_t *latency_json(const struct shm_header *h)
{
	json_t *all = json_object();

	for (size_t i = 0; i < HISTS; i++) {
		json_t *o = json_object();

		put(o, "count", atomic_load(&h->hists[i].count));
		put(o, "p50_us", hist_quantile(&h->hists[i], 0.50) / NS_PER_US);
		put(o, "p95_us", hist_quantile(&h->hists[i], 0.95) / NS_PER_US);
		put(o, "p99_us", hist_quantile(&h->hists[i], 0.99) / NS_PER_US);
		(void)json_object_set_new(all, shm_hist_name((uint32_t)i), o);
	}
	return all;
}

static json_t *events_json(const struct segment *seg)
{
	uint64_t newest = ring_newest(seg);
	uint64_t first = newest > EVENTS_MAX ? newest - EVENTS_MAX + 1 : 1;
	json_t *all = json_array();
	struct shm_event e;

	for (uint64_t seq = first; seq <= newest; seq++) {
		if (ring_read(seg, seq, &e) == 0)
			(void)json_array_append_new(all, cli_event_json(&e));
	}
	return all;
}

static json_t *warm_json(const struct segment *seg)
{
	static const uint32_t most = 4096; /* of the list; the rest is counted, not shown */
	uint32_t *slots = calloc(most, sizeof(*slots));
	int n = slots ? warm_list(seg, slots, most) : 0;
	json_t *all = json_array();

	for (int i = 0; i < n; i++)
		(void)json_array_append_new(all, json_integer(slots[i]));
	free(slots);
	return all;
}

static json_t *findings_json(const struct segment *seg)
{
	static const char more[] = "and more";
	struct err findings[FINDINGS_MAX];
	size_t n = segment_validate(seg, findings, FINDINGS_MAX);
	json_t *all = json_array();

	for (size_t i = 0; i < n && i < FINDINGS_MAX; i++)
		(void)json_array_append_new(all, cli_text_json(findings[i].text));
	if (n > FINDINGS_MAX)
		(void)json_array_append_new(all, json_string(more));
	return all;
}

static json_t *dump_json(const struct reader *r)
{
	uint64_t now = clock_now_ns();
	json_t *states = json_object();
	json_t *counters = json_object();
	json_t *boxes = json_array();
	json_t *dump = json_object();
	struct reader_summary sum;
	struct reader_box box;

	reader_summarize(r, &sum);
	for (uint32_t i = 0; i < SLOT_STATES; i++)
		put(states, slot_state_name(i), sum.state_count[i]);
	for (uint32_t i = 0; i < COUNTERS; i++)
		put(counters, shm_counter_name((uint32_t)i), sum.counters[i]);
	for (uint32_t i = 0; i < sum.slots; i++) {
		if (reader_box(r, i, &box) == 0)
			(void)json_array_append_new(boxes, cli_box_json(&box, now));
	}
	(void)json_object_set_new(dump, "segment", header_json(r, &sum));
	(void)json_object_set_new(dump, "states", states);
	(void)json_object_set_new(dump, "counters", counters);
	(void)json_object_set_new(dump, "latency", latency_json(r->seg.header));
	(void)json_object_set_new(dump, "warm", warm_json(&r->seg));
	(void)json_object_set_new(dump, "boxes", boxes);
	(void)json_object_set_new(dump, "events", events_json(&r->seg));
	(void)json_object_set_new(dump, "findings", findings_json(&r->seg));
	return dump;
}

static void put_events(const json_t *events)
{
	struct cli_screen screen = cli_screen_of(STDOUT_FILENO);
	json_t *e;
	size_t i;

	screen.columns -= screen.columns > SEQ_COLUMNS ? SEQ_COLUMNS : 0;
	(void)printf("EVENTS\n");
	json_array_foreach(cli_walk(events), i, e)
	{
		(void)printf("%6lld ", cli_int_at(e, "seq"));
		cli_put_event(stdout, &screen, e);
	}
}

static void put_dump(const json_t *dump)
{
	const json_t *seg = json_object_get(dump, "segment");
	const json_t *findings = json_object_get(dump, "findings");
	json_t *text;
	size_t i;

	(void)printf("segment    instance ");
	cli_put_text(stdout, cli_text_at(seg, "instance"));
	(void)printf(", version %lld, %lld bytes, %lld slots, uid %lld\n",
	    cli_int_at(seg, "version"), cli_int_at(seg, "size"), cli_int_at(seg, "slots"),
	    cli_int_at(seg, "owner_uid"));
	(void)printf("supervisor pid %lld (%s), generation %lld, %s, heartbeat %.1f s ago\n",
	    cli_int_at(seg, "pid"), json_is_true(json_object_get(seg, "alive")) ? "alive" : "dead",
	    cli_int_at(seg, "generation"), cli_text_at(seg, "state"),
	    json_number_value(json_object_get(seg, "heartbeat_age_seconds")));
	cli_put_numbers("states", json_object_get(dump, "states"));
	cli_put_numbers("counters", json_object_get(dump, "counters"));
	(void)printf("warm       ");
	(void)json_dumpf(json_object_get(dump, "warm"), stdout, 0);
	(void)fputc('\n', stdout);
	cli_put_latencies(json_object_get(dump, "latency"));
	cli_put_boxes(json_object_get(dump, "boxes"));
	put_events(json_object_get(dump, "events"));
	json_array_foreach(cli_walk(findings), i, text)
	{
		(void)printf("INVALID    ");
		cli_put_text(stdout, json_string_value(text));
		(void)fputc('\n', stdout);
	}
	(void)printf(
	    "%s\n", json_array_size(findings) ? "the table is damaged" : "the table is valid");
}

static int dump_run(struct cli *cli, int argc, char **argv)
{
	int at = cli_parse(cli, NULL, argc, argv);
	const char *name;
	struct reader r;
	struct paths p;
	struct err err;
	json_t *dump;
	int status;

	if (at < 0)
		return -at;
	if (argc - at > 1)
		return cli_usage(cli, "one table at a time");
	if (at == argc && cli_paths(cli, &p, &err) < 0)
		return cli_fail("shm dump", &err);
	name = at < argc ? argv[at] : p.shm_name;
	if (reader_open(&r, name, &err) < 0)
		return cli_fail(name, &err);
	dump = dump_json(&r);
	reader_close(&r);
	status = json_array_size(json_object_get(dump, "findings")) ? CLI_WRONG : CLI_OK;
	if (cli->json)
		(void)cli_put_json(dump); /* cli_finish() looks for errors */
	else
		put_dump(dump);
	json_decref(dump);
	return cli_finish(status);
}

const struct cli_command cli_shm_dump = {
    .name = "shm",
    .sub = "dump",
    .args = "[NAME]",
    .help = "print and validate a shared table, live or dead",
    .run = dump_run,
};
