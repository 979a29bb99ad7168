/* Tests of supervisor/pool_life.c. */
#include "tests/unit/supervisor/pool_testing.h"

/* ---- boots that fail ---- */

static void test_a_failed_boot_is_told_to_all_who_wait(void **state)
{
	struct rig *r = *state;
	uint64_t req[3];
	uint64_t late;

	r->held = HOLD_ALL;
	for (int i = 0; i < 3; i++)
		req[i] = rig_acquire(r, "t");
	pool_boot_failed(r->pool, r->now, 0, rig_box(r, "t")->generation, "no such image: nope");
	rig_settle(r);
	for (int i = 0; i < 3; i++) {
		assert_outcome(r, req[i], REFUSED(API_BOOT_FAILED));
		assert_string_equal(r->requests[req[i]].text, "no such image: nope");
	}
	assert_string_equal(rig_box(r, "t")->last_error, "no such image: nope");
	assert_int_equal(rig_recorded(r, EVENT_BOOT_FAILED), 1);
	assert_int_equal(
	    rig_said(r, POOL_SPAWN), 1); /* what failed in an orderly way fails again */
	assert_state(r, "t", SLOT_CLOSING);
	late = rig_acquire(r, "t");
	rig_let_go(r);
	assert_outcome(r, late, GOT(SOURCE_COLD));
	assert_int_equal(rig_said(r, POOL_SPAWN), 2);
}

/* Lets the boot that is under way crash. */
static void crash_boot(struct rig *r, const char *thread)
{
	assert_state(r, thread, SLOT_BOOTING);
	rig_crash(r, rig_box(r, thread)->slot);
}

static void test_a_boot_that_crashes_is_tried_again(void **state)
{
	struct rig *r = *state;
	uint64_t req;

	r->held = HOLD(POOL_SPAWN);
	req = rig_acquire(r, "t");
	crash_boot(r, "t");
	crash_boot(r, "t");
	assert_outcome(r, req, WAITING);
	rig_let_go(r);
	assert_outcome(r, req, GOT(SOURCE_COLD));
	assert_int_equal(rig_recorded(r, EVENT_WORKER_CRASH), 2);
	assert_int_equal(rig_said(r, POOL_SPAWN), 3);
	assert_int_equal(rig_said(r, POOL_CLEAN), 2);
}

static void test_the_third_crash_of_a_boot_is_told(void **state)
{
	struct rig *r = *state;
	uint64_t req[2];
	uint64_t next;

	r->held = HOLD(POOL_SPAWN);
	req[0] = rig_acquire(r, "t");
	req[1] = rig_acquire(r, "t");
	for (int i = 0; i < 3; i++) {
		assert_outcome(r, req[0], WAITING);
		crash_boot(r, "t");
	}
	for (int i = 0; i < 2; i++) {
		assert_outcome(r, req[i], REFUSED(API_BOOT_FAILED));
		assert_string_equal(r->requests[req[i]].text, "killed by signal 9");
	}
	assert_int_equal(rig_said(r, POOL_SPAWN), 3);
	assert_state(r, "t", SLOT_FREE);
	next = rig_acquire(r, "t"); /* begins to count anew */
	crash_boot(r, "t");
	crash_boot(r, "t");
	assert_outcome(r, next, WAITING);
}

/* One that comes while the last attempt is cleaned up has not seen any of the crashes. */
static void test_crashes_are_counted_for_each_who_waits(void **state)
{
	struct rig *r = *state;
	uint64_t first;
	uint64_t late;

	r->held = HOLD(POOL_SPAWN);
	first = rig_acquire(r, "t");
	crash_boot(r, "t");
	crash_boot(r, "t");
	r->held |= HOLD(POOL_CLEAN);
	crash_boot(r, "t");
	assert_outcome(r, first, REFUSED(API_BOOT_FAILED));
	late = rig_acquire(r, "t");
	r->held = HOLD(POOL_SPAWN);
	rig_settle(r);
	crash_boot(r, "t");
	crash_boot(r, "t");
	assert_outcome(r, late, WAITING);
	crash_boot(r, "t");
	assert_outcome(r, late, REFUSED(API_BOOT_FAILED));
}

