/* bench_flat: is an acquire among many boxes as fast as among few? Two daemons are asked in turn.
 */
#include <stdio.h>
#include <string.h>

#include "tools/bench.h"

#define FEW 10
#define MANY 10000 /* the sizes that are asked to be alike */
#define ROUNDS 40
#define ACQUIRES 250 /* of each kind, in a round */
#define STRIDE 7919  /* from one scope to the next: a prime, so that all get their turn */
#define BOUND 1.2

struct side {
	struct daemon d;
	struct wire w;
	uint32_t boxes;
	uint32_t next;
	struct samples few; /* of ten scopes in turn: how many others there are shall not matter */
	struct samples all; /* of all in turn: those of many have slept for long */
};

static void side_config(const struct side *s, const char *more, char out[160])
{
	(void)snprintf(out, 160, "replicas: %u\nmax_boxes: %u\nidle_timeout: 86400\n%s", s->boxes,
	    s->boxes, more);
}

static void side_open(struct side *s, uint32_t boxes)
{
	char config[160];

	*s = (struct side){.boxes = boxes};
	side_config(s, "", config);
	daemon_start(&s->d, config);
	wire_open(&s->w, &s->d);
	fleet_open(&s->w, 0, boxes);
}

static void side_close(struct side *s)
{
	wire_close(&s->w);
	daemon_stop(&s->d);
	samples_free(&s->few);
	samples_free(&s->all);
}

static void acquire_one(struct side *s, uint32_t i, struct samples *to)
{
	struct acquired a;
	char thread[FLEET_THREAD];

	fleet_thread(i, thread);
	call_acquire(&s->w, thread, &a);
	if (strcmp(a.source, "warm") != 0)
		bench_give_up("the warm box is not given");
	samples_add(to, a.ns);
	call_release(&s->w, a.id);
}

static void side_measure(struct side *s)
{
	for (uint32_t i = 0; i < ACQUIRES; i++)
		acquire_one(s, i % FEW, &s->few);
	for (uint32_t i = 0; i < ACQUIRES; i++) {
		s->next = (s->next + STRIDE) % s->boxes;
		acquire_one(s, s->next, &s->all);
	}
}

static int compare(struct side *few, struct side *many, const char *how)
{
	char what[64];
	int missed;

	samples_free(&few->few);
	samples_free(&few->all);
	samples_free(&many->few);
	samples_free(&many->all);
	for (int i = 0; i < ROUNDS; i++) {
		side_measure(i % 2 ? many : few);
		side_measure(i % 2 ? few : many);
	}
	(void)snprintf(what, sizeof(what), "warm, %s: 10 in turn, among %u", how, many->boxes);
	missed = print_times(what, "us", &many->few, "10 in turn, and no others", &few->few, BOUND);
	(void)snprintf(what, sizeof(what), "warm, %s: all %u in turn", how, many->boxes);
	return missed +
	       print_times(what, "us", &many->all, "10 in turn, and no others", &few->all, BOUND);
}

static void skip_checks(struct side *s)
{
	char config[160];

	side_config(s, "health_check_skip_seconds: 86400\n", config);
	daemon_configure(&s->d, config);
}

int bench_flat(uint32_t boxes)
{
	struct side few;
	struct side many;
	int missed;

	side_open(&few, FEW);
	side_open(&many, fleet_fit(boxes > FEW ? boxes : MANY));
	missed = compare(&few, &many, "checked");
	skip_checks(&few);
	skip_checks(&many);
	missed += compare(&few, &many, "check skipped");
	side_close(&few);
	side_close(&many);
	return missed;
}
