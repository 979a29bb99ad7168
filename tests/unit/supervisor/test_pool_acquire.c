/* Tests of supervisor/pool_acquire.c. */
#include "tests/unit/supervisor/pool_testing.h"

/* Sends a request for the thread with another image than usual. */
static uint64_t acquire_image(struct rig *r, const char *thread, const char *image)
{
	struct pool_request q = rig_request(r, thread);

	(void)snprintf(q.spec.image, sizeof(q.spec.image), "%s", image);
	memset(q.spec.digest, image[0], sizeof(q.spec.digest));
	return rig_send(r, &q);
}

/* ---- the ways to a box ---- */

static void test_a_new_scope_boots_a_box(void **state)
{
	struct rig *r = *state;
	struct pool_request q = rig_request(r, "t");
	const struct pool_box *b;

	q.spec.memory_mib = 77;
	rig_send(r, &q);
	assert_outcome(r, q.req, GOT(SOURCE_COLD));
	assert_int_equal(rig_said(r, POOL_SPAWN), 1);
	assert_int_equal(rig_said(r, POOL_PROMOTE), 1);
	assert_int_equal(rig_said(r, POOL_CHECK), 0);
	b = rig_box(r, "t");
	assert_int_equal(b->state, SLOT_ACTIVE);
	assert_int_equal(b->slot, 0);
	assert_int_equal(b->generation, 42); /* after the last one that was given */
	assert_int_equal(b->uid, RIG_UID);
	assert_string_equal(b->token, q.id.token);
	assert_memory_equal(b->identity, q.id.digest, sizeof(b->identity));
	assert_string_equal(b->user, "u");
	assert_string_equal(b->thread, "t");
	assert_string_equal(b->spec.image, "host");
	assert_int_equal(b->spec.memory_mib, 77);
	assert_int_equal(b->flags, 0);
	assert_int_equal(b->created, r->now);
	assert_int_equal(b->lease_count, 1);
	assert_int_equal(rig_lease(r, q.req), q.lease_id);
}

static void test_an_active_box_gives_another_lease(void **state)
{
	struct rig *r = *state;
	uint64_t first = rig_acquire(r, "t");
	uint64_t second;

	rig_forget(r);
	second = rig_acquire(r, "t");
	assert_outcome(r, second, GOT(SOURCE_ACTIVE));
	assert_int_equal(r->requests[second].generation, r->requests[first].generation);
	assert_int_equal(rig_box(r, "t")->lease_count, 2);
	assert_int_equal(rig_box(r, "t")->acquires, 2);
	assert_int_equal(r->log_count, 1); /* the grant, and nothing to the worker */
}

static void test_warm_reclaim_checks_the_box_and_gives_it(void **state)
{
	struct rig *r = *state;
	uint64_t generation = rig_park(r, "t")->generation;
	uint64_t req;

	rig_forget(r);
	r->held = HOLD(POOL_CHECK);
	req = rig_acquire(r, "t");
	assert_outcome(r, req, WAITING);
	assert_state(r, "t", SLOT_CHECKING);
	rig_let_go(r);
	assert_outcome(r, req, GOT(SOURCE_WARM));
	assert_int_equal(r->requests[req].generation, generation);
	assert_int_equal(rig_said(r, POOL_CHECK), 1);
	assert_int_equal(rig_said(r, POOL_PROMOTE), 1);
	assert_int_equal(rig_said(r, POOL_SPAWN), 0);
}

static void test_flags_tell_what_the_request_lacked(void **state)
{
	struct rig *r = *state;
	struct pool_request q = rig_request(r, "t");

	q.anonymous = true;
	q.no_user = true;
	q.user = NULL;
	q.thread = NULL;
	rig_send(r, &q);
	assert_outcome(r, q.req, GOT(SOURCE_COLD));
	assert_int_equal(rig_box(r, "t")->flags, SLOT_FLAG_ANONYMOUS | SLOT_FLAG_NO_USER);
	assert_string_equal(rig_box(r, "t")->user, "");
}

static void test_the_wait_is_told(void **state)
{
	struct rig *r = *state;
	uint64_t req;

	r->held = HOLD(POOL_SPAWN);
	req = rig_acquire(r, "t");
	rig_pass(r, 3 * NS_PER_S);
	rig_let_go(r);
	assert_int_equal(r->requests[req].waited, 3 * NS_PER_S);
}

static void test_boxes_of_other_threads_are_never_reclaimed(void **state)
{
	struct rig *r = *state;
	uint64_t generation = rig_park(r, "a")->generation;
	uint64_t req = rig_acquire(r, "b");

	assert_outcome(r, req, GOT(SOURCE_COLD));
	assert_int_not_equal(r->requests[req].generation, generation);
	assert_state(r, "a", SLOT_WARM);
	req = rig_acquire(r, "a");
	assert_int_equal(r->requests[req].generation, generation);
}

/* ---- health checks ---- */

