/* Tests of supervisor/pool_room.c. */
#include "tests/unit/supervisor/pool_testing.h"

/* ---- eviction ---- */

static void test_eviction_takes_the_oldest_warm_box_only(void **state)
{
	struct rig *r = *state;

	rig_acquire(r, "a");
	rig_acquire(r, "b");
	rig_acquire(r, "c");
	rig_release(r, "b", 0);
	rig_release(r, "c", 0);
	rig_release(r, "a", 0);
	assert_int_equal(rig_recorded(r, EVENT_EVICT), 0);
	assert_outcome(r, rig_acquire(r, "d"), GOT(SOURCE_COLD));
	assert_int_equal(rig_recorded(r, EVENT_EVICT), 1);
	assert_state(r, "b", SLOT_FREE);
	assert_state(r, "c", SLOT_WARM);
	assert_state(r, "a", SLOT_WARM);
}

static void test_replicas_count_active_plus_warm(void **state)
{
	struct rig *r = *state;

	rig_restart(r, REPLICA_REJECT, 3, 8);
	rig_acquire(r, "active");
	rig_park(r, "warm 1");
	rig_park(r, "warm 2");
	assert_int_equal(rig_recorded(r, EVENT_EVICT), 0); /* three are allowed */
	assert_outcome(r, rig_acquire(r, "x"), GOT(SOURCE_COLD));
	assert_int_equal(rig_recorded(r, EVENT_EVICT), 1);
	assert_outcome(r, rig_acquire(r, "y"), GOT(SOURCE_COLD));
	assert_outcome(r, rig_acquire(r, "z"), REFUSED(API_CAPACITY));
	assert_int_equal(pool_count(r->pool, SLOT_ACTIVE), 3);
	assert_int_equal(pool_count(r->pool, SLOT_WARM), 0);
}

static void test_work_in_flight_pins_a_box(void **state)
{
	struct rig *r = *state;

	rig_park(r, "a");
	rig_park(r, "b");
	rig_park(r, "c");
	r->in_flight[rig_box(r, "a")->slot] = 1;
	r->in_flight[rig_box(r, "c")->slot] = 1;
	rig_acquire(r, "d");
	assert_state(r, "a", SLOT_WARM);
	assert_state(r, "b", SLOT_FREE);
	assert_outcome(r, rig_acquire(r, "e"), GOT(SOURCE_COLD)); /* soft: beyond, all are pinned */
	assert_state(r, "a", SLOT_WARM);
	assert_state(r, "c", SLOT_WARM);
	assert_int_equal(rig_recorded(r, EVENT_EVICT), 1);
}

/* A new box does not wait for the one that goes. */
static void test_a_victim_that_closes_holds_up_nobody(void **state)
{
	struct rig *r = *state;

	rig_park(r, "a");
	rig_acquire(r, "b");
	rig_acquire(r, "c");
	r->held = HOLD(POOL_CLOSE);
	assert_outcome(r, rig_acquire(r, "d"), GOT(SOURCE_COLD));
	assert_state(r, "a", SLOT_CLOSING);
}

/* ---- the policies ---- */

static void test_soft_goes_beyond_and_says_so(void **state)
{
	struct rig *r = *state;

	rig_acquire(r, "a");
	rig_acquire(r, "b");
	rig_acquire(r, "c");
	assert_int_equal(rig_recorded(r, EVENT_ERROR), 0);
	assert_outcome(r, rig_acquire(r, "d"), GOT(SOURCE_COLD));
	assert_int_equal(rig_recorded(r, EVENT_ERROR), 1);
	assert_int_equal(pool_count(r->pool, SLOT_ACTIVE), 4);
}

/* What soft let in goes again as soon as it is idle and somebody else comes. */
static void test_what_was_beyond_is_evicted_with_the_next(void **state)
{
	struct rig *r = *state;

	for (char name[] = "a"; name[0] <= 'e'; name[0]++)
		rig_acquire(r, name);
	pool_reset(r->pool, r->now);
	rig_settle(r);
	assert_int_equal(pool_count(r->pool, SLOT_WARM), 5); /* a release never stops a box */
	rig_acquire(r, "f");
	assert_int_equal(pool_count(r->pool, SLOT_WARM), 2);
	assert_state(r, "d", SLOT_WARM);
	assert_state(r, "e", SLOT_WARM);
	assert_int_equal(rig_recorded(r, EVENT_EVICT), 3);
}

