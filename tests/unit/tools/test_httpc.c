/* The HTTP client of sbxctl: whole, chunked and broken answers, and that no wait is without end. */
#include "tests/unit/tools/fake_service.h"

#include <errno.h>
#include <sys/eventfd.h>

#include "lib/clock.h"
#include "tools/httpc.h"

#define SECONDS(n) (clock_now_ns() + (n)*NS_PER_S)

static const struct httpc_request get = {.method = "GET", .path = "/x?y=1"};

static void connect_to(const struct fake *f, int cancel_fd, struct httpc **c)
{
	struct err err = {0};

	if (httpc_connect(f->socket, cancel_fd, SECONDS(10), c, &err) != 0)
		fail_msg("%s", err.text);
}

static void test_requests_share_a_connection(void **state)
{
	static const struct fake_answer answers[FAKE_ANSWERS] = {
	    {.json = "{\"a\":1}"},
	    {.bytes = "HTTP/1.1 204 No Content\r\n\r\n"},
	    {.bytes = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
		      "3\r\nabc\r\n4\r\ndefg\r\n0\r\n\r\n"},
	};
	const struct httpc_request post = {
	    .method = "POST", .path = "/p", .accept = "text/x", .body = "{}", .body_len = 2};
	const struct http_head *head;
	struct httpc *c;
	struct err err;
	struct buf body;
	struct fake f;

	(void)state;
	fake_start(&f, answers);
	connect_to(&f, -1, &c);
	buf_init(&body, 4096);

	assert_int_equal(httpc_send(c, &get, SECONDS(10), &head, &err), 0);
	assert_int_equal(head->status, 200);
	assert_int_equal(httpc_read_all(c, SECONDS(10), &body, &err), 0);
	assert_int_equal(body.len, 7);
	assert_memory_equal(buf_head(&body), "{\"a\":1}", 7);

	buf_clear(&body);
	assert_int_equal(httpc_send(c, &post, SECONDS(10), &head, &err), 0);
	assert_int_equal(head->status, 204);
	assert_int_equal(httpc_read_all(c, SECONDS(10), &body, &err), 0);
	assert_int_equal(body.len, 0);

	assert_int_equal(httpc_send(c, &get, SECONDS(10), &head, &err), 0);
	assert_int_equal(httpc_read_all(c, SECONDS(10), &body, &err), 0);
	assert_memory_equal(buf_head(&body), "abcdefg", 7);

	assert_non_null(strstr(f.log->asked, "GET /x?y=1 HTTP/1.1\r\nHost: "));
	assert_non_null(strstr(f.log->asked, "POST /p HTTP/1.1\r\n"));
	assert_non_null(strstr(f.log->asked, "Accept: text/x\r\n"));
	assert_non_null(strstr(f.log->asked, "Content-Length: 2\r\n\r\n{}"));
	buf_free(&body);
	httpc_close(c);
	fake_stop(&f);
}

static void test_a_deadline_ends_the_wait(void **state)
{
	static const struct fake_answer answers[FAKE_ANSWERS] = {
	    {.bytes = "", .hang = true},
	    {.bytes = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab", .hang = true},
	};
	const struct http_head *head;
	struct httpc *c;
	struct err err;
	struct buf body;
	struct fake f;

	(void)state;
	fake_start(&f, answers);
	connect_to(&f, -1, &c);
	assert_int_equal(
	    httpc_send(c, &get, clock_now_ns() + 20 * NS_PER_MS, &head, &err), -ETIMEDOUT);
	assert_non_null(strstr(err.text, "did not answer in time"));
	httpc_close(c);

	connect_to(&f, -1, &c);
	buf_init(&body, 4096);
	assert_int_equal(httpc_send(c, &get, SECONDS(10), &head, &err), 0);
	assert_int_equal(
	    httpc_read_all(c, clock_now_ns() + 20 * NS_PER_MS, &body, &err), -ETIMEDOUT);
	assert_int_equal(body.len, 2);
	buf_free(&body);
	httpc_close(c);
	fake_stop(&f);
}

static void test_cancelling_ends_the_wait(void **state)
{
	static const struct fake_answer answers[FAKE_ANSWERS] = {{.bytes = "", .hang = true}};
	int cancel = eventfd(1, EFD_CLOEXEC);
	const struct http_head *head;
	struct httpc *c;
	struct err err;
	struct fake f;

	(void)state;
	fake_start(&f, answers);
	connect_to(&f, cancel, &c);
	assert_int_equal(httpc_send(c, &get, CLOCK_NEVER, &head, &err), -ECANCELED);
	httpc_close(c);
	close(cancel);
	fake_stop(&f);
}

static void test_broken_answers(void **state)
{
	static const struct fake_answer answers[FAKE_ANSWERS] = {
	    {.bytes = NULL},
	    {.bytes = "HTTP/1.1 200 OK\r\nContent-Len", .hang_up = true},
	    {.bytes = "SSH-2.0-x\r\n\r\n", .hang_up = true},
	    {.bytes = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab", .hang_up = true},
	    {.bytes = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
		.hang_up = true},
	};
	static const int expected[] = {-ECONNRESET, -ECONNRESET, -EBADMSG, -ECONNRESET, -EBADMSG};
	struct fake f;

	(void)state;
	fake_start(&f, answers);
	for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
		const struct http_head *head;
		struct httpc *c;
		struct err err = {0};
		struct buf body;
		int rc;

		buf_init(&body, 4096);
		connect_to(&f, -1, &c);
		rc = httpc_send(c, &get, SECONDS(10), &head, &err);
		if (rc == 0)
			rc = httpc_read_all(c, SECONDS(10), &body, &err);
		assert_int_equal(rc, expected[i]);
		assert_true(err.text[0] != '\0');
		httpc_close(c);
		buf_free(&body);
	}
	fake_stop(&f);
}

static void test_an_answer_that_is_too_large(void **state)
{
	static const struct fake_answer answers[FAKE_ANSWERS] = {
	    {.json = "0123456789"},
	};
	const struct http_head *head;
	struct httpc *c;
	struct err err;
	struct buf body;
	struct fake f;

	(void)state;
	fake_start(&f, answers);
	connect_to(&f, -1, &c);
	buf_init(&body, 9);
	assert_int_equal(httpc_send(c, &get, SECONDS(10), &head, &err), 0);
	assert_int_equal(httpc_read_all(c, SECONDS(10), &body, &err), -ENOBUFS);
	assert_non_null(strstr(err.text, "does not fit 9 bytes"));
	buf_free(&body);
	httpc_close(c);
	fake_stop(&f);
}

static void test_nobody_there(void **state)
{
	char path[200];
	struct httpc *c = NULL;
	struct err err;

	(void)state;
	assert_int_equal(
	    httpc_connect("/nonexistent/sbxd.sock", -1, SECONDS(1), &c, &err), -ENOENT);
	assert_non_null(strstr(err.text, "/nonexistent/sbxd.sock"));
	memset(path, 'x', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	assert_int_equal(httpc_connect(path, -1, SECONDS(1), &c, &err), -ENAMETOOLONG);
	assert_null(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_requests_share_a_connection),
	    cmocka_unit_test(test_a_deadline_ends_the_wait),
	    cmocka_unit_test(test_cancelling_ends_the_wait),
	    cmocka_unit_test(test_broken_answers),
	    cmocka_unit_test(test_an_answer_that_is_too_large),
	    cmocka_unit_test(test_nobody_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
