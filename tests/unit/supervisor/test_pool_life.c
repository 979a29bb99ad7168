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

/* ---- whose request it was ---- */

/* The request that the last record of the event names; for EVENT_STATE, of that way into `to`. */
static uint64_t blamed(const struct rig *r, uint32_t event, uint32_t to)
{
	for (uint32_t i = r->log_count; i-- > 0;) {
		const struct pool_action *a = &r->log[i];

		if (a->kind == POOL_RECORD && a->event == event && a->to == to)
			return a->req;
	}
	fail_msg("no such record");
	return 0;
}

static void test_records_name_the_request_that_a_boot_was_for(void **state)
{
	struct rig *r = *state;
	uint64_t req;

	r->held = HOLD(POOL_SPAWN);
	req = rig_acquire(r, "t");
	rig_acquire(r, "t");
	assert_int_equal(blamed(r, EVENT_STATE, SLOT_RESERVED), req);
	assert_int_equal(blamed(r, EVENT_STATE, SLOT_BOOTING), req);
	rig_crash(r, 0);
	assert_int_equal(blamed(r, EVENT_WORKER_CRASH, 0), req);
	assert_int_equal(blamed(r, EVENT_STATE, SLOT_CLOSING), req);
	pool_boot_failed(r->pool, r->now, 0, rig_box(r, "t")->generation, "no image");
	rig_take_actions(r);
	assert_int_equal(blamed(r, EVENT_BOOT_FAILED, 0), req);
	assert_int_equal(r->log[r->log_count - 1].kind, POOL_REFUSE); /* while req is still known */
	rig_let_go(r);
	req = rig_acquire(r, "t");
	assert_int_equal(blamed(r, EVENT_STATE, SLOT_ACTIVE), req);
}

static void test_records_name_the_request_that_a_check_was_for(void **state)
{
	struct rig *r = *state;
	uint64_t req;

	rig_park(r, "t");
	assert_int_equal(blamed(r, EVENT_STATE, SLOT_WARM), 0);
	r->held = HOLD(POOL_CLEAN);
	r->sick = true;
	req = rig_acquire(r, "t");
	assert_int_equal(blamed(r, EVENT_STATE, SLOT_CHECKING), req);
	assert_int_equal(blamed(r, EVENT_CHECK_FAILED, 0), req);
	assert_int_equal(blamed(r, EVENT_STATE, SLOT_CLOSING), req);
	rig_let_go(r);
	assert_int_equal(blamed(r, EVENT_STATE, SLOT_FREE), 0);
	rig_crash(r, 0); /* in use: it was for nobody's request */
	assert_int_equal(blamed(r, EVENT_WORKER_CRASH, 0), 0);
}

static void test_records_name_the_request_that_made_others_go(void **state)
{
	struct rig *r = *state;
	uint64_t req;

	for (char name[] = "a"; name[0] <= 'c'; name[0]++)
		rig_park(r, name);
	req = rig_acquire(r, "d");
	assert_int_equal(blamed(r, EVENT_EVICT, 0), req);
	assert_int_equal(blamed(r, EVENT_STATE, SLOT_CLOSING), req);
	rig_remove(r, "d", true, &req);
	assert_int_equal(blamed(r, EVENT_STATE, SLOT_CLOSING), req);
	rig_pass(r, 600 * NS_PER_S);
	assert_int_equal(blamed(r, EVENT_EVICT, 0), 0);
}

/* ---- what must be ignored ---- */

/* Every event a worker or the janitor can cause, about (slot, gen). */
static void tell_everything(struct rig *r, uint32_t slot, uint64_t gen)
{
	pool_booted(r->pool, r->now, slot, gen);
	pool_boot_failed(r->pool, r->now, slot, gen, "stale");
	pool_checked(r->pool, r->now, slot, gen, true, "");
	pool_checked(r->pool, r->now, slot, gen, false, "stale");
	pool_box_failed(r->pool, r->now, slot, gen, "stale");
	pool_worker_gone(r->pool, r->now, slot, gen, 1, "stale");
	pool_cleaned(r->pool, r->now, slot, gen, true, "");
	pool_cleaned(r->pool, r->now, slot, gen, false, "stale");
}

/* One box in every state, in slots 0 to 6: free, warm, active, checking, closing, booting,
 * reserved. */
static void fill_with_all_states(struct rig *r)
{
	struct pool_rules rules = rig_rules;

	rules.max_boots = 1;
	rules.replicas = 8;
	rig_use(r, &rules);
	rig_park(r, "none");
	rig_park(r, "warm");
	rig_acquire(r, "active");
	rig_park(r, "checking");
	rig_acquire(r, "closing");
	rig_remove(r, "none", false, &(uint64_t){0});
	rig_acquire(r, "fills the hole");
	r->held = HOLD_ALL;
	rig_remove(r, "closing", true, &(uint64_t){0});
	rig_acquire(r, "checking");
	rig_acquire(r, "booting");
	rig_acquire(r, "reserved");
}

static void test_stale_events_are_ignored(void **state)
{
	struct rig *r = *state;

	fill_with_all_states(r);
	rig_forget(r);
	for (uint32_t slot = 0; slot < rig_rules.slots; slot++) {
		const struct pool_box *b = pool_box_at(r->pool, slot);
		struct pool_box before = *b;

		tell_everything(r, slot, b->generation - 1);
		tell_everything(r, slot, b->generation + 1);
		tell_everything(r, slot, 0);
		if (b->state == SLOT_FREE)
			tell_everything(r, slot, b->generation);
		assert_memory_equal(&before, b, sizeof(before));
	}
	tell_everything(r, rig_rules.slots, 42);
	tell_everything(r, UINT32_MAX, 42);
	rig_settle(r);
	assert_int_equal(r->log_count, 0);
}

