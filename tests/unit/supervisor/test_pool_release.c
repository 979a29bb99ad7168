/* Tests of supervisor/pool_release.c. */
#include <errno.h>

#include "tests/unit/supervisor/pool_testing.h"

/* ---- leases ---- */

static void test_release_parks(void **state)
{
	struct rig *r = *state;
	uint64_t req = rig_acquire(r, "t");
	uint64_t generation = rig_box(r, "t")->generation;

	rig_forget(r);
	rig_pass(r, NS_PER_S);
	assert_int_equal(rig_release(r, "t", rig_lease(r, req)), POOL_RELEASE_WARM);
	assert_state(r, "t", SLOT_WARM);
	assert_int_equal(rig_box(r, "t")->generation, generation);
	assert_int_equal(rig_box(r, "t")->parked, r->now);
	assert_int_equal(rig_said(r, POOL_PARK), 1);
	assert_int_equal(rig_said(r, POOL_CLOSE), 0); /* never stopped */
	assert_int_equal(rig_recorded(r, EVENT_RELEASE), 1);
}

static void test_the_last_lease_parks(void **state)
{
	struct rig *r = *state;
	uint64_t first = rig_acquire(r, "t");
	uint64_t second = rig_acquire(r, "t");

	assert_int_equal(rig_release(r, "t", rig_lease(r, second)), POOL_RELEASE_RUNNING);
	assert_int_equal(rig_release(r, "t", rig_lease(r, second)), POOL_RELEASE_RUNNING);
	assert_state(r, "t", SLOT_ACTIVE);
	assert_int_equal(rig_release(r, "t", rig_lease(r, first)), POOL_RELEASE_WARM);
}

static void test_no_lease_id_drops_all(void **state)
{
	struct rig *r = *state;

	for (int i = 0; i < 3; i++)
		rig_acquire(r, "t");
	assert_int_equal(rig_release(r, "t", 0), POOL_RELEASE_WARM);
	assert_int_equal(rig_box(r, "t")->lease_count, 0);
}

static void test_release_is_idempotent(void **state)
{
	struct rig *r = *state;
	uint64_t req = rig_acquire(r, "t");

	rig_release(r, "t", rig_lease(r, req));
	rig_forget(r);
	assert_int_equal(rig_release(r, "t", rig_lease(r, req)), POOL_RELEASE_WARM);
	assert_int_equal(rig_release(r, "t", 0), POOL_RELEASE_WARM);
	assert_int_equal(r->log_count, 0);
}

static void test_release_of_what_is_not_there(void **state)
{
	struct rig *r = *state;
	struct identity id;

	assert_int_equal(rig_release(r, "t", 0), POOL_RELEASE_NOT_FOUND);
	rig_acquire(r, "t");
	assert_int_equal(rig_release(r, "t", 1), POOL_RELEASE_RUNNING);
	assert_int_equal(identity_scope("u", "t", &id), 0);
	assert_int_equal(
	    pool_release(r->pool, r->now, RIG_UID + 1, id.token, 0), POOL_RELEASE_NOT_FOUND);
	assert_state(r, "t", SLOT_ACTIVE);
}

static void test_release_says_where_the_box_is(void **state)
{
	struct rig *r = *state;

	r->held = HOLD_ALL;
	rig_acquire(r, "t");
	assert_int_equal(rig_release(r, "t", 0), POOL_RELEASE_RUNNING); /* it boots */
	r->held = HOLD(POOL_CHECK) | HOLD(POOL_CLOSE);
	rig_settle(r);
	rig_release(r, "t", 0);
	rig_acquire(r, "t");
	assert_int_equal(rig_release(r, "t", 0), POOL_RELEASE_WARM); /* it is checked */
	rig_answer_slot(r, rig_box(r, "t")->slot);
	rig_remove(r, "t", true, &(uint64_t){0});
	assert_int_equal(rig_release(r, "t", 0), POOL_RELEASE_CLOSED);
}

