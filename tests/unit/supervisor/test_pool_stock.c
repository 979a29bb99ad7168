/* Tests of supervisor/pool_stock.c: boxes that are booted before anybody asks. */
#include "tests/unit/supervisor/pool_restarting.h"
#include "tests/unit/supervisor/pool_stocking.h"

/* ---- keeping it ---- */

static void test_a_new_pool_fills_its_stock_at_its_first_tick(void **state)
{
	struct rig *r = *state;
	struct pool_rules rules = stock_rules(2);
	const struct pool_box *b;

	rules.stock.memory_mib = 77;
	pool_destroy(r->pool);
	rig_start(r, &rules);
	assert_true(pool_deadline(r->pool) <= r->now);
	assert_int_equal(rig_said(r, POOL_SPAWN), 0);
	rig_pass(r, 0);
	assert_int_equal(rig_said(r, POOL_SPAWN), 2);
	assert_int_equal(pool_count(r->pool, SLOT_STOCK), 2);
	b = pool_box_at(r->pool, stock_slot(r));
	assert_string_equal(b->token, "");
	assert_int_equal(b->spec.memory_mib, 77);
	assert_int_equal(b->created, r->now);
	assert_int_equal(rig_said(r, POOL_PARK), 0);
	rig_pass(r, 100000 * NS_PER_S); /* it waits as long as it takes */
	assert_int_equal(pool_count(r->pool, SLOT_STOCK), 2);
	assert_int_equal(pool_deadline(r->pool), CLOCK_NEVER);
}

static void test_stock_boots_with_idle_permits_only(void **state)
{
	struct rig *r = *state;
	struct pool_rules rules = stock_rules(4);

	rules.max_boots = 2;
	r->held = HOLD(POOL_SPAWN);
	rig_acquire(r, "a");
	rig_use(r, &rules);
	rig_pass(r, 0);
	assert_int_equal(rig_said(r, POOL_SPAWN), 2);
	rig_acquire(r, "b"); /* all permits are taken */
	assert_state(r, "b", SLOT_RESERVED);
	rig_answer_slot(r, rig_box(r, "a")->slot);
	assert_state(r, "b", SLOT_BOOTING); /* and not more stock */
	rig_pass(r, 0);
	assert_int_equal(rig_said(r, POOL_SPAWN), 3);
	rig_let_go(r);
	rig_pass(r, 0);
	assert_int_equal(pool_count(r->pool, SLOT_STOCK), 4);
}

static void test_stock_leaves_a_permit_to_whoever_comes_next(void **state)
{
	struct rig *r = *state;
	struct pool_rules rules = stock_rules(4);

	rules.max_boots = 3;
	r->held = HOLD(POOL_SPAWN);
	rig_use(r, &rules);
	rig_pass(r, 0);
	assert_int_equal(rig_said(r, POOL_SPAWN), 2);
	rig_acquire(r, "t");
	assert_state(r, "t", SLOT_BOOTING);
	rules.max_boots = 1; /* with one alone it is taken when it lies idle */
	rules.prewarm = 1;
	pool_destroy(r->pool);
	rig_start(r, &rules);
	rig_pass(r, 0);
	assert_int_equal(pool_count(r->pool, SLOT_STOCK), 1);
}

static void test_stock_does_not_count_against_replicas(void **state)
{
	struct rig *r = *state;
	struct pool_rules rules = stock_rules(2);

	rules.policy = REPLICA_REJECT;
	rules.replicas = 2;
	rig_use(r, &rules);
	rig_pass(r, 0);
	assert_outcome(r, rig_acquire(r, "a"), GOT(SOURCE_PREWARMED));
	rig_pass(r, 0);
	assert_outcome(r, rig_acquire(r, "b"), GOT(SOURCE_PREWARMED));
	rig_pass(r, 0);
	assert_int_equal(pool_count(r->pool, SLOT_STOCK), 2);
	assert_outcome(
	    r, rig_acquire(r, "c"), REFUSED(API_CAPACITY)); /* but what is claimed does */
	assert_int_equal(pool_count(r->pool, SLOT_STOCK), 2);
}

