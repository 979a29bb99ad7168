/* Tests of supervisor/pool_life.c: events about boxes that are no more, or in states in which they
 * cannot be meant. */
#include "tests/unit/supervisor/pool_testing.h"

/* Every event a worker or the janitor can cause, about (slot, gen). */
static void tell_everything(struct rig *r, uint32_t slot, uint64_t gen)
{
	pool_boot_waits(r->pool, r->now, slot, gen);
	pool_boot_begins(r->pool, r->now, slot, gen);
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
			pool_boot_waits(r->pool, r->now, slot, b->generation);
			pool_boot_begins(r->pool, r->now, slot, b->generation);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
	    rig_test(test_stale_events_are_ignored),
	    rig_test(test_events_out_of_place_are_ignored),
	    rig_test(test_a_stale_handle_cannot_invalidate_the_recreated_box),
	    rig_test(test_a_box_swapped_during_a_health_check_is_not_removed_by_it),
	    rig_test(test_retryable_engine_errors_do_not_invalidate),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
