/* bench_recovery: a worker is killed, and its scope's next acquire gets a new box. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "lib/clock.h"
#include "tools/bench.h"

#define ROUNDS 40
#define WARM_UPS 3
#define SETTLE_MS 60		   /* what is left of the box before is taken apart meanwhile */
#define ALLOWED_NS (5 * NS_PER_MS) /* on top of a cold boot */
#define STATE_TRIES 10000

struct recovery {
	struct daemon d;
	struct wire acquires;
	struct wire asks;
	struct samples cold;
	struct samples at_kill;
	struct samples waiting;
};

/* A new scope's box, and away with it. */
static void measure_cold(struct recovery *r, int round)
{
	struct acquired a;
	char thread[32];

	(void)snprintf(thread, sizeof(thread), "cold-%d", round);
	bench_settle(SETTLE_MS);
	call_acquire(&r->acquires, thread, &a);
	samples_add(&r->cold, a.ns);
	call_remove(&r->acquires, a.id);
}

/* The scope's box, released; its worker. */
static pid_t park_victim(struct recovery *r, char id[64])
{
	struct acquired a;
	pid_t worker;

	call_acquire(&r->acquires, "victim", &a);
	call_release(&r->acquires, a.id);
	(void)snprintf(id, sizeof(a.id), "%s", a.id);
	worker = (pid_t)call_box_number(&r->asks, id, "pid");
	if (worker <= 0)
		bench_give_up("the victim has no worker");
	bench_settle(SETTLE_MS);
	return worker;
}

static void await_grant(struct recovery *r, uint64_t killed_ns, struct samples *s)
{
	struct acquired a;

	wire_receive(&r->acquires);
	samples_add(s, clock_now_ns() - killed_ns);
	call_read_acquired(&r->acquires, &a);
	if (strcmp(a.source, "cold") != 0)
		bench_give_up("the dead box was given");
	call_release(&r->acquires, a.id);
}

/* The acquire comes right after the death. */
static void measure_at_kill(struct recovery *r)
{
	char request[512];
	size_t len = call_build_acquire(request, sizeof(request), "victim");
	char id[64];
	pid_t worker = park_victim(r, id);
	uint64_t begin = clock_now_ns();

	(void)kill(worker, SIGKILL);
	wire_send(&r->acquires, request, len);
	await_grant(r, begin, &r->at_kill);
}

static void await_state(struct recovery *r, const char *id, const char *state)
{
	char now[32] = "";

	for (int i = 0; i < STATE_TRIES && strcmp(now, state) != 0; i++) {
		(void)call_box_number(&r->asks, id, "pid");
		(void)wire_json_text(&r->asks, "state", now, sizeof(now));
	}
	if (strcmp(now, state) != 0)
		bench_give_up("the box is not checked");
}

/* The acquire waits for a worker that does not answer, and then dies. */
static void measure_waiting(struct recovery *r)
{
	char request[512];
	size_t len = call_build_acquire(request, sizeof(request), "victim");
	char id[64];
	pid_t worker = park_victim(r, id);
	uint64_t begin;

	(void)kill(worker, SIGSTOP);
	wire_send(&r->acquires, request, len);
	await_state(r, id, "checking");
	begin = clock_now_ns();
	(void)kill(worker, SIGKILL);
	await_grant(r, begin, &r->waiting);
}

int bench_recovery(uint32_t boxes)
{
	static const char baseline[] = "cold acquire + 5 ms";
	struct recovery r = {0};
	struct samples allowed = {0};
	int missed;

	(void)boxes;
	daemon_start(&r.d, "replicas: 100\n");
	wire_open(&r.acquires, &r.d);
	wire_open(&r.asks, &r.d);
	for (int i = 0; i < WARM_UPS; i++)
		measure_cold(&r, -1 - i);
	samples_free(&r.cold);
	for (int i = 0; i < ROUNDS; i++) {
		measure_cold(&r, i);
		measure_at_kill(&r);
		measure_waiting(&r);
	}
	wire_close(&r.acquires);
	wire_close(&r.asks);
	daemon_stop(&r.d);
	samples_add(&allowed, samples_quantile(&r.cold, 0.5) + ALLOWED_NS);
	missed = print_times(
	    "worker killed, then acquire -> grant", "us", &r.at_kill, baseline, &allowed, 1.0);
	missed += print_times(
	    "worker killed, acquire waits -> grant", "us", &r.waiting, baseline, &allowed, 1.0);
	samples_free(&r.cold);
	samples_free(&r.at_kill);
	samples_free(&r.waiting);
	samples_free(&allowed);
	return missed;
}
