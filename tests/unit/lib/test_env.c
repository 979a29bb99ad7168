/* Unit tests of lib/env.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lib/env.h"

static void test_get(void **state)
{
	char a[] = "PATH=/bin";
	char b[] = "PATHS=x=y";
	char c[] = "EMPTY=";
	char *const env[] = {a, b, c, NULL};

	(void)state;
	assert_string_equal(env_get(env, "PATH", 4), "/bin");
	assert_string_equal(env_get(env, "PATHSandmore", 5), "x=y");
	assert_string_equal(env_get(env, "EMPTY", 5), "");
	assert_null(env_get(env, "PAT", 3));
	assert_null(env_get(env, "path", 4));
	assert_null(env_get(NULL, "PATH", 4));
}

static void test_names(void **state)
{
	static const char *const sound[] = {"A", "_", "a9_Z", "__0"};
	static const char *const unsound[] = {
	    "", "9a", "a-b", "a b", "a=b", "a.b", "\xc3\xa4", "a\n"};

	(void)state;
	for (size_t i = 0; i < sizeof(sound) / sizeof(sound[0]); i++)
		assert_true(env_name_is_sound(sound[i]));
	for (size_t i = 0; i < sizeof(unsound) / sizeof(unsound[0]); i++)
		assert_false(env_name_is_sound(unsound[i]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_get),
	    cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
