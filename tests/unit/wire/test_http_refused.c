/* Unit tests of wire/http_parse.c and what it rests on: everything that is refused, and why. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>

#include "tests/unit/wire/http_feed.h"

static void refused(const char *text, const char *why)
{
	refused_n(HTTP_REQUEST, text, strlen(text), -EBADMSG, why);
}

static void test_failure_is_final(void **state)
{
	struct http_in *in = http_in_create(HTTP_REQUEST);
	const uint8_t *body = NULL;
	struct err err;
	size_t body_len;
	size_t used;

	(void)state;
	assert_int_equal(
	    http_in_feed(in, (const uint8_t *)"\x16\x03", 2, &used, &body, &body_len, &err),
	    -EBADMSG);
	assert_int_equal(http_in_feed(in, (const uint8_t *)"GET / HTTP/1.1\r\nHost: x\r\n\r\n", 27,
			     &used, &body, &body_len, &err),
	    -EBADMSG);
	http_in_free(in);
}

static void test_head_bound(void **state)
{
	static const char begin[] = "GET / HTTP/1.1\r\nHost: x\r\nA: ";
	char text[HTTP_HEAD_MAX + 8];
	struct seen s;

	(void)state;
	memset(text, 'x', sizeof(text));
	memcpy(text, begin, sizeof(begin) - 1);
	memcpy(text + HTTP_HEAD_MAX - 4, "\r\n\r\n", 4);
	for (size_t i = 0; i < STEPS; i++) {
		feed(&s, HTTP_REQUEST, text, sizeof(text), steps[i]);
		assert_int_equal(s.last, HTTP_END);
		assert_int_equal(s.used, HTTP_HEAD_MAX);
		done(&s);
	}
	memset(text + HTTP_HEAD_MAX - 4, 'x', 4);
	memcpy(text + HTTP_HEAD_MAX - 3, "\r\n\r\n", 4);
	refused_n(HTTP_REQUEST, text, sizeof(text), -EMSGSIZE, "longer than 16384");
}

/* A reader for other heads than the usual. */
static void test_head_bound_as_told(void **state)
{
	static const char text[] = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
	const size_t len = sizeof(text) - 1;

	(void)state;
	for (size_t max = 1; max <= len + 1; max++) {
		struct http_in *in = http_in_create_for(HTTP_REQUEST, max);
		const uint8_t *body = NULL;
		struct err err = {0};
		size_t body_len;
		size_t used;
		int rc;

		assert_non_null(in);
		assert_int_equal(http_in_head_max(in), max);
		rc = http_in_feed(in, (const uint8_t *)text, len, &used, &body, &body_len, &err);
		assert_int_equal(rc, max < len ? -EMSGSIZE : HTTP_HEAD_DONE);
		assert_int_equal(used, max < len ? max : len);
		assert_true(max >= len || strstr(err.text, "the head is longer than"));
		http_in_free(in);
	}
}

static void test_the_longest_head(void **state)
{
	struct http_in *in = http_in_create_for(HTTP_REQUEST, HTTP_HEAD_LIMIT);
	char *text = malloc(HTTP_HEAD_LIMIT);
	const uint8_t *body = NULL;
	struct err err = {0};
	size_t body_len;
	size_t used;

	(void)state;
	assert_true(in && text);
	memset(text, 'x', HTTP_HEAD_LIMIT);
	memcpy(text, "GET / HTTP/1.1\r\nHost: x\r\nAuthorization: ", 40);
	memcpy(text + HTTP_HEAD_LIMIT - 4, "\r\n\r\n", 4);
	assert_int_equal(
	    http_in_feed(in, (const uint8_t *)text, HTTP_HEAD_LIMIT, &used, &body, &body_len, &err),
	    HTTP_HEAD_DONE);
	assert_int_equal(strlen(http_in_head(in)->authorization), HTTP_HEAD_LIMIT - 44);
	assert_int_equal(http_in_head(in)->authorization_at, 40);
	free(text);
	http_in_free(in);
}

static void test_too_many_headers(void **state)
{
	char text[4096] = "GET / HTTP/1.1\r\nHost: x\r\n";

	(void)state;
	for (int i = 0; i < 100; i++)
		strcat(text, "a: b\r\n");
	strcat(text, "\r\n");
	refused_n(HTTP_REQUEST, text, strlen(text), -EMSGSIZE, "too many header lines");
}

