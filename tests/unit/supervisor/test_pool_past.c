/* Tests of supervisor/pool_past.c: which boxes that are gone are still known, and to whom. */
#include "tests/unit/supervisor/pool_testing.h"

static struct pool *new_pool(void)
{
	const struct pool_rules rules = {.slots = 1, .replicas = 1, .max_boots = 1};
	const struct pool_gauge gauge = {0};
	struct pool *p = pool_create(&rules, &gauge, 0);

	assert_non_null(p);
	return p;
}

static void add(struct pool *p, uid_t uid, unsigned int n)
{
	char token[SHM_TOKEN_LEN];

	(void)snprintf(token, sizeof(token), "%016x", n);
	pool_past_add(p, uid, token);
}

static enum pool_release_result release(struct pool *p, uid_t uid, unsigned int n)
{
	char token[SHM_TOKEN_LEN];

	(void)snprintf(token, sizeof(token), "%016x", n);
	return pool_release(p, 1, uid, token, 0);
}

static void test_a_box_that_is_gone_is_known_to_its_owner(void **state)
{
	struct rig *r = *state;
	struct identity id;
	uint64_t req;

	rig_restart(r, REPLICA_SOFT, 8, 8);
	req = rig_acquire(r, "t");
	assert_int_equal(identity_scope("u", "t", &id), 0);
	assert_int_equal(rig_remove(r, "t", true, &(uint64_t){0}), 0);
	assert_state(r, "t", SLOT_FREE);
	for (int i = 0; i < 2; i++)
		assert_int_equal(rig_release(r, "t", rig_lease(r, req)), POOL_RELEASE_CLOSED);
	assert_int_equal(rig_release(r, "t", 0), POOL_RELEASE_CLOSED);
	assert_int_equal(
	    pool_release(r->pool, r->now, RIG_UID + 1, id.token, 0), POOL_RELEASE_NOT_FOUND);
	assert_int_equal(rig_release(r, "another", 0), POOL_RELEASE_NOT_FOUND);
}

static void test_the_oldest_are_forgotten(void **state)
{
	struct pool *p = new_pool();

	(void)state;
	for (unsigned int i = 0; i < POOL_PAST; i++)
		add(p, 1000, i);
	for (unsigned int i = 0; i < POOL_PAST; i++)
		assert_int_equal(release(p, 1000, i), POOL_RELEASE_CLOSED);
	add(p, 1000, 0); /* once more: it is the newest now */
	add(p, 1001, 1);
	assert_int_equal(release(p, 1000, 0), POOL_RELEASE_CLOSED);
	assert_int_equal(release(p, 1000, 1), POOL_RELEASE_NOT_FOUND);
	assert_int_equal(release(p, 1001, 1), POOL_RELEASE_CLOSED);
	assert_int_equal(release(p, 1000, 2), POOL_RELEASE_CLOSED);
	for (unsigned int i = 0; i < 3 * POOL_PAST; i++)
		add(p, 1002, i);
	assert_int_equal(release(p, 1000, 0), POOL_RELEASE_NOT_FOUND);
	assert_int_equal(release(p, 1002, 2 * POOL_PAST - 1), POOL_RELEASE_NOT_FOUND);
	assert_int_equal(release(p, 1002, 2 * POOL_PAST), POOL_RELEASE_CLOSED);
	pool_destroy(p);
}

static void test_what_was_nobodys_is_not_known(void **state)
{
	struct pool *p = new_pool();

	(void)state;
	pool_past_add(p, 1000, "");
	assert_int_equal(pool_release(p, 1, 1000, "", 0), POOL_RELEASE_NOT_FOUND);
	pool_destroy(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    rig_test(test_a_box_that_is_gone_is_known_to_its_owner),
	    cmocka_unit_test(test_the_oldest_are_forgotten),
	    cmocka_unit_test(test_what_was_nobodys_is_not_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