/* Waiting for a slot between two attempts does not make it three again. */
static void test_crashes_are_remembered_while_room_is_awaited(void **state)
{
	struct rig *r = *state;
	struct pool_rules rules = rig_rules;
	uint64_t req;

	rules.policy = REPLICA_WAIT;
	rules.replicas = 1;
	rig_use(r, &rules);
	r->held = HOLD(POOL_SPAWN);
	req = rig_acquire(r, "t");
	for (int i = 0; i < 3; i++) {
		uint64_t other;

		assert_outcome(r, req, WAITING);
		r->held |= HOLD(POOL_CLEAN);
		crash_boot(r, "t");
		r->held = HOLD(POOL_SPAWN);
		other = rig_acquire(r, "other");
		rig_answer_slot(r, rig_box(r, "other")->slot);
		rig_settle(r);
		assert_outcome(r, other, GOT(SOURCE_COLD));
		rig_release(r, "other", 0);
	}
	assert_outcome(r, req, REFUSED(API_BOOT_FAILED));
}

static void test_a_box_that_dies_while_it_boots_counts_once(void **state)
{
	struct rig *r = *state;
	uint64_t req;

	r->held = HOLD(POOL_SPAWN);
	req = rig_acquire(r, "t");
	for (int i = 0; i < 3; i++) {
		assert_outcome(r, req, WAITING);
		pool_box_failed(r->pool, r->now, rig_box(r, "t")->slot, rig_box(r, "t")->generation,
		    "its stream broke");
		rig_settle(r);
		rig_crash(r, rig_box(r, "t")->slot);
	}
	assert_outcome(r, req, REFUSED(API_BOOT_FAILED));
}

static void test_a_crash_during_a_check_is_no_lost_boot(void **state)
{
	struct rig *r = *state;
	uint64_t req;

	rig_park(r, "t");
	r->held = HOLD(POOL_CHECK) | HOLD(POOL_SPAWN);
	req = rig_acquire(r, "t");
	assert_state(r, "t", SLOT_CHECKING);
	rig_crash(r, 0);
	crash_boot(r, "t");
	crash_boot(r, "t");
	assert_outcome(r, req, WAITING);
	rig_let_go(r);
	assert_outcome(r, req, GOT(SOURCE_COLD));
}

/* ---- boxes that die ---- */

static void test_a_crash_of_an_active_box(void **state)
{
	struct rig *r = *state;
	uint64_t generation;
	uint64_t req;

	rig_acquire(r, "t");
	rig_acquire(r, "t");
	generation = rig_box(r, "t")->generation;
	r->held = HOLD(POOL_CLEAN);
	rig_crash(r, 0);
	assert_state(r, "t", SLOT_CLOSING);
	assert_int_equal(rig_box(r, "t")->lease_count, 0);
	assert_string_equal(rig_box(r, "t")->last_error, "killed by signal 9");
	assert_int_equal(rig_recorded(r, EVENT_WORKER_CRASH), 1);
	assert_int_equal(rig_recorded(r, EVENT_RELEASE), 2);
	req = rig_acquire(r, "t");
	assert_outcome(r, req, WAITING); /* until the old one is proven gone */
	rig_let_go(r);
	assert_outcome(r, req, GOT(SOURCE_COLD));
	assert_int_equal(rig_said(r, POOL_CLEAN), 1);
	assert_true(rig_box(r, "t")->generation > generation);
	assert_string_equal(rig_box(r, "t")->last_error, "");
}

static void test_a_crash_of_a_warm_box(void **state)
{
	struct rig *r = *state;

	rig_park(r, "t");
	rig_crash(r, 0);
	assert_state(r, "t", SLOT_FREE);
	assert_int_equal(pool_count(r->pool, SLOT_WARM), 0);
	assert_outcome(r, rig_acquire(r, "t"), GOT(SOURCE_COLD));
}

static void test_a_crash_while_it_is_checked(void **state)
{
	struct rig *r = *state;
	uint64_t req;

	rig_park(r, "t");
	r->held = HOLD(POOL_CHECK);
	req = rig_acquire(r, "t");
	rig_crash(r, 0);
	assert_outcome(r, req, GOT(SOURCE_COLD));
	assert_int_equal(rig_said(r, POOL_KILL), 0);
}

static void test_a_worker_that_ends_as_told_has_not_crashed(void **state)
{
	struct rig *r = *state;

	rig_park(r, "t");
	rig_remove(r, "t", false, &(uint64_t){0});
	assert_int_equal(rig_recorded(r, EVENT_WORKER_CRASH), 0);
	assert_int_equal(rig_said(r, POOL_CLEAN), 1);
}

