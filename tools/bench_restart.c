/* bench_restart: sbxd is killed and started again while it has many boxes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/clock.h"
#include "lib/hash.h"
#include "tools/bench.h"

#define BOXES 1000
#define ROUNDS 7
#define STRIDE 7919 /* from one scope to the next that is asked for: a prime */
#define QUIET_MS 500
#define BOX_JSON 2048
#define ASKED_NS (1 * NS_PER_S)
#define ALL_ADOPTED "every worker of the last supervisor has answered"

struct restart {
	struct daemon d;
	struct wire w;
	uint32_t boxes; /* warm ones; there is one more, in which a command counts */
	uint64_t list;	/* what the list of boxes said first */
	struct counter *counter;
	struct samples without; /* boxes: from exec to the first answer */
	struct samples answered;
	struct samples granted;
	struct samples adopted;
	struct samples down; /* from the kill to the first answer */
	struct samples silence;
	struct samples usual_silence;
};

static void ask_pool(struct restart *r)
{
	static const char request[] = "GET /v1/pool HTTP/1.1\r\nHost: localhost\r\n\r\n";

	daemon_await(&r->d);
	wire_connect(&r->w, &r->d);
	wire_call(&r->w, request, strlen(request));
	if (r->w.status != 200)
		bench_give_up("the pool is not shown");
}

/* The ids and generations of all boxes as one number; *count is how many. */
static uint64_t read_list(struct restart *r, uint32_t *count)
{
	static const char request[] = "GET /v1/boxes HTTP/1.1\r\nHost: localhost\r\n\r\n";
	static const char id[] = "\"box_id\":\"";
	static const char generation[] = "\"generation\":";
	uint64_t hash = HASH64_START;
	const char *at;

	wire_call(&r->w, request, strlen(request));
	at = r->w.buf + r->w.body_off;
	for (*count = 0; (at = strstr(at, id)); (*count)++) {
		at += sizeof(id) - 1;
		hash = hash64(hash, at, strcspn(at, "\""));
		at = strstr(at, generation);
		if (!at)
			bench_give_up("a box without a generation");
		at += sizeof(generation) - 1;
		hash = hash64(hash, at, strcspn(at, ","));
	}
	return hash;
}

static void expect_list(struct restart *r)
{
	uint32_t count;

	if (read_list(r, &count) != r->list || count != r->boxes + 1) {
		(void)fprintf(stderr, "%u boxes of %u are listed\n", count, r->boxes + 1);
		bench_give_up("the boxes are not the same as before");
	}
}

static void acquire_warm_scope(struct restart *r, uint32_t i)
{
	struct acquired a;
	char thread[FLEET_THREAD];

	fleet_thread(i, thread);
	call_acquire(&r->w, thread, &a);
	if (strcmp(a.source, "warm") != 0)
		bench_give_up("a box was lost");
	call_release(&r->w, a.id);
}

static void measure_without_boxes(struct restart *r)
{
	for (int i = 0; i < ROUNDS; i++) {
		wire_disconnect(&r->w);
		daemon_kill(&r->d);
		daemon_launch(&r->d);
		ask_pool(r);
		samples_add(&r->without, clock_now_ns() - r->d.launched_ns);
	}
}

static void measure_restart(struct restart *r, uint32_t round)
{
	uint64_t killed;
	uint64_t answered;

	(void)counter_silence_ns(r->counter);
	bench_settle(QUIET_MS);
	samples_add(&r->usual_silence, counter_silence_ns(r->counter));
	wire_disconnect(&r->w);
	killed = clock_now_ns();
	daemon_kill(&r->d);
	daemon_launch(&r->d);
	ask_pool(r);
	answered = clock_now_ns();
	acquire_warm_scope(r, round * STRIDE % r->boxes);
	samples_add(&r->granted, clock_now_ns() - r->d.launched_ns);
	expect_list(r);
	daemon_await_log(&r->d, ALL_ADOPTED);
	samples_add(&r->adopted, clock_now_ns() - r->d.launched_ns);
	samples_add(&r->answered, answered - r->d.launched_ns);
	samples_add(&r->down, answered - killed);
	samples_add(&r->silence, counter_silence_ns(r->counter));
	for (uint32_t i = 0; i < r->boxes; i++)
		acquire_warm_scope(r, i);
	expect_list(r);
}

static void make_boxes(struct restart *r, struct acquired *counting)
{
	uint32_t count;

	fleet_open(&r->w, 0, r->boxes);
	call_acquire(&r->w, "counting", counting);
	wire_keep(&r->w, (size_t)(r->boxes + 2) * BOX_JSON);
	r->list = read_list(r, &count);
	if (count != r->boxes + 1)
		bench_give_up("boxes are missing from the start");
	r->counter = counter_start(&r->d, counting->id);
}

static int print_all(struct restart *r)
{
	static const char baseline[] = "1 s";
	struct samples asked = {0};
	int missed = 0;

	samples_add(&asked, ASKED_NS);
	missed +=
	    print_times("exec of sbxd -> first answer", "ms", &r->answered, baseline, &asked, 1.0);
	missed +=
	    print_times("exec -> a warm box granted", "ms", &r->granted, baseline, &asked, 1.0);
	missed += print_times(
	    "exec -> every box adopted, listed", "ms", &r->adopted, baseline, &asked, 1.0);
	missed += print_times("sbxd killed -> first answer", "ms", &r->down,
	    "exec -> answer, no boxes", &r->without, 0);
	missed += print_times("longest silence of a stream, restart", "ms", &r->silence,
	    "in half a second without", &r->usual_silence, 0);
	samples_free(&asked);
	return missed;
}

static void free_all(struct restart *r)
{
	struct samples *const all[] = {&r->without, &r->answered, &r->granted, &r->adopted,
	    &r->down, &r->silence, &r->usual_silence};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		samples_free(all[i]);
}

int bench_restart(uint32_t boxes)
{
	struct restart r = {.boxes = fleet_fit(boxes ? boxes : BOXES)};
	struct acquired counting;
	char config[128];
	uint64_t numbers;
	int missed;

	(void)snprintf(config, sizeof(config), "replicas: %u\nmax_boxes: %u\nidle_timeout: 86400\n",
	    r.boxes + 1, r.boxes + 1);
	daemon_start(&r.d, config);
	wire_open(&r.w, &r.d);
	measure_without_boxes(&r);
	make_boxes(&r, &counting);
	for (uint32_t i = 0; i < ROUNDS; i++)
		measure_restart(&r, i);
	numbers = counter_stop(r.counter, &r.w, counting.id);
	wire_close(&r.w);
	daemon_stop(&r.d);
	missed = print_all(&r) + (numbers == 0);
	bench_note("%u boxes, %d restarts, each box warm and of its generation after each; %llu "
		   "numbers in the stream: %s",
	    r.boxes, ROUNDS, (unsigned long long)numbers, numbers ? "none lost" : "SOME ARE LOST");
	free_all(&r);
	return missed;
}
