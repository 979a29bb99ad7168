/* A command's streamed output: bytes arrive as they were, however the lines are cut. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tools/cli.h"
#include "tools/cli_stream.h"

struct sink {
	char text[3][256]; /* [1] stdout, [2] stderr */
	size_t len[3];
	int fail;
};

static int take(void *ctx, int stream, const uint8_t *bytes, size_t n)
{
	struct sink *s = ctx;

	assert_in_range(stream, 1, 2);
	if (s->fail)
		return s->fail;
	assert_true(s->len[stream] + n <= sizeof(s->text[stream]));
	memcpy(s->text[stream] + s->len[stream], bytes, n);
	s->len[stream] += n;
	return 0;
}

static int feed(struct cli_stream *s, const char *text, size_t piece, struct err *err)
{
	size_t n = strlen(text);

	for (size_t at = 0; at < n; at += piece) {
		int rc = cli_stream_feed(
		    s, (const uint8_t *)text + at, n - at < piece ? n - at : piece, err);

		if (rc < 0)
			return rc;
	}
	return 0;
}

static const char answer[] =
    "{\"stream\":\"stdout\",\"data\":\"a\\u0000\\u00e9\\n\",\"encoding\":\"utf-8\"}\n"
    "{\"stream\":\"stderr\",\"data\":\"/wD+\",\"encoding\":\"base64\"}\n"
    "{\"stream\":\"stdout\",\"data\":\"b\"}\n"
    "{\"exit_code\":7,\"signal\":null,\"timed_out\":false,\"duration_ms\":1.5}\n";

static void test_bytes_arrive_however_they_are_cut(void **state)
{
	(void)state;
	for (size_t piece = 1; piece <= sizeof(answer); piece++) {
		struct sink sink = {.fail = 0};
		struct cli_stream s;
		struct err err;

		cli_stream_init(&s, take, &sink);
		assert_int_equal(feed(&s, answer, piece, &err), 0);
		assert_int_equal(sink.len[1], 6);
		assert_memory_equal(sink.text[1], "a\0\xc3\xa9\nb", 6);
		assert_int_equal(sink.len[2], 3);
		assert_memory_equal(sink.text[2], "\xff\0\xfe", 3);
		assert_true(s.result.known);
		assert_int_equal(cli_result_status(&s.result), 7);
		cli_stream_free(&s);
	}
}

static const struct {
	const char *line;
	int status;
} ends[] = {
    {"{\"exit_code\":0}", 0},
    {"{\"exit_code\":255,\"signal\":null}", 255},
    {"{\"exit_code\":null,\"signal\":9}", 137},
    {"{\"exit_code\":null,\"signal\":9,\"timed_out\":true}", CLI_TIMEOUT},
    {"{\"exit_code\":null,\"signal\":null}", CLI_FAILED},
    {"{\"error\":{\"message\":\"m\",\"reason\":\"box_died\"}}", CLI_FAILED},
    {"{}", CLI_FAILED},
};

static void test_ends(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		struct cli_stream s;
		struct err err;

		cli_stream_init(&s, take, NULL);
		assert_int_equal(feed(&s, ends[i].line, 1000, &err), 0);
		assert_int_equal(cli_result_status(&s.result), CLI_FAILED); /* not yet complete */
		assert_int_equal(feed(&s, "\n", 1, &err), 0);
		assert_int_equal(cli_result_status(&s.result), ends[i].status);
		cli_stream_free(&s);
	}
}

static void test_an_error_keeps_its_message_and_reason(void **state)
{
	struct cli_stream s;
	struct err err;

	(void)state;
	cli_stream_init(&s, take, NULL);
	assert_int_equal(
	    feed(&s, "{\"error\":{\"message\":\"the box died\",\"reason\":\"box_died\"}}\n", 7,
		&err),
	    0);
	assert_true(s.result.failed);
	assert_string_equal(s.result.message, "the box died");
	assert_string_equal(s.result.reason, "box_died");
	cli_stream_free(&s);
}

static const char *const malformed[] = {
    "\n",
    "[]\n",
    "{\n",
    "null\n",
    "{\"stream\":\"stdout\"}\n",
    "{\"stream\":\"stdin\",\"data\":\"x\"}\n",
    "{\"stream\":\"stdout\",\"data\":1}\n",
    "{\"stream\":\"stdout\",\"data\":\"x\",\"encoding\":\"rot13\"}\n",
    "{\"stream\":\"stdout\",\"data\":\"x\",\"encoding\":\"base64\"}\n",
    "{\"exit_code\":256}\n",
    "{\"exit_code\":-1}\n",
    "{\"exit_code\":\"0\"}\n",
    "{\"exit_code\":null,\"signal\":0}\n",
    "{\"exit_code\":null,\"signal\":128}\n",
    "{\"exit_code\":0,\"exit_code\":1}\n",
};

static void test_malformed_lines_are_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(malformed) / sizeof(malformed[0]); i++) {
		struct sink sink = {.fail = 0};
		struct cli_stream s;
		struct err err = {0};

		cli_stream_init(&s, take, &sink);
		if (feed(&s, malformed[i], 3, &err) >= 0)
			fail_msg("accepted: %s", malformed[i]);
		assert_true(err.code != 0);
		assert_int_equal(sink.len[1] + sink.len[2], 0);
		cli_stream_free(&s);
	}
}

static void test_a_line_without_end_is_refused(void **state)
{
	static const uint8_t zeros[65536] = {' '};
	struct cli_stream s;
	struct err err = {0};
	size_t fed = 0;

	(void)state;
	cli_stream_init(&s, take, NULL);
	while (cli_stream_feed(&s, zeros, sizeof(zeros), &err) == 0) {
		fed += sizeof(zeros);
		assert_true(fed <= CLI_LINE_MAX);
	}
	assert_int_equal(err.code, EBADMSG);
	cli_stream_free(&s);
}

static void test_a_failing_sink_ends_it(void **state)
{
	struct sink sink = {.fail = -EPIPE};
	struct cli_stream s;
	struct err err;

	(void)state;
	cli_stream_init(&s, take, &sink);
	assert_int_equal(feed(&s, answer, sizeof(answer), &err), -EPIPE);
	assert_false(s.result.known);
	cli_stream_free(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_bytes_arrive_however_they_are_cut),
	    cmocka_unit_test(test_ends),
	    cmocka_unit_test(test_an_error_keeps_its_message_and_reason),
	    cmocka_unit_test(test_malformed_lines_are_refused),
	    cmocka_unit_test(test_a_line_without_end_is_refused),
	    cmocka_unit_test(test_a_failing_sink_ends_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
