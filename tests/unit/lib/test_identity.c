/* Scope tokens as tests/data/scope_token.json pins them; digests that tell apart what tokens do
 * not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "lib/identity.h"

#define VECTORS "tests/data/scope_token.json"

static int load(void **state)
{
	json_error_t error;
	json_t *root = json_load_file(VECTORS, 0, &error);

	if (!root)
		fail_msg("%s:%d: %s", VECTORS, error.line, error.text);
	*state = root;
	return 0;
}

static int unload(void **state)
{
	json_decref(*state);
	return 0;
}

static void identity_of(const json_t *c, struct identity *out)
{
	assert_int_equal(identity_scope(json_string_value(json_object_get(c, "user_id")),
			     json_string_value(json_object_get(c, "thread_id")), out),
	    0);
}

static void test_tokens_are_the_pinned_ones(void **state)
{
	const json_t *cases = json_object_get(*state, "cases");
	struct identity id;
	json_t *c;
	size_t i;

	assert_true(json_array_size(cases) >= 12);
	json_array_foreach(cases, i, c)
	{
		identity_of(c, &id);
		assert_string_equal(id.token, json_string_value(json_object_get(c, "token")));
	}
}

/* Also where two cases have one seed and so one token. */
static void test_digests_are_all_different(void **state)
{
	const json_t *cases = json_object_get(*state, "cases");
	size_t n = json_array_size(cases);
	struct identity *ids = calloc(n, sizeof(*ids));
	size_t same_tokens = 0;

	assert_non_null(ids);
	for (size_t i = 0; i < n; i++)
		identity_of(json_array_get(cases, i), &ids[i]);
	for (size_t i = 0; i < n; i++) {
		for (size_t j = i + 1; j < n; j++) {
			same_tokens += strcmp(ids[i].token, ids[j].token) == 0;
			assert_memory_not_equal(ids[i].digest, ids[j].digest, DIGEST_LEN);
		}
	}
	assert_int_equal(same_tokens, 2); /* absent and "None"; "a:b" "c" and "a" "b:c" */
	free(ids);
}

static void test_absent_differs_from_every_text(void **state)
{
	struct identity absent;
	struct identity empty;
	struct identity none;

	(void)state;
	assert_int_equal(identity_scope(NULL, "t", &absent), 0);
	assert_int_equal(identity_scope("", "t", &empty), 0);
	assert_int_equal(identity_scope("None", "t", &none), 0);
	assert_memory_not_equal(absent.digest, empty.digest, DIGEST_LEN);
	assert_memory_not_equal(absent.digest, none.digest, DIGEST_LEN);
	assert_string_equal(absent.token, none.token);
}

static void test_the_same_scope_has_the_same_digest(void **state)
{
	struct identity a;
	struct identity b;

	(void)state;
	assert_int_equal(identity_scope("u", "t", &a), 0);
	assert_int_equal(identity_scope("u", "t", &b), 0);
	assert_memory_equal(&a, &b, sizeof(a));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_tokens_are_the_pinned_ones),
	    cmocka_unit_test(test_digests_are_all_different),
	    cmocka_unit_test(test_absent_differs_from_every_text),
	    cmocka_unit_test(test_the_same_scope_has_the_same_digest),
	};

	return cmocka_run_group_tests(tests, load, unload);
}
