/* Unit tests of lib/clock.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>
#include <math.h>

#include "lib/clock.h"

static void test_rfc3339(void **state)
{
	char text[CLOCK_RFC3339_LEN];

	(void)state;
	clock_format_rfc3339(0, text);
	assert_string_equal(text, "1970-01-01T00:00:00.000Z");
	clock_format_rfc3339(951827696789ULL, text);
	assert_string_equal(text, "2000-02-29T12:34:56.789Z");
	clock_format_rfc3339(4102444799999ULL, text);
	assert_string_equal(text, "2099-12-31T23:59:59.999Z");
	clock_format_rfc3339(UINT64_MAX, text); /* no such date; it must only stay in bounds */
	assert_true(strlen(text) < CLOCK_RFC3339_LEN);
}

static void test_seconds(void **state)
{
	(void)state;
	assert_true(clock_seconds_to_ns(0) == 0);
	assert_true(clock_seconds_to_ns(-1) == 0);
	assert_true(clock_seconds_to_ns(NAN) == 0);
	assert_true(clock_seconds_to_ns(1.5) == 1500 * NS_PER_MS);
	assert_true(clock_seconds_to_ns(600) == 600 * NS_PER_S);
	assert_true(clock_seconds_to_ns(1e-9) == 1);
	assert_true(clock_seconds_to_ns(1e300) == CLOCK_NEVER);
	assert_true(clock_seconds_to_ns(INFINITY) == CLOCK_NEVER);
}

static void test_monotonic(void **state)
{
	uint64_t last = clock_now_ns();

	(void)state;
	for (int i = 0; i < 1000; i++) {
		uint64_t now = clock_now_ns();

		assert_true(now >= last);
		last = now;
	}
	assert_true(clock_wall_ms() > 1577836800000ULL); /* milliseconds, and after 2019 */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_rfc3339),
	    cmocka_unit_test(test_seconds),
	    cmocka_unit_test(test_monotonic),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
