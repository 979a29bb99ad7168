/* The HTTP client of sbx-mcp: whole, chunked and broken answers, in the loop, and no wait without
 * end. */
#include "tests/unit/tools/fake_service.h"

#include <errno.h>

#include "lib/clock.h"
#include "lib/fd.h"
#include "tools/dial.h"
#include "tools/mcp_http.h"

struct seen {
	struct mcp_http *http;
	unsigned int status;
	char body[256];
	bool ended;
	struct err gone;
	const struct mcp_http_request *next; /* asked when one has ended */
	bool close_in_body;
};

static void on_head(void *ctx, const struct http_head *head)
{
	((struct seen *)ctx)->status = head->status;
}

static void on_body(void *ctx, const uint8_t *bytes, size_t n)
{
	struct seen *s = ctx;

	strncat(s->body, (const char *)bytes, n);
	if (!s->close_in_body)
		return;
	mcp_http_close(s->http);
	s->http = NULL;
	s->ended = true;
}

static void on_end(void *ctx)
{
	struct seen *s = ctx;
	struct err err;

	strcat(s->body, "|");
	if (s->next) {
		assert_int_equal(mcp_http_send(s->http, s->next, &err), 0);
		s->next = NULL;
		return;
	}
	s->ended = true;
}

static void on_gone(void *ctx, const struct err *err)
{
	struct seen *s = ctx;

	s->gone = *err;
	mcp_http_close(s->http);
	s->http = NULL;
}

static const struct mcp_http_events events = {
    .head = on_head, .body = on_body, .end = on_end, .gone = on_gone};

static const struct mcp_http_request get = {
    .method = "GET", .path = "/x?y=1", .body_fd = -1, .patience = 30 * NS_PER_S};

/* Runs one request, and s->next, until its end. */
static void run(const struct fake *f, const struct mcp_http_request *req, struct seen *s)
{
	struct loop *l = loop_create();
	struct err err = {0};
	int fd = dial_socket(f->socket, &err);

	assert_true(fd >= 0);
	assert_int_equal(mcp_http_open(l, fd, &events, s, &s->http, &err), 0);
	assert_int_equal(mcp_http_send(s->http, req, &err), 0);
	while (!s->ended && !s->gone.code)
		assert_int_equal(loop_step(l, 30 * NS_PER_S), 0);
	mcp_http_close(s->http);
	loop_destroy(l);
}

static void test_requests_one_after_the_other(void **state)
{
	static const struct fake_answer answers[FAKE_ANSWERS] = {
	    {.json = "{\"a\":1}"},
	    {.bytes = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
		      "3\r\nabc\r\n4\r\ndefg\r\n0\r\n\r\n"},
	};
	const struct mcp_http_request post = {.method = "POST",
	    .path = "/p",
	    .accept = "text/x",
	    .traceparent = "00-0-0-01",
	    .body = "{}",
	    .body_len = 2,
	    .body_fd = -1,
	    .patience = 30 * NS_PER_S};
	struct seen s = {.next = &post};
	struct fake f;

	(void)state;
	fake_start(&f, answers);
	run(&f, &get, &s);
	assert_true(s.ended);
	assert_int_equal(s.status, 200);
	assert_string_equal(s.body, "{\"a\":1}|abcdefg|");
	assert_non_null(
	    strstr(f.log->asked, "GET /x?y=1 HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\n\r\n"));
	assert_non_null(strstr(f.log->asked,
	    "POST /p HTTP/1.1\r\nHost: localhost\r\nAccept: text/x\r\ntraceparent: 00-0-0-01\r\n"
	    "Content-Length: 2\r\n\r\n{}"));
	fake_stop(&f);
}

static void test_a_body_from_a_file(void **state)
{
	static const struct fake_answer answers[FAKE_ANSWERS] = {{.json = "{}"}};
	FILE *file = tmpfile();
	struct mcp_http_request put = {
	    .method = "PUT", .path = "/p", .body_fd_len = 10000, .patience = 30 * NS_PER_S};
	struct seen s = {.status = 0};
	struct fake f;

	(void)state;
	assert_non_null(file);
	for (int i = 0; i < 2000; i++)
		assert_true(fputs("12345", file) >= 0);
	rewind(file);
	put.body_fd = fileno(file);
	fake_start(&f, answers);
	run(&f, &put, &s);
	assert_int_equal(s.status, 200);
	assert_non_null(strstr(f.log->asked, "Content-Length: 10000\r\n\r\n12345123451234512345"));
	fake_stop(&f);

	/* It became shorter than was said. */
	fake_start(&f, answers);
	assert_int_equal(lseek(put.body_fd, 9000, SEEK_SET), 9000);
	s = (struct seen){.status = 0};
	run(&f, &put, &s);
	assert_int_equal(s.gone.code, ENODATA);
	fake_stop(&f);
	fclose(file);
}

static void test_what_goes_wrong(void **state)
{
	static const struct {
		struct fake_answer answer;
		int code;
		const char *text;
		const char *body;
	} cases[] = {
	    {{.hang = true}, ETIMEDOUT, "did not answer in time", ""},
	    {{.hang_up = true}, ECONNRESET, "closed the connection", ""},
	    {{.bytes = "nonsense\r\n\r\n", .hang = true}, EBADMSG, "", ""},
	    {{.bytes = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", .hang_up = true},
		ECONNRESET, "closed the connection", "abc"},
	    {{.bytes = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", .hang = true}, ETIMEDOUT,
		"did not answer in time", "abc"},
	};
	struct mcp_http_request hasty = get;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct fake_answer answers[FAKE_ANSWERS] = {cases[i].answer};
		struct seen s = {.status = 0};
		struct fake f;

		hasty.patience = cases[i].code == ETIMEDOUT ? 100 * NS_PER_MS : 30 * NS_PER_S;
		fake_start(&f, answers);
		run(&f, &hasty, &s);
		assert_int_equal(s.gone.code, cases[i].code);
		assert_non_null(strstr(s.gone.text, cases[i].text));
		assert_string_equal(s.body, cases[i].body);
		fake_stop(&f);
	}
}

static void test_the_end_of_the_connection_may_be_that_of_the_body(void **state)
{
	static const struct fake_answer answers[FAKE_ANSWERS] = {
	    {.bytes = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nall", .hang_up = true}};
	struct seen s = {.status = 0};
	struct fake f;

	(void)state;
	fake_start(&f, answers);
	run(&f, &get, &s);
	assert_string_equal(s.body, "all|");
	fake_stop(&f);
}

static void test_closing_while_it_calls(void **state)
{
	static const struct fake_answer answers[FAKE_ANSWERS] = {{.json = "{}"}};
	struct seen s = {.close_in_body = true};
	struct fake f;

	(void)state;
	fake_start(&f, answers);
	run(&f, &get, &s);
	assert_string_equal(s.body, "{}");
	assert_int_equal(s.gone.code, 0);
	fake_stop(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_requests_one_after_the_other),
	    cmocka_unit_test(test_a_body_from_a_file),
	    cmocka_unit_test(test_what_goes_wrong),
	    cmocka_unit_test(test_the_end_of_the_connection_may_be_that_of_the_body),
	    cmocka_unit_test(test_closing_while_it_calls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
