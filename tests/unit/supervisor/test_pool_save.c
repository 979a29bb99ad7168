/* Tests of supervisor/pool_save.c: boxes that outlive their workers. */
#include "tests/unit/supervisor/pool_restarting.h"

/* A box of that scope with a lease, whose machine lives on without its worker. */
static const struct pool_box *box_that_outlives(struct rig *r, const char *thread)
{
	const struct pool_box *b;

	rig_acquire(r, thread);
	b = rig_box(r, thread);
	pool_outlives(r->pool, b->slot, b->generation, true);
	rig_settle(r);
	rig_forget(r);
	return b;
}

static void test_it_is_booted_again_and_warm(void **state)
{
	struct rig *r = *state;
	const struct pool_box *b = box_that_outlives(r, "t");
	uint64_t generation = b->generation;
	uint64_t machine = b->machine;
	uint64_t req;

	rig_crash(r, b->slot);
	assert_ptr_equal(rig_box(r, "t"), b);
	assert_state(r, "t", SLOT_WARM);
	assert_true(b->generation > generation);
	assert_int_equal(b->machine, machine);
	assert_int_equal(b->lease_count, 0);
	assert_int_equal(b->flags & (SLOT_FLAG_SAVED | SLOT_FLAG_ADOPTED), SLOT_FLAG_ADOPTED);
	assert_int_equal(rig_said(r, POOL_SPAWN), 1);
	assert_int_equal(rig_said(r, POOL_CLEAN), 0);
	assert_int_equal(rig_recorded(r, EVENT_WORKER_CRASH), 1);
	assert_int_equal(rig_release(r, "t", 0), POOL_RELEASE_WARM);
	req = rig_acquire(r, "t");
	assert_outcome(r, req, GOT(SOURCE_WARM));
	assert_int_equal(rig_said(r, POOL_CHECK), 1);
}

/* Even where what was parked just now need not be checked. */
static void test_it_is_always_checked(void **state)
{
	struct rig *r = *state;
	struct pool_rules rules = rig_rules;

	rules.check_skip = 60 * NS_PER_S;
	rig_use(r, &rules);
	rig_crash(r, box_that_outlives(r, "t")->slot);
	rig_acquire(r, "t");
	assert_int_equal(rig_said(r, POOL_CHECK), 1);
}

static void test_who_waits_gets_it(void **state)
{
	struct rig *r = *state;
	const struct pool_box *b = box_that_outlives(r, "t");
	uint64_t req[2];

	r->held = HOLD(POOL_SPAWN);
	rig_crash(r, b->slot);
	assert_state(r, "t", SLOT_BOOTING);
	req[0] = rig_acquire(r, "t");
	req[1] = rig_acquire(r, "t");
	rig_let_go(r);
	assert_outcome(r, req[0], GOT(SOURCE_WARM));
	assert_outcome(r, req[1], GOT(SOURCE_ACTIVE));
}

/* The worker proves the box and dies at once: sbxd hears of both before it has answered anybody.
 * Not taken by the rig, which would have a worker in the slot, or none. */
static void test_who_was_to_get_it_just_then_is_answered(void **state)
{
	struct rig *r = *state;
	const struct pool_box *b = box_that_outlives(r, "t");
	struct pool_action a;
	uint64_t refused = 0;
	uint64_t req;

	assert_int_equal(rig_release(r, "t", 0), POOL_RELEASE_WARM);
	r->held = HOLD(POOL_CHECK);
	req = rig_acquire(r, "t");
	assert_state(r, "t", SLOT_CHECKING);
	pool_checked(r->pool, r->now, b->slot, b->generation, true, "");
	pool_worker_gone(r->pool, r->now, b->slot, b->generation, 9, "killed by signal 9");
	assert_int_equal(b->state, SLOT_BOOTING);
	assert_int_equal(b->lease_count, 0);
	while (pool_next_action(r->pool, &a)) {
		assert_int_not_equal(a.kind, POOL_GRANT);
		if (a.kind != POOL_REFUSE)
			continue;
		assert_int_equal(refused, 0);
		assert_int_equal(a.error, API_WORKER_CRASHED);
		refused = a.req;
	}
	assert_int_equal(refused, req);
}

