/*
 * api_openmetrics: GET /metrics: the service for Prometheus and others that scrape
 * (https://github.com/prometheus/OpenMetrics, specification 1.0). Runs in sbxd; holds no state.
 */
#include <inttypes.h>
#include <stdio.h>

#include "lib/clock.h"
#include "shm/hist.h"
#include "shm/slot.h"
#include "supervisor/client.h"
#include "supervisor/routes.h"
#include "supervisor/sbxd.h"
#include "supervisor/usage.h"

#define OPENMETRICS_TYPE "application/openmetrics-text; version=1.0.0; charset=utf-8"
#define OPENMETRICS_MAX (256U * 1024U)

/* Bounds of histograms: powers of two, in ns: 16 us to 137 s. */
#define BOUND_FIRST 14U
#define BOUND_LAST 37U

/* The text; after the first failure everything is ignored. */
struct text {
	struct buf *b;
	int rc;
};

#define PUT(t, ...)                                                \
	do {                                                       \
		if ((t)->rc == 0)                                  \
			(t)->rc = buf_printf((t)->b, __VA_ARGS__); \
	} while (0)

static void put_family(struct text *t, const char *name, const char *type, const char *help)
{
	PUT(t, "# TYPE %s %s\n# HELP %s %s\n", name, type, name, help);
}

static void put_unit(struct text *t, const char *name, const char *unit)
{
	PUT(t, "# UNIT %s %s\n", name, unit);
}

/* ns as seconds, exactly: no locale chooses the decimal point. */
static void put_seconds(struct text *t, uint64_t ns)
{
	PUT(t, "%llu.%09llu", ns / NS_PER_S, ns % NS_PER_S);
}

/* ---- counters ---- */

static const struct {
	const char *name; /* NULL: shown in a family of several */
	const char *help;
} counters[COUNTERS] = {
    [COUNTER_ACQUIRE_FAILED] = {"sbxd_acquire_failures", "Acquires that were refused."},
    [COUNTER_RELEASES] = {"sbxd_releases", "Releases that clients asked for."},
    [COUNTER_BOOTS] = {"sbxd_boots", "Boots that were begun."},
    [COUNTER_BOOT_FAILURES] = {"sbxd_boot_failures", "Boots that failed."},
    [COUNTER_CHECKS] = {"sbxd_checks", "Health checks of warm boxes."},
    [COUNTER_CHECK_FAILURES] = {"sbxd_check_failures", "Health checks that failed."},
    [COUNTER_EVICTIONS] = {"sbxd_evictions", "Warm boxes closed to make room."},
    [COUNTER_IDLE_CLOSES] = {"sbxd_idle_closes", "Boxes closed because they lay idle."},
    [COUNTER_CLOSES] = {"sbxd_closes", "Boxes that were closed, for whatever reason."},
    [COUNTER_WORKER_CRASHES] = {"sbxd_worker_crashes", "Workers that ended unasked."},
    [COUNTER_LOCK_RECOVERIES] = {"sbxd_lock_recoveries",
	"Scope locks recovered from an owner that died."},
    [COUNTER_QUARANTINES] = {"sbxd_quarantines", "Slots that could not be cleaned or repaired."},
    [COUNTER_HANDOVERS] = {"sbxd_handovers", "Connections handed to workers."},
    [COUNTER_HANDBACKS] = {"sbxd_handbacks", "Connections that workers handed back."},
    [COUNTER_CREATES] = {"sbxd_creates", "Boxes made for POST /v1/boxes."},
    [COUNTER_STARTS] = {"sbxd_starts", "Made boxes that were started, by order or by use."},
    [COUNTER_STOPS] = {"sbxd_stops", "Made boxes that were stopped."},
    [COUNTER_REJECTED_REQUESTS] = {"sbxd_rejected_requests",
	"Requests and connections answered with an error by sbxd itself."},
};

static void put_counter(struct text *t, const char *name, const char *help, uint64_t value)
{
	put_family(t, name, "counter", help);
	PUT(t, "%s_total %" PRIu64 "\n", name, value);
}

static void put_counters(struct text *t, const struct sbxd *s)
{
	put_family(
	    t, "sbxd_acquires", "counter", "Boxes given to clients, by where they came from.");
	for (uint32_t i = 0; i < SOURCES; i++)
		PUT(t, "sbxd_acquires_total{source=\"%s\"} %" PRIu64 "\n", slot_source_name(i),
		    publish_counter(s, i));
	for (uint32_t i = 0; i < COUNTERS; i++) {
		if (counters[i].name)
			put_counter(t, counters[i].name, counters[i].help, publish_counter(s, i));
	}
}

static void put_bytes(struct text *t, const char *name, const char *help, uint64_t value)
{
	put_family(t, name, "counter", help);
	put_unit(t, name, "bytes");
	PUT(t, "%s_total %" PRIu64 "\n", name, value);
}

static void put_usage(struct text *t, const struct sbxd *s)
{
	struct usage u;

	usage_total(s, &u);
	put_counter(t, "sbxd_commands", "Commands started in boxes.", u.commands);
	put_counter(t, "sbxd_command_failures",
	    "Commands that could not be started, or were lost with their box.", u.command_failures);
	put_bytes(t, "sbxd_input_bytes", "Bytes sent into boxes: stdin and files.", u.bytes_in);
	put_bytes(
	    t, "sbxd_output_bytes", "Bytes out of boxes: stdout, stderr and files.", u.bytes_out);
}

