/* Tests of supervisor/idempotency.c: what is remembered, of whom, for how long, and how much. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "supervisor/idempotency.h"

static const uint8_t digest[DIGEST_LEN] = {1, 2, 3};

static int setup(void **state)
{
	*state = idempotency_create();
	return *state ? 0 : -1;
}

static int teardown(void **state)
{
	idempotency_free(*state);
	return 0;
}

static struct idempotent *begin(struct idempotency *t, uid_t uid, const char *key, uint64_t now)
{
	return idempotency_begin(t, uid, key, digest, now);
}

static void done(struct idempotency *t, uid_t uid, const char *key, uint64_t now)
{
	struct idempotent *i = begin(t, uid, key, now);

	assert_non_null(i);
	idempotency_done(t, i, "/v1/boxes/x", key, strlen(key));
}

static void test_an_answer_is_kept(void **state)
{
	struct idempotency *t = *state;
	struct idempotent *i = begin(t, 1000, "key", 5);

	assert_ptr_equal(idempotency_find(t, 1000, "key", 6), i);
	assert_false(i->done);
	assert_memory_equal(i->digest, digest, DIGEST_LEN);
	idempotency_done(t, i, "/v1/boxes/x", "{}", 2);
	i = idempotency_find(t, 1000, "key", 7);
	assert_true(i->done);
	assert_int_equal(i->body.len, 2);
	assert_memory_equal(buf_head(&i->body), "{}", 2);
	assert_string_equal(i->location, "/v1/boxes/x");
}

static void test_a_key_is_its_uids_own(void **state)
{
	struct idempotency *t = *state;

	done(t, 1000, "key", 0);
	assert_null(idempotency_find(t, 1001, "key", 0));
	assert_null(idempotency_find(t, 1000, "Key", 0));
	done(t, 1001, "key", 0);
	assert_int_equal(idempotency_count(t), 2);
}

static void test_what_failed_is_forgotten(void **state)
{
	struct idempotency *t = *state;

	idempotency_forget(t, begin(t, 1000, "key", 0));
	assert_null(idempotency_find(t, 1000, "key", 0));
	assert_int_equal(idempotency_count(t), 0);
}

static void test_a_day(void **state)
{
	struct idempotency *t = *state;
	struct idempotent *slow = begin(t, 1000, "slow", 0);

	done(t, 1000, "first", 1);
	done(t, 1000, "second", 2);
	assert_non_null(idempotency_find(t, 1000, "first", IDEMPOTENCY_LIFETIME));
	assert_null(idempotency_find(t, 1000, "first", IDEMPOTENCY_LIFETIME + 1));
	assert_non_null(idempotency_find(t, 1000, "second", IDEMPOTENCY_LIFETIME + 1));
	/* What is under way is known however long it takes. */
	assert_ptr_equal(idempotency_find(t, 1000, "slow", 3 * IDEMPOTENCY_LIFETIME), slow);
	assert_int_equal(idempotency_count(t), 1);
}

static void test_a_uid_forgets_its_own_oldest(void **state)
{
	struct idempotency *t = *state;
	char key[16];

	done(t, 1001, "other", 0);
	for (uint32_t n = 0; n <= IDEMPOTENCY_PER_UID; n++) {
		(void)snprintf(key, sizeof(key), "%u", n);
		done(t, 1000, key, n);
	}
	assert_int_equal(idempotency_count(t), IDEMPOTENCY_PER_UID + 1);
	assert_null(idempotency_find(t, 1000, "0", 0));
	assert_non_null(idempotency_find(t, 1000, "1", 0));
	assert_non_null(idempotency_find(t, 1001, "other", 0));
}

static void test_what_is_under_way_is_not_forgotten(void **state)
{
	struct idempotency *t = *state;
	char key[16];

	for (uint32_t n = 0; n < IDEMPOTENCY_PER_UID; n++) {
		(void)snprintf(key, sizeof(key), "%u", n);
		assert_non_null(begin(t, 1000, key, n));
	}
	assert_null(begin(t, 1000, "more", 0));
	assert_non_null(begin(t, 1001, "more", 0));
	idempotency_done(t, idempotency_find(t, 1000, "7", 0), "", "", 0);
	assert_non_null(begin(t, 1000, "more", 0));
	assert_null(idempotency_find(t, 1000, "7", 0));
}

static void test_all_together_are_bounded(void **state)
{
	struct idempotency *t = *state;
	char key[16];

	for (uint32_t n = 0; n < 2 * IDEMPOTENCY_ALL; n++) {
		(void)snprintf(key, sizeof(key), "%u", n);
		done(t, 1000 + n / 100, key, n);
		assert_true(idempotency_count(t) <= IDEMPOTENCY_ALL);
	}
	assert_int_equal(idempotency_count(t), IDEMPOTENCY_ALL);
	assert_null(idempotency_find(t, 1000, "0", 0));
	assert_non_null(idempotency_find(t, 1000 + (2 * IDEMPOTENCY_ALL - 1) / 100, key, 0));
}

#define kept(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    kept(test_an_answer_is_kept),
	    kept(test_a_key_is_its_uids_own),
	    kept(test_what_failed_is_forgotten),
	    kept(test_a_day),
	    kept(test_a_uid_forgets_its_own_oldest),
	    kept(test_what_is_under_way_is_not_forgotten),
	    kept(test_all_together_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
