/* Tests of supervisor/pool_timers.c. */
#include "tests/unit/supervisor/pool_testing.h"

/* ---- idle boxes ---- */

static void test_an_idle_warm_box_is_closed(void **state)
{
	struct rig *r = *state;

	rig_park(r, "t");
	rig_pass(r, 600 * NS_PER_S - 1);
	assert_state(r, "t", SLOT_WARM);
	rig_pass(r, 1);
	assert_state(r, "t", SLOT_FREE);
	assert_int_equal(rig_recorded(r, EVENT_EVICT), 1);
	assert_int_equal(rig_said(r, POOL_CLOSE), 1);
}

static void test_parking_again_begins_anew(void **state)
{
	struct rig *r = *state;

	rig_park(r, "t");
	rig_pass(r, 500 * NS_PER_S);
	rig_park(r, "t");
	rig_pass(r, 600 * NS_PER_S - 1);
	assert_state(r, "t", SLOT_WARM);
	rig_pass(r, 1);
	assert_state(r, "t", SLOT_FREE);
}

static void test_idle_timeout_0_disables_the_reaper(void **state)
{
	struct rig *r = *state;
	struct pool_rules rules = rig_rules;

	rules.idle_timeout = 0;
	rig_use(r, &rules);
	rig_park(r, "t");
	rig_pass(r, 86400 * NS_PER_S);
	assert_state(r, "t", SLOT_WARM);
	assert_int_equal(pool_deadline(r->pool), CLOCK_NEVER);
}

static void test_work_pins_a_warm_box(void **state)
{
	struct rig *r = *state;

	rig_park(r, "t");
	r->in_flight[0] = 1;
	rig_pass(r, 900 * NS_PER_S);
	assert_state(r, "t", SLOT_WARM);
	r->in_flight[0] = 0;
	r->activity[0] = r->now; /* its end is activity */
	rig_pass(r, 600 * NS_PER_S - 1);
	assert_state(r, "t", SLOT_WARM);
	rig_pass(r, 1);
	assert_state(r, "t", SLOT_FREE);
}

static void test_activity_postpones_the_end(void **state)
{
	struct rig *r = *state;
	uint64_t parked;

	rig_park(r, "t");
	parked = r->now;
	r->activity[0] = parked + 100 * NS_PER_S;
	rig_pass(r, 700 * NS_PER_S - 1);
	assert_state(r, "t", SLOT_WARM);
	rig_pass(r, 1);
	assert_state(r, "t", SLOT_FREE);
	rig_park(r, "t");
	r->activity[0] = parked; /* long before it was parked: does not count */
	rig_pass(r, 600 * NS_PER_S);
	assert_state(r, "t", SLOT_FREE);
}

static void test_active_boxes_may_idle_unless_told(void **state)
{
	struct rig *r = *state;
	struct pool_rules rules = rig_rules;

	rig_acquire(r, "t");
	rig_pass(r, 86400 * NS_PER_S);
	assert_state(r, "t", SLOT_ACTIVE);
	rules.active_idle_timeout = 50 * NS_PER_S;
	rig_use(r, &rules);
	rig_pass(r, 1);
	assert_state(r, "t", SLOT_FREE);
}

static void test_an_idle_active_box_is_closed(void **state)
{
	struct rig *r = *state;
	struct pool_rules rules = rig_rules;

	rules.active_idle_timeout = 50 * NS_PER_S;
	rig_use(r, &rules);
	rig_acquire(r, "t");
	rig_pass(r, 40 * NS_PER_S);
	rig_acquire(r, "t"); /* somebody has just come: it is not idle */
	rig_pass(r, 50 * NS_PER_S - 1);
	assert_int_equal(rig_box(r, "t")->lease_count, 2);
	r->in_flight[0] = 1;
	rig_pass(r, 100 * NS_PER_S);
	assert_state(r, "t", SLOT_ACTIVE);
	r->in_flight[0] = 0;
	r->activity[0] = r->now;
	rig_pass(r, 50 * NS_PER_S - 1);
	assert_state(r, "t", SLOT_ACTIVE);
	rig_pass(r, 1);
	assert_state(r, "t", SLOT_FREE);
	assert_int_equal(rig_release(r, "t", 0), POOL_RELEASE_CLOSED);
}

/* ---- workers that do not answer ---- */