static void test_stock_goes_first_when_slots_run_out(void **state)
{
	static const enum replica_policy policies[] = {
	    REPLICA_SOFT, REPLICA_REJECT, REPLICA_WAIT, REPLICA_BURST};
	struct rig *r = *state;

	for (size_t i = 0; i < sizeof(policies) / sizeof(policies[0]); i++) {
		struct pool_rules rules = stock_rules(1);
		struct pool_request q;

		rig_restart(r, policies[i], 8, 2);
		rules.policy = policies[i];
		rules.replicas = 8;
		rules.slots = 2;
		rig_park(r, "warm");
		rig_use(r, &rules);
		rig_pass(r, 0);
		assert_int_equal(pool_count(r->pool, SLOT_STOCK), 1);
		q = rig_request(r, "other spec");
		q.spec.digest[0] = 1;
		rig_send(r, &q);
		assert_outcome(r, q.req, GOT(SOURCE_COLD));
		assert_state(r, "warm", SLOT_WARM);
		rig_pass(r, 0);
		assert_int_equal(pool_count(r->pool, SLOT_STOCK), 0); /* no slot is left for it */
		assert_int_equal(rig_recorded(r, EVENT_EVICT), 1);
		rig_remove(r, "warm", false, &(uint64_t){0});
		rig_pass(r, 0);
		assert_int_equal(pool_count(r->pool, SLOT_STOCK), 1);
	}
}

static void test_stock_that_still_boots_is_given_up_before_what_is_up(void **state)
{
	struct rig *r = *state;
	struct pool_rules rules = stock_rules(2);
	struct pool_request q;

	rig_restart(r, REPLICA_SOFT, 8, 2);
	rules.slots = 2;
	r->held = HOLD(POOL_SPAWN);
	rig_use(r, &rules);
	rig_pass(r, 0);
	rig_answer_slot(r, 0);
	q = rig_request(r, "t");
	q.spec.digest[0] = 1;
	rig_send(r, &q);
	assert_state(r, "t", SLOT_BOOTING);
	assert_int_equal(rig_box(r, "t")->slot, 1);
	assert_int_equal(pool_box_at(r->pool, 0)->state, SLOT_STOCK);
}

/* ---- boots that fail ---- */

/* Lets the boot of stock that is under way fail. */
static void fail_boot(struct rig *r)
{
	const struct pool_box *b = TAILQ_FIRST(&r->pool->stock);

	assert_non_null(b);
	rig_forgive(r, b->slot);
	pool_boot_failed(r->pool, r->now, b->slot, b->generation, "no image");
	rig_settle(r);
}

static void test_a_failed_stock_boot_is_tried_again_later_and_later(void **state)
{
	static const uint64_t pauses[] = {1, 2, 4, 8, 16, 32, 60, 60};
	struct rig *r = *state;
	struct pool_rules rules = stock_rules(1);

	r->held = HOLD(POOL_SPAWN);
	rig_use(r, &rules);
	rig_pass(r, 0);
	for (size_t i = 0; i < sizeof(pauses) / sizeof(pauses[0]); i++) {
		fail_boot(r);
		rig_forget(r);
		rig_pass(r, pauses[i] * NS_PER_S - 1);
		assert_int_equal(rig_said(r, POOL_SPAWN), 0);
		rig_pass(r, 1);
		assert_int_equal(rig_said(r, POOL_SPAWN), 1);
	}
	rig_let_go(r); /* it comes up after all */
	assert_int_equal(pool_count(r->pool, SLOT_STOCK), 1);
	r->held = HOLD(POOL_SPAWN);
	rig_acquire(r, "t");
	rig_pass(r, 0);
	fail_boot(r);
	rig_forget(r);
	rig_pass(r, NS_PER_S);
	assert_int_equal(rig_said(r, POOL_SPAWN), 1);
}

static void test_boots_that_fail_together_count_once(void **state)
{
	struct rig *r = *state;
	struct pool_rules rules = stock_rules(3);

	r->held = HOLD(POOL_SPAWN);
	rig_use(r, &rules);
	rig_pass(r, 0);
	for (int i = 0; i < 3; i++)
		fail_boot(r);
	rig_forget(r);
	rig_pass(r, NS_PER_S);
	assert_int_equal(rig_said(r, POOL_SPAWN), 3);
}

