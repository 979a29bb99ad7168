/* Unit tests of lib/err.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>

#include "lib/err.h"

static void test_set(void **state)
{
	struct err e = {.code = 0};

	(void)state;
	assert_int_equal(err_set(&e, EINVAL, "bad %s: %d", "key", 7), -EINVAL);
	assert_int_equal(e.code, EINVAL);
	assert_string_equal(e.text, "bad key: 7");
	assert_int_equal(err_sys(&e, ENOENT, "open %s", "/x"), -ENOENT);
	assert_int_equal(e.code, ENOENT);
	assert_string_equal(e.text, "open /x: No such file or directory");
}

static void test_null_is_fine(void **state)
{
	(void)state;
	assert_int_equal(err_set(NULL, EIO, "x"), -EIO);
	assert_int_equal(err_sys(NULL, EIO, "x"), -EIO);
}

static void test_long_text_is_cut(void **state)
{
	struct err e;
	char big[1000];

	(void)state;
	memset(big, 'x', sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	assert_int_equal(err_set(&e, EIO, "%s", big), -EIO);
	assert_int_equal(strlen(e.text), sizeof(e.text) - 1);
	assert_int_equal(err_sys(&e, EIO, "%s", big), -EIO);
	assert_int_equal(strlen(e.text), sizeof(e.text) - 1);
	big[sizeof(e.text) - 5] = '\0'; /* room for four more characters */
	assert_int_equal(err_sys(&e, EIO, "%s", big), -EIO);
	assert_int_equal(strlen(e.text), sizeof(e.text) - 1);
	assert_string_equal(e.text + sizeof(e.text) - 5, ": In");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_set),
	    cmocka_unit_test(test_null_is_fine),
	    cmocka_unit_test(test_long_text_is_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
