/* Tests of supervisor/pool_lease.c: places, the bound, ties to connections. */
#include "tests/unit/supervisor/pool_testing.h"

/* Another lease of the thread's box, tied to that connection unless it is 0. */
static uint64_t tie(struct rig *r, const char *thread, uint64_t cookie)
{
	struct pool_request q = rig_request(r, thread);

	q.cookie = cookie;
	return rig_send(r, &q);
}

static uint32_t place_of(const struct rig *r, const char *thread, uint64_t req)
{
	const struct pool_lease *l;

	TAILQ_FOREACH (l, &rig_box(r, thread)->leases, link) {
		if (l->id == rig_lease(r, req))
			return l->place;
	}
	fail_msg("no such lease");
	return 0;
}

/* ---- places ---- */

static void test_a_lease_takes_the_lowest_place_that_is_free(void **state)
{
	struct rig *r = *state;
	uint64_t req[5];

	for (int i = 0; i < 4; i++) {
		req[i] = rig_acquire(r, "t");
		assert_int_equal(place_of(r, "t", req[i]), i);
	}
	rig_release(r, "t", rig_lease(r, req[2]));
	rig_release(r, "t", rig_lease(r, req[0]));
	assert_int_equal(place_of(r, "t", req[3]), 3); /* it stays where it is */
	req[0] = rig_acquire(r, "t");
	req[2] = rig_acquire(r, "t");
	req[4] = rig_acquire(r, "t");
	assert_int_equal(place_of(r, "t", req[0]), 0);
	assert_int_equal(place_of(r, "t", req[2]), 2);
	assert_int_equal(place_of(r, "t", req[4]), 4);
}

static void test_each_box_has_its_own_places(void **state)
{
	struct rig *r = *state;

	assert_int_equal(place_of(r, "a", rig_acquire(r, "a")), 0);
	assert_int_equal(place_of(r, "b", rig_acquire(r, "b")), 0);
	rig_release(r, "a", 0);
	assert_int_equal(place_of(r, "a", rig_acquire(r, "a")), 0);
}

static void test_a_box_full_of_leases_refuses_the_next_and_says_the_bound(void **state)
{
	struct rig *r = *state;
	uint64_t first = rig_acquire(r, "t");
	uint64_t req;

	for (uint32_t i = 1; i < POOL_LEASES; i++)
		assert_outcome(r, rig_acquire(r, "t"), GOT(SOURCE_ACTIVE));
	req = rig_acquire(r, "t");
	assert_outcome(r, req, REFUSED(API_TOO_MANY));
	assert_non_null(strstr(r->requests[req].text, "256"));
	assert_outcome(r, rig_acquire(r, "other"), GOT(SOURCE_COLD));
	rig_release(r, "t", rig_lease(r, first));
	req = rig_acquire(r, "t");
	assert_outcome(r, req, GOT(SOURCE_ACTIVE));
	assert_int_equal(place_of(r, "t", req), 0);
	assert_outcome(r, rig_acquire(r, "t"), REFUSED(API_TOO_MANY));
}

static void test_who_waited_for_a_boot_is_refused_beyond_the_bound(void **state)
{
	struct rig *r = *state;
	uint64_t req[POOL_LEASES + 1];

	r->held = HOLD(POOL_SPAWN);
	for (uint32_t i = 0; i <= POOL_LEASES; i++)
		req[i] = rig_acquire(r, "t");
	rig_let_go(r);
	assert_outcome(r, req[0], GOT(SOURCE_COLD));
	assert_outcome(r, req[POOL_LEASES - 1], GOT(SOURCE_ACTIVE));
	assert_outcome(r, req[POOL_LEASES], REFUSED(API_TOO_MANY));
}

/* ---- connections ---- */

static void test_a_lease_ends_with_its_connection(void **state)
{
	struct rig *r = *state;

	tie(r, "t", 7);
	tie(r, "t", 8);
	rig_acquire(r, "untied");
	pool_conn_gone(r->pool, r->now, 9);
	pool_conn_gone(r->pool, r->now, 7);
	rig_settle(r);
	assert_int_equal(rig_box(r, "t")->lease_count, 1);
	pool_conn_gone(r->pool, r->now, 8);
	pool_conn_gone(r->pool, r->now, 8);
	rig_settle(r);
	assert_state(r, "t", SLOT_WARM);
	pool_conn_gone(r->pool, r->now, 0); /* no connection: not the mark of untied leases */
	rig_settle(r);
	assert_state(r, "untied", SLOT_ACTIVE);
}

static void test_a_connection_takes_all_its_leases_with_it(void **state)
{
	struct rig *r = *state;

	tie(r, "a", 7);
	tie(r, "a", 7);
	tie(r, "b", 7);
	tie(r, "c", 7 + 64); /* in the same bucket */
	rig_acquire(r, "b");
	pool_conn_gone(r->pool, r->now, 7);
	rig_settle(r);
	assert_state(r, "a", SLOT_WARM);
	assert_int_equal(rig_box(r, "b")->lease_count, 1);
	assert_int_equal(rig_box(r, "c")->lease_count, 1);
}

static bool lives(void *ctx, uint64_t cookie)
{
	(*(uint32_t *)ctx)++;
	return cookie == 8;
}

static void test_leases_of_dead_connections_are_dropped(void **state)
{
	struct rig *r = *state;
	uint32_t asked = 0;

	tie(r, "a", 7);
	tie(r, "a", 7);
	tie(r, "b", 8);
	tie(r, "c", 9);
	rig_acquire(r, "c");
	rig_acquire(r, "untied");
	pool_drop_tied(r->pool, r->now, lives, &asked);
	rig_settle(r);
	assert_int_equal(asked, 4); /* not about the untied ones */
	assert_state(r, "a", SLOT_WARM);
	assert_state(r, "b", SLOT_ACTIVE);
	assert_int_equal(rig_box(r, "c")->lease_count, 1);
	assert_state(r, "untied", SLOT_ACTIVE);
	assert_int_equal(rig_recorded(r, EVENT_RELEASE), 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    rig_test(test_a_lease_takes_the_lowest_place_that_is_free),
	    rig_test(test_each_box_has_its_own_places),
	    rig_test(test_a_box_full_of_leases_refuses_the_next_and_says_the_bound),
	    rig_test(test_who_waited_for_a_boot_is_refused_beyond_the_bound),
	    rig_test(test_a_lease_ends_with_its_connection),
	    rig_test(test_a_connection_takes_all_its_leases_with_it),
	    rig_test(test_leases_of_dead_connections_are_dropped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
