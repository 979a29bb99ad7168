/* Tests of supervisor/pool_acquire.c: acquires that claim stock. */
#include "tests/unit/supervisor/pool_stocking.h"

static void test_an_acquire_without_a_box_claims_stock(void **state)
{
	struct rig *r = *state;
	struct pool_request q;
	const struct pool_box *b;
	uint32_t slot;
	uint64_t generation;

	stock_up(r, 1);
	slot = stock_slot(r);
	generation = pool_box_at(r->pool, slot)->generation;
	r->held = HOLD(POOL_CHECK);
	q = rig_request(r, "t");
	rig_send(r, &q);
	b = pool_box_at(r->pool, slot);
	assert_int_equal(b->state, SLOT_CHECKING);
	assert_ptr_equal(rig_box(r, "t"), b);
	assert_string_equal(b->token, q.id.token);
	assert_memory_equal(b->identity, q.id.digest, sizeof(b->identity));
	assert_string_equal(b->user, "u");
	assert_string_equal(b->thread, "t");
	assert_int_equal(b->uid, RIG_UID);
	assert_int_equal(r->log[0].kind, POOL_CLAIM); /* before any other order */
	rig_let_go(r);
	assert_outcome(r, q.req, GOT(SOURCE_PREWARMED));
	assert_int_equal(r->requests[q.req].generation, generation);
	assert_int_equal(rig_said(r, POOL_CHECK), 1);
	assert_int_equal(rig_said(r, POOL_PROMOTE), 1);
	assert_int_equal(rig_said(r, POOL_SPAWN), 0);
	rig_pass(r, 0);
	assert_int_equal(rig_said(r, POOL_SPAWN), 1); /* the next one */
	rig_release(r, "t", 0);
	assert_outcome(r, rig_acquire(r, "t"), GOT(SOURCE_WARM));
}

static void test_the_oldest_stock_is_claimed_first(void **state)
{
	struct rig *r = *state;
	uint32_t slot;

	stock_up(r, 2);
	slot = stock_slot(r);
	rig_acquire(r, "a");
	assert_int_equal(rig_box(r, "a")->slot, slot);
	rig_pass(r, 0);
	slot = stock_slot(r);
	rig_acquire(r, "b");
	assert_int_equal(rig_box(r, "b")->slot, slot);
}

static void test_a_claim_needs_no_slot(void **state)
{
	struct rig *r = *state;
	struct pool_rules rules = stock_rules(1);

	rig_restart(r, REPLICA_SOFT, 8, 2);
	rules.slots = 2;
	rules.replicas = 8;
	rig_acquire(r, "a");
	rig_use(r, &rules);
	rig_pass(r, 0);
	assert_int_equal(pool_count(r->pool, SLOT_FREE), 0);
	assert_outcome(r, rig_acquire(r, "t"), GOT(SOURCE_PREWARMED));
	assert_int_equal(rig_recorded(r, EVENT_EVICT), 0);
}

static void test_an_anonymous_acquire_claims_stock(void **state)
{
	struct rig *r = *state;
	struct pool_request q;

	stock_up(r, 1);
	q = rig_request(r, "t");
	q.anonymous = true;
	q.no_user = true;
	rig_send(r, &q);
	assert_outcome(r, q.req, GOT(SOURCE_PREWARMED));
	assert_int_equal(rig_box(r, "t")->flags, SLOT_FLAG_ANONYMOUS | SLOT_FLAG_NO_USER);
}

static void test_another_spec_claims_no_stock(void **state)
{
	struct rig *r = *state;
	struct pool_request q;

	stock_up(r, 1);
	q = rig_request(r, "t");
	q.spec.digest[0] = 1;
	rig_send(r, &q);
	assert_outcome(r, q.req, GOT(SOURCE_COLD));
	assert_int_equal(pool_count(r->pool, SLOT_STOCK), 1);
}

static void test_stock_that_still_boots_is_not_claimed(void **state)
{
	struct rig *r = *state;
	struct pool_rules rules = stock_rules(1);
	uint64_t req;

	r->held = HOLD(POOL_SPAWN);
	rig_use(r, &rules);
	rig_pass(r, 0);
	req = rig_acquire(r, "t");
	rig_let_go(r);
	assert_outcome(r, req, GOT(SOURCE_COLD));
	assert_int_equal(pool_count(r->pool, SLOT_STOCK), 1);
}

