/*
 * wire/agent.c: heads, the cursor, and the bounds of a request.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "wire/agent.h"

static void test_head_goes_both_ways(void **state)
{
	uint8_t bytes[AGENT_HEAD_LEN];
	struct agent_head h;

	(void)state;
	agent_put_head(bytes, AGENT_DATA, 0, AGENT_STDERR, 0xdeadbeefU, AGENT_DATA_MAX);
	assert_int_equal(agent_get_head(bytes, sizeof(bytes), &h), 1);
	assert_int_equal(h.type, AGENT_DATA);
	assert_int_equal(h.flags, 0);
	assert_int_equal(h.arg, AGENT_STDERR);
	assert_int_equal(h.channel, 0xdeadbeefU);
	assert_int_equal(h.size, AGENT_DATA_MAX);
	/* The layout on the wire, little endian. */
	agent_put_head(bytes, AGENT_EXEC, AGENT_F_MORE, 0, 0x01020304U, 0x0506U);
	assert_memory_equal(bytes, "\x06\x05\0\0\x02\x01\0\0\x04\x03\x02\x01", 12);
	assert_int_equal(agent_get_head(bytes, sizeof(bytes), &h), 1);
	assert_int_equal(h.flags, AGENT_F_MORE);
}

static void test_head_needs_all_bytes(void **state)
{
	uint8_t bytes[AGENT_HEAD_LEN];
	struct agent_head h;

	(void)state;
	agent_put_head(bytes, AGENT_PING, 0, 0, 0, 0);
	for (size_t n = 0; n < sizeof(bytes); n++)
		assert_int_equal(agent_get_head(bytes, n, &h), 0);
}

static void test_head_rejects(void **state)
{
	static const struct agent_head bad[] = {
	    {.type = AGENT_PING, .check = AGENT_CHECK ^ 1U},
	    {.type = AGENT_PING, .size = 1, .check = AGENT_CHECK},
	    {.type = AGENT_PING, .channel = 1, .check = AGENT_CHECK},
	    {.type = AGENT_PING,
		.size = AGENT_PAYLOAD_MAX + 1,
		.check = AGENT_CHECK ^ (AGENT_PAYLOAD_MAX + 1)},
	    {.type = AGENT_DATA,
		.size = AGENT_DATA_MAX + 1,
		.check = AGENT_CHECK ^ (AGENT_DATA_MAX + 1)},
	    {.type = AGENT_PING, .size = UINT32_MAX, .check = AGENT_CHECK ^ UINT32_MAX},
	    {.type = AGENT_NONE, .check = AGENT_CHECK},
	    {.type = AGENT_WAKE + 1, .check = AGENT_CHECK},
	    {.type = AGENT_DATA - 1, .check = AGENT_CHECK},
	    {.type = AGENT_CREDIT + 1, .check = AGENT_CHECK},
	    {.type = AGENT_HELLO - 1, .check = AGENT_CHECK},
	    {.type = AGENT_ERROR + 1, .check = AGENT_CHECK},
	    {.type = 255, .check = AGENT_CHECK},
	    {.type = AGENT_PING, .flags = 2, .check = AGENT_CHECK},
	    {.type = AGENT_PING, .arg = AGENT_STREAMS, .check = AGENT_CHECK},
	    {.type = AGENT_PING, .reserved = 1, .check = AGENT_CHECK},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct agent_head h = {.type = 99};
		uint8_t bytes[AGENT_HEAD_LEN];

		memcpy(bytes, &bad[i], sizeof(bytes));
		assert_int_equal(agent_get_head(bytes, sizeof(bytes), &h), -EBADMSG);
		assert_int_equal(h.type, 99); /* untouched */
	}
}

static void test_cursor_stays_in_bounds(void **state)
{
	static const uint8_t bytes[] = {5, 0, 0, 0, 'h', 'e', 'l', 'l', 'o', 1, 2, 3};
	struct agent_cursor c = {.p = bytes, .left = sizeof(bytes)};
	const char *s = NULL;
	size_t len = 0;
	uint32_t n = 7;

	(void)state;
	assert_int_equal(agent_get_string(&c, &s, &len), 0);
	assert_int_equal(len, 5);
	assert_memory_equal(s, "hello", 5);
	assert_int_equal(c.left, 3);
	assert_int_equal(agent_get_u32(&c, &n), -EBADMSG);
	assert_int_equal(n, 7);
	assert_int_equal(c.left, 3);
	assert_int_equal(agent_get_bytes(&c, &n, 3), 0);
	assert_int_equal(c.left, 0);
}

static void test_string_rejects(void **state)
{
	static const struct {
		const char *bytes;
		size_t n;
	} bad[] = {
	    {"", 0},
	    {"\1\0\0", 3},
	    {"\1\0\0\0", 4},
	    {"\5\0\0\0hell", 8},
	    {"\xff\xff\xff\xffhello", 9},
	    {"\3\0\0\0a\0b", 7},
	    {"\1\0\0\0\0", 5},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct agent_cursor c = {.p = (const uint8_t *)bad[i].bytes, .left = bad[i].n};
		const char *s = NULL;
		size_t len = 99;

		assert_int_equal(agent_get_string(&c, &s, &len), -EBADMSG);
		assert_null(s);
		assert_int_equal(len, 99);
		assert_int_equal(c.left, bad[i].n);
	}
}

