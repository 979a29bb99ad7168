/* bench_scale: sbxbench scale: warm acquires among so many scopes by so many clients, and the
 * memory that it takes. Holds no state. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/clock.h"
#include "tools/bench.h"
#include "tools/bench_client.h"
#include "tools/bench_command.h"
#include "tools/bench_table.h"

#define LIST_MAX 16
#define SCOPES_MAX 16000
#define CLIENTS_MAX 1024
#define SAMPLED 50 /* boxes whose memory is looked at */
#define TIMEOUT_S 60.0
#define KIB_PER_MIB 1024.0

struct list {
	uint32_t n[LIST_MAX];
	size_t count;
};

/* ---- clients ---- */

/* One client's share of the scopes: no other has them, unless there are more clients than scopes.
 */
struct share {
	const char *socket;
	uint32_t first;
	uint32_t scopes;
	uint32_t acquires;
	pthread_t thread;
	struct samples s;
	char failure[300]; /* "": none */
};

static int acquire_and_release(
    struct bench_client *cl, uint32_t scope, uint64_t *ns, struct err *err)
{
	char thread[FLEET_THREAD];
	json_t *box = NULL;
	int rc;

	fleet_thread(scope, thread);
	rc = bench_client_acquire(cl, "bench", thread, NULL, ns, &box, err);
	if (rc < 0)
		return rc;
	rc = bench_client_release(cl, json_string_value(json_object_get(box, "box_id")),
	    json_string_value(json_object_get(box, "lease_id")), NULL, err);
	json_decref(box);
	return rc;
}

static void *client_main(void *arg)
{
	struct share *sh = arg;
	struct bench_client cl;
	struct err err;
	int rc;

	bench_client_init(&cl, sh->socket, -1, TIMEOUT_S);
	rc = bench_client_connect(&cl, &err);
	for (uint32_t i = 0; rc == 0 && i < sh->acquires; i++) {
		uint64_t ns = 0;

		rc = acquire_and_release(&cl, sh->first + i % sh->scopes, &ns, &err);
		samples_add(&sh->s, ns);
	}
	if (rc < 0)
		(void)snprintf(sh->failure, sizeof(sh->failure), "%s", err.text);
	bench_client_close(&cl);
	return NULL;
}

static void give_shares(
    struct share *shares, uint32_t clients, uint32_t scopes, uint32_t acquires, const char *socket)
{
	for (uint32_t i = 0; i < clients; i++) {
		uint32_t first = (uint32_t)((uint64_t)i * scopes / clients);
		uint32_t next = (uint32_t)((uint64_t)(i + 1) * scopes / clients);

		shares[i] = (struct share){.socket = socket,
		    .first = first,
		    .scopes = next > first ? next - first : 1,
		    .acquires = acquires / clients};
	}
}

/* All at once; their times together in *s. How long it took, in ns. */
static uint64_t run_clients(struct share *shares, uint32_t clients, struct samples *s)
{
	uint64_t begin = clock_now_ns();
	uint64_t took;

	for (uint32_t i = 0; i < clients; i++) {
		if (pthread_create(&shares[i].thread, NULL, client_main, &shares[i]) != 0)
			bench_give_up("there can be no thread for each client");
	}
	for (uint32_t i = 0; i < clients; i++)
		(void)pthread_join(shares[i].thread, NULL); /* each of its waits is bounded */
	took = clock_now_ns() - begin;
	for (uint32_t i = 0; i < clients; i++) {
		if (*shares[i].failure)
			bench_give_up(shares[i].failure);
		for (size_t k = 0; k < shares[i].s.count; k++)
			samples_add(s, shares[i].s.ns[k]);
		samples_free(&shares[i].s);
	}
	return took;
}

static void measure(
    struct bench_table *t, const char *socket, uint32_t scopes, uint32_t clients, uint32_t acquires)
{
	struct share *shares = calloc(clients, sizeof(*shares));
	struct samples s = {0};
	uint64_t took;

	if (!shares)
		bench_die("calloc");
	give_shares(shares, clients, scopes, acquires > clients ? acquires : clients, socket);
	took = run_clients(shares, clients, &s);
	bench_table_add(t, "%u", scopes);
	bench_table_add(t, "%u", clients);
	bench_table_add(t, "%.1f", bench_us(samples_quantile(&s, 0.5)));
	bench_table_add(t, "%.1f", bench_us(samples_quantile(&s, 0.95)));
	bench_table_add(t, "%.1f", bench_us(samples_quantile(&s, 0.99)));
	bench_table_add(t, "%.0f", (double)s.count / ((double)took / 1e9));
	samples_free(&s);
	free(shares);
}

/* ---- memory ---- */

static uint64_t available_kib(void)
{
	return proc_number("/proc/meminfo", "MemAvailable:");
}

/* Worker and first process of some boxes, on average. */
static double box_kib(struct wire *w, uint32_t scopes)
{
	uint32_t n = scopes < SAMPLED ? scopes : SAMPLED;
	uint64_t kib = 0;

	for (uint32_t i = 0; i < n; i++) {
		char thread[FLEET_THREAD];
		struct acquired a;

		fleet_thread((uint32_t)((uint64_t)i * scopes / n), thread);
		call_acquire(w, thread, &a);
		kib += daemon_pss_kib((pid_t)call_box_number(w, a.id, "pid"));
		kib += daemon_pss_kib((pid_t)wire_json_int(w, "box_pid"));
		call_release(w, a.id);
	}
	return (double)kib / n;
}