/* ---- gauges ---- */

static void put_gauge(struct text *t, const char *name, const char *help, uint64_t value)
{
	put_family(t, name, "gauge", help);
	PUT(t, "%s %" PRIu64 "\n", name, value);
}

static void put_gauges(struct text *t, const struct sbxd *s)
{
	const struct shm_header *h = s->seg.header;
	uint64_t started = atomic_load_explicit(&h->started_ns, memory_order_relaxed);

	put_family(t, "sbxd_boxes", "gauge", "Slots of the table, by state.");
	for (uint32_t i = 0; i < SLOT_STATES; i++)
		PUT(t, "sbxd_boxes{state=\"%s\"} %u\n", slot_state_name(i),
		    pool_count(s->pool, (enum slot_state)i));
	put_gauge(t, "sbxd_replicas", "Boxes that the configuration wants at most.",
	    pool_rules(s->pool)->replicas);
	put_gauge(t, "sbxd_waiters", "Acquires that wait for a box.", pool_waiters(s->pool));
	put_gauge(t, "sbxd_clients", "Connections of clients.", clients_count(s->clients));
	put_family(t, "sbxd_uptime_seconds", "gauge", "Time since this supervisor started.");
	put_unit(t, "sbxd_uptime_seconds", "seconds");
	PUT(t, "sbxd_uptime_seconds ");
	put_seconds(t, loop_now(s->loop) - started);
	PUT(t, "\n");
	put_family(t, "sbxd_build", "info", "What runs.");
	PUT(t, "sbxd_build_info{version=\"%s\",driver=\"%s\",isolation=\"%s\"} 1\n", SBX_VERSION,
	    s->driver, s->isolation);
}

/* ---- histograms ---- */

/* The samples of one histogram; label: "" or `name="value"`. */
static void put_samples(
    struct text *t, const char *name, const char *label, const struct shm_hist *h)
{
	const char *comma = *label ? "," : "";
	const char *begin = *label ? "{" : "";
	const char *end = *label ? "}" : "";
	uint64_t total = 0;
	uint32_t bucket = 0;

	for (uint32_t e = BOUND_FIRST; e <= BOUND_LAST; e++) {
		for (; bucket < hist_bucket(1ULL << e); bucket++)
			total += atomic_load_explicit(&h->buckets[bucket], memory_order_relaxed);
		PUT(t, "%s_bucket{%s%sle=\"", name, label, comma);
		put_seconds(t, (1ULL << e) - 1); /* a bound belongs to its bucket */
		PUT(t, "\"} %" PRIu64 "\n", total);
	}
	for (; bucket < HIST_BUCKETS; bucket++)
		total += atomic_load_explicit(&h->buckets[bucket], memory_order_relaxed);
	PUT(t, "%s_bucket{%s%sle=\"+Inf\"} %" PRIu64 "\n", name, label, comma, total);
	PUT(t, "%s_count%s%s%s %" PRIu64 "\n%s_sum%s%s%s ", name, begin, label, end, total, name,
	    begin, label, end);
	put_seconds(t, atomic_load_explicit(&h->sum_ns, memory_order_relaxed));
	PUT(t, "\n");
}

static void put_histogram_family(struct text *t, const char *name, const char *help)
{
	put_family(t, name, "histogram", help);
	put_unit(t, name, "seconds");
}

static void put_histograms(struct text *t, const struct sbxd *s)
{
	static const struct {
		const char *name;
		const char *help;
		enum shm_hist_id id;
	} plain[] = {
	    {"sbxd_boot_duration_seconds", "From a worker's start to a box that is up.", HIST_BOOT},
	    {"sbxd_check_duration_seconds", "Health checks.", HIST_CHECK},
	    {"sbxd_close_duration_seconds", "From the order to close to a clean slot.", HIST_CLOSE},
	};
	static const char acquire[] = "sbxd_acquire_duration_seconds";
	char label[48];

	put_histogram_family(t, acquire, "From an acquire to its box, by where it came from.");
	for (uint32_t i = 0; i < SOURCES; i++) {
		(void)snprintf(label, sizeof(label), "source=\"%s\"", slot_source_name(i));
		put_samples(t, acquire, label, &s->seg.header->hists[i]);
	}
	for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++) {
		put_histogram_family(t, plain[i].name, plain[i].help);
		put_samples(t, plain[i].name, "", &s->seg.header->hists[plain[i].id]);
	}
}

void api_openmetrics(struct sbxd *s, struct client *c, const struct route_call *call)
{
	struct buf out;
	struct text t = {.b = &out};

	(void)call;
	buf_init(&out, OPENMETRICS_MAX);
	put_counters(&t, s);
	put_usage(&t, s);
	put_gauges(&t, s);
	put_histograms(&t, s);
	PUT(&t, "# EOF\n");
	if (t.rc == 0)
		client_reply_text(c, 200, OPENMETRICS_TYPE, &out);
	else
		client_reply_error(c, API_INTERNAL, "the answer does not fit memory");
	buf_free(&out);
}