static void test_a_boot_that_takes_too_long(void **state)
{
	struct rig *r = *state;
	uint64_t req[2];

	r->held = HOLD(POOL_SPAWN);
	req[0] = rig_acquire(r, "t");
	req[1] = rig_acquire(r, "t");
	rig_pass(r, 30 * NS_PER_S - 1);
	assert_outcome(r, req[0], WAITING);
	rig_pass(r, 1);
	assert_outcome(r, req[0], REFUSED(API_BOOT_FAILED));
	assert_outcome(r, req[1], REFUSED(API_BOOT_FAILED));
	assert_int_equal(rig_recorded(r, EVENT_BOOT_FAILED), 1);
	assert_int_equal(rig_said(r, POOL_KILL), 1);
	assert_state(r, "t", SLOT_FREE);
}

/* A box whose image is prepared before its worker is started. */
static uint64_t acquire_unprepared(struct rig *r)
{
	struct pool_rules rules = rig_rules;
	uint64_t req;

	rules.acquire_timeout = 1000 * NS_PER_S;
	rig_use(r, &rules);
	r->held = HOLD(POOL_SPAWN);
	req = rig_acquire(r, "t");
	pool_boot_waits(r->pool, r->now, 0, rig_box(r, "t")->generation);
	return req;
}

/* The time that is limited is the boot's own, without the wait for its image, */
static void test_waiting_for_an_image_is_no_boot(void **state)
{
	struct rig *r = *state;
	uint64_t req = acquire_unprepared(r);

	rig_pass(r, POOL_IMAGE_WAIT / 2);
	assert_outcome(r, req, WAITING);
	pool_boot_begins(r->pool, r->now, 0, rig_box(r, "t")->generation);
	rig_pass(r, 30 * NS_PER_S - 1);
	assert_outcome(r, req, WAITING);
	rig_pass(r, 1);
	assert_outcome(r, req, REFUSED(API_BOOT_FAILED));
}

/* which has an end, too, */
static void test_waiting_for_an_image_ends(void **state)
{
	struct rig *r = *state;
	uint64_t req = acquire_unprepared(r);

	rig_pass(r, POOL_IMAGE_WAIT + 30 * NS_PER_S - 1);
	assert_outcome(r, req, WAITING);
	rig_pass(r, 1);
	assert_outcome(r, req, REFUSED(API_BOOT_FAILED));
}

/* and without the wait for its permit. */
static void test_waiting_for_a_permit_is_no_boot(void **state)
{
	struct rig *r = *state;
	struct pool_rules rules = rig_rules;
	uint64_t req;

	rules.max_boots = 1;
	rig_use(r, &rules);
	r->held = HOLD(POOL_SPAWN);
	rig_acquire(r, "stuck");
	rig_pass(r, 20 * NS_PER_S);
	req = rig_acquire(r, "t");
	rig_pass(r, 10 * NS_PER_S);
	assert_state(r, "stuck", SLOT_FREE);
	assert_state(r, "t", SLOT_BOOTING);
	rig_pass(r, 30 * NS_PER_S - 1);
	assert_outcome(r, req, WAITING);
	rig_let_go(r);
	assert_outcome(r, req, GOT(SOURCE_COLD));
}

static void test_a_worker_that_does_not_close_is_killed(void **state)
{
	struct rig *r = *state;

	rig_acquire(r, "t");
	r->held = HOLD(POOL_CLOSE);
	rig_remove(r, "t", true, &(uint64_t){0});
	rig_pass(r, 3 * NS_PER_S - 1); /* close_grace, and a second for the worker's own part */
	assert_int_equal(rig_said(r, POOL_KILL), 0);
	rig_pass(r, 1);
	assert_int_equal(rig_said(r, POOL_KILL), 1);
	assert_state(r, "t", SLOT_FREE);
}

static void test_a_worker_that_cannot_be_killed_is_quarantined(void **state)
{
	struct rig *r = *state;
	uint64_t req;

	rig_park(r, "t");
	r->held = HOLD(POOL_CHECK) | HOLD(POOL_KILL);
	req = rig_acquire(r, "t");
	rig_pass(r, 5 * NS_PER_S + POOL_KILL_WAIT - 1);
	assert_int_equal(pool_count(r->pool, SLOT_QUARANTINED), 0);
	assert_outcome(r, req, WAITING);
	rig_pass(r, 1);
	assert_int_equal(pool_box_at(r->pool, 0)->state, SLOT_QUARANTINED);
	assert_outcome(r, req, GOT(SOURCE_COLD));
	assert_int_equal(rig_said(r, POOL_KILL), 1);
	rig_crash(r, 0); /* it ends after all: too late */
	assert_int_equal(pool_box_at(r->pool, 0)->state, SLOT_QUARANTINED);
	assert_int_equal(rig_said(r, POOL_CLEAN), 0);
}

