/* Tests of drivers/boxlite/errors.c: each of BoxLite's codes, and what is none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "drivers/boxlite/errors.h"

/* Stated once more, independently of the table that is tested. */
static const struct {
	int code;
	const char *name;
	int error;
	bool gone;
	bool again;
} rows[] = {
    {0, "Ok", 0, false, false},
    {1, "Internal", EIO, false, false},
    {2, "NotFound", ENOENT, true, false},
    {3, "AlreadyExists", EEXIST, false, false},
    {4, "InvalidState", EBUSY, false, false},
    {5, "InvalidArgument", EINVAL, false, false},
    {6, "Config", EINVAL, false, false},
    {7, "Storage", EIO, false, false},
    {8, "Image", ENOMEDIUM, false, false},
    {9, "Network", ENETUNREACH, false, true},
    {10, "Execution", ENOEXEC, false, false},
    {11, "Stopped", ESHUTDOWN, true, false},
    {12, "Engine", EIO, true, false},
    {13, "Unsupported", EOPNOTSUPP, false, false},
    {14, "Database", EIO, false, true},
    {15, "Portal", ECONNRESET, true, false},
    {16, "Rpc", EPROTO, false, false},
    {17, "RpcTransport", ECONNREFUSED, false, true},
    {18, "Metadata", EIO, false, false},
    {19, "UnsupportedEngine", EOPNOTSUPP, false, false},
    {20, "ResourceExhausted", ENOMEM, false, true},
    {21, "SessionReaped", EPIPE, true, false},
};

_Static_assert(sizeof(rows) / sizeof(rows[0]) == BLX_CODES, "a test for each row");

static void test_each_row(void **state)
{
	char text[64];

	(void)state;
	for (int i = 0; i < BLX_CODES; i++) {
		const struct blx_meaning *m = blx_meaning(rows[i].code);

		assert_int_equal(rows[i].code, i);
		assert_string_equal(m->name, rows[i].name);
		assert_int_equal(m->error, rows[i].error);
		assert_int_equal(m->gone, rows[i].gone);
		assert_int_equal(m->again, rows[i].again);
		assert_false(m->gone && m->again); /* what is gone does not come back by asking */
		assert_int_equal(m->error == 0, i == 0);
		blx_error_text(i, "its own words", text, sizeof(text));
		assert_memory_equal(text, rows[i].name, strlen(rows[i].name));
		assert_string_equal(text + strlen(rows[i].name), ": its own words");
	}
}

static void test_a_code_of_a_later_version(void **state)
{
	static const int others[] = {-1, BLX_CODES, 1000};
	char text[64];

	(void)state;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		const struct blx_meaning *m = blx_meaning(others[i]);

		assert_int_equal(m->error, EIO);
		assert_false(m->gone || m->again);
	}
	blx_error_text(1000, "new", text, sizeof(text));
	assert_string_equal(text, "error 1000: new");
}

static void test_a_message_is_one_line(void **state)
{
	char text[24];

	(void)state;
	blx_error_text(7, "a\nb\x1b[0m\x7f", text, sizeof(text));
	assert_string_equal(text, "Storage: a b [0m ");
	blx_error_text(7, NULL, text, sizeof(text));
	assert_string_equal(text, "Storage: no message");
	blx_error_text(7, "longer than there is room for", text, sizeof(text));
	assert_int_equal(strlen(text), sizeof(text) - 1);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_each_row),
	    cmocka_unit_test(test_a_code_of_a_later_version),
	    cmocka_unit_test(test_a_message_is_one_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
