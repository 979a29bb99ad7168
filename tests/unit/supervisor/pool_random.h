/*
 * pool_random: random events at a small pool, from a seed, with the rig of pool_testing.h. A
 * failure names its seed: SBX_SEED=n SBX_SEEDS=1 runs that one again, SBX_SEEDS=n runs n seeds
 * instead of the usual ones.
 */
#ifndef SBXD_TESTS_UNIT_SUPERVISOR_POOL_RANDOM_H
#define SBXD_TESTS_UNIT_SUPERVISOR_POOL_RANDOM_H

#include "tests/unit/supervisor/pool_events.h"

#define STEPS 500U

/* Everybody behaves well from now on: whoever asks gets a box, if a slot can be used at all. */
static inline void ask_once_more(struct run *x)
{
	struct rig *r = &x->rig;
	struct pool_rules rules = r->rules;
	struct scope s = any_scope(x);
	struct pool_request q = {
	    .req = ++r->last_req, .uid = s.uid, .id = *s.id, .lease_id = 5000 + r->last_req};
	const struct pool_box *there = pool_box_find(r->pool, s.uid, s.id->token);
	bool usable;

	if (there) /* it may be that of an impostor */
		memcpy(q.id.digest, there->identity, sizeof(q.id.digest));
	rules.policy = REPLICA_SOFT;
	rules.active_idle_timeout = 0;
	rig_use(r, &rules);
	while (any_made(x) && any_made(x)->state != SLOT_CLOSING) {
		remove_made(x, true);
		rig_settle(r);
	}
	(void)pool_reset(r->pool, r->now);
	rig_settle(r);
	usable = pool_count(r->pool, SLOT_QUARANTINED) < r->rules.slots;
	rig_send(r, &q);
	RIG_CHECK(r, rig_outcome(r, q.req) != WAITING);
	RIG_CHECK(r, usable == (rig_outcome(r, q.req) < REFUSED(API_OK)));
	rig_forget(r);
}

/* No client does anything more. Workers answer, or are all stuck: it must come to an end. */
static inline void finish(struct run *x)
{
	struct rig *r = &x->rig;

	memset(r->in_flight, 0, sizeof(r->in_flight));
	r->sick = r->unclean = false;
	r->held = chance(x, 50) ? 0 : HOLD_ALL;
	r->doing = r->held ? "finish without answers" : "finish";
	rig_settle(r);
	rig_pass(r, POOL_CLEAN_WAIT + 61 * NS_PER_S);
	RIG_CHECK(r, pool_waiters(r->pool) == 0);
	for (uint64_t i = 1; i <= r->last_req; i++)
		RIG_CHECK(r, rig_outcome(r, i) != WAITING);
	rig_forget(r);
	if (r->held == 0 && !x->stopping)
		ask_once_more(x);
	rig_shutdown(r);
	rig_pass(r, POOL_CLEAN_WAIT + 61 * NS_PER_S);
	RIG_CHECK(r, r->drained == 1);
	for (uint64_t i = 1; i <= r->last_req; i++)
		RIG_CHECK(r, r->requests[i].removed == r->requests[i].removal);
	RIG_CHECK(r, pool_deadline(r->pool) == CLOCK_NEVER);
}

/* A pool for the seed, under rules drawn from it. */
static inline void run_begin(struct run *x, uint64_t seed)
{
	struct pool_rules rules;

	x->random = seed;
	x->stopping = false;
	rules = any_rules(x);
	rig_start(&x->rig, &rules);
	x->rig.seed = seed;
	x->rig.held = HOLD_ALL;
}

static inline void run_events(struct run *x)
{
	for (x->rig.step = 0; x->rig.step < STEPS; x->rig.step++)
		step(x);
	finish(x);
}

static inline void run_end(struct run *x)
{
	pool_destroy(x->rig.pool);
	x->rig.pool = NULL;
}

static inline uint64_t run_from_environment(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);

	return text ? strtoull(text, NULL, 10) : otherwise;
}

static inline void run_setup(struct run *x)
{
	for (uint32_t i = 0; i < SCOPES / 2; i++)
		assert_int_equal(
		    identity_scope("u", (const char[]){(char)('a' + i), 0}, &x->ids[i]), 0);
}

#endif
