/* Unit tests of wire/http_parse.c and what it rests on: heads and the framing of bodies. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/wire/http_feed.h"

static void test_simple_get(void **state)
{
	static const char text[] = "GET /v1/boxes/a%20b?x=1&y=%2F HTTP/1.1\r\nHost: \r\n"
				   "Authorization:  Bearer t \t\r\nretry-AFTER: 7\r\n"
				   "last-event-id: 12 \r\n"
				   "x-box-generation: 34\r\n\r\nNEXT";
	struct seen s;

	(void)state;
	for (size_t i = 0; i < STEPS; i++) {
		const struct http_head *h;

		feed(&s, HTTP_REQUEST, text, sizeof(text) - 1, steps[i]);
		assert_int_equal(s.last, HTTP_END);
		assert_int_equal(s.heads, 1);
		assert_int_equal(s.used, sizeof(text) - 1 - 4); /* NEXT is not ours */
		assert_int_equal(s.head_used, s.used);
		h = http_in_head(s.in);
		assert_int_equal(h->method, HTTP_GET);
		assert_string_equal(h->path, "/v1/boxes/a%20b");
		assert_string_equal(h->query, "x=1&y=%2F");
		assert_string_equal(h->authorization, "Bearer t");
		assert_string_equal(h->retry_after, "7");
		assert_string_equal(h->last_event_id, "12");
		assert_int_equal(h->box_generation, 34);
		assert_string_equal(h->content_type, "");
		assert_string_equal(h->request_id, "");
		assert_string_equal(h->traceparent, "");
		assert_true(h->keep_alive && h->takes_chunks);
		assert_false(h->chunked || h->upgrade_websocket || h->expect_continue);
		assert_false(h->wants_ndjson);
		assert_int_equal(h->content_length, 0);
		done(&s);
	}
}

static void test_body_by_length(void **state)
{
	static const char text[] =
	    "POST /v1/acquire HTTP/1.1\r\nHost: x\r\nContent-Type: application/json"
	    "\r\nContent-Length: 5\r\nExpect: 100-Continue\r\n"
	    "Idempotency-Key: k\r\n\r\nhelloGET";
	struct seen s;

	(void)state;
	for (size_t i = 0; i < STEPS; i++) {
		feed(&s, HTTP_REQUEST, text, sizeof(text) - 1, steps[i]);
		assert_int_equal(s.last, HTTP_END);
		assert_int_equal(s.used, sizeof(text) - 1 - 3);
		assert_int_equal(s.head_used, s.used - 5);
		assert_int_equal(s.body_len, 5);
		assert_memory_equal(s.body, "hello", 5);
		assert_int_equal(http_in_head(s.in)->content_length, 5);
		assert_true(http_in_head(s.in)->expect_continue);
		assert_string_equal(http_in_head(s.in)->content_type, "application/json");
		assert_string_equal(http_in_head(s.in)->idempotency_key, "k");
		done(&s);
	}
}

static void test_body_chunked(void **state)
{
	static const char text[] =
	    "PUT /f HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: CHUNKED\r\n\r\n"
	    "5\r\nhello\r\n0006;a=\"b\"\r\n world\r\n0\r\nTrailer: x\r\n\r\nNEXT";
	struct seen s;

	(void)state;
	for (size_t i = 0; i < STEPS; i++) {
		feed(&s, HTTP_REQUEST, text, sizeof(text) - 1, steps[i]);
		assert_int_equal(s.last, HTTP_END);
		assert_int_equal(s.used, sizeof(text) - 1 - 4);
		assert_int_equal(s.body_len, 11);
		assert_memory_equal(s.body, "hello world", 11);
		assert_true(http_in_head(s.in)->chunked);
		assert_true(http_in_head(s.in)->content_length == UINT64_MAX);
		done(&s);
	}
}

static void test_end_needs_no_bytes(void **state)
{
	static const char text[] = "DELETE /v1/boxes/x HTTP/1.1\r\nHost: x\r\n\r\n";
	struct http_in *in = http_in_create(HTTP_REQUEST);
	const uint8_t *body = NULL;
	struct err err;
	size_t body_len;
	size_t used;

	(void)state;
	for (int round = 0; round < 3; round++) {
		assert_int_equal(
		    http_in_feed(in, NULL, 0, &used, &body, &body_len, &err), HTTP_MORE);
		assert_int_equal(http_in_feed(in, (const uint8_t *)text, sizeof(text) - 1, &used,
				     &body, &body_len, &err),
		    HTTP_HEAD_DONE);
		assert_int_equal(used, sizeof(text) - 1);
		assert_int_equal(http_in_head(in)->method, HTTP_DELETE);
		assert_int_equal(
		    http_in_feed(in, NULL, 0, &used, &body, &body_len, &err), HTTP_END);
		assert_int_equal(used, 0);
		assert_int_equal(
		    http_in_feed(in, (const uint8_t *)"x", 1, &used, &body, &body_len, &err),
		    HTTP_END);
		assert_int_equal(used, 0);
		http_in_reset(in);
	}
	http_in_free(in);
}

