/* top_testing: what the tests of sbxtop share: a table of their own, boxes in it, and a model. */
#ifndef SBXD_TESTS_UNIT_TOOLS_TOP_TESTING_H
#define SBXD_TESTS_UNIT_TOOLS_TOP_TESTING_H

#include <locale.h>

#include "lib/clock.h"
#include "shm/ring.h"
#include "tests/unit/shm/shm_testing.h"
#include "tools/top_model.h"

#define NOW (1000000 * NS_PER_S) /* of snapshots whose time matters */

struct stage {
	struct table t;
	struct reader r;
	struct top_model *m;
};

static inline void stage_open(struct stage *s, uint32_t slots)
{
	assert_non_null(setlocale(LC_CTYPE, "C.UTF-8"));
	table_open(&s->t, slots);
	atomic_store(&s->t.seg.header->supervisor_state, SUPERVISOR_SERVING);
	assert_int_equal(reader_open(&s->r, s->t.name, NULL), 0);
	s->m = top_model_create();
	assert_non_null(s->m);
	assert_int_equal(top_model_reset(s->m, slots), 0);
}

static inline void stage_close(struct stage *s)
{
	top_model_free(s->m);
	reader_close(&s->r);
	table_close(&s->t);
}

/* A snapshot at `now`, when the supervisor's heart has just beaten. */
static inline void stage_look(struct stage *s, uint64_t now)
{
	atomic_store(&s->t.seg.header->heartbeat_ns, now);
	top_model_refresh(s->m, &s->r, now);
}

/* Box n in slot n: user-n, thread-n, begun and in its state for n seconds at NOW. */
static inline void stage_put(struct stage *s, uint32_t n, uint32_t state)
{
	struct slot_sup *part = &s->t.parts[n];

	*part = part_make(state, n);
	(void)snprintf(part->user, sizeof(part->user), "user-%u", n);
	(void)snprintf(part->thread, sizeof(part->thread), "thread-%u", n);
	part->created_ns = NOW - n * NS_PER_S;
	part->state_ns = part->created_ns;
	slot_publish_sup(&s->t.seg.slots[n], part);
}

static inline void stage_put_work(struct stage *s, uint32_t n, const struct slot_work *work)
{
	struct slot_work w = *work;

	w.generation = s->t.parts[n].generation;
	slot_publish_work(&s->t.seg.slots[n].page, &w);
}

static inline void stage_event(struct stage *s, const struct shm_event *ev)
{
	(void)ring_append(&s->t.seg, ev);
}

#endif
