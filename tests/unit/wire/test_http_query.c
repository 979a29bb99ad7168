/* http_query: texts, flags and numbers of a query, and what is said of those that are none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>

#include "wire/http.h"

static void test_flags(void **state)
{
	static const struct {
		const char *query;
		int rc;
		bool value;
	} cases[] = {
	    {"", 0, true},
	    {"x=1", 0, true},
	    {"f=0", 1, false},
	    {"f=false&x", 1, false},
	    {"f=1", 1, true},
	    {"f=true", 1, true},
	    {"f=", -EINVAL, true},
	    {"f", -EINVAL, true},
	    {"f=2", -EINVAL, true},
	    {"f=TRUE", -EINVAL, true},
	    {"f=truefalse", -EINVAL, true},
	    {"f=01", -EINVAL, true},
	    {"x&f=tru%65", 1, true},
	    {"f=1&f=1", -EINVAL, true},
	    {"f=%", -EINVAL, true},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct err err = {0};
		bool value = true;

		assert_int_equal(http_query_flag(cases[i].query, "f", &value, &err), cases[i].rc);
		assert_int_equal(value, cases[i].value);
		if (cases[i].rc < 0)
			assert_string_equal(err.text, "\"f\" must be 0, 1, true or false");
	}
}

static void test_numbers(void **state)
{
	static const struct {
		const char *query;
		int base;
		uint64_t least;
		uint64_t most;
		uint64_t value; /* UINT64_MAX - 1: it is refused */
		const char *text;
	} cases[] = {
	    {"n=7", 10, 1, 7, 7, NULL},
	    {"n=8", 10, 1, 7, UINT64_MAX - 1, "\"n\" must be a decimal number from 1 to 7"},
	    {"n=0", 10, 1, 7, UINT64_MAX - 1, "from 1 to 7"},
	    {"n=755", 8, 0, 07777, 0755, NULL},
	    {"n=778", 8, 0, 07777, UINT64_MAX - 1, "an octal number from 0 to 7777"},
	    {"n=18446744073709551615", 10, 0, UINT64_MAX, UINT64_MAX, NULL},
	    {"n=18446744073709551616", 10, 0, UINT64_MAX, UINT64_MAX - 1, "a decimal number"},
	    {"n=-1", 10, 0, UINT64_MAX, UINT64_MAX - 1, "a decimal number"},
	    {"n=+1", 10, 0, UINT64_MAX, UINT64_MAX - 1, "a decimal number"},
	    {"n=0x1", 10, 0, UINT64_MAX, UINT64_MAX - 1, "a decimal number"},
	    {"n=1x", 10, 0, UINT64_MAX, UINT64_MAX - 1, "a decimal number"},
	    {"n=", 10, 0, UINT64_MAX, UINT64_MAX - 1, "a decimal number"},
	    {"n=1&n=2", 10, 0, UINT64_MAX, UINT64_MAX - 1, "a decimal number"},
	};
	struct err err = {0};
	uint64_t value = 5;

	(void)state;
	assert_int_equal(http_query_number("m=1", "n", 10, 0, 9, &value, &err), 0);
	assert_int_equal(value, 5);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int rc;

		value = UINT64_MAX - 1;
		rc = http_query_number(cases[i].query, "n", cases[i].base, cases[i].least,
		    cases[i].most, &value, &err);
		assert_int_equal(rc, cases[i].text ? -EINVAL : 1);
		assert_int_equal(value, cases[i].value);
		if (cases[i].text && !strstr(err.text, cases[i].text))
			fail_msg("%s: %s", cases[i].query, err.text);
	}
}

static void test_texts(void **state)
{
	struct err err = {0};
	char text[4];

	(void)state;
	assert_int_equal(http_query_text("t=abc", "t", text, sizeof(text), &err), 1);
	assert_string_equal(text, "abc");
	assert_int_equal(http_query_text("u=abc", "t", text, sizeof(text), &err), 0);
	assert_int_equal(http_query_text("t=", "t", text, sizeof(text), &err), -EINVAL);
	assert_string_equal(err.text, "\"t\" is empty");
	assert_int_equal(http_query_text("t=abcd", "t", text, sizeof(text), &err), -EINVAL);
	assert_string_equal(err.text, "\"t\" is too long");
	assert_int_equal(http_query_text("t=a&t=b", "t", text, sizeof(text), &err), -EINVAL);
	assert_string_equal(err.text, "\"t\" is given twice or badly escaped");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_flags),
	    cmocka_unit_test(test_numbers),
	    cmocka_unit_test(test_texts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
