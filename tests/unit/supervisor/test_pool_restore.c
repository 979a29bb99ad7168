/* Tests of supervisor/pool_restore.c: what a successor makes of the table of a dead supervisor. */
#include "tests/unit/supervisor/pool_restarting.h"

static bool is_adopted(const struct rig *r, const char *thread)
{
	return rig_box(r, thread)->flags & SLOT_FLAG_ADOPTED;
}

/* ---- what lived ---- */

static void test_an_active_box_stays_active_with_its_leases(void **state)
{
	struct rig *r = *state;
	struct pool_request q = rig_request(r, "t");
	uint64_t first = rig_acquire(r, "t");
	struct pool_box before;
	uint64_t req;

	q.cookie = 7;
	q.lease_ttl = 30 * NS_PER_S;
	rig_send(r, &q);
	rig_acquire(r, "t");
	rig_release(r, "t", rig_lease(r, first));
	before = *rig_box(r, "t");
	rig_pass(r, NS_PER_S);
	rig_forget(r);
	rig_die_and_succeed(r);
	assert_state(r, "t", SLOT_ACTIVE);
	assert_true(is_adopted(r, "t"));
	assert_int_equal(rig_box(r, "t")->lease_count, 2);
	assert_int_equal(TAILQ_FIRST(&rig_box(r, "t")->leases)->place, 1);
	assert_memory_equal(rig_box(r, "t")->places, before.places, sizeof(before.places));
	assert_int_equal(rig_box(r, "t")->generation, before.generation);
	assert_int_equal(rig_box(r, "t")->state_since, before.state_since);
	assert_int_equal(rig_box(r, "t")->acquires, 3);
	assert_int_equal(rig_recorded(r, EVENT_STATE), 0);
	assert_int_equal(rig_recorded(r, EVENT_ADOPT), 1);
	assert_int_equal(rig_said(r, POOL_PROMOTE), 1); /* it may have missed it */
	req = rig_acquire(r, "t");
	assert_outcome(r, req, GOT(SOURCE_ACTIVE));
	rig_release(r, "t", rig_lease(r, req));
	rig_pass(r, 29 * NS_PER_S); /* its time ran on */
	assert_int_equal(rig_box(r, "t")->lease_count, 1);
	assert_int_equal(rig_release(r, "t", 0), POOL_RELEASE_WARM);
}

static void test_a_release_that_was_half_done_is_finished(void **state)
{
	struct rig *r = *state;
	struct rig_shown *table;

	rig_acquire(r, "t");
	table = rig_die(r);
	table[0].box.lease_count = 0;
	r->now += NS_PER_S;
	rig_forget(r);
	rig_succeed(r, table);
	free(table);
	assert_state(r, "t", SLOT_WARM);
	assert_int_equal(rig_box(r, "t")->parked, r->now);
	assert_int_equal(rig_said(r, POOL_PARK), 0); /* not before it said hello */
	rig_settle(r);
	assert_int_equal(rig_said(r, POOL_PARK), 1);
}

static void test_an_adopted_box_is_always_checked(void **state)
{
	struct rig *r = *state;
	struct pool_rules rules = rig_rules;
	const char *const names[] = {"warm", "active"};

	rules.check_skip = 100 * NS_PER_S;
	rig_use(r, &rules);
	rig_park(r, "warm");
	rig_acquire(r, "active");
	rig_die_and_succeed(r);
	rig_release(r, "active", 0); /* parked by this one, but never proven by it */
	rig_forget(r);
	for (int i = 0; i < 2; i++) {
		assert_outcome(r, rig_acquire(r, names[i]), GOT(SOURCE_WARM));
		assert_int_equal(rig_said(r, POOL_CHECK), i + 1);
		assert_false(is_adopted(r, names[i]));
		rig_release(r, names[i], 0);
	}
	for (int i = 0; i < 2; i++) /* it is a box as any other now */
		assert_outcome(r, rig_acquire(r, names[i]), GOT(SOURCE_WARM));
	assert_int_equal(rig_said(r, POOL_CHECK), 2);
}

static void test_a_check_that_was_lost_leaves_the_box_warm(void **state)
{
	struct rig *r = *state;
	uint64_t req;

	rig_park(r, "t");
	r->held = HOLD(POOL_CHECK);
	req = rig_acquire(r, "t");
	assert_state(r, "t", SLOT_CHECKING);
	rig_die_and_succeed(r);
	assert_outcome(r, req, GONE);
	assert_state(r, "t", SLOT_WARM);
	rig_let_go(r);
	assert_outcome(r, rig_acquire(r, "t"), GOT(SOURCE_WARM));
}

