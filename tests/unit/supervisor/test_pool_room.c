/* Tests of supervisor/pool_room.c. */
#include "tests/unit/supervisor/pool_testing.h"

static void use(struct rig *r, enum replica_policy policy, uint32_t replicas, uint32_t slots)
{
	struct pool_rules rules = rig_rules;

	rules.policy = policy;
	rules.replicas = replicas;
	rules.slots = slots;
	pool_destroy(r->pool);
	rig_start(r, &rules);
}

/* ---- eviction ---- */

static void test_the_box_that_is_warm_longest_is_evicted(void **state)
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

	use(r, REPLICA_REJECT, 2, 8);
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

	use(r, REPLICA_WAIT, 2, 8);
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

	use(r, REPLICA_WAIT, 1, 8);
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

	use(r, REPLICA_WAIT, 1, 8);
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

	use(r, REPLICA_WAIT, 1, 8);
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

		use(r, REPLICA_WAIT, 1, 8);
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

	use(r, REPLICA_BURST, 1, 8); /* and burst_limit is 2 */
	rig_acquire(r, "a");
	assert_outcome(r, rig_acquire(r, "b"), GOT(SOURCE_COLD));
	assert_outcome(r, rig_acquire(r, "c"), GOT(SOURCE_COLD));
	req = rig_acquire(r, "d");
	assert_outcome(r, req, WAITING);
	rig_release(r, "c", 0);
	assert_outcome(r, req, GOT(SOURCE_COLD));
	assert_state(r, "c", SLOT_FREE);
}

/* ---- max_boxes ---- */

static void test_no_slot_is_left(void **state)
{
	static const enum replica_policy refuse[] = {REPLICA_SOFT, REPLICA_REJECT};
	static const enum replica_policy wait[] = {REPLICA_WAIT, REPLICA_BURST};
	struct rig *r = *state;

	for (int i = 0; i < 2; i++) {
		use(r, refuse[i], 8, 1);
		rig_acquire(r, "a");
		assert_outcome(r, rig_acquire(r, "b"), REFUSED(API_CAPACITY));
	}
	for (int i = 0; i < 2; i++) {
		uint64_t req;

		use(r, wait[i], 8, 1);
		rig_acquire(r, "a");
		req = rig_acquire(r, "b");
		assert_outcome(r, req, WAITING);
		rig_release(r, "a", 0);
		assert_outcome(r, req, GOT(SOURCE_COLD));
	}
}

static void test_the_slot_of_a_warm_box_is_waited_for(void **state)
{
	struct rig *r = *state;

	for (int policy = REPLICA_SOFT; policy <= REPLICA_BURST; policy++) {
		/* once because of max_boxes alone, once because of replicas as well */
		for (uint32_t replicas = 1; replicas <= 2; replicas++) {
			uint64_t req;

			use(r, (enum replica_policy)policy, replicas, 1);
			rig_park(r, "a");
			r->held = HOLD(POOL_CLOSE);
			req = rig_acquire(r, "b");
			assert_outcome(r, req, WAITING);
			assert_int_equal(rig_recorded(r, EVENT_EVICT), 1);
			rig_let_go(r);
			assert_outcome(r, req, GOT(SOURCE_COLD));
		}
	}
}

static void test_one_slot_is_made_free_for_one(void **state)
{
	struct rig *r = *state;
	uint64_t c;
	uint64_t d;

	use(r, REPLICA_SOFT, 8, 2);
	rig_park(r, "a");
	rig_park(r, "b");
	r->held = HOLD(POOL_CLOSE);
	c = rig_acquire(r, "c");
	assert_state(r, "a", SLOT_CLOSING);
	assert_state(r, "b", SLOT_WARM);
	d = rig_acquire(r, "d");
	assert_state(r, "b", SLOT_WARM);
	rig_let_go(r);
	assert_outcome(r, c, GOT(SOURCE_COLD));
	assert_outcome(r, d, GOT(SOURCE_COLD));
}

