/* Tests of the queues in supervisor/pool_acquire.c: their order, and clients that leave or wait too
 * long. */
#include "tests/unit/supervisor/pool_testing.h"

/* ---- queues ---- */

static void test_one_scope_is_served_in_order(void **state)
{
	struct rig *r = *state;
	uint64_t req[5];
	uint32_t n = 0;

	r->held = HOLD(POOL_SPAWN);
	for (int i = 0; i < 5; i++)
		req[i] = rig_acquire(r, "t");
	assert_int_equal(pool_waiters(r->pool), 5);
	assert_int_equal(rig_box(r, "t")->waiters, 5);
	rig_let_go(r);
	for (uint32_t i = 0; i < r->log_count; i++) {
		if (r->log[i].kind == POOL_GRANT)
			assert_int_equal(r->log[i].req, req[n++]);
	}
	assert_int_equal(n, 5);
	assert_outcome(r, req[0], GOT(SOURCE_COLD));
	assert_outcome(r, req[4], GOT(SOURCE_ACTIVE));
	assert_int_equal(rig_box(r, "t")->waiters, 0);
}

static void test_200_concurrent_acquires_create_one_box(void **state)
{
	struct rig *r = *state;
	uint64_t req[200];

	r->held = HOLD(POOL_SPAWN);
	for (int i = 0; i < 200; i++)
		req[i] = rig_acquire(r, "t");
	rig_let_go(r);
	assert_int_equal(rig_said(r, POOL_SPAWN), 1);
	assert_int_equal(rig_said(r, POOL_GRANT), 200);
	for (int i = 0; i < 200; i++)
		assert_outcome(r, req[i], GOT(i == 0 ? SOURCE_COLD : SOURCE_ACTIVE));
	assert_int_equal(rig_box(r, "t")->lease_count, 200);
}

static void test_a_boot_that_hangs_holds_up_no_other_scope(void **state)
{
	struct rig *r = *state;
	uint64_t stuck;
	uint64_t other;
	uint32_t slot;

	r->held = HOLD(POOL_SPAWN);
	stuck = rig_acquire(r, "stuck");
	other = rig_acquire(r, "other");
	slot = rig_box(r, "other")->slot;
	rig_answer_slot(r, slot);
	assert_outcome(r, other, GOT(SOURCE_COLD));
	assert_int_equal(rig_release(r, "other", 0), POOL_RELEASE_WARM);
	other = rig_acquire(r, "other");
	assert_outcome(r, other, GOT(SOURCE_WARM));
	assert_outcome(r, stuck, WAITING);
}

static void test_who_waited_too_long_is_told(void **state)
{
	struct rig *r = *state;
	struct pool_request q = rig_request(r, "t");
	uint64_t patient;

	r->held = HOLD(POOL_SPAWN);
	q.wait_limit = 2 * NS_PER_S;
	rig_send(r, &q);
	patient = rig_acquire(r, "t");
	rig_pass(r, 2 * NS_PER_S - 1);
	assert_outcome(r, q.req, WAITING);
	rig_pass(r, 1);
	assert_outcome(r, q.req, REFUSED(API_TIMEOUT));
	assert_outcome(r, patient, WAITING);
	rig_let_go(r);
	assert_outcome(r, patient, GOT(SOURCE_COLD));
}

static void test_acquire_timeout_is_the_limit_of_who_gave_none(void **state)
{
	struct rig *r = *state;
	struct pool_rules rules = rig_rules;
	uint64_t req;

	rules.boot_timeout = 1000 * NS_PER_S;
	rig_use(r, &rules);
	r->held = HOLD(POOL_SPAWN);
	req = rig_acquire(r, "t");
	rig_pass(r, 60 * NS_PER_S - 1);
	assert_outcome(r, req, WAITING);
	rig_pass(r, 1);
	assert_outcome(r, req, REFUSED(API_TIMEOUT));
	assert_state(r, "t", SLOT_BOOTING); /* it goes on, for the next */
	rules.acquire_timeout = 0;
	rig_use(r, &rules);
	req = rig_acquire(r, "t");
	rig_pass(r, 900 * NS_PER_S);
	assert_outcome(r, req, WAITING);
	rig_let_go(r);
	assert_outcome(r, req, GOT(SOURCE_COLD));
}