/* A request of strings; returns its length. */
static size_t build(uint8_t *to, struct agent_exec head, const char *const *strings)
{
	size_t n = sizeof(head);

	memcpy(to, &head, sizeof(head));
	for (; *strings != NULL; strings++) {
		uint32_t len = (uint32_t)strlen(*strings);

		memcpy(to + n, &len, sizeof(len));
		memcpy(to + n + sizeof(len), *strings, len);
		n += sizeof(len) + len;
	}
	return n;
}

static const char *const sample[] = {"user", "/cwd", "prog", "arg", "", "A=1", "B=", NULL};

static void test_exec_is_parsed(void **state)
{
	uint8_t p[200];
	size_t n =
	    build(p, (struct agent_exec){.argc = 3, .envc = 2, .cols = 80, .rows = 24}, sample);
	struct agent_exec_request *r = NULL;

	(void)state;
	assert_int_equal(agent_parse_exec(p, n, &r), 0);
	memset(p, 'x', sizeof(p)); /* it is a copy */
	assert_int_equal(r->head.cols, 80);
	assert_int_equal(r->head.rows, 24);
	assert_string_equal(r->user, "user");
	assert_string_equal(r->cwd, "/cwd");
	assert_string_equal(r->argv[0], "prog");
	assert_string_equal(r->argv[1], "arg");
	assert_string_equal(r->argv[2], "");
	assert_null(r->argv[3]);
	assert_string_equal(r->envp[0], "A=1");
	assert_string_equal(r->envp[1], "B=");
	for (unsigned int i = 0; i <= AGENT_ENV_SPARE; i++)
		assert_null(r->envp[2 + i]);
	free(r);
}

/* Every cut of a good request is bad, in memory that ends where the bytes end. */
static void test_exec_rejects_every_cut(void **state)
{
	uint8_t p[200];
	size_t n = build(p, (struct agent_exec){.argc = 3, .envc = 2}, sample);

	(void)state;
	for (size_t cut = 0; cut < n; cut++) {
		uint8_t *exact = malloc(cut + 1);
		struct agent_exec_request *r = NULL;

		assert_non_null(exact);
		memcpy(exact + 1, p, cut);
		assert_int_equal(agent_parse_exec(exact + 1, cut, &r), -EBADMSG);
		assert_null(r);
		free(exact);
	}
	{
		struct agent_exec_request *r = NULL;

		p[n] = 'x';
		assert_int_equal(agent_parse_exec(p, n + 1, &r), -EBADMSG);
		assert_null(r);
	}
}

static void test_exec_rejects_counts_and_flags(void **state)
{
	static const struct agent_exec bad[] = {
	    {.argc = 0, .envc = 5},
	    {.argc = 4, .envc = 2},
	    {.argc = 2, .envc = 2},
	    {.argc = UINT32_MAX, .envc = 2},
	    {.argc = 3, .envc = UINT32_MAX},
	    {.argc = UINT32_MAX, .envc = UINT32_MAX},
	    {.argc = 0x80000000U, .envc = 0x80000005U},
	    {.argc = 3, .envc = 2, .flags = AGENT_EXEC_SHELL},
	    {.argc = 3, .envc = 2, .flags = 32},
	    {.argc = 3, .envc = 2, .flags = AGENT_EXEC_HELPER},
	    {.argc = 5, .envc = 0, .flags = AGENT_EXEC_HELPER | AGENT_EXEC_TTY},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		uint8_t p[200];
		size_t n = build(p, bad[i], sample);
		struct agent_exec_request *r = NULL;

		assert_int_equal(agent_parse_exec(p, n, &r), -EBADMSG);
		assert_null(r);
	}
}

static void test_every_code_has_a_name(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < AGENT_CODES; i++)
		assert_true(strlen(agent_code_name(i)) > 0);
	assert_string_equal(agent_code_name(AGENT_E_IS_DIRECTORY), "is_directory");
	assert_string_equal(agent_code_name(AGENT_CODES), "io");
	assert_string_equal(agent_code_name(UINT32_MAX), "io");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_head_goes_both_ways),
	    cmocka_unit_test(test_head_needs_all_bytes),
	    cmocka_unit_test(test_head_rejects),
	    cmocka_unit_test(test_cursor_stays_in_bounds),
	    cmocka_unit_test(test_string_rejects),
	    cmocka_unit_test(test_exec_is_parsed),
	    cmocka_unit_test(test_exec_rejects_every_cut),
	    cmocka_unit_test(test_exec_rejects_counts_and_flags),
	    cmocka_unit_test(test_every_code_has_a_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