static void assert_replaced(struct rig *r, const struct pool_box *b, uint64_t req)
{
	assert_outcome(r, req, GOT(SOURCE_COLD));
	assert_int_equal(rig_said(r, POOL_CLEAN), 1);
	assert_int_not_equal(rig_box(r, "t")->machine, b->slot);
	assert_int_equal(rig_box(r, "t")->machine, rig_box(r, "t")->generation);
}

static void test_who_waits_for_one_that_cannot_be_had_gets_another(void **state)
{
	struct rig *r = *state;
	const struct pool_box *b = box_that_outlives(r, "t");
	uint64_t req;

	r->held = HOLD(POOL_SPAWN);
	rig_crash(r, b->slot);
	req = rig_acquire(r, "t");
	pool_boot_failed(r->pool, r->now, b->slot, b->generation, "it does not run any more");
	rig_settle(r);
	rig_let_go(r);
	assert_replaced(r, b, req);
	assert_string_equal(rig_record_text(r, EVENT_ERROR), "it does not run any more");
	assert_int_equal(rig_recorded(r, EVENT_BOOT_FAILED), 0);
}

static void test_its_taking_over_has_its_time(void **state)
{
	struct rig *r = *state;
	const struct pool_box *b = box_that_outlives(r, "t");
	uint64_t req;

	r->held = HOLD(POOL_SPAWN);
	rig_crash(r, b->slot);
	req = rig_acquire(r, "t");
	rig_pass(r, rig_rules.boot_timeout);
	assert_int_equal(rig_said(r, POOL_KILL), 1);
	rig_let_go(r);
	assert_replaced(r, b, req);
}

/* Each new worker dies of it. */
static void test_not_for_ever(void **state)
{
	struct rig *r = *state;
	const struct pool_box *b = box_that_outlives(r, "t");

	for (int i = 0; i < 2; i++) {
		rig_crash(r, b->slot);
		assert_state(r, "t", SLOT_WARM);
	}
	rig_crash(r, b->slot);
	assert_state(r, "t", SLOT_FREE);
	assert_int_equal(rig_said(r, POOL_CLEAN), 1);
	b = box_that_outlives(r, "t");
	for (int i = 0; i < 5; i++) {
		rig_crash(r, b->slot);
		rig_acquire(r, "t");
	}
	assert_int_equal(rig_said(r, POOL_CLEAN), 0);
}

static void test_what_has_nothing_to_lose_is_not_saved(void **state)
{
	struct rig *r = *state;
	struct pool_rules rules = rig_rules;
	const struct pool_box *b;

	rules.prewarm = 1;
	rules.stock = rig_request(r, "t").spec;
	rig_use(r, &rules);
	rig_pass(r, NS_PER_S);
	b = TAILQ_FIRST(&r->pool->stock);
	pool_outlives(r->pool, b->slot, b->generation, true);
	rig_settle(r);
	rig_forget(r);
	rig_crash(r, b->slot);
	assert_int_equal(rig_said(r, POOL_CLEAN), 1);
}

static void test_a_box_that_is_being_saved_can_be_removed(void **state)
{
	struct rig *r = *state;
	const struct pool_box *b = box_that_outlives(r, "t");
	uint64_t req;

	r->held = HOLD(POOL_SPAWN);
	rig_crash(r, b->slot);
	assert_int_equal(rig_remove(r, "t", false, &req), 0);
	rig_let_go(r);
	assert_true(r->requests[req].removed);
	assert_state(r, "t", SLOT_FREE);
	assert_int_equal(rig_said(r, POOL_CLEAN), 1);
}

static void test_a_shutdown_saves_nothing(void **state)
{
	struct rig *r = *state;
	const struct pool_box *b = box_that_outlives(r, "t");

	r->held = HOLD(POOL_CLOSE);
	rig_shutdown(r);
	rig_crash(r, b->slot);
	assert_int_equal(rig_said(r, POOL_CLEAN), 1);
	assert_int_equal(r->drained, 1);
}

/* ---- only what drives it dies ---- */

static void test_a_box_that_was_left_is_saved(void **state)
{
	struct rig *r = *state;
	const struct pool_box *b = box_that_outlives(r, "t");

	pool_box_failed(r->pool, r->now, b->slot, b->generation, "the stream ended");
	pool_box_left(r->pool, b->slot, b->generation);
	assert_state(r, "t", SLOT_CLOSING);
	rig_crash(r, b->slot);
	assert_state(r, "t", SLOT_WARM);
}