/* Where a secret stands in what was fed, so that it can be taken out of a copy. */
static void test_where_authorization_stands(void **state)
{
	static const char text[] = "\r\nGET / HTTP/1.1\r\nHost: x\r\n"
				   "AUTHORIZATION: \t Bearer secret \r\nA: b\r\n\r\nBODY";
	struct seen s;

	(void)state;
	for (size_t i = 0; i < STEPS; i++) {
		const struct http_head *h;

		feed(&s, HTTP_REQUEST, text, sizeof(text) - 1, steps[i]);
		assert_int_equal(s.last, HTTP_END);
		h = http_in_head(s.in);
		assert_string_equal(h->authorization, "Bearer secret");
		assert_memory_equal(text + h->authorization_at, "Bearer secret \r", 15);
		done(&s);
	}
	feed(&s, HTTP_REQUEST, "GET / HTTP/1.1\r\nHost: x\r\nAuthorization:  \r\n\r\n", 45, 7);
	assert_string_equal(http_in_head(s.in)->authorization, "");
	assert_int_equal(http_in_head(s.in)->authorization_at, 0);
	done(&s);
}

static void test_methods(void **state)
{
	static const struct {
		const char *name;
		enum http_method method;
	} rows[] = {{"GET", HTTP_GET}, {"HEAD", HTTP_HEAD}, {"POST", HTTP_POST}, {"PUT", HTTP_PUT},
	    {"DELETE", HTTP_DELETE}, {"PATCH", HTTP_OTHER}, {"OPTIONS", HTTP_OTHER}};
	char text[128];
	struct seen s;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		(void)snprintf(
		    text, sizeof(text), "%s / HTTP/1.1\r\nHost: x\r\n\r\n", rows[i].name);
		feed(&s, HTTP_REQUEST, text, strlen(text), 1000);
		assert_int_equal(s.last, HTTP_END);
		assert_int_equal(http_in_head(s.in)->method, rows[i].method);
		done(&s);
	}
}

static void test_http10(void **state)
{
	static const char plain[] = "GET / HTTP/1.0\r\n\r\n";
	static const char stay[] = "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n";
	struct seen s;

	(void)state;
	feed(&s, HTTP_REQUEST, plain, sizeof(plain) - 1, 1000);
	assert_int_equal(s.last, HTTP_END);
	assert_false(http_in_head(s.in)->keep_alive || http_in_head(s.in)->takes_chunks);
	done(&s);
	feed(&s, HTTP_REQUEST, stay, sizeof(stay) - 1, 1000);
	assert_int_equal(s.last, HTTP_END);
	assert_false(http_in_head(s.in)->keep_alive || http_in_head(s.in)->takes_chunks);
	done(&s);
}

static void test_connection_close(void **state)
{
	static const char text[] =
	    "\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\nConnection: foo, Close\r\n\r\n";
	struct seen s;

	(void)state;
	for (size_t i = 0; i < STEPS; i++) {
		feed(&s, HTTP_REQUEST, text, sizeof(text) - 1, steps[i]);
		assert_int_equal(s.last, HTTP_END);
		assert_false(http_in_head(s.in)->keep_alive);
		assert_string_equal(http_in_head(s.in)->path, "/");
		done(&s);
	}
}

static void test_accept_and_upgrade(void **state)
{
	static const char text[] =
	    "GET /ws HTTP/1.1\r\nHost: x\r\nAccept: text/html\r\n"
	    "Accept: a/b, Application/X-NDJSON;q=0.5\r\nConnection: Upgrade\r\n"
	    "Upgrade: WebSocket\r\nSec-WebSocket-Key: abc==\r\n\r\n\x81";
	static const char other[] =
	    "GET /ws HTTP/1.1\r\nHost: x\r\nAccept: application/x-ndjsonx\r\n"
	    "Upgrade: h2c\r\nConnection: Upgrade\r\n\r\n";
	struct seen s;

	(void)state;
	feed(&s, HTTP_REQUEST, text, sizeof(text) - 1, 1000);
	assert_int_equal(s.last, HTTP_END);
	assert_int_equal(s.used, sizeof(text) - 2);
	assert_true(http_in_head(s.in)->upgrade_websocket);
	assert_true(http_in_head(s.in)->wants_ndjson);
	assert_string_equal(http_in_head(s.in)->websocket_key, "abc==");
	done(&s);
	feed(&s, HTTP_REQUEST, other, sizeof(other) - 1, 1000);
	assert_int_equal(s.last, HTTP_END);
	assert_false(http_in_head(s.in)->upgrade_websocket);
	assert_false(http_in_head(s.in)->wants_ndjson);
	done(&s);
}