static void test_remains_that_are_not_cleaned_up_are_quarantined(void **state)
{
	struct rig *r = *state;
	uint64_t generation = rig_park(r, "t")->generation;

	r->held = HOLD(POOL_CLEAN);
	rig_crash(r, 0);
	rig_pass(r, POOL_CLEAN_WAIT - 1);
	assert_state(r, "t", SLOT_CLOSING);
	rig_pass(r, 1);
	assert_int_equal(pool_box_at(r->pool, 0)->state, SLOT_QUARANTINED);
	assert_state(r, "t", SLOT_FREE);
	pool_cleaned(r->pool, r->now, 0, generation, true, "");
	rig_settle(r);
	assert_int_equal(pool_box_at(r->pool, 0)->state, SLOT_QUARANTINED);
}

/* ---- the clock ---- */

static void test_nothing_pending_asks_for_no_tick(void **state)
{
	struct rig *r = *state;

	assert_int_equal(pool_deadline(r->pool), CLOCK_NEVER);
	rig_acquire(r, "t");
	rig_pass(r, 60 * NS_PER_S); /* the wait that is over is found out then */
	assert_int_equal(pool_deadline(r->pool), CLOCK_NEVER);
	rig_release(r, "t", 0);
	assert_int_equal(pool_deadline(r->pool), r->now + 600 * NS_PER_S);
}

static void test_a_tick_too_early_does_nothing(void **state)
{
	struct rig *r = *state;
	uint64_t due;

	rig_park(r, "t");
	rig_pass(r, 60 * NS_PER_S);
	due = pool_deadline(r->pool);
	rig_forget(r);
	pool_tick(r->pool, due - 1);
	rig_settle(r);
	assert_int_equal(pool_deadline(r->pool), due);
	assert_int_equal(r->log_count, 0);
}

static void test_one_late_tick_does_all_that_is_due(void **state)
{
	struct rig *r = *state;
	struct pool_request q = rig_request(r, "leased");
	uint64_t waiter;

	q.lease_ttl = NS_PER_S;
	rig_send(r, &q);
	rig_park(r, "warm");
	r->held = HOLD(POOL_SPAWN);
	waiter = rig_acquire(r, "booting");
	r->now += 5000 * NS_PER_S; /* the host slept */
	pool_tick(r->pool, r->now);
	rig_settle(r);
	assert_state(r, "leased", SLOT_WARM);
	assert_state(r, "warm", SLOT_FREE);
	assert_state(r, "booting", SLOT_FREE);
	assert_int_not_equal(rig_outcome(r, waiter), WAITING);
}

static void test_changed_times_hold_for_boxes_that_are_there(void **state)
{
	struct rig *r = *state;
	struct pool_rules rules = rig_rules;

	rig_park(r, "t");
	rig_pass(r, 100 * NS_PER_S);
	rules.idle_timeout = 150 * NS_PER_S;
	rig_use(r, &rules);
	rig_pass(r, 50 * NS_PER_S - 1);
	assert_state(r, "t", SLOT_WARM);
	rig_pass(r, 1);
	assert_state(r, "t", SLOT_FREE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    rig_test(test_an_idle_warm_box_is_closed),
	    rig_test(test_parking_again_begins_anew),
	    rig_test(test_idle_timeout_0_disables_the_reaper),
	    rig_test(test_work_pins_a_warm_box),
	    rig_test(test_activity_postpones_the_end),
	    rig_test(test_active_boxes_may_idle_unless_told),
	    rig_test(test_an_idle_active_box_is_closed),
	    rig_test(test_a_boot_that_takes_too_long),
	    rig_test(test_waiting_for_an_image_is_no_boot),
	    rig_test(test_waiting_for_an_image_ends),
	    rig_test(test_waiting_for_a_permit_is_no_boot),
	    rig_test(test_a_worker_that_does_not_close_is_killed),
	    rig_test(test_a_worker_that_cannot_be_killed_is_quarantined),
	    rig_test(test_remains_that_are_not_cleaned_up_are_quarantined),
	    rig_test(test_nothing_pending_asks_for_no_tick),
	    rig_test(test_a_tick_too_early_does_nothing),
	    rig_test(test_one_late_tick_does_all_that_is_due),
	    rig_test(test_changed_times_hold_for_boxes_that_are_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
