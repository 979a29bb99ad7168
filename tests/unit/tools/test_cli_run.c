/* sbxctl run and exec against a scripted service: output, exit statuses, and that the box is given
 * back whatever happens. */
#include "tests/unit/tools/cli_fixture.h"

#include <sys/stat.h>

#define NDJSON(lines) \
	"HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\nConnection: close\r\n\r\n" lines
#define HELLO                                                                    \
	"{\"stream\":\"stdout\",\"data\":\"hello\\n\",\"encoding\":\"utf-8\"}\n" \
	"{\"stream\":\"stderr\",\"data\":\"/w==\",\"encoding\":\"base64\"}\n"
#define EXITS(code) "{\"exit_code\":" code ",\"signal\":null,\"timed_out\":false}\n"
#define ACQUIRED "{\"box_id\":\"b:1\",\"lease_id\":\"00000000000000aa\"}"
#define RELEASED "{\"status\":\"warm\"}"

static void test_run_acquires_runs_and_releases(void **state)
{
	static const struct fake_answer answers[FAKE_ANSWERS] = {
	    {.json = ACQUIRED},
	    {.bytes = NDJSON(HELLO EXITS("3")), .hang_up = true},
	    {.json = RELEASED},
	};
	struct cli_run r;
	struct fake f;

	(void)state;
	fake_start(&f, answers);
	CLI_RUN(&r, &cli_run, f.socket, "in\n", "-u", "alice", "-t", "t1", "-e", "A=1", "-e",
	    "B=x=y", "-e", "A=2", "-w", "/tmp", "--timeout", "9.5", "--tty", "--", "prog", "--flag",
	    "a b");
	assert_string_equal(r.err, "\xff");
	assert_string_equal(r.out, "hello\n");
	assert_int_equal(r.status, 3);
	assert_non_null(strstr(f.log->asked, "POST /v1/acquire HTTP/1.1\r\n"));
	assert_non_null(strstr(f.log->asked,
	    "{\"user_id\":\"alice\",\"thread_id\":\"t1\",\"release_on_disconnect\":true}"));
	assert_non_null(strstr(f.log->asked, "POST /v1/boxes/b%3A1/run HTTP/1.1\r\n"));
	assert_non_null(strstr(f.log->asked, "Accept: application/x-ndjson\r\n"));
	assert_non_null(
	    strstr(f.log->asked, "{\"argv\":[\"prog\",\"--flag\",\"a "
				 "b\"],\"env\":{\"B\":\"x=y\",\"A\":\"2\"},\"cwd\":\"/tmp\","
				 "\"timeout_seconds\":9.500,\"tty\":true}"));
	assert_non_null(strstr(f.log->asked, "POST /v1/boxes/b%3A1/release HTTP/1.1\r\n"));
	assert_non_null(strstr(f.log->asked, "{\"lease_id\":\"00000000000000aa\"}"));
	fake_stop(&f);
}

static void test_a_box_without_a_thread_is_removed(void **state)
{
	static const struct fake_answer answers[FAKE_ANSWERS] = {
	    {.json = ACQUIRED},
	    {.bytes = NDJSON(EXITS("0")), .hang_up = true},
	    {.bytes = "HTTP/1.1 204 No Content\r\n\r\n"},
	};
	struct cli_run r;
	struct fake f;

	(void)state;
	fake_start(&f, answers);
	CLI_RUN(&r, &cli_run, f.socket, NULL, "true");
	assert_string_equal(r.err, "");
	assert_int_equal(r.status, 0);
	assert_non_null(strstr(f.log->asked, "{\"user_id\":null,\"thread_id\":null,"));
	assert_non_null(strstr(f.log->asked, "DELETE /v1/boxes/b%3A1?force=true HTTP/1.1\r\n"));
	fake_stop(&f);
}

static void test_a_signal_ends_the_command_and_releases(void **state)
{
	static const struct fake_answer answers[FAKE_ANSWERS] = {
	    {.json = ACQUIRED},
	    {.bytes = NDJSON(HELLO), .hang = true},
	    {.json = RELEASED},
	};
	char *const args[] = {"-t", "t1", "--", "sleep", "1000", NULL};
	struct stat st;
	struct cli_run r;
	struct fake f;

	(void)state;
	fake_start(&f, answers);
	r.stdout_fd = -1;
	cli_start(&r, &cli_run, f.socket, NULL, args);
	while (fstat(r.out_fd, &st) == 0 && st.st_size == 0) /* until its command runs */
		sched_yield();
	assert_int_equal(kill(r.pid, SIGTERM), 0);
	cli_end(&r);
	assert_int_equal(r.status, 128 + SIGTERM);
	assert_string_equal(r.out, "hello\n");
	assert_int_equal(f.log->requests, 3);
	assert_non_null(strstr(f.log->asked, "/release HTTP/1.1\r\n"));
	fake_stop(&f);
}

