/*
 * pool_testing: a rig around a pool: a fake clock, a scripted gauge, and the worker's side of the
 * talk. It keeps its own picture of every slot from the actions alone, and fails the test when an
 * action or the pool's inside does not go with it.
 */
#ifndef SBXD_TESTS_UNIT_SUPERVISOR_POOL_TESTING_H
#define SBXD_TESTS_UNIT_SUPERVISOR_POOL_TESTING_H

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "shm/slot.h"
#include "supervisor/pool_int.h"

#define RIG_SLOTS 16U
#define RIG_REQS 1024U
#define RIG_LOG 4096U
#define RIG_UID 1000U

/* What has become of a request. */
enum { WAITING = 0, GONE = 1, OBEYED = 2 };
#define GOT(source) (100 + (int)(source))
#define REFUSED(error) (200 + (int)(error))

struct rig_request {
	int outcome;
	uint64_t lease; /* of a grant */
	uint32_t slot;
	uint64_t generation;
	uint64_t waited;
	char text[sizeof(((struct pool_action *)NULL)->text)]; /* of a refusal */
	bool removal;					       /* it waits for POOL_REMOVED */
	bool removed;
};

/* Not an action: a worker that was another supervisor's has still to say hello. */
#define RIG_HELLO POOL_NOTHING

/* An order that a worker, or the janitor, owes an answer to. */
struct rig_order {
	enum pool_action_kind kind;
	uint32_t slot;
	uint64_t generation;
};

struct rig_slot {
	uint32_t state; /* as the records have told */
	uint64_t parked_as;
	bool worker; /* a process runs */
	bool up;     /* and the box with it */
	uint64_t generation;
};

/* What sbxd does beside the pool, for tests of that; all may be NULL. */
struct rig_hooks {
	void (*acted)(void *ctx, const struct pool_action *a); /* an action was performed */
	void (*publish)(void *ctx, const struct pool_box *b);  /* the box has changed */
	void (*settled)(void *ctx); /* all that an event brought is done */
	void *ctx;
};

struct rig {
	struct pool *pool;
	struct rig_hooks hooks;
	struct pool_rules rules;
	uint64_t now;
	uint32_t in_flight[RIG_SLOTS]; /* the gauge */
	uint64_t activity[RIG_SLOTS];
	struct rig_slot slots[RIG_SLOTS];
	uint64_t parkings;
	uint64_t generation; /* the last one that the table announces */
	struct rig_request requests[RIG_REQS];
	uint64_t last_req;
	struct rig_order orders[RIG_LOG]; /* not answered yet, oldest first */
	uint32_t order_count;
	uint32_t held; /* kinds of order, one bit each, that are left unanswered */
	bool sick;     /* checks are answered with unhealthy, stops with failure */
	bool unclean;  /* cleanups fail */
	uint32_t drained;
	const char *doing; /* for messages of a random run */
	uint64_t seed;
	uint32_t step;
	uint32_t log_count;
	struct pool_action log[RIG_LOG];
};

#define HOLD(kind) (1U << (kind))
#define HOLD_ALL UINT32_MAX
#define HOLD_HELLO HOLD(RIG_HELLO)