static void test_fresh_stock_skips_the_check_within_the_window(void **state)
{
	struct rig *r = *state;
	struct pool_rules rules = stock_rules(1);

	rules.check_skip = 10 * NS_PER_S;
	rig_use(r, &rules);
	rig_pass(r, 0);
	rig_pass(r, 10 * NS_PER_S);
	rig_forget(r);
	assert_outcome(r, rig_acquire(r, "a"), GOT(SOURCE_PREWARMED));
	assert_int_equal(rig_said(r, POOL_CHECK), 0);
	assert_int_equal(rig_said(r, POOL_CLAIM), 1);
	assert_int_equal(rig_said(r, POOL_PROMOTE), 1);
	rig_pass(r, 0);
	rig_pass(r, 10 * NS_PER_S + 1);
	assert_outcome(r, rig_acquire(r, "b"), GOT(SOURCE_PREWARMED));
	assert_int_equal(rig_said(r, POOL_CHECK), 1);
}

static void test_stock_that_fails_its_check_is_killed_and_the_acquire_goes_on(void **state)
{
	struct rig *r = *state;
	uint64_t req;

	stock_up(r, 1);
	r->held = HOLD(POOL_SPAWN);
	r->sick = true;
	req = rig_acquire(r, "t");
	assert_int_equal(rig_said(r, POOL_KILL), 1);
	assert_int_equal(rig_recorded(r, EVENT_CHECK_FAILED), 1);
	assert_outcome(r, req, WAITING);
	assert_state(r, "t", SLOT_BOOTING);
	rig_let_go(r);
	assert_outcome(r, req, GOT(SOURCE_COLD));
}

static void test_a_claim_that_nobody_waits_for_becomes_warm(void **state)
{
	struct rig *r = *state;
	uint64_t req;

	stock_up(r, 1);
	r->held = HOLD(POOL_CHECK);
	req = rig_acquire(r, "t");
	rig_leave(r, req);
	rig_let_go(r);
	assert_state(r, "t", SLOT_WARM);
	assert_int_equal(rig_said(r, POOL_PARK), 1);
	assert_outcome(r, rig_acquire(r, "t"), GOT(SOURCE_WARM));
}

static void test_claims_go_to_who_waits_for_room_in_their_order(void **state)
{
	struct rig *r = *state;
	struct pool_rules rules = stock_rules(1);
	uint64_t b;
	uint64_t c;

	rules.policy = REPLICA_WAIT;
	rules.replicas = 1;
	rig_use(r, &rules);
	rig_pass(r, 0);
	rig_acquire(r, "a");
	rig_pass(r, 0);
	b = rig_acquire(r, "b");
	c = rig_acquire(r, "c");
	assert_outcome(r, b, WAITING); /* stock is there, but no room in replicas */
	assert_int_equal(pool_count(r->pool, SLOT_STOCK), 1);
	rig_release(r, "a", 0);
	assert_outcome(r, b, GOT(SOURCE_PREWARMED));
	assert_outcome(r, c, WAITING);
}

/* All slots are taken, and one of them closes: who waits for that takes stock that comes up
 * meanwhile. */
static void test_stock_that_comes_up_goes_to_who_waits_for_a_slot(void **state)
{
	struct rig *r = *state;
	struct pool_rules rules = stock_rules(1);
	uint64_t req;

	rig_restart(r, REPLICA_WAIT, 8, 2);
	rules.slots = 2;
	rules.replicas = 8;
	rules.policy = REPLICA_WAIT;
	rig_acquire(r, "a");
	r->held = HOLD(POOL_SPAWN) | HOLD(POOL_CLOSE);
	rig_use(r, &rules);
	rig_pass(r, 0);
	rig_remove(r, "a", true, &(uint64_t){0});
	req = rig_acquire(r, "t");
	assert_outcome(r, req, WAITING);
	r->held = HOLD(POOL_CLOSE);
	rig_settle(r);
	assert_outcome(r, req, GOT(SOURCE_PREWARMED));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    rig_test(test_an_acquire_without_a_box_claims_stock),
	    rig_test(test_the_oldest_stock_is_claimed_first),
	    rig_test(test_a_claim_needs_no_slot),
	    rig_test(test_an_anonymous_acquire_claims_stock),
	    rig_test(test_another_spec_claims_no_stock),
	    rig_test(test_stock_that_still_boots_is_not_claimed),
	    rig_test(test_fresh_stock_skips_the_check_within_the_window),
	    rig_test(test_stock_that_fails_its_check_is_killed_and_the_acquire_goes_on),
	    rig_test(test_a_claim_that_nobody_waits_for_becomes_warm),
	    rig_test(test_claims_go_to_who_waits_for_room_in_their_order),
	    rig_test(test_stock_that_comes_up_goes_to_who_waits_for_a_slot),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