/* Between acquire and run the box was lost, and another process has the next one. */
static void test_a_successor_is_not_run_in(void **state)
{
	static const struct fake_answer answers[FAKE_ANSWERS] = {
	    {.json = "{\"box_id\":\"b1\",\"lease_id\":\"l1\",\"generation\":41}"},
	    {.json = "{\"error\":{\"message\":\"another\",\"reason\":\"stale_generation\"}}",
		.status = "410 Gone"},
	    {.json = RELEASED},
	};
	static const struct {
		char *option;
		const char *asked;
	} ways[] = {{"--", "POST /v1/boxes/b1/run "}, {"-i", "POST /v1/boxes/b1/exec "}};

	(void)state;
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		const char *asked;
		struct cli_run r;
		struct fake f;

		fake_start(&f, answers);
		CLI_RUN(&r, &cli_run, f.socket, NULL, "-t", "x", ways[i].option, "true");
		assert_int_equal(r.status, CLI_FAILED);
		assert_string_equal(r.err, "sbxctl: b1: another (stale_generation)\n");
		asked = strstr(f.log->asked, ways[i].asked);
		assert_non_null(asked);
		assert_non_null(strstr(asked, "\r\nX-Box-Generation: 41\r\n"));
		assert_int_equal(f.log->requests, 3);
		fake_stop(&f);
	}
}

static void test_a_refused_acquire_runs_nothing(void **state)
{
	static const struct fake_answer answers[FAKE_ANSWERS] = {
	    {.json = "{\"error\":{\"message\":\"all boxes are in "
		     "use\",\"reason\":\"capacity_exceeded\"}}",
		.status = "429 Too Many Requests"},
	};
	struct cli_run r;
	struct fake f;

	(void)state;
	fake_start(&f, answers);
	CLI_RUN(&r, &cli_run, f.socket, NULL, "-t", "x", "--", "true");
	assert_int_equal(r.status, CLI_FAILED);
	assert_string_equal(r.err, "sbxctl: acquire: all boxes are in use (capacity_exceeded)\n");
	assert_int_equal(f.log->requests, 1);
	fake_stop(&f);
}

static const struct {
	struct fake_answer answer;
	int status;
	const char *err;
} ends[] = {
    {{.bytes = NDJSON(EXITS("0")), .hang_up = true}, 0, ""},
    {{.bytes = NDJSON(EXITS("255")), .hang_up = true}, 255, ""},
    {{.bytes = NDJSON("{\"exit_code\":null,\"signal\":11}\n"), .hang_up = true}, 139, ""},
    {{.bytes = NDJSON("{\"exit_code\":null,\"signal\":9,\"timed_out\":true}\n"), .hang_up = true},
	CLI_TIMEOUT, ""},
    {{.bytes = NDJSON("{\"error\":{\"message\":\"gone\",\"reason\":\"box_died\"}}\n"),
	 .hang_up = true},
	CLI_FAILED, "sbxctl: box: gone (box_died)\n"},
    {{.bytes = NDJSON(HELLO), .hang_up = true}, CLI_FAILED,
	"\xffsbxctl: box: the answer ended before the command did\n"},
    {{.bytes = NDJSON("junk\n"), .hang_up = true}, CLI_FAILED,
	"sbxctl: box: a line that is no JSON object\n"},
    {{.json = "{\"error\":{\"message\":\"box not found: box\",\"reason\":\"not_found\"}}",
	 .status = "404 Not Found"},
	CLI_FAILED, "sbxctl: box: box not found: box (not_found)\n"},
    {{.json = "<html>", .status = "502 Bad Gateway"}, CLI_FAILED,
	"sbxctl: box: the service answered 502\n"},
    {{.bytes = NULL}, CLI_FAILED, "sbxctl: box: the service closed the connection\n"},
};

static void test_exec_exits_as_the_command_did(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		const struct fake_answer answers[FAKE_ANSWERS] = {ends[i].answer};
		struct cli_run r;
		struct fake f;

		fake_start(&f, answers);
		CLI_RUN(&r, &cli_exec, f.socket, NULL, "box", "--", "prog");
		assert_string_equal(r.err, ends[i].err);
		assert_int_equal(r.status, ends[i].status);
		fake_stop(&f);
	}
}