static void test_warm_boxes_are_evicted_in_the_order_in_which_they_were_parked(void **state)
{
	static const char *const order[] = {"c", "a", "b"};
	struct rig *r = *state;

	rig_acquire(r, "a");
	rig_acquire(r, "b");
	rig_acquire(r, "c");
	for (int i = 0; i < 3; i++) {
		rig_pass(r, 1);
		rig_release(r, order[i], 0);
	}
	rig_die_and_succeed(r);
	for (int i = 0; i < 3; i++) {
		rig_acquire(r, (const char[]){(char)('x' + i), 0});
		assert_state(r, order[i], SLOT_FREE);
	}
	assert_int_equal(rig_recorded(r, EVENT_EVICT), 3);
}

static void test_idle_time_runs_on(void **state)
{
	struct rig *r = *state;

	rig_park(r, "t");
	rig_pass(r, 500 * NS_PER_S);
	rig_die_and_succeed(r);
	rig_pass(r, 100 * NS_PER_S - 1);
	assert_state(r, "t", SLOT_WARM);
	rig_pass(r, 1);
	assert_state(r, "t", SLOT_FREE);
}

/* ---- boots ---- */

static void test_a_boot_that_came_up_meanwhile_is_parked(void **state)
{
	struct rig *r = *state;

	r->held = HOLD(POOL_SPAWN) | HOLD_HELLO;
	rig_acquire(r, "t");
	rig_die_and_succeed(r);
	assert_state(r, "t", SLOT_BOOTING);
	r->slots[0].up = true;
	rig_let_go(r);
	assert_state(r, "t", SLOT_WARM);
	assert_int_equal(rig_said(r, POOL_PARK), 1);
	assert_outcome(r, rig_acquire(r, "t"), GOT(SOURCE_WARM));
	assert_int_equal(rig_said(r, POOL_CHECK), 1);
}

static void test_who_comes_while_a_boot_is_adopted_gets_it_checked(void **state)
{
	struct rig *r = *state;
	uint64_t req;

	r->held = HOLD(POOL_SPAWN) | HOLD_HELLO;
	rig_acquire(r, "t");
	rig_die_and_succeed(r);
	r->slots[0].up = true;
	req = rig_acquire(r, "t");
	assert_outcome(r, req, WAITING);
	rig_let_go(r);
	assert_outcome(r, req, GOT(SOURCE_WARM));
	assert_int_equal(rig_said(r, POOL_CHECK), 1);
	assert_int_equal(rig_said(r, POOL_SPAWN), 1);
}

static void test_a_half_made_box_is_killed(void **state)
{
	struct rig *r = *state;
	uint64_t req;

	r->held = HOLD(POOL_SPAWN) | HOLD_HELLO | HOLD(POOL_KILL);
	rig_acquire(r, "t");
	rig_die_and_succeed(r);
	req = rig_acquire(r, "t");
	r->held = HOLD(POOL_KILL);
	rig_settle(r);
	assert_state(r, "t", SLOT_CLOSING);
	assert_int_equal(rig_said(r, POOL_KILL), 1);
	rig_let_go(r);
	assert_outcome(r, req, GOT(SOURCE_COLD));
}

static void test_an_adopted_boot_has_a_fresh_deadline(void **state)
{
	struct rig *r = *state;

	r->held = HOLD(POOL_SPAWN) | HOLD_HELLO;
	rig_acquire(r, "t");
	rig_pass(r, 20 * NS_PER_S);
	rig_die_and_succeed(r);
	rig_pass(r, 30 * NS_PER_S - 1);
	assert_state(r, "t", SLOT_BOOTING);
	rig_pass(r, 1);
	assert_int_equal(rig_recorded(r, EVENT_BOOT_FAILED), 1);
	assert_state(r, "t", SLOT_FREE);
}

static void test_adopted_boots_hold_their_permits(void **state)
{
	struct rig *r = *state;
	struct pool_rules rules = rig_rules;

	rules.max_boots = 1;
	rig_use(r, &rules);
	r->held = HOLD(POOL_SPAWN) | HOLD_HELLO;
	rig_acquire(r, "t");
	rig_die_and_succeed(r);
	rig_acquire(r, "other");
	assert_state(r, "other", SLOT_RESERVED);
	r->slots[0].up = true;
	rig_let_go(r);
	assert_state(r, "other", SLOT_ACTIVE);
}