/* Of the right generation, but not in a state in which it can be meant. */
static void test_events_out_of_place_are_ignored(void **state)
{
	struct rig *r = *state;

	fill_with_all_states(r);
	rig_forget(r);
	for (uint32_t slot = 0; slot < rig_rules.slots; slot++) {
		const struct pool_box *b = pool_box_at(r->pool, slot);

		if (b->state != SLOT_BOOTING) {
			pool_booted(r->pool, r->now, slot, b->generation);
			pool_boot_failed(r->pool, r->now, slot, b->generation, "stale");
		}
		if (b->state != SLOT_CHECKING) {
			pool_checked(r->pool, r->now, slot, b->generation, true, "");
			pool_checked(r->pool, r->now, slot, b->generation, false, "stale");
		}
		if (b->state == SLOT_CLOSING || !b->has_worker)
			pool_box_failed(r->pool, r->now, slot, b->generation, "stale");
		if (!b->has_worker)
			pool_worker_gone(r->pool, r->now, slot, b->generation, 1, "stale");
		pool_cleaned(r->pool, r->now, slot, b->generation, true, "");
		pool_cleaned(r->pool, r->now, slot, b->generation, false, "stale");
	}
	rig_settle(r);
	assert_int_equal(r->log_count, 0);
}

static void test_a_stale_handle_cannot_invalidate_the_recreated_box(void **state)
{
	struct rig *r = *state;
	uint64_t old;

	rig_acquire(r, "t");
	old = rig_box(r, "t")->generation;
	rig_crash(r, 0);
	rig_acquire(r, "t");
	assert_int_equal(rig_box(r, "t")->slot, 0);
	tell_everything(r, 0, old);
	rig_settle(r);
	assert_state(r, "t", SLOT_ACTIVE);
	assert_int_equal(rig_box(r, "t")->lease_count, 1);
}

static void test_a_box_swapped_during_a_health_check_is_not_removed_by_it(void **state)
{
	struct rig *r = *state;
	uint64_t old = rig_park(r, "t")->generation;
	uint64_t req;

	r->held = HOLD(POOL_CHECK);
	req = rig_acquire(r, "t");
	assert_state(r, "t", SLOT_CHECKING);
	rig_crash(r, 0);
	assert_outcome(r, req, GOT(SOURCE_COLD)); /* another box, in the same slot */
	assert_int_equal(rig_box(r, "t")->slot, 0);
	rig_release(r, "t", 0);
	req = rig_acquire(r, "t");
	assert_state(r, "t", SLOT_CHECKING); /* and checked itself */
	pool_checked(r->pool, r->now, 0, old, false, "no answer from the guest");
	rig_settle(r);
	assert_state(r, "t", SLOT_CHECKING);
	assert_int_equal(rig_recorded(r, EVENT_CHECK_FAILED), 0);
	rig_let_go(r);
	assert_outcome(r, req, GOT(SOURCE_WARM));
}

static void test_retryable_engine_errors_do_not_invalidate(void **state)
{
	struct rig *r = *state;
	struct pool_request q;
	uint64_t generation;
	uint64_t busy;

	rig_restart(r, REPLICA_REJECT, 2, 8);
	rig_acquire(r, "t");
	generation = rig_box(r, "t")->generation;
	q = rig_request(r, "t");
	q.spec.digest[0] = 1;
	rig_send(r, &q);
	assert_outcome(r, q.req, REFUSED(API_SPEC_MISMATCH));
	r->held = HOLD(POOL_SPAWN);
	busy = rig_acquire(r, "other");
	assert_outcome(r, rig_acquire(r, "third"), REFUSED(API_CAPACITY));
	pool_boot_failed(r->pool, r->now, rig_box(r, "other")->slot,
	    rig_box(r, "other")->generation, "engine busy");
	rig_settle(r);
	assert_outcome(r, busy, REFUSED(API_BOOT_FAILED));
	q = rig_request(r, "other");
	q.wait_limit = NS_PER_S;
	rig_send(r, &q);
	rig_pass(r, NS_PER_S);
	assert_outcome(r, q.req, REFUSED(API_TIMEOUT));
	assert_state(r, "t", SLOT_ACTIVE);
	assert_int_equal(rig_box(r, "t")->generation, generation);
	assert_int_equal(rig_box(r, "t")->lease_count, 1);
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
	    rig_test(test_a_crash_of_an_active_box),
	    rig_test(test_a_crash_of_a_warm_box),
	    rig_test(test_a_crash_while_it_is_checked),
	    rig_test(test_a_worker_that_ends_as_told_has_not_crashed),
	    rig_test(test_the_worker_of_a_dead_box_may_answer_its_clients),
	    rig_test(test_a_slot_that_cannot_be_cleaned_is_never_used_again),
	    rig_test(test_stale_events_are_ignored),
	    rig_test(test_events_out_of_place_are_ignored),
	    rig_test(test_a_stale_handle_cannot_invalidate_the_recreated_box),
	    rig_test(test_generations_are_never_given_twice),
	    rig_test(test_changed_boxes_are_published_once),
	    rig_test(test_a_box_swapped_during_a_health_check_is_not_removed_by_it),
	    rig_test(test_retryable_engine_errors_do_not_invalidate),
	    rig_test(test_records_name_the_request_that_a_boot_was_for),
	    rig_test(test_records_name_the_request_that_a_check_was_for),
	    rig_test(test_records_name_the_request_that_made_others_go),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