/* Also of what was missing before it failed. */
static void test_a_pause_holds_for_all_that_is_missing(void **state)
{
	struct rig *r = *state;
	struct pool_rules rules = stock_rules(2);

	rules.check_skip = NS_PER_S;
	r->held = HOLD(POOL_SPAWN);
	rig_use(r, &rules);
	rig_pass(r, 0);
	rig_answer_slot(r, 0);
	rig_acquire(r, "t"); /* one is missing from now on */
	assert_int_equal(pool_deadline(r->pool), r->now);
	fail_boot(r);
	rig_forget(r);
	rig_pass(r, NS_PER_S - 1);
	assert_int_equal(rig_said(r, POOL_SPAWN), 0);
	rig_pass(r, 1);
	assert_int_equal(rig_said(r, POOL_SPAWN), 2);
}

/* In each way in which a boot may end badly. */
static void boot_crashes(struct rig *r, const struct pool_box *b)
{
	rig_crash(r, b->slot);
}
static void boot_dies(struct rig *r, const struct pool_box *b)
{
	pool_box_failed(r->pool, r->now, b->slot, b->generation, "its stream broke");
	rig_settle(r);
}
static void boot_hangs(struct rig *r, const struct pool_box *b)
{
	(void)b;
	rig_pass(r, 30 * NS_PER_S);
}

static void test_every_bad_end_of_stock_makes_a_pause(void **state)
{
	static void (*const ends[])(struct rig *, const struct pool_box *) = {
	    boot_crashes, boot_dies, boot_hangs};
	struct rig *r = *state;

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		struct pool_rules rules = stock_rules(1);

		pool_destroy(r->pool);
		rig_start(r, &rules);
		r->held = HOLD(POOL_SPAWN);
		rig_pass(r, 0);
		ends[i](r, TAILQ_FIRST(&r->pool->stock));
		rig_forget(r);
		rig_pass(r, NS_PER_S - 1);
		assert_int_equal(rig_said(r, POOL_SPAWN), 0);
		rig_pass(r, 1);
		assert_int_equal(rig_said(r, POOL_SPAWN), 1);
	}
}

static void test_stock_that_dies_while_it_waits_is_replaced_after_a_pause(void **state)
{
	struct rig *r = *state;

	stock_up(r, 1);
	rig_crash(r, stock_slot(r));
	assert_int_equal(rig_recorded(r, EVENT_WORKER_CRASH), 1);
	rig_pass(r, NS_PER_S - 1);
	assert_int_equal(rig_said(r, POOL_SPAWN), 0);
	rig_pass(r, 1);
	assert_int_equal(pool_count(r->pool, SLOT_STOCK), 1);
}

/* ---- changed rules ---- */

static void test_less_prewarm_closes_the_surplus(void **state)
{
	struct rig *r = *state;
	struct pool_rules rules = stock_rules(1);
	uint32_t oldest;

	stock_up(r, 3);
	oldest = stock_slot(r);
	rig_use(r, &rules);
	assert_int_equal(pool_count(r->pool, SLOT_STOCK), 1);
	assert_int_equal(stock_slot(r), oldest);
	assert_int_equal(rig_said(r, POOL_CLOSE), 2);
	rules.prewarm = 0;
	rig_use(r, &rules);
	rig_pass(r, 100 * NS_PER_S);
	assert_int_equal(pool_count(r->pool, SLOT_FREE), rig_rules.slots);
	assert_int_equal(rig_said(r, POOL_SPAWN), 0);
}

static void test_stock_of_another_spec_is_replaced(void **state)
{
	struct rig *r = *state;
	struct pool_rules rules = stock_rules(3);

	rules.max_boots = 4;
	r->held = HOLD(POOL_SPAWN);
	rig_use(r, &rules);
	rig_pass(r, 0);
	rig_answer_slot(r, 0); /* one is up, two boot */
	rules.stock.digest[0] = 1;
	rig_forget(r);
	r->held = 0;
	rig_use(r, &rules);
	rig_pass(r, 0);
	assert_int_equal(rig_said(r, POOL_CLOSE), 3);
	assert_int_equal(rig_said(r, POOL_SPAWN), 3);
	assert_int_equal(pool_count(r->pool, SLOT_STOCK), 3);
}

/* ---- the ends ---- */

static void test_shutdown_closes_stock(void **state)
{
	struct rig *r = *state;
	struct pool_rules rules = stock_rules(2);

	stock_up(r, 1);
	r->held = HOLD(POOL_SPAWN);
	rig_use(r, &rules);
	rig_pass(r, 0);
	rig_shutdown(r); /* one is up, one boots */
	assert_int_equal(r->drained, 1);
	assert_int_equal(rig_said(r, POOL_CLOSE), 2);
	rig_pass(r, 100 * NS_PER_S);
	assert_int_equal(rig_said(r, POOL_SPAWN), 1);
}