static void test_json_prints_the_whole_answer(void **state)
{
	static const struct fake_answer answers[FAKE_ANSWERS] = {
	    {.json = "{\"exit_code\":4,\"signal\":null,\"stdout\":\"\\u0000\"}"},
	};
	struct cli_run r;
	struct fake f;

	(void)state;
	fake_start(&f, answers);
	CLI_RUN(&r, &cli_exec, f.socket, "in\n", "--json", "-i", "box", "prog");
	assert_non_null(strstr(f.log->asked, "{\"argv\":[\"prog\"],\"stdin_base64\":\"aW4K\"}"));
	assert_string_equal(r.err, "");
	assert_int_equal(r.status, 4);
	assert_non_null(strstr(r.out, "\"exit_code\": 4"));
	assert_non_null(strstr(f.log->asked, "Accept: application/json\r\n"));
	fake_stop(&f);
}

static void test_a_closed_stdout_ends_it_as_sigpipe(void **state)
{
	static const struct fake_answer answers[FAKE_ANSWERS] = {
	    {.json = ACQUIRED},
	    {.bytes = NDJSON(HELLO), .hang = true},
	    {.json = RELEASED},
	};
	char *const args[] = {"-t", "x", "--", "yes", NULL};
	struct cli_run r;
	struct fake f;
	int fds[2];

	(void)state;
	fake_start(&f, answers);
	assert_int_equal(pipe(fds), 0);
	close(fds[0]);
	r.stdout_fd = fds[1];
	cli_start(&r, &cli_run, f.socket, NULL, args);
	cli_end(&r);
	close(fds[1]);
	assert_int_equal(r.status, 128 + SIGPIPE);
	assert_string_equal(r.err, "");
	assert_non_null(strstr(f.log->asked, "/release HTTP/1.1\r\n"));
	fake_stop(&f);
}

static void test_wrong_usage(void **state)
{
	static char *const cases[][4] = {
	    {"box", NULL},
	    {NULL},
	    {"-e", "NOVALUE", "box", "true"},
	    {"-e", "=x", "box", "true"},
	    {"-w", "relative", "box", "true"},
	    {"--timeout", "0", "box", "true"},
	    {"--timeout", "soon", "box", "true"},
	    {"--timeout", "nan", "box", "true"},
	    {"--nosuch", "box", "true", NULL},
	    {"-z", "box", "true", NULL},
	    {"--tty=yes", "box", "true", NULL},
	    {"box", "--tty", "true", NULL},
	    {"--instance", "A_B", "box", "true"},
	    {"-e", "A=\xff", "box", "true"},
	    {"box", "--", "\xff", NULL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *args[5] = {NULL};
		struct cli_run r;

		memcpy(args, cases[i], sizeof(cases[i]));
		r.stdout_fd = -1;
		cli_start(&r, &cli_exec, "/nonexistent", NULL, args);
		cli_end(&r);
		if (r.status != CLI_USAGE)
			fail_msg("case %zu: %d %s", i, r.status, r.err);
		assert_non_null(strstr(r.err, "usage: sbxctl exec [-e K=V] "));
	}
}

static void test_nobody_there(void **state)
{
	struct cli_run r;

	(void)state;
	CLI_RUN(&r, &cli_exec, "/nonexistent", NULL, "box", "true");
	assert_int_equal(r.status, CLI_FAILED);
	assert_non_null(strstr(r.err, "cannot connect to /nonexistent"));
	CLI_RUN(&r, &cli_run, "/nonexistent", NULL, "true");
	assert_int_equal(r.status, CLI_FAILED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_run_acquires_runs_and_releases),
	    cmocka_unit_test(test_a_box_without_a_thread_is_removed),
	    cmocka_unit_test(test_a_signal_ends_the_command_and_releases),
	    cmocka_unit_test(test_a_refused_acquire_runs_nothing),
	    cmocka_unit_test(test_a_successor_is_not_run_in),
	    cmocka_unit_test(test_exec_exits_as_the_command_did),
	    cmocka_unit_test(test_json_prints_the_whole_answer),
	    cmocka_unit_test(test_a_closed_stdout_ends_it_as_sigpipe),
	    cmocka_unit_test(test_wrong_usage),
	    cmocka_unit_test(test_nobody_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
