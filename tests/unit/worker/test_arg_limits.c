/* arg_limits: which part of a command is too long, and that what is malformed is not read past. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/buf.h"
#include "wire/agent.h"
#include "worker/arg_limits.h"

static void put(struct buf *b, const char *text, uint32_t fill)
{
	uint32_t len = (uint32_t)strlen(text) + fill;

	assert_int_equal(buf_append(b, &len, sizeof(len)), 0);
	assert_int_equal(buf_puts(b, text), 0);
	memset(buf_reserve(b, fill + 1), 'x', fill);
	buf_commit(b, fill);
}

/* One long string: number `at` of user, cwd, two arguments and two variables. */
static int check(uint32_t flags, int at, uint32_t len, struct err *err)
{
	static const char *const texts[] = {"", "", "prog", "arg", "A=b", "LONG="};
	const struct agent_exec head = {.flags = flags, .argc = 2, .envc = 2};
	uint8_t *copy;
	struct buf b;
	int rc;

	buf_init(&b, 1U << 20);
	assert_int_equal(buf_append(&b, &head, sizeof(head)), 0);
	for (int i = 0; i < 6; i++)
		put(&b, texts[i], i == at ? len - (uint32_t)strlen(texts[i]) : 0);
	/* Memory of exactly that size, so that a sanitizer sees a read past it. */
	copy = malloc(b.len);
	assert_non_null(copy);
	memcpy(copy, buf_head(&b), b.len);
	rc = arg_limits_check(copy, b.len, err);
	for (size_t n = 0; n < 64; n++)
		assert_true(arg_limits_check(copy, n, NULL) < 0);
	free(copy);
	buf_free(&b);
	return rc;
}

static void assert_says(const struct err *err, const char *text)
{
	if (!strstr(err->text, text))
		fail_msg("says '%s', not '%s'", err->text, text);
}

static void test_as_long_as_may_be(void **state)
{
	struct err err = {0};

	(void)state;
	for (int at = 2; at < 6; at++)
		assert_int_equal(check(0, at, ARG_STRING_MAX, &err), 0);
	assert_int_equal(err.code, 0);
}

static void test_longer(void **state)
{
	struct err err = {0};

	(void)state;
	assert_int_equal(check(0, 2, ARG_STRING_MAX + 1, &err), -E2BIG);
	assert_says(&err, "argument 0 (the program is 0) is longer than the kernel takes: 131071");
	assert_int_equal(check(0, 3, ARG_STRING_MAX + 1, &err), -E2BIG);
	assert_says(&err, "argument 1 ");
	assert_int_equal(check(0, 4, ARG_STRING_MAX + 1, &err), -E2BIG);
	assert_says(&err, "the variable A, with its name, is longer");
	assert_int_equal(check(0, 5, ARG_STRING_MAX + 1, &err), -E2BIG);
	assert_says(&err, "the variable LONG, ");
	assert_int_equal(check(AGENT_EXEC_SHELL, 2, ARG_STRING_MAX + 1, &err), -E2BIG);
	assert_says(&err, "the command line is longer than the kernel takes: 131071 bytes");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_as_long_as_may_be),
	    cmocka_unit_test(test_longer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
