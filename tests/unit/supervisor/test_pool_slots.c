/* Tests of supervisor/pool_room.c: slots (max_boxes) and boot permits. */
#include "tests/unit/supervisor/pool_testing.h"

/* ---- max_boxes ---- */

static void test_no_slot_is_left(void **state)
{
	static const enum replica_policy refuse[] = {REPLICA_SOFT, REPLICA_REJECT};
	static const enum replica_policy wait[] = {REPLICA_WAIT, REPLICA_BURST};
	struct rig *r = *state;

	for (int i = 0; i < 2; i++) {
		rig_restart(r, refuse[i], 8, 1);
		rig_acquire(r, "a");
		assert_outcome(r, rig_acquire(r, "b"), REFUSED(API_CAPACITY));
	}
	for (int i = 0; i < 2; i++) {
		uint64_t req;

		rig_restart(r, wait[i], 8, 1);
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

			rig_restart(r, (enum replica_policy)policy, replicas, 1);
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

	rig_restart(r, REPLICA_SOFT, 8, 2);
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

	rig_restart(r, REPLICA_WAIT, 8, 1);
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

	rig_restart(r, REPLICA_WAIT, 8, 1);
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

	rig_restart(r, REPLICA_SOFT, 8, 2);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
	    rig_test(test_no_slot_is_left),
	    rig_test(test_the_slot_of_a_warm_box_is_waited_for),
	    rig_test(test_one_slot_is_made_free_for_one),
	    rig_test(test_slots_are_given_by_arrival),
	    rig_test(test_without_any_usable_slot_nobody_waits),
	    rig_test(test_quarantine_makes_room_in_replicas),
	    rig_test(test_boots_at_a_time_are_bounded),
	    rig_test(test_more_permits_take_effect_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