static void test_a_lease_ends_with_its_time(void **state)
{
	struct rig *r = *state;
	struct pool_request q = rig_request(r, "t");

	q.lease_ttl = 30 * NS_PER_S;
	rig_send(r, &q);
	rig_acquire(r, "t");
	rig_pass(r, 30 * NS_PER_S - 1);
	assert_int_equal(rig_box(r, "t")->lease_count, 2);
	rig_pass(r, 1);
	assert_int_equal(rig_box(r, "t")->lease_count, 1);
	assert_state(r, "t", SLOT_ACTIVE); /* the other has no end */
	rig_release(r, "t", 0);
	q = rig_request(r, "t");
	q.lease_ttl = 30 * NS_PER_S;
	rig_send(r, &q);
	rig_pass(r, 30 * NS_PER_S);
	assert_state(r, "t", SLOT_WARM);
}

/* The time of a lease begins when it is given, not when it was asked for. */
static void test_waiting_takes_nothing_off_a_lease(void **state)
{
	struct rig *r = *state;
	struct pool_request q = rig_request(r, "t");

	q.lease_ttl = 5 * NS_PER_S;
	r->held = HOLD(POOL_SPAWN);
	rig_send(r, &q);
	rig_pass(r, 10 * NS_PER_S);
	rig_let_go(r);
	assert_state(r, "t", SLOT_ACTIVE);
	rig_pass(r, 5 * NS_PER_S);
	assert_state(r, "t", SLOT_WARM);
}

/* ---- removal ---- */

static void test_a_warm_box_is_removed(void **state)
{
	struct rig *r = *state;
	uint64_t req;

	rig_park(r, "t");
	rig_forget(r);
	assert_int_equal(rig_remove(r, "t", false, &req), 0);
	assert_int_equal(rig_said(r, POOL_CLOSE), 1);
	assert_int_equal(rig_said(r, POOL_CLEAN), 1);
	assert_int_equal(rig_said(r, POOL_REMOVED), 1);
	assert_true(r->requests[req].removed);
	assert_state(r, "t", SLOT_FREE);
	assert_int_equal(rig_remove(r, "t", false, &req), -ENOENT);
}

static void test_a_leased_box_is_removed_by_force_only(void **state)
{
	struct rig *r = *state;
	uint64_t req;

	rig_acquire(r, "t");
	assert_int_equal(rig_remove(r, "t", false, &req), -EBUSY);
	assert_state(r, "t", SLOT_ACTIVE);
	assert_int_equal(rig_remove(r, "t", true, &req), 0);
	assert_true(r->requests[req].removed);
	assert_state(r, "t", SLOT_FREE);
}

static void test_one_removal_at_a_time(void **state)
{
	struct rig *r = *state;
	uint64_t first;
	uint64_t second;

	rig_acquire(r, "t");
	r->held = HOLD(POOL_CLOSE);
	assert_int_equal(rig_remove(r, "t", true, &first), 0);
	assert_int_equal(rig_remove(r, "t", true, &second), -EALREADY);
	rig_let_go(r);
	assert_true(r->requests[first].removed);
	assert_false(r->requests[second].removed);
	assert_int_equal(rig_said(r, POOL_REMOVED), 1);
}

static void test_a_box_that_closes_can_be_waited_for(void **state)
{
	struct rig *r = *state;
	uint64_t req;

	rig_acquire(r, "t");
	r->held = HOLD(POOL_CLEAN);
	rig_crash(r, 0);
	assert_int_equal(rig_remove(r, "t", false, &req), 0);
	assert_false(r->requests[req].removed);
	rig_let_go(r);
	assert_true(r->requests[req].removed);
	assert_int_equal(rig_said(r, POOL_CLOSE), 0);
}

static void test_who_waits_for_a_removed_box_gets_another(void **state)
{
	struct rig *r = *state;
	uint64_t waiter;
	uint64_t req;

	r->held = HOLD(POOL_SPAWN);
	waiter = rig_acquire(r, "t");
	assert_int_equal(rig_remove(r, "t", false, &req), 0);
	assert_true(r->requests[req].removed);
	rig_let_go(r);
	assert_outcome(r, waiter, GOT(SOURCE_COLD));
	assert_int_equal(rig_said(r, POOL_SPAWN), 2);
}