static void test_a_recent_reclaim_validates_by_default(void **state)
{
	struct rig *r = *state;

	rig_park(r, "t");
	rig_forget(r);
	assert_outcome(r, rig_acquire(r, "t"), GOT(SOURCE_WARM)); /* in the same instant */
	assert_int_equal(rig_said(r, POOL_CHECK), 1);
}

static void test_an_explicit_skip_avoids_the_check_within_its_window(void **state)
{
	struct rig *r = *state;
	struct pool_rules rules = rig_rules;
	uint64_t req;

	rules.check_skip = 10 * NS_PER_S;
	rig_use(r, &rules);
	rig_park(r, "t");
	rig_pass(r, 10 * NS_PER_S);
	rig_forget(r);
	req = rig_acquire(r, "t");
	assert_outcome(r, req, GOT(SOURCE_WARM));
	assert_int_equal(rig_said(r, POOL_CHECK), 0);
	assert_int_equal(rig_said(r, POOL_PROMOTE), 1);
	rig_release(r, "t", 0);
	rig_pass(r, 10 * NS_PER_S + 1);
	req = rig_acquire(r, "t");
	assert_outcome(r, req, GOT(SOURCE_WARM));
	assert_int_equal(rig_said(r, POOL_CHECK), 1);
}

static void test_a_dead_warm_box_is_replaced_under_the_same_id(void **state)
{
	struct rig *r = *state;
	uint64_t generation = rig_park(r, "t")->generation;
	char token[SHM_TOKEN_LEN];
	uint64_t req[3];

	memcpy(token, rig_box(r, "t")->token, sizeof(token));
	rig_forget(r);
	r->held = HOLD_ALL;
	for (int i = 0; i < 3; i++)
		req[i] = rig_acquire(r, "t");
	r->sick = true;
	r->held = HOLD(POOL_SPAWN);
	rig_settle(r);
	assert_outcome(r, req[0], WAITING);
	assert_int_equal(rig_said(r, POOL_CHECK), 1);
	assert_int_equal(rig_said(r, POOL_KILL), 1);
	assert_int_equal(rig_said(r, POOL_CLEAN), 1);
	assert_int_equal(rig_recorded(r, EVENT_CHECK_FAILED), 1);
	assert_state(r, "t", SLOT_BOOTING);
	rig_let_go(r);
	assert_outcome(r, req[0], GOT(SOURCE_COLD));
	assert_outcome(r, req[1], GOT(SOURCE_ACTIVE)); /* in order: the rig sees to it */
	assert_outcome(r, req[2], GOT(SOURCE_ACTIVE));
	assert_true(rig_box(r, "t")->generation > generation);
	assert_string_equal(rig_box(r, "t")->token, token);
}

static void test_a_box_that_dies_of_its_check_has_failed_it(void **state)
{
	struct rig *r = *state;
	const struct pool_box *b = rig_park(r, "t");
	uint64_t req;

	rig_forget(r);
	r->held = HOLD(POOL_CHECK);
	req = rig_acquire(r, "t");
	assert_state(r, "t", SLOT_CHECKING);
	pool_box_failed(r->pool, r->now, b->slot, b->generation, "it does not go on");
	rig_settle(r);
	assert_int_equal(rig_recorded(r, EVENT_CHECK_FAILED), 1);
	assert_int_equal(rig_recorded(r, EVENT_ERROR), 0);
	rig_pass(r, POOL_FAILED_GRACE);
	assert_outcome(r, req, GOT(SOURCE_COLD));
}

static void test_a_check_without_answer_counts_as_failed(void **state)
{
	struct rig *r = *state;
	uint64_t req;

	rig_park(r, "t");
	rig_forget(r);
	r->held = HOLD(POOL_CHECK);
	req = rig_acquire(r, "t");
	rig_pass(r, 5 * NS_PER_S - 1);
	assert_state(r, "t", SLOT_CHECKING);
	rig_pass(r, 1);
	assert_int_equal(rig_said(r, POOL_KILL), 1);
	assert_outcome(r, req, GOT(SOURCE_COLD));
}

/* ---- who is who ---- */

static void test_equal_names_of_other_uids_never_meet(void **state)
{
	struct rig *r = *state;
	struct pool_request q;
	const struct pool_box *mine;
	const struct pool_box *theirs;

	rig_acquire(r, "t");
	q = rig_request(r, "t");
	q.uid = RIG_UID + 1;
	rig_send(r, &q);
	assert_outcome(r, q.req, GOT(SOURCE_COLD));
	mine = pool_box_find(r->pool, RIG_UID, q.id.token);
	theirs = pool_box_find(r->pool, RIG_UID + 1, q.id.token);
	assert_true(mine && theirs && mine != theirs);
	rig_release(r, "t", 0);
	assert_int_equal(mine->state, SLOT_WARM);
	assert_int_equal(theirs->state, SLOT_ACTIVE);
	for (uid_t uid = 0; uid < RIG_UID; uid++) { /* enough to share a hash bucket */
		assert_null(pool_box_find(r->pool, uid, q.id.token));
		assert_int_equal(
		    pool_release(r->pool, r->now, uid, q.id.token, 0), POOL_RELEASE_NOT_FOUND);
	}
}