static void test_a_boot_is_up_only_when_its_worker_has_said_hello(void **state)
{
	struct rig *r = *state;

	r->held = HOLD(POOL_SPAWN) | HOLD_HELLO;
	rig_acquire(r, "t");
	rig_die_and_succeed(r);
	pool_booted(r->pool, r->now, 0, rig_box(r, "t")->generation);
	rig_settle(r);
	assert_state(r, "t", SLOT_BOOTING);
}

static void test_who_waits_for_hello_keeps_an_idle_box(void **state)
{
	struct rig *r = *state;
	uint64_t req;

	rig_park(r, "t");
	rig_pass(r, 599 * NS_PER_S);
	r->held = HOLD_HELLO;
	rig_die_and_succeed(r);
	req = rig_acquire(r, "t");
	rig_pass(r, 2 * NS_PER_S);
	assert_state(r, "t", SLOT_WARM);
	rig_let_go(r);
	assert_outcome(r, req, GOT(SOURCE_WARM));
}

/* ---- what was on its way out, or not begun ---- */

static void test_what_was_closing_is_closed(void **state)
{
	struct rig *r = *state;

	rig_acquire(r, "told");
	rig_acquire(r, "not told");
	r->held = HOLD(POOL_CLOSE);
	rig_remove(r, "told", true, &(uint64_t){0});
	rig_remove(r, "not told", true, &(uint64_t){0});
	r->order_count = 1; /* the second order was never sent */
	rig_forget(r);
	rig_die_and_succeed(r);
	assert_state(r, "told", SLOT_CLOSING);
	assert_state(r, "not told", SLOT_CLOSING);
	assert_int_equal(rig_said(r, POOL_CLOSE), 1);
	assert_int_equal(r->log[r->log_count - 1].slot, 1);
	rig_let_go(r);
	assert_int_equal(pool_count(r->pool, SLOT_FREE), rig_rules.slots);
	assert_int_equal(rig_recorded(r, EVENT_WORKER_CRASH), 0);
}

static void test_what_does_not_close_in_time_is_killed_though_it_never_said_hello(void **state)
{
	struct rig *r = *state;

	rig_acquire(r, "t");
	r->held = HOLD(POOL_CLOSE) | HOLD_HELLO;
	rig_remove(r, "t", true, &(uint64_t){0});
	rig_die_and_succeed(r);
	rig_pass(r, 3 * NS_PER_S - 1);
	assert_int_equal(rig_said(r, POOL_KILL), 0);
	rig_pass(r, 1);
	assert_int_equal(rig_said(r, POOL_KILL), 1);
	assert_state(r, "t", SLOT_FREE);
}

static void test_a_worker_that_closes_of_its_own_accord_is_let(void **state)
{
	struct rig *r = *state;
	uint64_t req;

	rig_acquire(r, "t");
	r->held = HOLD_HELLO | HOLD(POOL_CLOSE);
	rig_die_and_succeed(r);
	req = rig_acquire(r, "t");
	pool_adopted(r->pool, r->now, 0, rig_box(r, "t")->generation, true, true);
	r->order_count = 0;
	rig_settle(r);
	assert_state(r, "t", SLOT_CLOSING);
	assert_int_equal(rig_box(r, "t")->lease_count, 0);
	assert_int_equal(rig_said(r, POOL_CLOSE), 0);
	rig_crash(r, 0);
	assert_outcome(r, req, GOT(SOURCE_COLD));
}

static void test_a_reserved_box_is_given_up(void **state)
{
	struct rig *r = *state;
	struct pool_rules rules = rig_rules;

	rules.max_boots = 1;
	rig_use(r, &rules);
	r->held = HOLD(POOL_SPAWN);
	rig_acquire(r, "booting");
	rig_acquire(r, "t");
	assert_state(r, "t", SLOT_RESERVED);
	rig_forget(r);
	rig_die_and_succeed(r);
	assert_state(r, "t", SLOT_FREE);
	assert_int_equal(rig_said(r, POOL_CLEAN), 2); /* and of the half-made one */
	assert_int_equal(rig_recorded(r, EVENT_WORKER_CRASH), 0);
}