static void test_reject_refuses_at_the_cap(void **state)
{
	struct rig *r = *state;
	uint64_t req;

	rig_restart(r, REPLICA_REJECT, 2, 8);
	rig_acquire(r, "a");
	r->held = HOLD(POOL_SPAWN);
	rig_acquire(r, "b"); /* what boots counts */
	req = rig_acquire(r, "c");
	assert_outcome(r, req, REFUSED(API_CAPACITY));
	assert_true(r->log[r->log_count - 1].retry_after > 0);
	rig_let_go(r);
	assert_outcome(r, rig_acquire(r, "a"), GOT(SOURCE_ACTIVE)); /* needs no room */
	rig_release(r, "a", 0);
	assert_outcome(r, rig_acquire(r, "c"), GOT(SOURCE_COLD));
	assert_state(r, "a", SLOT_FREE);
}

static void test_wait_is_fair(void **state)
{
	struct rig *r = *state;
	uint64_t c;
	uint64_t d;

	rig_restart(r, REPLICA_WAIT, 2, 8);
	rig_acquire(r, "a");
	rig_acquire(r, "b");
	c = rig_acquire(r, "c");
	d = rig_acquire(r, "d");
	assert_int_equal(pool_waiters(r->pool), 2);
	rig_release(r, "b", 0); /* parked, and evicted for who waits */
	assert_outcome(r, c, GOT(SOURCE_COLD));
	assert_outcome(r, d, WAITING);
	assert_state(r, "b", SLOT_FREE);
	assert_outcome(r, rig_acquire(r, "a"), GOT(SOURCE_ACTIVE));
	rig_release(r, "a", 0);
	assert_outcome(r, d, GOT(SOURCE_COLD));
}

static void test_nobody_overtakes_who_waits_for_room(void **state)
{
	struct rig *r = *state;
	uint64_t b;
	uint64_t c;
	uint64_t d;

	rig_restart(r, REPLICA_WAIT, 1, 8);
	rig_acquire(r, "a");
	r->in_flight[0] = 1;
	rig_release(r, "a", 0);
	b = rig_acquire(r, "b");
	c = rig_acquire(r, "c");
	assert_outcome(r, b, WAITING);
	r->in_flight[0] = 0; /* no event tells of it: the next one finds out, for b */
	r->held = HOLD(POOL_CLOSE) | HOLD(POOL_SPAWN);
	d = rig_acquire(r, "d");
	assert_state(r, "b", SLOT_BOOTING);
	assert_state(r, "c", SLOT_FREE);
	assert_state(r, "d", SLOT_FREE);
	rig_let_go(r);
	assert_outcome(r, b, GOT(SOURCE_COLD));
	rig_release(r, "b", 0);
	assert_outcome(r, c, GOT(SOURCE_COLD));
	rig_release(r, "c", 0);
	assert_outcome(r, d, GOT(SOURCE_COLD));
}

static void test_room_is_looked_for_when_work_may_have_ended(void **state)
{
	struct rig *r = *state;
	uint64_t req;

	rig_restart(r, REPLICA_WAIT, 1, 8);
	rig_park(r, "a");
	r->in_flight[0] = 1;
	req = rig_acquire(r, "b");
	rig_pass(r, 10 * NS_PER_S);
	assert_outcome(r, req, WAITING);
	r->in_flight[0] = 0;
	rig_pass(r, POOL_ROOM_LOOK);
	assert_outcome(r, req, GOT(SOURCE_COLD));
}

static void test_waiting_for_room_ends(void **state)
{
	struct rig *r = *state;
	struct pool_request q;
	uint64_t left;
	uint64_t last;

	rig_restart(r, REPLICA_WAIT, 1, 8);
	rig_acquire(r, "a");
	left = rig_acquire(r, "b");
	q = rig_request(r, "c");
	q.wait_limit = NS_PER_S;
	rig_send(r, &q);
	last = rig_acquire(r, "c");
	rig_leave(r, left);
	rig_pass(r, NS_PER_S);
	assert_outcome(r, q.req, REFUSED(API_CAPACITY));
	assert_true(r->log[r->log_count - 1].retry_after > 0);
	assert_outcome(r, last, WAITING);
	rig_release(r, "a", 0);
	assert_outcome(r, last, GOT(SOURCE_COLD));
	assert_outcome(r, left, GONE);
}