#define RIG_CHECK(r, cond)                                                                        \
	do {                                                                                      \
		if (!(cond))                                                                      \
			fail_msg("%s:%d: %s (seed %" PRIu64 ", step %u: %s)", __FILE__, __LINE__, \
			    #cond, (r)->seed, (r)->step, (r)->doing ? (r)->doing : "");           \
	} while (0)

#include "tests/unit/supervisor/pool_checks.h"
#include "tests/unit/supervisor/pool_inside.h"

static inline uint32_t rig_gauge_in_flight(void *ctx, uint32_t slot)
{
	return ((const struct rig *)ctx)->in_flight[slot];
}

static inline uint64_t rig_gauge_activity(void *ctx, uint32_t slot)
{
	return ((const struct rig *)ctx)->activity[slot];
}

/* ---- beginning and end ---- */

static const struct pool_rules rig_rules = {
    .slots = 8,
    .replicas = 3,
    .policy = REPLICA_SOFT,
    .burst_limit = 2,
    .max_boots = 4,
    .acquire_timeout = 60 * NS_PER_S,
    .idle_timeout = 600 * NS_PER_S,
    .check_timeout = 5 * NS_PER_S,
    .boot_timeout = 30 * NS_PER_S,
    .close_grace = 2 * NS_PER_S,
};

static inline void rig_start(struct rig *r, const struct pool_rules *rules)
{
	const struct pool_gauge gauge = {rig_gauge_in_flight, rig_gauge_activity, r};

	memset(r, 0, offsetof(struct rig, log));
	r->rules = *rules;
	r->now = 1000 * NS_PER_S;
	r->generation = 41;
	r->pool = pool_create(rules, &gauge, r->generation);
	assert_non_null(r->pool);
}

/* cmocka setup: a rig with rig_rules, which a test may change by rig_use() or rig_restart(). */
static inline int rig_setup(void **state)
{
	struct rig *r = calloc(1, sizeof(*r));

	assert_non_null(r);
	rig_start(r, &rig_rules);
	*state = r;
	return 0;
}

static inline int rig_teardown(void **state)
{
	struct rig *r = *state;

	pool_destroy(r->pool);
	free(r);
	return 0;
}

#define rig_test(fn) cmocka_unit_test_setup_teardown(fn, rig_setup, rig_teardown)

/* ---- what the pool says ---- */

static inline void rig_owe(struct rig *r, const struct pool_action *a)
{
	RIG_CHECK(r, r->order_count < RIG_LOG);
	r->orders[r->order_count++] = (struct rig_order){a->kind, a->slot, a->generation};
}

/* Forgets what the ended worker of a slot owed. */
static inline void rig_forgive(struct rig *r, uint32_t slot)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < r->order_count; i++) {
		if (r->orders[i].slot != slot)
			r->orders[kept++] = r->orders[i];
	}
	r->order_count = kept;
}

static inline void rig_take_action(struct rig *r, const struct pool_action *a)
{
	rig_check_action(r, a);
	switch (a->kind) {
	case POOL_SPAWN:
		r->slots[a->slot].worker = true;
		r->slots[a->slot].up = false;
		r->slots[a->slot].generation = a->generation;
		rig_owe(r, a);
		break;
	case POOL_CHECK:
	case POOL_CLOSE:
	case POOL_KILL:
	case POOL_CLEAN:
	case POOL_STOP:
		rig_owe(r, a);
		break;
	case POOL_GRANT:
		r->requests[a->req].outcome = GOT(a->source);
		r->requests[a->req].lease = a->lease_id;
		r->requests[a->req].slot = a->slot;
		r->requests[a->req].generation = a->generation;
		r->requests[a->req].waited = a->waited;
		break;
	case POOL_REFUSE:
		r->requests[a->req].outcome = REFUSED(a->error);
		memcpy(r->requests[a->req].text, a->text, sizeof(a->text));
		break;
	case POOL_REMOVED:
		r->requests[a->req].removed = true;
		break;
	case POOL_OBEYED:
		r->requests[a->req].outcome = OBEYED;
		r->requests[a->req].slot = a->slot;
		r->requests[a->req].generation = a->generation;
		break;
	case POOL_RECORD:
		if (a->event != EVENT_STATE)
			break;
		r->slots[a->slot].state = a->to;
		if (a->to == SLOT_WARM)
			r->slots[a->slot].parked_as = ++r->parkings;
		break;
	case POOL_DRAINED:
		r->drained++;
		break;
	case POOL_NOTHING:
	case POOL_PARK:
	case POOL_CLAIM:
	case POOL_PROMOTE:
		break;
	}
	RIG_CHECK(r, r->log_count < RIG_LOG);
	r->log[r->log_count++] = *a;
	if (r->hooks.acted)
		r->hooks.acted(r->hooks.ctx, a);
}

static inline void rig_take_actions(struct rig *r)
{
	const struct pool_box *b;
	struct pool_action a;

	while (pool_next_action(r->pool, &a))
		rig_take_action(r, &a);
	while ((b = pool_next_dirty(r->pool))) {
		if (r->hooks.publish)
			r->hooks.publish(r->hooks.ctx, b);
	}
	rig_check_pool(r);
	if (r->hooks.settled)
		r->hooks.settled(r->hooks.ctx);
}

