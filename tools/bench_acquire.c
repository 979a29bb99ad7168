/* bench_acquire: what it takes to get a box. */
#include <stdio.h>
#include <string.h>

#include "lib/clock.h"
#include "tools/bench.h"

#define ROUNDS 20
#define PING_BYTES 512
#define SETTLE_MS 100

/* ---- warm ---- */

/* Acquire, release, acquire, ...: the acquires are timed. */
static void acquire_warm(struct wire *w, struct samples *s, size_t n)
{
	struct acquired a;

	for (size_t i = 0; i < n; i++) {
		call_acquire(w, "warm", &a);
		if (strcmp(a.source, "warm") != 0)
			bench_give_up("the warm box is not given");
		samples_add(s, a.ns);
		call_release(w, a.id);
	}
}

static int measure_warm(const char *what, const char *config, double bound)
{
	struct samples ping = {0};
	struct samples acquire = {0};
	struct acquired first;
	struct daemon d;
	struct wire w;
	int missed;

	daemon_start(&d, config);
	wire_open(&w, &d);
	call_acquire(&w, "warm", &first);
	call_release(&w, first.id);
	for (int i = 0; i < ROUNDS; i++) {
		base_ping_pong(&ping, 500, PING_BYTES);
		acquire_warm(&w, &acquire, 200);
	}
	wire_close(&w);
	daemon_stop(&d);
	missed = print_times(what, "us", &acquire, "unix ping-pong 512 B", &ping, bound);
	samples_free(&ping);
	samples_free(&acquire);
	return missed;
}

int bench_warm(uint32_t boxes)
{
	(void)boxes;
	return measure_warm("warm acquire, health check", "replicas: 10\n", 6.0) +
	       measure_warm("warm acquire, check skipped",
		   "replicas: 10\nhealth_check_skip_seconds: 3600\n", 2.0);
}

/* ---- cold ---- */

/* Acquires a new scope and runs `true` in it; both together are timed. The box is removed
 * afterwards. */
static void acquire_cold(struct wire *w, struct samples *s, struct samples *acquired, int n)
{
	static int serial;
	struct acquired a;
	char request[512];
	char thread[32];
	char path[160];

	for (int i = 0; i < n; i++) {
		uint64_t begin;
		size_t len;

		(void)snprintf(thread, sizeof(thread), "cold-%d", serial++);
		call_acquire(w, thread, &a);
		samples_add(acquired, a.ns);
		(void)snprintf(path, sizeof(path), "/v1/boxes/%s/run", a.id);
		len = wire_build(
		    request, sizeof(request), "POST", path, "{\"argv\":[\"/bin/true\"]}");
		begin = clock_now_ns();
		wire_call(w, request, len);
		samples_add(s, a.ns + clock_now_ns() - begin);
		if (wire_json_int(w, "exit_code") != 0)
			bench_give_up("the first command fails");
		call_remove(w, a.id);
	}
}

int bench_cold(uint32_t boxes)
{
	struct samples bwrap = {0};
	struct samples cold = {0};
	struct samples acquired = {0};
	struct samples warm_up = {0};
	struct daemon d;
	struct wire w;
	int missed = 1;

	(void)boxes;
	daemon_start(&d, "replicas: 1000\n");
	wire_open(&w, &d);
	acquire_cold(&w, &warm_up, &warm_up, 3);
	for (int i = 0; i < ROUNDS; i++) {
		/* Namespaces are taken apart in the background: neither shall pay for the other's.
		 */
		bench_settle(SETTLE_MS);
		if (!base_bwrap(&bwrap, 5))
			break;
		bench_settle(SETTLE_MS);
		acquire_cold(&w, &cold, &acquired, 5);
	}
	wire_close(&w);
	daemon_stop(&d);
	if (bwrap.count == 0)
		bench_note("cold acquire: bwrap is not installed, so there is no baseline");
	else
		missed = print_times(
		    "cold acquire + first `true`", "us", &cold, "bwrap /bin/true", &bwrap, 0.5);
	if (acquired.count)
		bench_note("of a cold acquire with its first `true` the acquire alone: %.1f us",
		    bench_us(samples_quantile(&acquired, 0.5)));
	samples_free(&bwrap);
	samples_free(&cold);
	samples_free(&acquired);
	samples_free(&warm_up);
	return missed;
}