static void test_stock_is_adopted_and_always_checked(void **state)
{
	struct rig *r = *state;
	struct pool_rules rules = stock_rules(1);
	uint64_t generation;

	rules.check_skip = 1000 * NS_PER_S;
	rig_use(r, &rules);
	rig_pass(r, 0);
	generation = pool_box_at(r->pool, stock_slot(r))->generation;
	rig_forget(r);
	r->held = HOLD_HELLO;
	rig_die_and_succeed(r);
	assert_int_equal(pool_count(r->pool, SLOT_STOCK), 1);
	rig_pass(r, 0);
	assert_int_equal(rig_said(r, POOL_SPAWN), 0); /* the stock is full */
	assert_outcome(r, rig_acquire(r, "before hello"), GOT(SOURCE_COLD));
	rig_let_go(r);
	assert_outcome(r, rig_acquire(r, "t"), GOT(SOURCE_PREWARMED));
	assert_int_equal(rig_box(r, "t")->generation, generation);
	assert_int_equal(rig_said(r, POOL_CHECK), 1);
	assert_false(rig_box(r, "t")->flags & SLOT_FLAG_ADOPTED);
}

static void test_stock_that_booted_meanwhile_is_adopted(void **state)
{
	struct rig *r = *state;
	struct pool_rules rules = stock_rules(2);

	r->held = HOLD(POOL_SPAWN) | HOLD_HELLO;
	rig_use(r, &rules);
	rig_pass(r, 0);
	r->slots[0].up = true;
	rig_die_and_succeed(r);
	assert_int_equal(pool_stock_count(r->pool), 2);
	r->held = HOLD(POOL_SPAWN);
	rig_settle(r);
	assert_int_equal(pool_box_at(r->pool, 0)->state, SLOT_STOCK);
	assert_int_equal(rig_said(r, POOL_KILL), 1); /* the other was half-made */
	rig_pass(r, 0);
	assert_int_equal(pool_stock_count(r->pool), 2);
}

static void test_a_successor_keeps_no_more_stock_than_its_rules_say(void **state)
{
	struct rig *r = *state;
	struct rig_shown *table;

	stock_up(r, 3);
	table = rig_die(r);
	r->rules.prewarm = 1;
	rig_succeed(r, table);
	free(table);
	rig_settle(r);
	assert_int_equal(pool_count(r->pool, SLOT_STOCK), 1);
	assert_int_equal(rig_said(r, POOL_CLOSE), 2);
}

/* The supervisor dies between a claim and its grant. */
static void test_a_claim_that_was_lost_leaves_the_box_to_its_scope(void **state)
{
	struct rig *r = *state;

	stock_up(r, 1);
	r->held = HOLD(POOL_CHECK);
	rig_acquire(r, "t");
	rig_die_and_succeed(r);
	rig_let_go(r);
	assert_state(r, "t", SLOT_WARM);
	assert_outcome(r, rig_acquire(r, "t"), GOT(SOURCE_WARM));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    rig_test(test_a_new_pool_fills_its_stock_at_its_first_tick),
	    rig_test(test_stock_boots_with_idle_permits_only),
	    rig_test(test_stock_leaves_a_permit_to_whoever_comes_next),
	    rig_test(test_stock_does_not_count_against_replicas),
	    rig_test(test_stock_goes_first_when_slots_run_out),
	    rig_test(test_stock_that_still_boots_is_given_up_before_what_is_up),
	    rig_test(test_a_failed_stock_boot_is_tried_again_later_and_later),
	    rig_test(test_boots_that_fail_together_count_once),
	    rig_test(test_a_pause_holds_for_all_that_is_missing),
	    rig_test(test_every_bad_end_of_stock_makes_a_pause),
	    rig_test(test_stock_that_dies_while_it_waits_is_replaced_after_a_pause),
	    rig_test(test_less_prewarm_closes_the_surplus),
	    rig_test(test_stock_of_another_spec_is_replaced),
	    rig_test(test_shutdown_closes_stock),
	    rig_test(test_stock_is_adopted_and_always_checked),
	    rig_test(test_stock_that_booted_meanwhile_is_adopted),
	    rig_test(test_a_successor_keeps_no_more_stock_than_its_rules_say),
	    rig_test(test_a_claim_that_was_lost_leaves_the_box_to_its_scope),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