#define TRACE "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

static void test_trace_ids(void **state)
{
	static const struct {
		const char *lines;
		const char *request_id;
		const char *traceparent;
	} rows[] = {
	    {"X-Request-Id: aZ09._:/+=-\r\ntraceparent: " TRACE "\r\n", "aZ09._:/+=-", TRACE},
	    {"X-Request-Id: a b\r\n", "", ""},
	    {"X-Request-Id: a\"b\r\n", "", ""},
	    {"X-Request-Id:\r\nTraceparent:\r\n", "", ""},
	    {"X-Request-Id: a\r\nX-Request-Id: b\r\n", "", ""},
	    {"X-Request-Id: 123456789012345678901234567890123456789012345678901234567890123\r\n",
		"123456789012345678901234567890123456789012345678901234567890123", ""},
	    {"X-Request-Id: 1234567890123456789012345678901234567890123456789012345678901234\r\n",
		"", ""},
	    {"traceparent: " TRACE "\r\ntraceparent: " TRACE "\r\n", "", ""},
	    {"traceparent: " TRACE "-x\r\n", "", ""},
	    {"traceparent: ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\n", "", ""},
	    {"traceparent: 00-00000000000000000000000000000000-b7ad6b7169203331-01\r\n", "", ""},
	    {"traceparent: 00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01\r\n", "", ""},
	    {"traceparent: 00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01\r\n", "", ""},
	};
	char text[512];
	struct seen s;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		(void)snprintf(
		    text, sizeof(text), "GET / HTTP/1.1\r\nHost: x\r\n%s\r\n", rows[i].lines);
		feed(&s, HTTP_REQUEST, text, strlen(text), 1000);
		assert_int_equal(s.last, HTTP_END);
		assert_string_equal(http_in_head(s.in)->request_id, rows[i].request_id);
		assert_string_equal(http_in_head(s.in)->traceparent, rows[i].traceparent);
		done(&s);
	}
}

static void test_responses(void **state)
{
	static const struct {
		const char *text;
		int last;
		unsigned int status;
		uint64_t length;
		const char *body;
		bool keep;
	} rows[] = {
	    {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", HTTP_END, 200, 2, "hi", true},
	    {"HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", HTTP_END, 200, 0, "", true},
	    {"HTTP/1.1 204 No Content\r\n\r\n", HTTP_END, 204, 0, "", true},
	    {"HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n", HTTP_END, 304, 0, "", true},
	    {"HTTP/1.1 100 Continue\r\n\r\n", HTTP_END, 100, 0, "", true},
	    {"HTTP/1.1 101 Sw\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n", HTTP_END, 101,
		0, "", true},
	    {"HTTP/1.1 429 Too Many Requests\r\nTransfer-Encoding: "
	     "chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
		HTTP_END, 429, UINT64_MAX, "abc", true},
	    {"HTTP/1.1 200 OK\r\n\r\nuntil close", HTTP_MORE, 200, UINT64_MAX, "until close",
		false},
	};
	struct seen s;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		for (size_t k = 0; k < STEPS; k++) {
			feed(&s, HTTP_RESPONSE, rows[i].text, strlen(rows[i].text), steps[k]);
			assert_int_equal(s.last, rows[i].last);
			assert_int_equal(http_in_head(s.in)->status, rows[i].status);
			assert_true(http_in_head(s.in)->content_length == rows[i].length);
			assert_int_equal(http_in_head(s.in)->keep_alive, rows[i].keep);
			assert_int_equal(s.body_len, strlen(rows[i].body));
			assert_memory_equal(s.body, rows[i].body, s.body_len);
			done(&s);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_simple_get),
	    cmocka_unit_test(test_body_by_length),
	    cmocka_unit_test(test_body_chunked),
	    cmocka_unit_test(test_end_needs_no_bytes),
	    cmocka_unit_test(test_where_authorization_stands),
	    cmocka_unit_test(test_methods),
	    cmocka_unit_test(test_http10),
	    cmocka_unit_test(test_connection_close),
	    cmocka_unit_test(test_accept_and_upgrade),
	    cmocka_unit_test(test_trace_ids),
	    cmocka_unit_test(test_responses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
