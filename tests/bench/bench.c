/* bench: `make bench`. Each row is measured in turn with its baseline, so that a noisy machine
 * disturbs both alike. */
#include "tests/bench/bench.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "lib/clock.h"

#define ROUNDS 20
#define PING_BYTES 512
#define IDLE_BOXES 100
#define STREAM_BYTES (64UL << 20)
#define STREAM_CHUNK (256UL << 10)

void samples_add(struct samples *s, uint64_t ns)
{
	if (s->count == s->cap) {
		s->cap = s->cap ? s->cap * 2 : 1024;
		s->ns = realloc(s->ns, s->cap * sizeof(uint64_t));
		if (!s->ns)
			die("realloc");
	}
	s->ns[s->count++] = ns;
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a;
	uint64_t y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

uint64_t samples_quantile(struct samples *s, double q)
{
	if (s->count == 0)
		return 0;
	qsort(s->ns, s->count, sizeof(uint64_t), by_value);
	return s->ns[(size_t)(q * (double)(s->count - 1))];
}

void samples_free(struct samples *s)
{
	free(s->ns);
	*s = (struct samples){0};
}

struct row {
	const char *what;
	const char *unit;
	const char *baseline;
	double value;
	double base;
	double p95;
	double bound; /* the ratio that is asked for */
	bool at_least;
};

static int print_row(const struct row *r)
{
	double ratio = r->base > 0 ? r->value / r->base : 0;
	bool met = r->at_least ? ratio >= r->bound : ratio <= r->bound;

	(void)printf("| %-34s | %9.1f %-4s | %9.1f | %-28s %9.1f | %6.2f | %s %.2f | %s |\n",
	    r->what, r->value, r->unit, r->p95, r->baseline, r->base, ratio,
	    r->at_least ? ">=" : "<=", r->bound, met ? "met" : "MISSED");
	(void)fflush(stdout);
	return met ? 0 : 1;
}

static double us(uint64_t ns)
{
	return (double)ns / 1000.0;
}

/* Acquire, release, acquire, ...: the acquires are timed. */
static void acquire_warm(struct wire *w, struct samples *s, size_t n)
{
	char acquire[512];
	char release[512];
	char path[128];
	char id[64];
	size_t acquire_len = wire_build(acquire, sizeof(acquire), "POST", "/v1/acquire",
	    "{\"user_id\":\"bench\",\"thread_id\":\"warm\"}");
	size_t release_len;

	wire_call(w, acquire, acquire_len);
	if (w->status != 200 || !wire_json_text(w, "box_id", id, sizeof(id)))
		die("acquire");
	(void)snprintf(path, sizeof(path), "/v1/boxes/%s/release", id);
	release_len = wire_build(release, sizeof(release), "POST", path, "{}");
	wire_call(w, release, release_len);
	for (size_t i = 0; i < n; i++) {
		uint64_t begin = clock_now_ns();

		wire_call(w, acquire, acquire_len);
		samples_add(s, clock_now_ns() - begin);
		if (w->status != 200 || !strstr(w->buf + w->body_off, "\"source\":\"warm\""))
			die("a warm acquire");
		wire_call(w, release, release_len);
	}
}

static int bench_warm(const char *what, const char *config, double bound)
{
	struct samples ping = {0};
	struct samples acquire = {0};
	struct daemon d;
	struct wire w;
	int missed;

	daemon_start(&d, config);
	wire_open(&w, &d);
	for (int i = 0; i < ROUNDS; i++) {
		base_ping_pong(&ping, 500, PING_BYTES);
		acquire_warm(&w, &acquire, 200);
	}
	wire_close(&w);
	daemon_stop(&d);
	missed = print_row(&(struct row){
	    .what = what,
	    .unit = "us",
	    .baseline = "unix ping-pong 512 B",
	    .value = us(samples_quantile(&acquire, 0.5)),
	    .p95 = us(samples_quantile(&acquire, 0.95)),
	    .base = us(samples_quantile(&ping, 0.5)),
	    .bound = bound,
	});
	samples_free(&ping);
	samples_free(&acquire);
	return missed;
}

/* Acquires a new scope and runs `true` in it; both together are timed. The box is removed
 * afterwards. */
static void acquire_cold(struct wire *w, struct samples *s, struct samples *acquired, int n)
{
	static int serial;
	char request[512];
	char body[128];
	char path[160];
	char id[64];
	size_t len;

	for (int i = 0; i < n; i++) {
		uint64_t begin;

		(void)snprintf(body, sizeof(body),
		    "{\"user_id\":\"bench\",\"thread_id\":\"cold-%d\"}", serial++);
		len = wire_build(request, sizeof(request), "POST", "/v1/acquire", body);
		begin = clock_now_ns();
		wire_call(w, request, len);
		if (w->status != 200 || !wire_json_text(w, "box_id", id, sizeof(id)))
			die("a cold acquire");
		samples_add(acquired, clock_now_ns() - begin);
		(void)snprintf(path, sizeof(path), "/v1/boxes/%s/run", id);
		len = wire_build(
		    request, sizeof(request), "POST", path, "{\"argv\":[\"/bin/true\"]}");
		wire_call(w, request, len);
		samples_add(s, clock_now_ns() - begin);
		if (wire_json_int(w, "exit_code") != 0)
			die("the first command");
		(void)snprintf(path, sizeof(path), "/v1/boxes/%s?force=true", id);
		len = wire_build(request, sizeof(request), "DELETE", path, "");
		wire_call(w, request, len);
	}
}

static void settle(void)
{
	const struct timespec a_while = {.tv_nsec = 100000000};

	(void)nanosleep(&a_while, NULL);
}

static int bench_cold(void)
{
	struct samples bwrap = {0};
	struct samples cold = {0};
	struct samples acquired = {0};
	struct samples warm_up = {0};
	struct daemon d;
	struct wire w;
	int missed = 1;

	daemon_start(&d, "replicas: 1000\n");
	wire_open(&w, &d);
	acquire_cold(&w, &warm_up, &warm_up, 3);
	for (int i = 0; i < ROUNDS; i++) {
		/* Namespaces are taken apart in the background: neither shall pay for the other's.
		 */
		settle();
		if (!base_bwrap(&bwrap, 5))
			break;
		settle();
		acquire_cold(&w, &cold, &acquired, 5);
	}
	wire_close(&w);
	daemon_stop(&d);
	if (bwrap.count == 0)
		(void)printf("cold acquire: bwrap is not installed, so there is no baseline\n");
	else
		missed = print_row(&(struct row){
		    .what = "cold acquire + first `true`",
		    .unit = "us",
		    .baseline = "bwrap /bin/true",
		    .value = us(samples_quantile(&cold, 0.5)),
		    .p95 = us(samples_quantile(&cold, 0.95)),
		    .base = us(samples_quantile(&bwrap, 0.5)),
		    .bound = 0.5,
		});
	if (acquired.count)
		(void)printf(
		    "of that the acquire alone: %.1f us\n", us(samples_quantile(&acquired, 0.5)));
	samples_free(&bwrap);
	samples_free(&cold);
	samples_free(&acquired);
	samples_free(&warm_up);
	return missed;
}

/* A box of its own; its id into id. */
static void open_box(struct wire *w, const char *thread, char *id, size_t size)
{
	char request[512];
	char body[128];

	(void)snprintf(body, sizeof(body), "{\"user_id\":\"bench\",\"thread_id\":\"%s\"}", thread);
	wire_call(w, request, wire_build(request, sizeof(request), "POST", "/v1/acquire", body));
	if (w->status != 200 || !wire_json_text(w, "box_id", id, size))
		die("acquire");
}

static int bench_run(void)
{
	static const char *const argv[] = {"/bin/true", NULL};
	struct samples spawn = {0};
	struct samples run = {0};
	struct daemon d;
	struct wire w;
	char request[512];
	char path[160];
	char id[64];
	size_t len;
	int missed;

	daemon_start(&d, "replicas: 1000\n");
	wire_open(&w, &d);
	open_box(&w, "run", id, sizeof(id));
	(void)snprintf(path, sizeof(path), "/v1/boxes/%s/run", id);
	len = wire_build(request, sizeof(request), "POST", path, "{\"argv\":[\"/bin/true\"]}");
	for (int i = 0; i < ROUNDS; i++) {
		base_spawn(&spawn, 25, argv);
		for (int k = 0; k < 25; k++) {
			uint64_t begin = clock_now_ns();

			wire_call(&w, request, len);
			samples_add(&run, clock_now_ns() - begin);
			if (wire_json_int(&w, "exit_code") != 0)
				die("run true");
		}
	}
	wire_close(&w);
	daemon_stop(&d);
	missed = print_row(&(struct row){
	    .what = "run `true` in a live box",
	    .unit = "us",
	    .baseline = "vfork+exec+wait /bin/true",
	    .value = us(samples_quantile(&run, 0.5)),
	    .p95 = us(samples_quantile(&run, 0.95)),
	    .base = us(samples_quantile(&spawn, 0.5)),
	    .bound = 1.5,
	});
	samples_free(&spawn);
	samples_free(&run);
	return missed;
}

static double mib_per_s(uint64_t ns)
{
	return (double)STREAM_BYTES / (double)(1 << 20) / ((double)ns / 1e9);
}

static int bench_read(void)
{
	struct samples stream = {0};
	struct samples read = {0};
	struct daemon d;
	struct wire w;
	char request[512];
	char path[160];
	char id[64];
	int missed;

	daemon_start(&d, "replicas: 1000\ndisk_mib: 256\n");
	wire_open(&w, &d);
	open_box(&w, "read", id, sizeof(id));
	(void)snprintf(path, sizeof(path), "/v1/boxes/%s/run", id);
	wire_call(&w, request,
	    wire_build(request, sizeof(request), "POST", path,
		"{\"command\":\"head -c 67108864 /dev/urandom > /tmp/f\"}"));
	(void)snprintf(path, sizeof(path), "/v1/boxes/%s/fs/read?path=/tmp/f", id);
	for (int i = 0; i < ROUNDS; i++) {
		uint64_t begin;

		base_stream(&stream, 1, STREAM_BYTES, STREAM_CHUNK);
		begin = clock_now_ns();
		wire_call(&w, request, wire_build(request, sizeof(request), "GET", path, ""));
		samples_add(&read, clock_now_ns() - begin);
		if (w.status != 200 || w.body_len != STREAM_BYTES)
			die("fs/read");
	}
	wire_close(&w);
	daemon_stop(&d);
	missed = print_row(&(struct row){
	    .what = "fs/read of 64 MiB",
	    .unit = "MiB/s",
	    .baseline = "unix stream, 256 KiB writes",
	    .value = mib_per_s(samples_quantile(&read, 0.5)),
	    .p95 = mib_per_s(samples_quantile(&read, 0.95)),
	    .base = mib_per_s(samples_quantile(&stream, 0.5)),
	    .bound = 1.0 / 3.0,
	    .at_least = true,
	});
	samples_free(&stream);
	samples_free(&read);
	return missed;
}

static int bench_memory(void)
{
	struct daemon d;
	struct wire w;
	char request[256];
	char path[160];
	char thread[32];
	char id[64];
	uint64_t boxes_kib = 0;
	uint64_t daemon_kib;

	daemon_start(&d, "replicas: 1000\n");
	wire_open(&w, &d);
	for (int i = 0; i < IDLE_BOXES; i++) {
		(void)snprintf(thread, sizeof(thread), "idle-%d", i);
		open_box(&w, thread, id, sizeof(id));
	}
	daemon_kib = daemon_pss_kib(d.pid);
	for (int i = 0; i < IDLE_BOXES; i++) {
		(void)snprintf(thread, sizeof(thread), "idle-%d", i);
		open_box(&w, thread, id, sizeof(id));
		(void)snprintf(path, sizeof(path), "/v1/boxes/%s", id);
		wire_call(&w, request, wire_build(request, sizeof(request), "GET", path, ""));
		boxes_kib += daemon_pss_kib((pid_t)wire_json_int(&w, "pid"));
		boxes_kib += daemon_pss_kib((pid_t)wire_json_int(&w, "box_pid"));
	}
	wire_close(&w);
	daemon_stop(&d);
	(void)printf(
	    "sbxd itself with %d idle boxes: %.1f MiB\n", IDLE_BOXES, (double)daemon_kib / 1024.0);
	return print_row(&(struct row){
	    .what = "memory of an idle box (PSS)",
	    .unit = "MiB",
	    .baseline = "worker + guest, each",
	    .value = (double)(boxes_kib + daemon_kib) / IDLE_BOXES / 1024.0,
	    .base = 1.0,
	    .bound = 1.5,
	});
}

int main(void)
{
	struct utsname host;
	int missed = 0;

	(void)uname(&host);
	(void)signal(SIGPIPE, SIG_IGN);
	(void)printf("%s %s, %ld cpus, sbxd %s; medians; each row in turn with its baseline\n\n",
	    host.sysname, host.release, sysconf(_SC_NPROCESSORS_ONLN), SBX_VERSION);
	(void)printf(
	    "| what | p50 | p95 | baseline | ratio | asked | |\n|---|---|---|---|---|---|---|\n");
	missed += bench_warm("warm acquire, health check", "replicas: 10\n", 6.0);
	missed += bench_warm(
	    "warm acquire, check skipped", "replicas: 10\nhealth_check_skip_seconds: 3600\n", 2.0);
	missed += bench_cold();
	missed += bench_run();
	missed += bench_read();
	missed += bench_memory();
	(void)printf("\n%d missed\n", missed);
	return missed ? EXIT_FAILURE : EXIT_SUCCESS;
}