static void test_a_box_that_died_is_not(void **state)
{
	struct rig *r = *state;
	const struct pool_box *b = box_that_outlives(r, "t");

	pool_box_failed(r->pool, r->now, b->slot, b->generation, "the stream ended");
	rig_crash(r, b->slot);
	assert_state(r, "t", SLOT_FREE);
}

static void test_nor_is_one_that_is_closed_for_a_reason(void **state)
{
	struct rig *r = *state;
	const struct pool_box *b = box_that_outlives(r, "t");
	uint64_t req;

	pool_box_left(r->pool, b->slot, b->generation); /* it has not died */
	pool_box_failed(r->pool, r->now, b->slot, b->generation, "the stream ended");
	rig_take_actions(r);
	assert_int_equal(rig_remove(r, "t", true, &req), 0);
	pool_box_left(r->pool, b->slot, b->generation);
	rig_crash(r, b->slot);
	assert_true(r->requests[req].removed);
	assert_state(r, "t", SLOT_FREE);
}

/* Its room was given away meanwhile. */
static void test_nor_is_one_that_has_no_place_any_more(void **state)
{
	struct rig *r = *state;
	const struct pool_box *b;

	rig_restart(r, REPLICA_REJECT, 1, 4);
	b = box_that_outlives(r, "t");
	pool_box_failed(r->pool, r->now, b->slot, b->generation, "the stream ended");
	pool_box_left(r->pool, b->slot, b->generation);
	rig_take_actions(r);
	assert_outcome(r, rig_acquire(r, "another"), GOT(SOURCE_COLD));
	rig_crash(r, b->slot);
	assert_state(r, "t", SLOT_FREE);
}

/* Who takes long to go is killed, and what was to be saved still is. */
static void test_a_worker_that_stays_makes_no_difference(void **state)
{
	struct rig *r = *state;
	const struct pool_box *b = box_that_outlives(r, "t");

	pool_box_failed(r->pool, r->now, b->slot, b->generation, "the stream ended");
	pool_box_left(r->pool, b->slot, b->generation);
	rig_pass(r, POOL_FAILED_GRACE);
	assert_int_equal(rig_said(r, POOL_KILL), 1);
	assert_int_equal(rig_said(r, POOL_CLEAN), 0);
	assert_state(r, "t", SLOT_WARM);
}

/* Its lease is gone, and the box is not. */
static void test_a_lease_that_was_lost_is_returned(void **state)
{
	struct rig *r = *state;
	const struct pool_box *b = box_that_outlives(r, "t");

	r->held = HOLD(POOL_SPAWN);
	pool_box_failed(r->pool, r->now, b->slot, b->generation, "the stream ended");
	pool_box_left(r->pool, b->slot, b->generation);
	assert_int_equal(rig_release(r, "t", 0), POOL_RELEASE_WARM);
	rig_crash(r, b->slot);
	assert_state(r, "t", SLOT_BOOTING);
	assert_int_equal(rig_release(r, "t", 0), POOL_RELEASE_WARM);
	rig_let_go(r);
	assert_state(r, "t", SLOT_WARM);
}

/* ---- a successor ---- */

static void test_a_successor_saves_what_has_no_worker(void **state)
{
	struct rig *r = *state;
	const struct pool_box *b = box_that_outlives(r, "t");
	uint64_t machine = b->machine;
	uint32_t slot = b->slot;

	rig_acquire(r, "not");
	r->slots[slot].worker = false;
	r->slots[rig_box(r, "not")->slot].worker = false;
	rig_die_and_succeed(r);
	rig_settle(r);
	assert_state(r, "t", SLOT_WARM);
	assert_int_equal(rig_box(r, "t")->machine, machine);
	assert_int_equal(rig_box(r, "t")->lease_count, 0);
	assert_state(r, "not", SLOT_FREE);
}