/* Each way in which the only box may go makes room at once, while it still closes. */
static void go_by_removal(struct rig *r)
{
	rig_remove(r, "a", true, &(uint64_t){0});
}
static void go_by_crash(struct rig *r)
{
	rig_crash(r, rig_box(r, "a")->slot);
}
static void go_by_failure(struct rig *r)
{
	pool_box_failed(r->pool, r->now, 0, rig_box(r, "a")->generation, "its stream broke");
	rig_settle(r);
}
static void go_by_idling(struct rig *r)
{
	struct pool_rules rules = r->rules;

	rules.active_idle_timeout = NS_PER_S;
	rig_use(r, &rules);
	rig_pass(r, NS_PER_S);
}

static void test_room_comes_with_any_end(void **state)
{
	static void (*const ways[])(struct rig *) = {
	    go_by_removal, go_by_crash, go_by_failure, go_by_idling};
	struct rig *r = *state;

	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		uint64_t req;

		rig_restart(r, REPLICA_WAIT, 1, 8);
		rig_acquire(r, "a");
		req = rig_acquire(r, "b");
		r->held = HOLD(POOL_CLOSE) | HOLD(POOL_CLEAN);
		ways[i](r);
		assert_state(r, "a", SLOT_CLOSING);
		assert_outcome(r, req, GOT(SOURCE_COLD));
	}
}

static void test_burst_goes_beyond_for_a_few(void **state)
{
	struct rig *r = *state;
	uint64_t req;

	rig_restart(r, REPLICA_BURST, 1, 8); /* and burst_limit is 2 */
	rig_acquire(r, "a");
	assert_outcome(r, rig_acquire(r, "b"), GOT(SOURCE_COLD));
	assert_outcome(r, rig_acquire(r, "c"), GOT(SOURCE_COLD));
	req = rig_acquire(r, "d");
	assert_outcome(r, req, WAITING);
	rig_release(r, "c", 0);
	assert_outcome(r, req, GOT(SOURCE_COLD));
	assert_state(r, "c", SLOT_FREE);
}

/* ---- changed rules ---- */

static void test_a_changed_policy_reaches_all_who_wait(void **state)
{
	static const struct {
		enum replica_policy policy;
		int outcome;
	} rows[] = {
	    {REPLICA_SOFT, GOT(SOURCE_COLD)},
	    {REPLICA_BURST, GOT(SOURCE_COLD)},
	    {REPLICA_REJECT, REFUSED(API_CAPACITY)},
	};
	struct rig *r = *state;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct pool_rules rules;
		uint64_t b;
		uint64_t c;

		rig_restart(r, REPLICA_WAIT, 1, 8);
		rig_acquire(r, "a");
		b = rig_acquire(r, "b");
		c = rig_acquire(r, "c");
		rules = r->rules;
		rules.policy = rows[i].policy;
		rig_use(r, &rules);
		assert_outcome(r, b, rows[i].outcome);
		assert_outcome(r, c, rows[i].outcome);
	}
}

static void test_slots_are_fixed(void **state)
{
	struct rig *r = *state;
	struct pool_rules rules = rig_rules;

	rules.slots = 99;
	rules.replicas = 7;
	pool_set_rules(r->pool, &rules, r->now);
	assert_int_equal(pool_rules(r->pool)->slots, rig_rules.slots);
	assert_int_equal(pool_rules(r->pool)->replicas, 7);
	assert_null(pool_box_at(r->pool, rig_rules.slots));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    rig_test(test_eviction_takes_the_oldest_warm_box_only),
	    rig_test(test_work_in_flight_pins_a_box),
	    rig_test(test_a_victim_that_closes_holds_up_nobody),
	    rig_test(test_soft_goes_beyond_and_says_so),
	    rig_test(test_what_was_beyond_is_evicted_with_the_next),
	    rig_test(test_reject_refuses_at_the_cap),
	    rig_test(test_wait_is_fair),
	    rig_test(test_nobody_overtakes_who_waits_for_room),
	    rig_test(test_room_is_looked_for_when_work_may_have_ended),
	    rig_test(test_waiting_for_room_ends),
	    rig_test(test_room_comes_with_any_end),
	    rig_test(test_burst_goes_beyond_for_a_few),
	    rig_test(test_a_changed_policy_reaches_all_who_wait),
	    rig_test(test_slots_are_fixed),
	    rig_test(test_replicas_count_active_plus_warm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