static void test_a_forced_token_collision_never_crosses_tenants(void **state)
{
	struct rig *r = *state;
	struct pool_request q;

	r->held = HOLD(POOL_SPAWN);
	for (int waiting = 1; waiting >= 0; waiting--) {
		uint64_t honest = rig_acquire(r, "t");

		q = rig_request(r, "t");
		q.id.digest[31] ^= 1;
		rig_send(r, &q);
		assert_outcome(r, q.req, REFUSED(API_IDENTITY_COLLISION));
		rig_let_go(r);
		assert_int_not_equal(rig_outcome(r, honest), WAITING);
		assert_int_equal(rig_box(r, "t")->lease_count, waiting ? 1 : 2);
	}
}

/* ---- other specs ---- */

static void test_an_active_box_of_another_spec_is_refused(void **state)
{
	struct rig *r = *state;
	uint64_t req;

	rig_acquire(r, "t");
	req = acquire_image(r, "t", "other");
	assert_outcome(r, req, REFUSED(API_SPEC_MISMATCH));
	assert_int_equal(rig_box(r, "t")->lease_count, 1);
}

static void test_a_warm_box_of_another_spec_is_replaced(void **state)
{
	struct rig *r = *state;
	uint64_t generation = rig_park(r, "t")->generation;
	uint64_t req;

	rig_forget(r);
	req = acquire_image(r, "t", "other");
	assert_outcome(r, req, GOT(SOURCE_COLD));
	assert_string_equal(rig_box(r, "t")->spec.image, "other");
	assert_true(rig_box(r, "t")->generation > generation);
	assert_int_equal(rig_said(r, POOL_CLOSE), 1);
	assert_int_equal(rig_said(r, POOL_CHECK), 0);
}

/* The one a box was made ready for leaves; the next in the queue wants another image. */
static void leave_to_another_spec(struct rig *r, uint32_t state)
{
	uint64_t first = rig_acquire(r, "t");
	uint64_t second = acquire_image(r, "t", "other");

	assert_state(r, "t", state);
	rig_leave(r, first);
	assert_outcome(r, second, WAITING);
	rig_let_go(r);
	assert_outcome(r, second, GOT(SOURCE_COLD));
	assert_string_equal(rig_box(r, "t")->spec.image, "other");
}

static void test_a_booting_box_goes_to_no_waiter_of_another_spec(void **state)
{
	struct rig *r = *state;

	r->held = HOLD(POOL_SPAWN);
	leave_to_another_spec(r, SLOT_BOOTING);
}

static void test_a_checked_box_goes_to_no_waiter_of_another_spec(void **state)
{
	struct rig *r = *state;

	rig_park(r, "t");
	r->held = HOLD(POOL_CHECK);
	leave_to_another_spec(r, SLOT_CHECKING);
}

static void test_a_reserved_box_goes_to_no_waiter_of_another_spec(void **state)
{
	struct rig *r = *state;
	struct pool_rules rules = rig_rules;

	rules.max_boots = 1;
	rig_use(r, &rules);
	r->held = HOLD(POOL_SPAWN);
	rig_acquire(r, "holds the permit");
	leave_to_another_spec(r, SLOT_RESERVED);
	assert_int_equal(rig_said(r, POOL_SPAWN), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    rig_test(test_a_new_scope_boots_a_box),
	    rig_test(test_an_active_box_gives_another_lease),
	    rig_test(test_warm_reclaim_checks_the_box_and_gives_it),
	    rig_test(test_flags_tell_what_the_request_lacked),
	    rig_test(test_the_wait_is_told),
	    rig_test(test_an_explicit_skip_avoids_the_check_within_its_window),
	    rig_test(test_a_dead_warm_box_is_replaced_under_the_same_id),
	    rig_test(test_a_box_that_dies_of_its_check_has_failed_it),
	    rig_test(test_a_check_without_answer_counts_as_failed),
	    rig_test(test_equal_names_of_other_uids_never_meet),
	    rig_test(test_a_forced_token_collision_never_crosses_tenants),
	    rig_test(test_an_active_box_of_another_spec_is_refused),
	    rig_test(test_a_warm_box_of_another_spec_is_replaced),
	    rig_test(test_a_booting_box_goes_to_no_waiter_of_another_spec),
	    rig_test(test_a_checked_box_goes_to_no_waiter_of_another_spec),
	    rig_test(test_a_reserved_box_goes_to_no_waiter_of_another_spec),
	    rig_test(test_boxes_of_other_threads_are_never_reclaimed),
	    rig_test(test_a_recent_reclaim_validates_by_default),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