static void test_the_worker_of_a_dead_box_may_answer_its_clients(void **state)
{
	struct rig *r = *state;
	uint64_t req;

	rig_acquire(r, "t");
	rig_forget(r);
	pool_box_failed(r->pool, r->now, 0, rig_box(r, "t")->generation, "its stream broke");
	rig_settle(r);
	assert_state(r, "t", SLOT_CLOSING);
	assert_int_equal(rig_box(r, "t")->lease_count, 0);
	assert_string_equal(rig_box(r, "t")->last_error, "its stream broke");
	req = rig_acquire(r, "t");
	rig_pass(r, POOL_FAILED_GRACE - 1);
	assert_int_equal(rig_said(r, POOL_KILL), 0);
	assert_outcome(r, req, WAITING);
	rig_pass(r, 1);
	assert_int_equal(rig_said(r, POOL_KILL), 1);
	assert_outcome(r, req, GOT(SOURCE_COLD));
}

/* ---- quarantine ---- */

static void test_a_slot_that_cannot_be_cleaned_is_never_used_again(void **state)
{
	struct rig *r = *state;
	uint64_t req;

	rig_acquire(r, "t");
	r->held = HOLD(POOL_CLEAN);
	rig_crash(r, 0);
	req = rig_acquire(r, "t");
	r->unclean = true;
	rig_let_go(r);
	assert_outcome(r, req, GOT(SOURCE_COLD)); /* the scope goes on in another slot */
	assert_int_equal(rig_box(r, "t")->slot, 1);
	assert_int_equal(pool_box_at(r->pool, 0)->state, SLOT_QUARANTINED);
	assert_string_equal(pool_box_at(r->pool, 0)->last_error, "a mount is busy");
	assert_int_equal(rig_recorded(r, EVENT_QUARANTINE), 1);
	r->unclean = false;
	for (char name[] = "a"; name[0] <= 'j'; name[0]++)
		rig_acquire(r, name);
	assert_int_equal(pool_box_at(r->pool, 0)->state, SLOT_QUARANTINED);
	assert_int_equal(pool_count(r->pool, SLOT_ACTIVE), rig_rules.slots - 1);
	rig_shutdown(r);
	assert_int_equal(r->drained, 1);
}

/* ---- what others see ---- */

static void test_generations_are_never_given_twice(void **state)
{
	struct rig *r = *state;
	uint64_t last = 41;

	for (int i = 0; i < 20; i++) {
		rig_acquire(r, i % 2 ? "a" : "b");
		assert_int_equal(rig_box(r, i % 2 ? "a" : "b")->generation, ++last);
		rig_remove(r, i % 2 ? "a" : "b", true, &(uint64_t){0});
	}
}

static void test_changed_boxes_are_published_once(void **state)
{
	struct rig *r = *state;
	struct pool_request q = rig_request(r, "t");

	assert_null(pool_next_dirty(r->pool));
	pool_acquire(r->pool, r->now, &q);
	assert_ptr_equal(pool_next_dirty(r->pool), pool_box_at(r->pool, 0));
	assert_null(pool_next_dirty(r->pool));
	pool_booted(r->pool, r->now, 0, 42);
	assert_ptr_equal(pool_next_dirty(r->pool), pool_box_at(r->pool, 0));
	assert_null(pool_next_dirty(r->pool));
	rig_settle(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    rig_test(test_a_failed_boot_is_told_to_all_who_wait),
	    rig_test(test_a_boot_that_crashes_is_tried_again),
	    rig_test(test_the_third_crash_of_a_boot_is_told),
	    rig_test(test_crashes_are_counted_for_each_who_waits),
	    rig_test(test_crashes_are_remembered_while_room_is_awaited),
	    rig_test(test_a_box_that_dies_while_it_boots_counts_once),
	    rig_test(test_a_crash_during_a_check_is_no_lost_boot),
	    rig_test(test_a_crash_of_an_active_box),
	    rig_test(test_a_crash_of_a_warm_box),
	    rig_test(test_a_crash_while_it_is_checked),
	    rig_test(test_a_worker_that_ends_as_told_has_not_crashed),
	    rig_test(test_the_worker_of_a_dead_box_may_answer_its_clients),
	    rig_test(test_a_slot_that_cannot_be_cleaned_is_never_used_again),
	    rig_test(test_generations_are_never_given_twice),
	    rig_test(test_changed_boxes_are_published_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