static void test_a_removal_that_ends_in_quarantine_is_answered(void **state)
{
	struct rig *r = *state;
	uint64_t req;

	rig_acquire(r, "t");
	r->unclean = true;
	assert_int_equal(rig_remove(r, "t", true, &req), 0);
	assert_true(r->requests[req].removed);
	assert_int_equal(pool_count(r->pool, SLOT_QUARANTINED), 1);
}

/* ---- reset ---- */

static void test_reset_parks_without_the_right_to_skip(void **state)
{
	struct rig *r = *state;
	struct pool_rules rules = rig_rules;

	rules.check_skip = 100 * NS_PER_S;
	rig_use(r, &rules);
	rig_park(r, "parked before");
	rig_acquire(r, "a");
	rig_acquire(r, "b");
	rig_acquire(r, "b");
	assert_int_equal(pool_reset(r->pool, r->now), 2);
	rig_settle(r);
	assert_state(r, "a", SLOT_WARM);
	assert_state(r, "b", SLOT_WARM);
	rig_forget(r);
	assert_outcome(r, rig_acquire(r, "a"), GOT(SOURCE_WARM));
	assert_outcome(r, rig_acquire(r, "b"), GOT(SOURCE_WARM));
	assert_int_equal(rig_said(r, POOL_CHECK), 2);
	assert_outcome(r, rig_acquire(r, "parked before"), GOT(SOURCE_WARM));
	assert_int_equal(rig_said(r, POOL_CHECK), 2);
	rig_shutdown(r);
	assert_int_equal(pool_reset(r->pool, r->now), 0);
}

static void test_reset_parks_and_the_reaper_later_collects(void **state)
{
	struct rig *r = *state;

	rig_acquire(r, "a");
	rig_acquire(r, "b");
	rig_pass(r, 1000 * NS_PER_S);
	assert_int_equal(pool_reset(r->pool, r->now), 2);
	rig_settle(r);
	assert_int_equal(pool_count(r->pool, SLOT_WARM), 2);
	assert_int_equal(rig_said(r, POOL_CLOSE), 0);
	rig_pass(r, 600 * NS_PER_S - 1);
	assert_int_equal(pool_count(r->pool, SLOT_WARM), 2);
	rig_pass(r, 1);
	assert_int_equal(pool_count(r->pool, SLOT_FREE), rig_rules.slots);
}

/* A box that is leased in the room that a reset made is not reset with the others. */
static void test_reset_spares_what_it_makes_room_for(void **state)
{
	struct rig *r = *state;
	struct pool_rules rules = rig_rules;
	uint64_t req;

	rules.policy = REPLICA_WAIT;
	rules.replicas = 1;
	rules.prewarm = 1;
	rules.check_skip = NS_PER_S;
	rig_acquire(r, "t");
	rig_use(r, &rules);
	rig_pass(r, 0); /* stock, in the next slot */
	req = rig_acquire(r, "waits");
	assert_outcome(r, req, WAITING);
	assert_int_equal(pool_reset(r->pool, r->now), 1);
	rig_settle(r);
	assert_outcome(r, req, GOT(SOURCE_PREWARMED));
	assert_state(r, "waits", SLOT_ACTIVE);
}

/* ---- shutdown ---- */

static void test_shutdown_of_an_empty_pool(void **state)
{
	struct rig *r = *state;

	rig_shutdown(r);
	assert_int_equal(r->drained, 1);
	rig_shutdown(r);
	assert_int_equal(r->drained, 1);
}