/* Who was there first gets the slot, also when another scope lost its own box. */
static void test_slots_are_given_by_arrival(void **state)
{
	struct rig *r = *state;
	uint64_t first;
	uint64_t second;

	use(r, REPLICA_WAIT, 8, 1);
	rig_acquire(r, "a");
	first = rig_acquire(r, "b");
	r->held = HOLD(POOL_CLEAN);
	rig_crash(r, 0);
	second = rig_acquire(r, "a");
	rig_let_go(r);
	assert_outcome(r, first, GOT(SOURCE_COLD));
	assert_outcome(r, second, WAITING);
	rig_release(r, "b", 0);
	assert_outcome(r, second, GOT(SOURCE_COLD));
}

static void test_without_any_usable_slot_nobody_waits(void **state)
{
	struct rig *r = *state;
	uint64_t req;

	use(r, REPLICA_WAIT, 8, 1);
	rig_acquire(r, "a");
	req = rig_acquire(r, "b");
	r->unclean = true;
	rig_crash(r, 0);
	assert_int_equal(pool_count(r->pool, SLOT_QUARANTINED), 1);
	assert_outcome(r, req, REFUSED(API_CAPACITY));
	assert_outcome(r, rig_acquire(r, "c"), REFUSED(API_CAPACITY));
}

static void test_quarantine_makes_room_in_replicas(void **state)
{
	struct rig *r = *state;
	uint64_t req[2];

	use(r, REPLICA_SOFT, 8, 2);
	rig_acquire(r, "a");
	rig_acquire(r, "b");
	r->held = HOLD(POOL_CLEAN);
	rig_crash(r, 0);
	req[0] = rig_acquire(r, "c"); /* waits for the slot that closes */
	req[1] = rig_acquire(r, "d");
	r->unclean = true;
	rig_let_go(r);
	for (int i = 0; i < 2; i++) /* it never comes, and nothing else will */
		assert_outcome(r, req[i], REFUSED(API_CAPACITY));
}

/* ---- boot permits ---- */

static void test_boots_at_a_time_are_bounded(void **state)
{
	struct rig *r = *state;
	struct pool_rules rules = rig_rules;
	static const char *const names[] = {"a", "b", "c", "d", "e"};
	uint64_t last = 0;

	rules.max_boots = 2;
	rules.replicas = 8;
	rig_use(r, &rules);
	r->held = HOLD(POOL_SPAWN);
	for (int i = 0; i < 5; i++)
		last = rig_acquire(r, names[i]);
	assert_int_equal(rig_said(r, POOL_SPAWN), 2);
	assert_state(r, "c", SLOT_RESERVED);
	rig_answer_slot(r, rig_box(r, "b")->slot); /* one is up */
	assert_state(r, "c", SLOT_BOOTING);
	assert_state(r, "d", SLOT_RESERVED);
	rig_crash(r, rig_box(r, "a")->slot); /* one crashed */
	assert_state(r, "d", SLOT_BOOTING);
	pool_boot_failed(r->pool, r->now, rig_box(r, "c")->slot, rig_box(r, "c")->generation,
	    "no image"); /* one failed */
	rig_settle(r);
	assert_state(r, "e", SLOT_BOOTING);
	rig_let_go(r);
	assert_outcome(r, last, GOT(SOURCE_COLD));
	assert_state(r, "a", SLOT_ACTIVE);
}

static void test_more_permits_take_effect_at_once(void **state)
{
	struct rig *r = *state;
	struct pool_rules rules = rig_rules;

	rules.max_boots = 1;
	rig_use(r, &rules);
	r->held = HOLD(POOL_SPAWN);
	rig_acquire(r, "a");
	rig_acquire(r, "b");
	assert_state(r, "b", SLOT_RESERVED);
	rules.max_boots = 2;
	rig_use(r, &rules);
	assert_state(r, "b", SLOT_BOOTING);
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

		use(r, REPLICA_WAIT, 1, 8);
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
	    rig_test(test_the_box_that_is_warm_longest_is_evicted),
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
	    rig_test(test_no_slot_is_left),
	    rig_test(test_the_slot_of_a_warm_box_is_waited_for),
	    rig_test(test_one_slot_is_made_free_for_one),
	    rig_test(test_slots_are_given_by_arrival),
	    rig_test(test_without_any_usable_slot_nobody_waits),
	    rig_test(test_quarantine_makes_room_in_replicas),
	    rig_test(test_boots_at_a_time_are_bounded),
	    rig_test(test_more_permits_take_effect_at_once),
	    rig_test(test_a_changed_policy_reaches_all_who_wait),
	    rig_test(test_slots_are_fixed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
