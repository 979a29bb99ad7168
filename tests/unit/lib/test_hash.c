/* Tests of lib/hash.h: the values that FNV-1a is published with. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lib/hash.h"

static const struct {
	const char *text;
	uint32_t with_32;
	uint64_t with_64;
} known[] = {
    {"", 0x811c9dc5U, 0xcbf29ce484222325ULL},
    {"a", 0xe40c292cU, 0xaf63dc4c8601ec8cULL},
    {"foobar", 0xbf9cf968U, 0x85944171f73967e8ULL},
};

static void test_known_values(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		size_t n = strlen(known[i].text);

		assert_int_equal(hash32(HASH32_START, known[i].text, n), known[i].with_32);
		assert_true(hash64(HASH64_START, known[i].text, n) == known[i].with_64);
	}
}

static void test_it_goes_on(void **state)
{
	(void)state;
	assert_int_equal(hash32(hash32(HASH32_START, "foo", 3), "bar", 3), 0xbf9cf968U);
	assert_true(hash64(hash64(HASH64_START, "foo", 3), "bar", 3) == 0x85944171f73967e8ULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_known_values),
	    cmocka_unit_test(test_it_goes_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
