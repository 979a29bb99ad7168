/* Unit tests of wire/http_reply.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>

#include "wire/http.h"

static void check_reply(const struct http_reply *r, const char *expected)
{
	struct buf b;

	buf_init(&b, 4096);
	assert_int_equal(http_put_reply(&b, r), 0);
	assert_int_equal(buf_terminate(&b), 0);
	assert_string_equal((const char *)buf_head(&b), expected);
	buf_free(&b);
}

static void test_reply_forms(void **state)
{
	const struct http_reply full = {.status = 200,
	    .content_type = "application/json",
	    .content_length = 18446744073709551614ULL,
	    .keep_alive = true,
	    .request_id = "r1",
	    .traceparent = "t1",
	    .extra = "A: b\r\nC: d\r\n"};
	const struct http_reply chunked = {.status = 200,
	    .content_type = "application/x-ndjson",
	    .content_length = UINT64_MAX,
	    .request_id = ""};
	const struct http_reply until_close = {.status = 200,
	    .content_type = "text/event-stream",
	    .content_length = UINT64_MAX,
	    .until_close = true};
	const struct http_reply none = {.status = 202, .content_length = 7, .keep_alive = true};
	const struct http_reply no_content = {.status = 204, .keep_alive = true};
	const struct http_reply upgrade = {.status = 101, .extra = "Upgrade: websocket\r\n"};
	const struct http_reply unknown = {.status = 599, .keep_alive = true};

	(void)state;
	check_reply(&full, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
			   "Content-Length: 18446744073709551614\r\nX-Request-Id: r1\r\n"
			   "traceparent: t1\r\nA: b\r\nC: d\r\n\r\n");
	check_reply(&chunked, "HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\n"
			      "Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n");
	check_reply(&until_close, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
				  "Connection: close\r\n\r\n");
	check_reply(&none, "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n");
	check_reply(&no_content, "HTTP/1.1 204 No Content\r\n\r\n");
	check_reply(&upgrade, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n");
	check_reply(&unknown, "HTTP/1.1 599 Unknown\r\nContent-Length: 0\r\n\r\n");
}

static void test_reply_is_whole_or_nothing(void **state)
{
	const struct http_reply r = {.status = 200, .keep_alive = true};
	const size_t size = strlen("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
	struct buf b;

	(void)state;
	buf_init(&b, size + 2);
	assert_int_equal(buf_puts(&b, "ab"), 0);
	assert_int_equal(http_put_reply(&b, &r), 0);
	assert_int_equal(b.len, size + 2);
	assert_int_equal(http_put_reply(&b, &r), -ENOBUFS);
	assert_int_equal(http_put_chunk(&b, "x", 1), -ENOBUFS);
	assert_int_equal(b.len, size + 2);
	buf_free(&b);
}

static void test_chunks(void **state)
{
	struct buf b;
	char big[300];

	(void)state;
	memset(big, 'x', sizeof(big));
	buf_init(&b, 5 + 300 + 2 + 6 + 5);
	assert_int_equal(http_put_chunk(&b, big, sizeof(big)), 0);
	assert_int_equal(http_put_chunk(&b, "y", 1), 0);
	assert_int_equal(http_put_chunk(&b, NULL, 0), 0);
	assert_int_equal(b.len, b.max);
	assert_memory_equal(buf_head(&b), "12c\r\nxxx", 8);
	assert_memory_equal(buf_head(&b) + 305, "\r\n1\r\ny\r\n0\r\n\r\n", 13);
	buf_free(&b);
}

/* What we write, we must be able to read. */
static void test_reply_is_readable(void **state)
{
	const struct http_reply r = {.status = 429,
	    .content_type = "a/b",
	    .content_length = UINT64_MAX,
	    .keep_alive = true,
	    .request_id = "r1",
	    .extra = "Retry-After: 3\r\n"};
	struct http_in *in = http_in_create(HTTP_RESPONSE);
	const uint8_t *body = NULL;
	struct err err;
	struct buf b;
	size_t body_len;
	size_t used;

	(void)state;
	buf_init(&b, 4096);
	assert_int_equal(http_put_reply(&b, &r), 0);
	assert_int_equal(http_put_chunk(&b, "hello", 5), 0);
	assert_int_equal(http_put_chunk(&b, NULL, 0), 0);
	assert_int_equal(
	    http_in_feed(in, buf_head(&b), b.len, &used, &body, &body_len, &err), HTTP_HEAD_DONE);
	buf_consume(&b, used);
	assert_int_equal(http_in_head(in)->status, 429);
	assert_string_equal(http_in_head(in)->retry_after, "3");
	assert_string_equal(http_in_head(in)->request_id, "r1");
	assert_int_equal(
	    http_in_feed(in, buf_head(&b), b.len, &used, &body, &body_len, &err), HTTP_BODY);
	assert_int_equal(body_len, 5);
	assert_memory_equal(body, "hello", 5);
	buf_consume(&b, used);
	assert_int_equal(
	    http_in_feed(in, buf_head(&b), b.len, &used, &body, &body_len, &err), HTTP_END);
	assert_int_equal(used, b.len);
	buf_free(&b);
	http_in_free(in);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_reply_forms),
	    cmocka_unit_test(test_reply_is_whole_or_nothing),
	    cmocka_unit_test(test_chunks),
	    cmocka_unit_test(test_reply_is_readable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
