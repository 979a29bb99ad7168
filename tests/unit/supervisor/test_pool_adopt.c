/* Tests of supervisor/pool_restore.c: workers that say hello to a successor, and a supervisor that
 * leaves. */
#include "tests/unit/supervisor/pool_restarting.h"

/* ---- hello ---- */

static void test_no_order_but_kill_comes_before_hello(void **state)
{
	struct rig *r = *state;
	uint64_t req;

	rig_park(r, "warm");
	rig_acquire(r, "active");
	rig_acquire(r, "removed");
	rig_forget(r);
	r->held = HOLD_HELLO;
	rig_die_and_succeed(r);
	req = rig_acquire(r, "warm");
	rig_release(r, "active", 0);
	rig_remove(r, "removed", true, &(uint64_t){0});
	for (uint32_t i = 0; i < r->log_count; i++)
		assert_int_equal(r->log[i].kind, POOL_RECORD);
	assert_outcome(r, req, WAITING);
	rig_let_go(r);
	assert_outcome(r, req, GOT(SOURCE_WARM));
	assert_state(r, "active", SLOT_WARM);
	assert_state(r, "removed", SLOT_FREE);
	assert_int_equal(rig_said(r, POOL_CLOSE), 1);
	assert_int_equal(rig_said(r, POOL_KILL), 0);
}

static void test_who_waits_for_hello_is_served_in_order(void **state)
{
	struct rig *r = *state;
	uint64_t req[3];

	rig_acquire(r, "t");
	r->held = HOLD_HELLO;
	rig_die_and_succeed(r);
	for (int i = 0; i < 3; i++)
		req[i] = rig_acquire(r, "t");
	assert_outcome(r, req[0], WAITING);
	rig_let_go(r);
	for (int i = 0; i < 3; i++)
		assert_outcome(r, req[i], GOT(SOURCE_ACTIVE));
	assert_int_equal(rig_box(r, "t")->lease_count, 4);
}

static void test_no_hello_in_time_is_the_end(void **state)
{
	struct rig *r = *state;
	uint64_t generation;
	uint64_t req;

	rig_acquire(r, "t");
	r->held = HOLD_HELLO;
	rig_die_and_succeed(r);
	generation = rig_box(r, "t")->generation;
	req = rig_acquire(r, "t");
	rig_forgive(r, 0);
	pool_not_adopted(r->pool, r->now, 0, generation, "no hello within 5 s");
	rig_settle(r);
	assert_int_equal(rig_said(r, POOL_KILL), 1);
	assert_string_equal(rig_record_text(r, EVENT_ERROR), "no hello within 5 s");
	assert_outcome(r, req, GOT(SOURCE_COLD));
}

/* Only what drove the box has died, and its worker is on its way out: it says so to the successor,
 * too. */
static void test_what_was_to_be_saved_still_is(void **state)
{
	struct rig *r = *state;
	const struct pool_box *b;
	uint64_t machine;
	uint32_t slot;

	rig_acquire(r, "t");
	b = rig_box(r, "t");
	slot = b->slot;
	machine = b->machine;
	pool_outlives(r->pool, slot, b->generation, true);
	pool_box_failed(r->pool, r->now, slot, b->generation, "the stream ended");
	pool_box_left(r->pool, slot, b->generation);
	rig_take_actions(r);
	r->held = HOLD_HELLO;
	rig_die_and_succeed(r);
	rig_forgive(r, slot);
	pool_adopted(r->pool, r->now, slot, pool_box_at(r->pool, slot)->generation, false, true);
	rig_take_actions(r);
	assert_state(r, "t", SLOT_CLOSING);
	rig_crash(r, slot);
	assert_state(r, "t", SLOT_WARM);
	assert_int_equal(rig_box(r, "t")->machine, machine);
}

static void test_a_hello_that_is_not_owed_is_ignored(void **state)
{
	struct rig *r = *state;
	uint64_t generation;

	rig_acquire(r, "t");
	rig_die_and_succeed(r);
	generation = rig_box(r, "t")->generation;
	rig_forget(r);
	pool_adopted(r->pool, r->now, 0, generation, false, true);
	pool_not_adopted(r->pool, r->now, 0, generation, "late");
	pool_adopted(r->pool, r->now, 0, generation + 1, false, true);
	pool_adopted(r->pool, r->now, 1, generation, false, true);
	pool_adopted(r->pool, r->now, 99, generation, false, true);
	rig_settle(r);
	assert_int_equal(r->log_count, 0);
	assert_state(r, "t", SLOT_ACTIVE);
}

/* ---- leaving ---- */

static void test_leaving_refuses_who_waits_and_who_comes_and_closes_nothing(void **state)
{
	struct rig *r = *state;
	struct pool_rules rules = rig_rules;
	uint64_t req[4];

	rules.max_boots = 1;
	rig_use(r, &rules);
	rig_acquire(r, "active");
	rig_park(r, "warm");
	r->held = HOLD(POOL_SPAWN) | HOLD(POOL_CHECK);
	req[0] = rig_acquire(r, "booting");
	req[1] = rig_acquire(r, "reserved");
	req[2] = rig_acquire(r, "warm");
	rig_forget(r);
	pool_leave(r->pool, r->now);
	pool_leave(r->pool, r->now);
	rig_settle(r);
	req[3] = rig_acquire(r, "active");
	for (int i = 0; i < 4; i++)
		assert_outcome(r, req[i], REFUSED(API_SHUTTING_DOWN));
	assert_int_equal(r->log_count, 4); /* that, and nothing else */
	assert_state(r, "active", SLOT_ACTIVE);
	assert_state(r, "booting", SLOT_BOOTING);
	rig_let_go(r);
	assert_int_equal(rig_said(r, POOL_SPAWN), 0); /* and nothing is begun */
	assert_int_equal(rig_release(r, "active", 0), POOL_RELEASE_WARM);
}

static void test_a_successor_finds_all_that_was_left(void **state)
{
	struct rig *r = *state;

	rig_acquire(r, "active");
	rig_park(r, "warm");
	pool_leave(r->pool, r->now);
	rig_settle(r);
	rig_die_and_succeed(r);
	assert_outcome(r, rig_acquire(r, "active"), GOT(SOURCE_ACTIVE));
	assert_outcome(r, rig_acquire(r, "warm"), GOT(SOURCE_WARM));
}

static void test_one_that_leaves_can_still_be_shut_down(void **state)
{
	struct rig *r = *state;

	rig_acquire(r, "t");
	pool_leave(r->pool, r->now);
	rig_shutdown(r);
	assert_int_equal(r->drained, 1);
	assert_state(r, "t", SLOT_FREE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    rig_test(test_no_order_but_kill_comes_before_hello),
	    rig_test(test_who_waits_for_hello_is_served_in_order),
	    rig_test(test_no_hello_in_time_is_the_end),
	    rig_test(test_what_was_to_be_saved_still_is),
	    rig_test(test_a_hello_that_is_not_owed_is_ignored),
	    rig_test(test_leaving_refuses_who_waits_and_who_comes_and_closes_nothing),
	    rig_test(test_a_successor_finds_all_that_was_left),
	    rig_test(test_one_that_leaves_can_still_be_shut_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