/* The new worker lives and cannot be heard yet, or is gone as well. */
static void test_a_successor_begins_anew(void **state)
{
	struct rig *r = *state;

	for (int lives = 0; lives < 2; lives++) {
		const struct pool_box *b = box_that_outlives(r, lives ? "a" : "b");
		uint32_t slot = b->slot;

		r->held = HOLD(POOL_SPAWN);
		rig_crash(r, slot);
		r->slots[slot].worker = lives;
		rig_forgive(r, slot);
		r->held = HOLD_HELLO;
		rig_die_and_succeed(r);
		if (lives) {
			rig_forgive(r, slot);
			pool_not_adopted(r->pool, r->now, slot,
			    pool_box_at(r->pool, slot)->generation, "half-made");
		}
		rig_let_go(r);
		assert_state(r, lives ? "a" : "b", SLOT_WARM);
	}
}

/* What ends each worker ends each sbxd, too. */
static void test_not_for_ever_whoever_supervises(void **state)
{
	struct rig *r = *state;
	uint32_t slot = box_that_outlives(r, "t")->slot;

	for (int i = 0; i < 2; i++) {
		r->slots[slot].worker = false;
		rig_die_and_succeed(r);
		assert_state(r, "t", SLOT_WARM);
	}
	r->slots[slot].worker = false;
	rig_die_and_succeed(r);
	assert_state(r, "t", SLOT_FREE);
}

/* As often as sbxd dies, the worker has died once. */
static void test_what_waits_to_be_saved_waits_on(void **state)
{
	struct rig *r = *state;
	struct pool_rules rules = rig_rules;
	uint32_t slot;
	uint64_t generation;

	rules.max_boots = 1;
	pool_destroy(r->pool);
	rig_start(r, &rules);
	slot = box_that_outlives(r, "t")->slot;
	r->held = HOLD(POOL_SPAWN) | HOLD_HELLO;
	rig_acquire(r, "boots");
	rig_crash(r, slot);
	assert_state(r, "t", SLOT_RESERVED);
	generation = rig_box(r, "t")->generation;
	for (int i = 0; i < 3; i++) {
		rig_die_and_succeed(r);
		assert_int_equal(rig_box(r, "t")->saves, 1);
		assert_int_equal(rig_box(r, "t")->generation, generation);
		assert_state(r, "t", SLOT_RESERVED);
	}
	rig_let_go(r);
	assert_state(r, "t", SLOT_WARM);
}

/* The box of a worker that lives and is gone at last, or does not. */
static void box_is_left(struct rig *r, const struct pool_box *b, bool worker)
{
	pool_box_failed(r->pool, r->now, b->slot, b->generation, "the stream ended");
	pool_box_left(r->pool, b->slot, b->generation);
	rig_take_actions(r);
	r->slots[b->slot].worker = worker;
}

/* The place of one that was to be saved is another's by now: one that stands behind it in the
 * table. */
static void test_a_successor_takes_no_place_twice(void **state)
{
	struct rig *r = *state;
	const struct pool_box *b;

	rig_restart(r, REPLICA_REJECT, 1, 4);
	b = box_that_outlives(r, "t");
	assert_int_equal(b->slot, 0);
	box_is_left(r, b, true);
	assert_outcome(r, rig_acquire(r, "another"), GOT(SOURCE_COLD));
	r->slots[b->slot].worker = false;
	rig_die_and_succeed(r);
	assert_state(r, "t", SLOT_FREE);
	assert_state(r, "another", SLOT_ACTIVE);
	assert_int_equal(rig_said(r, POOL_CLEAN), 1);
}

static void test_a_successor_saves_what_was_left(void **state)
{
	struct rig *r = *state;

	for (int lives = 0; lives < 2; lives++) {
		const struct pool_box *b = box_that_outlives(r, lives ? "a" : "b");

		box_is_left(r, b, lives);
		r->slots[b->slot].up = true; /* it was to be killed */
		rig_die_and_succeed(r);
		assert_state(r, lives ? "a" : "b", SLOT_WARM);
		assert_int_equal(rig_said(r, POOL_CLOSE), 0);
		assert_int_equal(rig_said(r, POOL_KILL), lives);
		rig_forget(r);
	}
}

