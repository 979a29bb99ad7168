/* Unit tests of lib/log.c: nothing that is logged can forge a line or break the JSON. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/fd.h"
#include "lib/log.h"

/* Standard error goes to a pipe while a test runs. */
struct sink {
	int saved;
	int out;
	char text[8192];
};

static int setup(void **state)
{
	struct sink *s = calloc(1, sizeof(*s));
	int ends[2];

	assert_non_null(s);
	assert_int_equal(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
	s->saved = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	assert_true(s->saved >= 0);
	assert_true(dup2(ends[1], STDERR_FILENO) >= 0);
	fd_close(&ends[1]);
	s->out = ends[0];
	*state = s;
	return 0;
}

static int teardown(void **state)
{
	struct sink *s = *state;

	(void)dup2(s->saved, STDERR_FILENO);
	fd_close(&s->saved);
	fd_close(&s->out);
	free(s);
	return 0;
}

static const char *logged(struct sink *s)
{
	ssize_t n = read(s->out, s->text, sizeof(s->text) - 1);

	s->text[n > 0 ? n : 0] = '\0';
	return s->text;
}

static const struct log_ctx ctx = {.box = "b1", .request_id = "r\"1", .traceparent = ""};

static void test_text(void **state)
{
	struct sink *s = *state;
	char expected[64];
	const char *line;

	log_init("prog", LOG_TEXT, LOG_INFO);
	log_line(LOG_WARN, &ctx, "path %s", "a\nb\x1b[31m\x7f\"");
	line = logged(s);
	(void)snprintf(expected, sizeof(expected), " warn prog[%d]: path ", (int)getpid());
	assert_int_equal(line[24], ' '); /* after the time */
	assert_memory_equal(line + 24, expected, strlen(expected));
	assert_string_equal(
	    strstr(line, ": path "), ": path a\\x0ab\\x1b[31m\\x7f\" box=b1 request_id=r\"1\n");
}

static void test_level(void **state)
{
	struct sink *s = *state;

	log_init("prog", LOG_TEXT, LOG_WARN);
	log_info("no");
	log_debug("no");
	assert_string_equal(logged(s), "");
	log_error("yes");
	assert_non_null(strstr(logged(s), "yes\n"));
}

static void test_json(void **state)
{
	struct sink *s = *state;
	json_t *o;

	log_init("prog", LOG_JSON, LOG_DEBUG);
	for (int c = 1; c < 0x80; c++) {
		char message[] = {'<', (char)c, '>', '\0'};
		const char *line;

		log_line(LOG_DEBUG, &ctx, "%s", message);
		line = logged(s);
		assert_int_equal(line[strlen(line) - 1], '\n');
		assert_ptr_equal(strchr(line, '\n'), line + strlen(line) - 1);
		o = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
		assert_non_null(o);
		assert_string_equal(json_string_value(json_object_get(o, "message")), message);
		assert_string_equal(json_string_value(json_object_get(o, "level")), "debug");
		assert_string_equal(json_string_value(json_object_get(o, "program")), "prog");
		assert_string_equal(json_string_value(json_object_get(o, "box")), "b1");
		assert_string_equal(json_string_value(json_object_get(o, "request_id")), "r\"1");
		assert_null(json_object_get(o, "traceparent"));
		assert_int_equal(json_integer_value(json_object_get(o, "pid")), getpid());
		json_decref(o);
	}
}

/* Bytes that are not UTF-8 and the C1 controls, which a terminal may obey. */
static void test_not_utf8(void **state)
{
	static const char message[] = "a\xff\xc3\xbc\xc3\xc2\x9b\xf0\x9f\x98\x80";
	struct sink *s = *state;
	json_t *o;

	log_init("prog", LOG_TEXT, LOG_INFO);
	log_info("%s", message);
	assert_non_null(strstr(logged(s), ": a\\xff\xc3\xbc\\xc3\\x9b\xf0\x9f\x98\x80\n"));
	log_init("prog", LOG_JSON, LOG_INFO);
	log_info("%s", message);
	o = json_loads(logged(s), 0, NULL);
	assert_non_null(o);
	assert_string_equal(json_string_value(json_object_get(o, "message")),
	    "a\xef\xbf\xbd\xc3\xbc\xef\xbf\xbd\xc2\x9b\xf0\x9f\x98\x80");
	json_decref(o);
}

/* A line that is too long is cut, but stays one line, and JSON stays JSON. */
static void test_escape(void **state)
{
	char out[64];
	char little[4];

	(void)state;
	log_escape("a\nb\x1b[31m\x7f\"\xff\xc2\x9b\xc3\xbc", out, sizeof(out));
	assert_string_equal(out, "a\\x0ab\\x1b[31m\\x7f\"\\xff\\x9b\xc3\xbc");
	log_escape("abcdef", little, sizeof(little));
	assert_string_equal(little, "abc");
	log_escape("", out, sizeof(out));
	assert_string_equal(out, "");
}

static void test_long(void **state)
{
	static const char fill[] = {'x', '\n', '"', '\xff'};
	struct sink *s = *state;
	char big[5000];
	const struct log_ctx big_ctx = {.box = big, .request_id = big};

	for (size_t i = 0; i < sizeof(fill); i++) {
		const char *line;
		json_t *o;

		memset(big, fill[i], sizeof(big) - 1);
		big[sizeof(big) - 1] = '\0';
		log_init("prog", LOG_TEXT, LOG_INFO);
		log_line(LOG_INFO, &big_ctx, "%s", big);
		line = logged(s);
		assert_ptr_equal(strchr(line, '\n'), line + strlen(line) - 1);
		log_init("prog", LOG_JSON, LOG_INFO);
		log_line(LOG_INFO, &big_ctx, "%s", big);
		line = logged(s);
		assert_ptr_equal(strchr(line, '\n'), line + strlen(line) - 1);
		o = json_loads(line, 0, NULL);
		if (!o)
			fail_msg("not JSON any more, with %02x", (unsigned char)fill[i]);
		json_decref(o);
	}
	/* A character of several bytes at every distance from the end. */
	for (size_t shift = 0; shift < 4; shift++) {
		json_t *o;

		memset(big, 'y', shift);
		for (size_t i = shift; i + 4 < sizeof(big); i += 4)
			memcpy(big + i, "\xf0\x9f\x98\x80", 5);
		log_line(LOG_INFO, &big_ctx, "%s", "m");
		o = json_loads(logged(s), 0, NULL);
		assert_non_null(o);
		json_decref(o);
	}
}

static void test_invariant(void **state)
{
	struct sink *s = *state;
	int status;
	pid_t pid;

	log_init("prog", LOG_TEXT, LOG_INFO);
	INVARIANT(1 + 1 == 2);
	pid = fork();
	if (pid == 0) {
		(void)signal(SIGABRT, SIG_DFL);
		INVARIANT(1 + 1 == 3);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGABRT);
	assert_non_null(strstr(logged(s), "test_log.c"));
	assert_non_null(strstr(s->text, "1 + 1 == 3"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_text, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_level, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_json, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_not_utf8, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_escape, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_long, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_invariant, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
