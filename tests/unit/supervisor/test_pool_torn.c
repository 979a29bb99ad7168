/* Tests of supervisor/pool_restore.c: a table that its supervisor left half-written. */
#include "tests/unit/supervisor/pool_restarting.h"

/* Lets slot 1 show a box of the scope that slot 0 is of. */
static struct rig_shown *show_twins(struct rig *r)
{
	struct rig_shown *table;

	rig_acquire(r, "t");
	rig_acquire(r, "twin");
	rig_acquire(r, "bystander");
	table = rig_die(r);
	memcpy(table[1].box.token, table[0].box.token, sizeof(table[0].box.token));
	memcpy(table[1].box.identity, table[0].box.identity, sizeof(table[0].box.identity));
	rig_forget(r);
	return table;
}

static void succeed_twins(struct rig *r, struct rig_shown *table, uint32_t kept)
{
	r->held = HOLD(POOL_CLOSE);
	rig_succeed(r, table);
	free(table);
	rig_settle(r);
	assert_int_equal(rig_box(r, "t")->slot, kept);
	assert_int_equal(pool_box_at(r->pool, 1 - kept)->state, SLOT_CLOSING);
	assert_int_equal(pool_box_at(r->pool, 2)->state, SLOT_ACTIVE);
	assert_int_equal(rig_said(r, POOL_CLOSE), 1);
	rig_let_go(r);
	assert_int_equal(pool_box_at(r->pool, 1 - kept)->state, SLOT_FREE);
	assert_int_equal(rig_box(r, "t")->slot, kept);
}

static void test_of_two_boxes_of_a_scope_the_newer_stays(void **state)
{
	struct rig *r = *state;

	succeed_twins(r, show_twins(r), 1);
}

static void test_of_two_boxes_of_a_scope_the_leased_one_stays(void **state)
{
	struct rig *r = *state;
	struct rig_shown *table = show_twins(r);

	table[1].box.state = SLOT_WARM;
	table[1].box.lease_count = 0;
	r->slots[1].state = SLOT_WARM;
	succeed_twins(r, table, 0);
}

static void test_of_two_boxes_of_a_scope_the_living_one_with_a_lease_stays(void **state)
{
	struct rig *r = *state;
	struct rig_shown *table = show_twins(r);

	r->slots[1].worker = false;
	table[1].box.has_worker = false;
	r->held = HOLD(POOL_CLEAN);
	rig_succeed(r, table);
	free(table);
	rig_settle(r);
	assert_int_equal(rig_box(r, "t")->slot, 0);
	assert_state(r, "t", SLOT_ACTIVE);
	assert_int_equal(rig_said(r, POOL_CLEAN), 1); /* and not once for each reason */
	rig_let_go(r);
	assert_int_equal(pool_box_at(r->pool, 1)->state, SLOT_FREE);
}

static void test_a_torn_table_gives_no_box_to_another_identity(void **state)
{
	struct rig *r = *state;
	struct rig_shown *table = show_twins(r);

	table[0].box.identity[0] ^= 1; /* the loser's */
	succeed_twins(r, table, 1);
	assert_outcome(r, rig_acquire(r, "t"), GOT(SOURCE_ACTIVE));
}

static void test_a_used_box_of_nobody_is_closed(void **state)
{
	struct rig *r = *state;
	struct rig_shown *table;

	rig_acquire(r, "t");
	table = rig_die(r);
	memset(table[0].box.token, 0, sizeof(table[0].box.token));
	rig_succeed(r, table);
	free(table);
	rig_settle(r);
	assert_int_equal(pool_count(r->pool, SLOT_FREE), rig_rules.slots);
	assert_int_equal(rig_recorded(r, EVENT_RELEASE), 1);
}

static void test_leases_with_torn_places_get_others(void **state)
{
	struct rig *r = *state;
	struct rig_shown *table;

	for (int i = 0; i < 3; i++)
		rig_acquire(r, "t");
	table = rig_die(r);
	table[0].leases[0].place = 2; /* as the third */
	table[0].leases[1].place = POOL_LEASES;
	rig_succeed(r, table); /* the rig sees to it that each has its own */
	free(table);
	rig_settle(r);
	assert_int_equal(rig_box(r, "t")->lease_count, 3);
}

static void test_times_that_are_still_to_come_count_as_now(void **state)
{
	struct rig *r = *state;
	struct rig_shown *table;

	rig_park(r, "t");
	table = rig_die(r);
	table[0].box.parked = CLOCK_NEVER - 1;
	rig_succeed(r, table);
	free(table);
	rig_settle(r);
	assert_int_equal(rig_box(r, "t")->parked, r->now);
	rig_pass(r, 600 * NS_PER_S);
	assert_state(r, "t", SLOT_FREE);
}

static void test_generations_go_on_after_what_the_table_shows(void **state)
{
	struct rig *r = *state;
	struct rig_shown *table;

	rig_acquire(r, "a");
	rig_acquire(r, "b");
	table = rig_die(r);
	r->generation = 41; /* as if they had not been announced */
	rig_succeed(r, table);
	free(table);
	rig_settle(r);
	rig_acquire(r, "c");
	assert_int_equal(rig_box(r, "c")->generation, 44);
}

static void test_generations_do_not_follow_what_nobody_can_read(void **state)
{
	struct rig *r = *state;
	struct rig_shown *table;

	rig_acquire(r, "a");
	table = rig_die(r);
	table[1].box.slot = 1;
	table[1].box.state = SLOT_QUARANTINED;
	table[1].box.generation = UINT64_MAX;
	r->slots[1].state = SLOT_QUARANTINED;
	rig_succeed(r, table);
	free(table);
	rig_settle(r);
	rig_acquire(r, "b");
	assert_int_equal(rig_box(r, "b")->generation, 43);
	assert_int_equal(rig_box(r, "b")->slot, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    rig_test(test_of_two_boxes_of_a_scope_the_newer_stays),
	    rig_test(test_of_two_boxes_of_a_scope_the_leased_one_stays),
	    rig_test(test_of_two_boxes_of_a_scope_the_living_one_with_a_lease_stays),
	    rig_test(test_a_torn_table_gives_no_box_to_another_identity),
	    rig_test(test_a_used_box_of_nobody_is_closed),
	    rig_test(test_leases_with_torn_places_get_others),
	    rig_test(test_times_that_are_still_to_come_count_as_now),
	    rig_test(test_generations_go_on_after_what_the_table_shows),
	    rig_test(test_generations_do_not_follow_what_nobody_can_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