/* ---- the worker's side ---- */

static inline void rig_worker_ends(struct rig *r, uint32_t slot, const char *how)
{
	uint64_t gen = r->slots[slot].generation;

	r->slots[slot].worker = false;
	rig_forgive(r, slot);
	pool_worker_gone(r->pool, r->now, slot, gen, 9, how);
	rig_take_actions(r);
}

static inline void rig_answer(struct rig *r, const struct rig_order *o)
{
	switch (o->kind) {
	case RIG_HELLO:
		pool_adopted(r->pool, r->now, o->slot, o->generation, r->slots[o->slot].up,
		    rig_is_owed(r, POOL_CLOSE, o->slot));
		break;
	case POOL_SPAWN:
		r->slots[o->slot].up = true;
		pool_booted(r->pool, r->now, o->slot, o->generation);
		break;
	case POOL_CHECK:
		pool_checked(r->pool, r->now, o->slot, o->generation, !r->sick,
		    r->sick ? "no answer from the guest" : "");
		break;
	case POOL_STOP:
		pool_stopped(r->pool, r->now, o->slot, o->generation, !r->sick,
		    r->sick ? "processes are left" : "");
		break;
	case POOL_CLOSE:
	case POOL_KILL:
		rig_worker_ends(r, o->slot, "ended as told");
		break;
	default:
		pool_cleaned(r->pool, r->now, o->slot, o->generation, !r->unclean,
		    r->unclean ? "a mount is busy" : "");
		break;
	}
	rig_take_actions(r);
}

/* Answers the n-th order, whatever is held. */
static inline void rig_answer_nth(struct rig *r, uint32_t n)
{
	struct rig_order o = r->orders[n];

	r->order_count--;
	memmove(&r->orders[n], &r->orders[n + 1], (r->order_count - n) * sizeof(o));
	rig_answer(r, &o);
}

/* Answers the order that a slot got first of those it has. */
static inline void rig_answer_slot(struct rig *r, uint32_t slot)
{
	for (uint32_t i = 0; i < r->order_count; i++) {
		if (r->orders[i].slot == slot) {
			rig_answer_nth(r, i);
			return;
		}
	}
	fail_msg("slot %u owes no answer", slot);
}

/* Answers, in order, all that is not held, until nothing is left to answer. */
static inline void rig_settle(struct rig *r)
{
	uint32_t i = 0;

	rig_take_actions(r);
	while (i < r->order_count) {
		if (r->held & HOLD(r->orders[i].kind)) {
			i++;
			continue;
		}
		rig_answer_nth(r, i);
		i = 0;
	}
}

/* The worker of a slot dies. */
static inline void rig_crash(struct rig *r, uint32_t slot)
{
	rig_worker_ends(r, slot, "killed by signal 9");
	rig_settle(r);
}

/* Answers from now on what was held until now. */
static inline void rig_let_go(struct rig *r)
{
	r->held = 0;
	rig_settle(r);
}

/* Lets time pass, as sbxd's timer would: the pool is called when it wants to be, and only then. */
static inline void rig_pass(struct rig *r, uint64_t ns)
{
	uint64_t end = r->now + ns;

	while (pool_deadline(r->pool) <= end) {
		if (pool_deadline(r->pool) > r->now)
			r->now = pool_deadline(r->pool);
		pool_tick(r->pool, r->now);
		RIG_CHECK(r, pool_deadline(r->pool) > r->now);
		rig_settle(r);
	}
	r->now = end;
}

/* Begins anew with another policy. */
static inline void rig_restart(
    struct rig *r, enum replica_policy policy, uint32_t replicas, uint32_t slots)
{
	struct pool_rules rules = rig_rules;

	rules.policy = policy;
	rules.replicas = replicas;
	rules.slots = slots;
	pool_destroy(r->pool);
	rig_start(r, &rules);
}

/* Changes the rules of the pool that is there. */
static inline void rig_use(struct rig *r, const struct pool_rules *rules)
{
	r->rules = *rules;
	pool_set_rules(r->pool, rules, r->now);
	rig_settle(r);
}

#include "tests/unit/supervisor/pool_asking.h"

#endif