/* One box in every state there is. */
static void test_shutdown_closes_everything(void **state)
{
	struct rig *r = *state;
	struct pool_rules rules = rig_rules;
	uint64_t req[6];

	rules.max_boots = 1;
	rules.replicas = 8;
	rig_use(r, &rules);
	rig_acquire(r, "active");
	rig_park(r, "warm");
	rig_park(r, "checked");
	rig_acquire(r, "closing");
	r->held = HOLD_ALL;
	rig_remove(r, "closing", true, &req[0]);
	req[1] = rig_acquire(r, "closing");
	req[2] = rig_acquire(r, "checked");
	req[3] = rig_acquire(r, "booting");
	req[4] = rig_acquire(r, "reserved");
	assert_state(r, "warm", SLOT_WARM);
	assert_state(r, "checked", SLOT_CHECKING);
	assert_state(r, "booting", SLOT_BOOTING);
	assert_state(r, "reserved", SLOT_RESERVED);
	rig_forget(r);
	rig_shutdown(r);
	for (int i = 1; i <= 4; i++)
		assert_outcome(r, req[i], REFUSED(API_SHUTTING_DOWN));
	req[5] = rig_acquire(r, "active");
	assert_outcome(r, req[5], REFUSED(API_SHUTTING_DOWN));
	assert_int_equal(pool_count(r->pool, SLOT_CLOSING), 6);
	assert_int_equal(rig_said(r, POOL_CLOSE), 4);
	assert_int_equal(rig_said(r, POOL_SPAWN), 0); /* nothing starts any more */
	assert_int_equal(rig_release(r, "active", 0), POOL_RELEASE_CLOSED);
	assert_int_equal(r->drained, 0);
	rig_let_go(r);
	rig_shutdown(r);
	assert_int_equal(r->drained, 1);
	assert_int_equal(pool_count(r->pool, SLOT_FREE), rig_rules.slots);
	assert_true(r->requests[req[0]].removed);
	rig_pass(r, 60 * NS_PER_S); /* deadlines that came to nothing are found out */
	assert_int_equal(pool_deadline(r->pool), CLOCK_NEVER);
}

static void test_release_during_shutdown_closes(void **state)
{
	struct rig *r = *state;
	uint64_t req = rig_acquire(r, "t");

	r->held = HOLD(POOL_CLOSE);
	rig_shutdown(r);
	assert_int_equal(rig_release(r, "t", rig_lease(r, req)), POOL_RELEASE_CLOSED);
	assert_int_equal(rig_said(r, POOL_PARK), 0);
	rig_let_go(r);
	assert_int_equal(rig_release(r, "t", rig_lease(r, req)), POOL_RELEASE_CLOSED);
	assert_int_equal(r->drained, 1);
}

/* Neither workers nor the janitor answer: it comes to an end all the same. */
static void test_shutdown_is_bounded(void **state)
{
	struct rig *r = *state;

	rig_acquire(r, "never ends");
	rig_acquire(r, "never cleaned");
	r->held = HOLD_ALL;
	rig_shutdown(r);
	rig_crash(r, rig_box(r, "never cleaned")->slot);
	rig_pass(r, POOL_CLEAN_WAIT - NS_PER_S);
	assert_int_equal(r->drained, 0);
	rig_pass(r, NS_PER_S);
	assert_int_equal(r->drained, 1);
	assert_int_equal(pool_count(r->pool, SLOT_QUARANTINED), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    rig_test(test_release_parks),
	    rig_test(test_the_last_lease_parks),
	    rig_test(test_no_lease_id_drops_all),
	    rig_test(test_release_is_idempotent),
	    rig_test(test_release_of_what_is_not_there),
	    rig_test(test_release_says_where_the_box_is),
	    rig_test(test_a_lease_ends_with_its_time),
	    rig_test(test_waiting_takes_nothing_off_a_lease),
	    rig_test(test_a_warm_box_is_removed),
	    rig_test(test_a_leased_box_is_removed_by_force_only),
	    rig_test(test_one_removal_at_a_time),
	    rig_test(test_a_box_that_closes_can_be_waited_for),
	    rig_test(test_who_waits_for_a_removed_box_gets_another),
	    rig_test(test_a_removal_that_ends_in_quarantine_is_answered),
	    rig_test(test_reset_parks_without_the_right_to_skip),
	    rig_test(test_shutdown_of_an_empty_pool),
	    rig_test(test_shutdown_closes_everything),
	    rig_test(test_shutdown_is_bounded),
	    rig_test(test_release_during_shutdown_closes),
	    rig_test(test_reset_parks_and_the_reaper_later_collects),
	    rig_test(test_reset_spares_what_it_makes_room_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