/* ---- clients that leave ---- */

static void test_the_others_move_up_when_one_leaves(void **state)
{
	struct rig *r = *state;
	uint64_t req[4];

	r->held = HOLD(POOL_SPAWN);
	for (int i = 0; i < 4; i++)
		req[i] = rig_acquire(r, "t");
	rig_leave(r, req[0]);
	rig_leave(r, req[2]);
	assert_int_equal(pool_waiters(r->pool), 2);
	rig_let_go(r);
	assert_outcome(r, req[0], GONE);
	assert_outcome(r, req[1], GOT(SOURCE_COLD));
	assert_outcome(r, req[2], GONE);
	assert_outcome(r, req[3], GOT(SOURCE_ACTIVE));
	assert_int_equal(rig_said(r, POOL_SPAWN), 1);
}

static void test_a_boot_that_nobody_waits_for_becomes_warm(void **state)
{
	struct rig *r = *state;
	uint64_t req;

	r->held = HOLD(POOL_SPAWN);
	req = rig_acquire(r, "t");
	rig_leave(r, req);
	assert_state(r, "t", SLOT_BOOTING);
	rig_let_go(r);
	assert_state(r, "t", SLOT_WARM);
	assert_int_equal(rig_said(r, POOL_PARK), 1);
	req = rig_acquire(r, "t");
	assert_outcome(r, req, GOT(SOURCE_WARM));
}

static void test_a_check_that_nobody_waits_for_parks_again(void **state)
{
	struct rig *r = *state;
	uint64_t req;

	rig_park(r, "t");
	r->held = HOLD(POOL_CHECK);
	req = rig_acquire(r, "t");
	rig_leave(r, req);
	rig_let_go(r);
	assert_state(r, "t", SLOT_WARM);
}

static void test_a_reserved_box_that_nobody_waits_for_is_given_up(void **state)
{
	struct rig *r = *state;
	struct pool_rules rules = rig_rules;
	uint64_t req;

	rules.max_boots = 1;
	rig_use(r, &rules);
	r->held = HOLD(POOL_SPAWN);
	rig_acquire(r, "holds the permit");
	req = rig_acquire(r, "t");
	assert_state(r, "t", SLOT_RESERVED);
	rig_leave(r, req);
	assert_state(r, "t", SLOT_FREE);
	assert_int_equal(rig_said(r, POOL_SPAWN), 1);
	assert_int_equal(pool_count(r->pool, SLOT_FREE), rig_rules.slots - 1);
}

static void test_leaving_without_waiting_is_nothing(void **state)
{
	struct rig *r = *state;
	uint64_t req = rig_acquire(r, "t");

	rig_forget(r);
	rig_leave(r, req);
	rig_leave(r, 999);
	assert_state(r, "t", SLOT_ACTIVE);
	assert_int_equal(r->log_count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    rig_test(test_one_scope_is_served_in_order),
	    rig_test(test_200_concurrent_acquires_create_one_box),
	    rig_test(test_a_boot_that_hangs_holds_up_no_other_scope),
	    rig_test(test_who_waited_too_long_is_told),
	    rig_test(test_acquire_timeout_is_the_limit_of_who_gave_none),
	    rig_test(test_the_others_move_up_when_one_leaves),
	    rig_test(test_a_boot_that_nobody_waits_for_becomes_warm),
	    rig_test(test_a_check_that_nobody_waits_for_parks_again),
	    rig_test(test_a_reserved_box_that_nobody_waits_for_is_given_up),
	    rig_test(test_leaving_without_waiting_is_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