#define REQ "POST / HTTP/1.1\r\nHost: x\r\n"

static void test_refused_heads(void **state)
{
	(void)state;
	refused(REQ "Content-Length: 1\r\nContent-Length: 2\r\n\r\nxx", "Content-Length");
	refused(REQ "Content-Length: 1\r\nContent-Length: 1\r\n\r\nxx", "Content-Length");
	refused(REQ "X-Box-Generation: 0\r\n\r\n", "X-Box-Generation");
	refused(REQ "X-Box-Generation: 1x\r\n\r\n", "X-Box-Generation");
	refused(REQ "X-Box-Generation: 1\r\nX-Box-Generation: 1\r\n\r\n", "X-Box-Generation");
	refused(REQ "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", "Transfer-Encoding");
	refused(REQ "Transfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n", "Transfer-Encoding");
	refused(REQ "Content-Length: 1,1\r\n\r\n", "Content-Length");
	refused(REQ "Content-Length: +1\r\n\r\n", "Content-Length");
	refused(REQ "Content-Length: -1\r\n\r\n", "Content-Length");
	refused(REQ "Content-Length: 0x1\r\n\r\n", "Content-Length");
	refused(REQ "Content-Length: 1 1\r\n\r\n", "Content-Length");
	refused(REQ "Content-Length:\r\n\r\n", "Content-Length");
	refused(REQ "Content-Length: 9223372036854775808\r\n\r\n", "Content-Length");
	refused(REQ "Content-Length: 99999999999999999999999\r\n\r\n", "Content-Length");
	refused(REQ "Transfer-Encoding: gzip\r\n\r\n", "Transfer-Encoding");
	refused(REQ "Transfer-Encoding: gzip, chunked\r\n\r\n", "Transfer-Encoding");
	refused(REQ "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", "");
	refused("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", "HTTP/1.0");
	refused(REQ "Host: y\r\n\r\n", "Host is given twice");
	refused("GET / HTTP/1.1\r\nX: y\r\n\r\n", "Host is missing");
	refused(REQ "Authorization: a\r\nAuthorization: b\r\n\r\n", "Authorization is given twice");
	refused(REQ "Last-Event-ID: 1\r\nLast-Event-ID: 2\r\n\r\n", "Last-Event-ID is given twice");
	refused(REQ "A: b\r\n c\r\n\r\n", "begins with a blank");
	refused(REQ "A: b\r\n\tc\r\n\r\n", "begins with a blank");
	refused(" GET / HTTP/1.1\r\nHost: x\r\n\r\n", "begins with a blank");
	refused(REQ "A: b\rc\r\n\r\n", "CR LF");
	refused(REQ "A: b\r\r\n\r\n", "CR LF");
	refused(REQ "A: b\nB: c\r\n\r\n", "CR LF");
	refused("GET / HTTP/1.1\nHost: x\n\n", "CR LF");
	refused(REQ "A: b\x01\r\n\r\n", "control character");
	refused(REQ "A: b\x7f\r\n\r\n", "control character");
	refused_n(HTTP_REQUEST, REQ "A: b\0c\r\n\r\n", sizeof(REQ) - 1 + 10, -EBADMSG, "control");
	refused(REQ "A : b\r\n\r\n", "");
	refused(REQ ": b\r\n\r\n", "");
	refused(REQ "A b\r\n\r\n", "");
	refused(REQ "A(b: c\r\n\r\n", "");
	refused(REQ "A\x80: c\r\n\r\n", "");
}