/* That the box died was heard, and not what came of it. */
static void test_a_successor_saves_what_died_unheard(void **state)
{
	struct rig *r = *state;

	for (int lives = 0; lives < 2; lives++) {
		const struct pool_box *b = box_that_outlives(r, lives ? "a" : "b");
		uint32_t slot = b->slot;

		pool_box_failed(r->pool, r->now, slot, b->generation, "the stream ended");
		rig_take_actions(r);
		r->slots[slot].worker = lives;
		r->held = HOLD_HELLO;
		rig_die_and_succeed(r);
		if (lives) {
			rig_forgive(r, slot);
			pool_adopted(r->pool, r->now, slot, pool_box_at(r->pool, slot)->generation,
			    false, true);
			rig_crash(r, slot);
		}
		rig_let_go(r);
		assert_state(r, lives ? "a" : "b", SLOT_WARM);
	}
}

/* But not what was closed for a reason meanwhile. */
static void test_a_successor_saves_nothing_that_was_closed(void **state)
{
	struct rig *r = *state;
	const struct pool_box *b = box_that_outlives(r, "t");
	uint64_t req;

	pool_box_failed(r->pool, r->now, b->slot, b->generation, "the stream ended");
	rig_take_actions(r);
	assert_int_equal(rig_remove(r, "t", true, &req), 0);
	r->slots[b->slot].worker = false;
	rig_die_and_succeed(r);
	assert_state(r, "t", SLOT_FREE);
}

/* Its worker was at that when the successor came. */
static void test_a_successor_hears_that_it_was_left(void **state)
{
	struct rig *r = *state;
	const struct pool_box *b = box_that_outlives(r, "t");
	uint32_t slot = b->slot;
	uint64_t generation = b->generation;

	r->held = HOLD_HELLO;
	rig_die_and_succeed(r);
	rig_forgive(r, slot);
	pool_adopted(r->pool, r->now, slot, generation, false, true);
	pool_box_failed(r->pool, r->now, slot, generation, "the stream ended");
	pool_box_left(r->pool, slot, generation);
	rig_crash(r, slot);
	assert_state(r, "t", SLOT_WARM);
}

static void test_a_half_saved_box_that_is_removed_goes(void **state)
{
	struct rig *r = *state;
	const struct pool_box *b = box_that_outlives(r, "t");
	uint32_t slot = b->slot;
	uint64_t req;

	r->held = HOLD_HELLO | HOLD(POOL_KILL);
	rig_die_and_succeed(r);
	rig_forgive(r, slot);
	pool_not_adopted(
	    r->pool, r->now, slot, pool_box_at(r->pool, slot)->generation, "it said no hello");
	rig_take_actions(r);
	assert_int_equal(rig_remove(r, "t", true, &req), 0);
	rig_let_go(r);
	assert_true(r->requests[req].removed);
	assert_state(r, "t", SLOT_FREE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    rig_test(test_it_is_booted_again_and_warm),
	    rig_test(test_it_is_always_checked),
	    rig_test(test_who_waits_gets_it),
	    rig_test(test_who_was_to_get_it_just_then_is_answered),
	    rig_test(test_who_waits_for_one_that_cannot_be_had_gets_another),
	    rig_test(test_its_taking_over_has_its_time),
	    rig_test(test_not_for_ever),
	    rig_test(test_what_has_nothing_to_lose_is_not_saved),
	    rig_test(test_a_box_that_is_being_saved_can_be_removed),
	    rig_test(test_a_shutdown_saves_nothing),
	    rig_test(test_a_box_that_was_left_is_saved),
	    rig_test(test_a_box_that_died_is_not),
	    rig_test(test_nor_is_one_that_is_closed_for_a_reason),
	    rig_test(test_nor_is_one_that_has_no_place_any_more),
	    rig_test(test_a_worker_that_stays_makes_no_difference),
	    rig_test(test_a_lease_that_was_lost_is_returned),
	    rig_test(test_a_successor_saves_what_has_no_worker),
	    rig_test(test_a_successor_begins_anew),
	    rig_test(test_not_for_ever_whoever_supervises),
	    rig_test(test_what_waits_to_be_saved_waits_on),
	    rig_test(test_a_successor_takes_no_place_twice),
	    rig_test(test_a_successor_saves_what_was_left),
	    rig_test(test_a_successor_saves_what_died_unheard),
	    rig_test(test_a_successor_saves_nothing_that_was_closed),
	    rig_test(test_a_successor_hears_that_it_was_left),
	    rig_test(test_a_half_saved_box_that_is_removed_goes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