static void test_a_quarantined_slot_stays_so(void **state)
{
	struct rig *r = *state;

	rig_acquire(r, "t");
	r->unclean = true;
	rig_crash(r, 0);
	rig_die_and_succeed(r);
	assert_int_equal(pool_box_at(r->pool, 0)->state, SLOT_QUARANTINED);
	assert_state(r, "t", SLOT_FREE);
	rig_acquire(r, "t");
	assert_int_equal(rig_box(r, "t")->slot, 1);
	assert_string_equal(pool_box_at(r->pool, 0)->last_error, "a mount is busy");
}

/* ---- what died ---- */

static void test_a_worker_that_died_with_the_supervisor_is_a_crash(void **state)
{
	struct rig *r = *state;
	uint64_t generation;

	rig_acquire(r, "active");
	rig_park(r, "warm");
	r->held = HOLD(POOL_SPAWN);
	rig_acquire(r, "booting");
	generation = rig_box(r, "active")->generation;
	for (uint32_t i = 0; i < 3; i++)
		r->slots[i].worker = false;
	rig_forget(r);
	r->held = HOLD(POOL_CLEAN);
	rig_die_and_succeed(r);
	assert_int_equal(rig_recorded(r, EVENT_WORKER_CRASH), 3);
	assert_string_equal(
	    rig_record_text(r, EVENT_WORKER_CRASH), "its worker died with the supervisor");
	assert_int_equal(rig_recorded(r, EVENT_RELEASE), 1);
	assert_int_equal(pool_count(r->pool, SLOT_CLOSING), 3);
	assert_int_equal(rig_said(r, POOL_CLEAN), 3);
	assert_false(is_adopted(r, "active"));
	rig_let_go(r);
	assert_int_equal(pool_count(r->pool, SLOT_FREE), rig_rules.slots);
	assert_outcome(r, rig_acquire(r, "active"), GOT(SOURCE_COLD));
	assert_true(rig_box(r, "active")->generation > generation);
}

static void test_a_box_that_was_closing_is_no_crash(void **state)
{
	struct rig *r = *state;

	rig_acquire(r, "t");
	r->held = HOLD(POOL_CLOSE);
	rig_remove(r, "t", true, &(uint64_t){0});
	r->slots[0].worker = false;
	rig_forget(r);
	rig_die_and_succeed(r);
	assert_int_equal(rig_recorded(r, EVENT_WORKER_CRASH), 0);
	assert_int_equal(rig_said(r, POOL_CLEAN), 1);
}

static void test_a_worker_that_dies_before_it_says_hello(void **state)
{
	struct rig *r = *state;
	uint64_t req;

	rig_acquire(r, "t");
	r->held = HOLD_HELLO;
	rig_die_and_succeed(r);
	req = rig_acquire(r, "t");
	rig_crash(r, 0);
	assert_int_equal(rig_recorded(r, EVENT_WORKER_CRASH), 1);
	assert_outcome(r, req, GOT(SOURCE_COLD));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    rig_test(test_an_active_box_stays_active_with_its_leases),
	    rig_test(test_a_release_that_was_half_done_is_finished),
	    rig_test(test_an_adopted_box_is_always_checked),
	    rig_test(test_a_check_that_was_lost_leaves_the_box_warm),
	    rig_test(test_warm_boxes_are_evicted_in_the_order_in_which_they_were_parked),
	    rig_test(test_idle_time_runs_on),
	    rig_test(test_a_boot_that_came_up_meanwhile_is_parked),
	    rig_test(test_who_comes_while_a_boot_is_adopted_gets_it_checked),
	    rig_test(test_a_half_made_box_is_killed),
	    rig_test(test_an_adopted_boot_has_a_fresh_deadline),
	    rig_test(test_adopted_boots_hold_their_permits),
	    rig_test(test_a_boot_is_up_only_when_its_worker_has_said_hello),
	    rig_test(test_who_waits_for_hello_keeps_an_idle_box),
	    rig_test(test_what_was_closing_is_closed),
	    rig_test(test_what_does_not_close_in_time_is_killed_though_it_never_said_hello),
	    rig_test(test_a_worker_that_closes_of_its_own_accord_is_let),
	    rig_test(test_a_reserved_box_is_given_up),
	    rig_test(test_a_quarantined_slot_stays_so),
	    rig_test(test_a_worker_that_died_with_the_supervisor_is_a_crash),
	    rig_test(test_a_box_that_was_closing_is_no_crash),
	    rig_test(test_a_worker_that_dies_before_it_says_hello),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