static void test_refused_request_lines(void **state)
{
	(void)state;
	refused("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "HTTP/2");
	refused("GET http://x/ HTTP/1.1\r\nHost: x\r\n\r\n", "begins with /");
	refused("OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n", "begins with /");
	refused("CONNECT x:80 HTTP/1.1\r\nHost: x\r\n\r\n", "begins with /");
	refused("GET v1 HTTP/1.1\r\nHost: x\r\n\r\n", "");
	refused("GET /a\x80 HTTP/1.1\r\nHost: x\r\n\r\n", "");
	refused("GET /a#b HTTP/1.1\r\nHost: x\r\n\r\n", "");
	refused("GET /a\tb HTTP/1.1\r\nHost: x\r\n\r\n", "");
	refused("GET /a b HTTP/1.1\r\nHost: x\r\n\r\n", "");
	refused("GET / HTTP/2.0\r\nHost: x\r\n\r\n", "");
	refused("GET / HTTP/1.2\r\nHost: x\r\n\r\n", "");
	refused("GET / HTTP/0.9\r\nHost: x\r\n\r\n", "");
	refused("GET / HTTQ/1.1\r\nHost: x\r\n\r\n", "");
	refused("GET / HTTP/1.1 \r\nHost: x\r\n\r\n", "");
	refused("GET  / HTTP/1.1\r\nHost: x\r\n\r\n", "");
	refused("GET /  HTTP/1.1\r\nHost: x\r\n\r\n", "");
	refused("GET\t/ HTTP/1.1\r\nHost: x\r\n\r\n", "");
	refused("GET / HTTP/1\r\nHost: x\r\n\r\n", "");
	refused("GET / HTTP/1.10\r\nHost: x\r\n\r\n", "");
	refused("GET /\r\n\r\n", "");
	refused("GET  HTTP/1.1\r\nHost: x\r\n\r\n", "");
	refused("get / HTTP/1.1\r\nHost: x\r\n\r\n", "method");
	refused("FROB / HTTP/1.1\r\nHost: x\r\n\r\n", "method");
	refused("{}\r\n\r\n", "");
	refused("\x16\x03\x01\x02", "control character");
}

#define CHUNKED REQ "Transfer-Encoding: chunked\r\n\r\n"

static void test_refused_chunks(void **state)
{
	char text[HTTP_HEAD_MAX];

	(void)state;
	refused(CHUNKED "x\r\n", "hexadecimal");
	refused(CHUNKED "\r\n", "hexadecimal");
	refused(CHUNKED "-1\r\n", "hexadecimal");
	refused(CHUNKED "0x1\r\n", "hexadecimal");
	refused(CHUNKED "5 \r\nhello\r\n", "hexadecimal");
	refused(CHUNKED "5\nhello", "hexadecimal");
	refused(CHUNKED "5\rXhello", "line feed");
	refused(CHUNKED "5\r\nhello!", "longer than its size");
	refused(CHUNKED "5\r\nhello\rx", "line feed");
	refused(CHUNKED "8000000000000000\r\n", "too large");
	refused(CHUNKED "10000000000000005\r\n", "too large");
	refused(CHUNKED "5;a\x01\r\n", "control character");
	refused(CHUNKED "5;a\nhello", "control character");
	refused(CHUNKED "0\r\nA: b\nc\r\n", "control character");
	refused(CHUNKED "0\r\n\rx", "line feed");
	(void)snprintf(text, sizeof(text), CHUNKED "5;%0600d\r\n", 1);
	refused(text, "too long");
	(void)snprintf(text, sizeof(text), CHUNKED "%0600d\r\n", 1);
	refused(text, "too long");
	(void)snprintf(text, sizeof(text), CHUNKED "0\r\n");
	for (int i = 0; i < 50; i++)
		(void)snprintf(text + strlen(text), 110, "A: %0100d\r\n", i);
	refused(text, "too long");
}

static void test_refused_responses(void **state)
{
	(void)state;
	refused_n(HTTP_RESPONSE, "HTTP/1.1 xx OK\r\n\r\n", 18, -EBADMSG, "");
	refused_n(HTTP_RESPONSE, "HTTQ/1.1 200 OK\r\n\r\n", 19, -EBADMSG, "");
	refused_n(HTTP_RESPONSE, "HTTP/2.0 200 OK\r\n\r\n", 19, -EBADMSG, "");
	refused_n(HTTP_RESPONSE, "GET / HTTP/1.1\r\nHost: x\r\n\r\n", 27, -EBADMSG, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_failure_is_final),
	    cmocka_unit_test(test_head_bound),
	    cmocka_unit_test(test_head_bound_as_told),
	    cmocka_unit_test(test_the_longest_head),
	    cmocka_unit_test(test_too_many_headers),
	    cmocka_unit_test(test_refused_heads),
	    cmocka_unit_test(test_refused_request_lines),
	    cmocka_unit_test(test_refused_chunks),
	    cmocka_unit_test(test_refused_responses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