static void measure_memory(struct bench_table *t, const struct daemon *d, struct wire *w,
    uint32_t scopes, uint64_t before_kib)
{
	uint64_t now = available_kib();
	double used = before_kib > now ? (double)(before_kib - now) : 0;

	bench_table_add(t, "%u", scopes);
	bench_table_add(t, "%.1f", (double)daemon_pss_kib(d->p.pid) / KIB_PER_MIB);
	bench_table_add(t, "%.2f", box_kib(w, scopes) / KIB_PER_MIB);
	bench_table_add(t, "%.2f", used / scopes / KIB_PER_MIB);
}

/* ---- the command ---- */

/* Ascending numbers with commas between them. */
static int parse_list(const struct bench_command *self, const char *name, const char *text,
    uint32_t max, struct list *out)
{
	const char *at = text;

	out->count = 0;
	do {
		char *end;
		unsigned long n = strtoul(at, &end, 10);

		if (end == at || (*end && *end != ',') || n == 0 || n > max ||
		    out->count == LIST_MAX || (out->count && n <= out->n[out->count - 1]))
			return bench_usage(self,
			    "--%s: '%s' is not allowed; give up to %d ascending numbers from 1 to "
			    "%u, separated by commas",
			    name, text, LIST_MAX, max);
		out->n[out->count++] = (uint32_t)n;
		at = *end ? end + 1 : end;
	} while (*at);
	return BENCH_OK;
}

static void add_heads(struct bench_table *speed, struct bench_table *memory)
{
	static const char *const speeds[] = {
	    "scopes", "clients", "acquire p50 us", "p95", "p99", "acquires/s"};
	static const char *const memories[] = {
	    "scopes", "sbxd MiB (PSS)", "a box MiB (PSS)", "host MiB for each, kernel and all"};

	bench_table_init(speed, 6, 0);
	for (size_t i = 0; i < 6; i++)
		bench_table_add(speed, "%s", speeds[i]);
	bench_table_init(memory, 4, 0);
	for (size_t i = 0; i < 4; i++)
		bench_table_add(memory, "%s", memories[i]);
}

static void scale(
    const struct list *scopes, const struct list *clients, uint32_t acquires, double skip_seconds)
{
	uint32_t most = fleet_fit(scopes->n[scopes->count - 1]);
	uint64_t before = available_kib();
	struct bench_table speed;
	struct bench_table memory;
	struct daemon d;
	struct wire w;
	char config[200];
	uint32_t have = 0;

	(void)snprintf(config, sizeof(config),
	    "replicas: %u\nmax_boxes: %u\nidle_timeout: 86400\nhealth_check_skip_seconds: %.3f\n",
	    most, most, skip_seconds);
	daemon_start(&d, config);
	wire_open(&w, &d);
	add_heads(&speed, &memory);
	for (size_t i = 0; i < scopes->count && have < most; i++) {
		uint32_t n = scopes->n[i] < most ? scopes->n[i] : most;

		fleet_open(&w, have, n);
		have = n;
		measure_memory(&memory, &d, &w, n, before);
		for (size_t k = 0; k < clients->count; k++)
			measure(&speed, d.socket, n, clients->n[k], acquires);
	}
	wire_close(&w);
	daemon_stop(&d);
	bench_table_print(&speed, BENCH_MARKDOWN, stdout);
	(void)printf("\n");
	bench_table_print(&memory, BENCH_MARKDOWN, stdout);
	bench_table_free(&speed);
	bench_table_free(&memory);
	(void)printf("\n");
	bench_print_notes();
}

int bench_scale_main(const struct bench_command *self, int argc, char **argv)
{
	const char *scopes_text = "10,100,1000,10000";
	const char *clients_text = "1,4,16,64";
	uint32_t acquires = 4000;
	double skip_seconds = 0;
	const struct bench_option options[] = {
	    {"scopes", BENCH_TEXT, &scopes_text, "N,...", "warm boxes (10,100,1000,10000)", 0, 0,
		NULL},
	    {"clients", BENCH_TEXT, &clients_text, "N,...", "at once (1,4,16,64)", 0, 0, NULL},
	    {"acquires", BENCH_COUNT, &acquires, "N", "of all clients together (4000)", 1,
		100000000, NULL},
	    {"health-check-skip-seconds", BENCH_SECONDS, &skip_seconds, "S",
		"of the private sbxd (0)", 0, 86400, NULL},
	};
	struct list scopes = {.count = 0};
	struct list clients = {.count = 0};
	int status;
	int at =
	    bench_parse(self, options, sizeof(options) / sizeof(options[0]), argc, argv, &status);

	if (at < 0)
		return status;
	if (at < argc)
		return bench_usage(self, "unexpected argument '%s'", argv[at]);
	status = parse_list(self, "scopes", scopes_text, SCOPES_MAX, &scopes);
	if (status == BENCH_OK)
		status = parse_list(self, "clients", clients_text, CLIENTS_MAX, &clients);
	if (status == BENCH_OK)
		scale(&scopes, &clients, acquires, skip_seconds);
	return status;
}
