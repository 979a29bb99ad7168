/* websocket: the handshake, frames out, and frames in: by the rules of RFC 6455, against wslay, and
 * cut into pieces of every size. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/unit/wire/ws_story.h"

/* ---- the handshake ---- */

/* The example of RFC 6455, 1.2. */
#define KEY "dGhlIHNhbXBsZSBub25jZQ=="
#define ACCEPT "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="

static int shake_hands(const char *fields, char accept[WS_ACCEPT_LEN], struct err *err)
{
	char text[512];
	struct http_in *in = http_in_create(HTTP_REQUEST);
	const uint8_t *body;
	size_t body_len;
	size_t used;
	int rc;

	assert_non_null(in);
	(void)snprintf(text, sizeof(text), "GET /x HTTP/1.1\r\nHost: x\r\n%s\r\n", fields);
	assert_int_equal(
	    http_in_feed(in, (const uint8_t *)text, strlen(text), &used, &body, &body_len, err),
	    HTTP_HEAD_DONE);
	rc = ws_check_handshake(http_in_head(in), accept, err);
	http_in_free(in);
	return rc;
}

static void test_accept(void **state)
{
	char accept[WS_ACCEPT_LEN] = "";
	struct err err = {0};

	(void)state;
	assert_int_equal(shake_hands("Upgrade: WebSocket\r\nConnection: keep-alive, Upgrade\r\n"
				     "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: " KEY "\r\n",
			     accept, &err),
	    0);
	assert_string_equal(accept, ACCEPT);
}

static void test_refused_handshakes(void **state)
{
#define UPGRADE "Upgrade: websocket\r\nConnection: Upgrade\r\n"
#define V13 "Sec-WebSocket-Version: 13\r\n"
	static const struct {
		const char *fields;
		int rc;
		const char *says;
	} cases[] = {
	    {"", -EPROTONOSUPPORT, "is a WebSocket"},
	    {V13 "Sec-WebSocket-Key: " KEY "\r\n", -EPROTONOSUPPORT, "is a WebSocket"},
	    {"Upgrade: websocket\r\n" V13 "Sec-WebSocket-Key: " KEY "\r\n", -EPROTONOSUPPORT,
		"Connection: Upgrade"},
	    {"Upgrade: h2c\r\nConnection: Upgrade\r\n" V13 "Sec-WebSocket-Key: " KEY "\r\n",
		-EPROTONOSUPPORT, "Upgrade: websocket"},
	    {UPGRADE "Sec-WebSocket-Key: " KEY "\r\n", -EPROTONOSUPPORT, "Version must be 13"},
	    {UPGRADE "Sec-WebSocket-Version: 8\r\nSec-WebSocket-Key: " KEY "\r\n", -EPROTONOSUPPORT,
		"Version must be 13"},
	    {UPGRADE V13, -EINVAL, "Sec-WebSocket-Key"},
	    {UPGRADE V13 "Sec-WebSocket-Key: \r\n", -EINVAL, "16 bytes"},
	    {UPGRADE V13 "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=\r\n", -EINVAL, "16 bytes"},
	    {UPGRADE V13 "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZSEh\r\n", -EINVAL, "16 bytes"},
	    {UPGRADE V13 "Sec-WebSocket-Key: dGhlIHNhbXBs*SBub25jZQ==\r\n", -EINVAL, "16 bytes"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char accept[WS_ACCEPT_LEN] = "untouched";
		struct err err = {0};

		assert_int_equal(shake_hands(cases[i].fields, accept, &err), cases[i].rc);
		if (!strstr(err.text, cases[i].says))
			fail_msg("case %zu says: %s", i, err.text);
		assert_string_equal(accept, "untouched");
	}
}

/* ---- frames out ---- */

static void test_heads(void **state)
{
	static const struct {
		uint64_t n;
		size_t len;
		uint8_t bytes[WS_HEAD_MAX];
	} cases[] = {
	    {0, 2, {0x82, 0}},
	    {125, 2, {0x82, 125}},
	    {126, 4, {0x82, 126, 0, 126}},
	    {65535, 4, {0x82, 126, 0xff, 0xff}},
	    {65536, 10, {0x82, 127, 0, 0, 0, 0, 0, 1, 0, 0}},
	    {0x123456789aULL, 10, {0x82, 127, 0, 0, 0, 0x12, 0x34, 0x56, 0x78, 0x9a}},
	};
	uint8_t out[WS_HEAD_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(ws_put_head(out, WS_BINARY, cases[i].n), cases[i].len);
		assert_memory_equal(out, cases[i].bytes, cases[i].len);
	}
	assert_int_equal(ws_put_head(out, WS_PING, 3), 2);
	assert_int_equal(out[0], 0x89);
}

static void test_put_close(void **state)
{
	uint8_t out[WS_CONTROL_MAX];
	char reason[200];

	(void)state;
	assert_int_equal(ws_put_close(out, WS_NORMAL, ""), 2);
	assert_memory_equal(out, "\x03\xe8", 2);
	assert_int_equal(ws_put_close(out, WS_INTERNAL, "gone"), 6);
	assert_memory_equal(out, "\x03\xf3gone", 6);
	memset(reason, 'x', sizeof(reason));
	reason[199] = '\0';
	memcpy(reason + 122, "\xc3\xa9", 2); /* would be cut in two */
	assert_int_equal(ws_put_close(out, WS_INTERNAL, reason), 2 + 122);
	reason[122] = 'x';
	reason[123] = 'x';
	assert_int_equal(ws_put_close(out, WS_INTERNAL, reason), WS_CONTROL_MAX);
}

/* A client that is wslay's understands what we send. */
static void test_wslay_reads_ours(void **state)
{
	static uint8_t payload[70000];
	static const size_t sizes[] = {0, 1, 125, 126, 127, 65535, 65536, 70000};
	struct ws_story got = {.code = 0};
	struct story_peer peer = {.s = &got};
	wslay_event_context_ptr ctx;
	struct ws_story want = {.code = 0};
	struct buf bytes;

	(void)state;
	buf_init(&bytes, STORY_MAX);
	buf_init(&want.text, STORY_MAX);
	buf_init(&got.text, STORY_MAX);
	buf_init(&peer.out, STORY_MAX);
	memset(payload, 'p', sizeof(payload));
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		uint8_t head[WS_HEAD_MAX];

		assert_int_equal(
		    buf_append(&bytes, head, ws_put_head(head, WS_BINARY, sizes[i])), 0);
		assert_int_equal(buf_append(&bytes, payload, sizes[i]), 0);
		story_tell(&want, WS_BINARY, payload, sizes[i]);
	}
	peer.in = buf_head(&bytes);
	peer.in_left = bytes.len;
	assert_int_equal(wslay_event_context_client_init(&ctx, &story_callbacks, &peer), 0);
	assert_int_equal(wslay_event_recv(ctx), 0);
	assert_true(story_same(&want, &got));
	wslay_event_context_free(ctx);
	buf_free(&bytes);
	buf_free(&want.text);
	buf_free(&got.text);
	buf_free(&peer.out);
}

/* ---- frames in ---- */

/* A client's frames, for tests that build them by hand. */
static struct buf stream;

static void begin(void)
{
	buf_free(&stream);
	buf_init(&stream, STORY_MAX);
}

/* first, second: the head's two bytes; extra: its length field. */
static void put(unsigned int first, unsigned int second, const char *extra, size_t extra_len,
    const void *payload, size_t n)
{
	static const uint8_t mask[4] = {0x11, 0x82, 0x43, 0xf4};
	const uint8_t *p = payload;
	uint8_t head[2] = {(uint8_t)first, (uint8_t)second};

	assert_int_equal(buf_append(&stream, head, 2), 0);
	assert_int_equal(buf_append(&stream, extra, extra_len), 0);
	if (second & 0x80)
		assert_int_equal(buf_append(&stream, mask, 4), 0);
	for (size_t i = 0; i < n; i++) {
		uint8_t byte = (uint8_t)(second & 0x80 ? p[i] ^ mask[i % 4] : p[i]);

		assert_int_equal(buf_append(&stream, &byte, 1), 0);
	}
}

static void put_short(unsigned int first, const void *payload, size_t n)
{
	put(first, 0x80 | (unsigned int)n, "", 0, payload, n);
}

#define PUT(first, text) put_short(first, text, sizeof(text) - 1)
#define FIN 0x80U

/* The same story however it is cut. */
static void expect_ours(const char *story, unsigned int code)
{
	static const size_t steps[] = {SIZE_MAX, 1, 2, 3, 5, 7, 64};
	struct ws_story s;

	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		story_ours(&s, buf_head(&stream), stream.len, steps[i]);
		assert_int_equal(buf_terminate(&s.text), 0);
		assert_string_equal((const char *)buf_head(&s.text), story);
		assert_int_equal(s.code, code);
		buf_free(&s.text);
	}
}

/* And by wslay. */
static void expect(const char *story, unsigned int code)
{
	struct ws_story s;

	expect_ours(story, code);
	story_wslay(&s, buf_head(&stream), stream.len);
	assert_int_equal(buf_terminate(&s.text), 0);
	assert_string_equal((const char *)buf_head(&s.text), story);
	assert_int_equal(s.code, code);
	buf_free(&s.text);
}

static void test_messages(void **state)
{
	(void)state;
	begin();
	PUT(FIN | WS_BINARY, "bytes");
	PUT(FIN | WS_TEXT, "h\xc3\xa9llo");
	PUT(FIN | WS_BINARY, "");
	PUT(FIN | WS_PING, "are you there");
	PUT(FIN | WS_PONG, "");
	expect("2 5 bytes\n1 6 h\xc3\xa9llo\n2 0 \n9 13 are you there\n10 0 \n", 0);
}

static void test_fragments_with_control_frames_between(void **state)
{
	(void)state;
	begin();
	PUT(WS_TEXT, "one \xe2");
	PUT(FIN | WS_PING, "1");
	PUT(WS_CONTINUATION, "\x82");
	PUT(WS_CONTINUATION, "");
	PUT(FIN | WS_PONG, "2");
	PUT(FIN | WS_CONTINUATION, "\xac two");
	PUT(WS_BINARY, "");
	PUT(FIN | WS_CONTINUATION, "");
	PUT(WS_BINARY, "a");
	PUT(FIN | WS_CONTINUATION, "b");
	expect("9 1 1\n10 1 2\n1 11 one \xe2\x82\xac two\n2 0 \n2 2 ab\n", 0);
}

static void test_lengths(void **state)
{
	static char payload[66000];

	(void)state;
	memset(payload, 'z', sizeof(payload));
	for (size_t n = 124; n < 66000; n = n < 128 ? n + 1 : n < 65534 ? 65534 : n + 1) {
		struct ws_story ours;
		struct ws_story theirs;
		const char extra[8] = {0, 0, 0, 0, 0, (char)(n >> 16), (char)(n >> 8), (char)n};

		begin();
		if (n < 126)
			put_short(FIN | WS_BINARY, payload, n);
		else if (n < 65536)
			put(FIN | WS_BINARY, 0x80 | 126, extra + 6, 2, payload, n);
		else
			put(FIN | WS_BINARY, 0x80 | 127, extra, 8, payload, n);
		story_ours(&ours, buf_head(&stream), stream.len, 1000);
		story_wslay(&theirs, buf_head(&stream), stream.len);
		assert_true(ours.text.len > n);
		assert_int_equal(ours.code, 0);
		assert_true(story_same(&ours, &theirs));
		buf_free(&ours.text);
		buf_free(&theirs.text);
		if (n > 65540)
			break;
	}
}

struct broken {
	const char *what;
	unsigned int first;
	unsigned int second;
	const char *extra;
	size_t extra_len;
	const char *payload;
	unsigned int code;
};

static const struct broken breaks[] = {
    {"RSV1", 0xc2, 0x81, "", 0, "x", WS_PROTOCOL_ERROR},
    {"RSV2", 0xa2, 0x81, "", 0, "x", WS_PROTOCOL_ERROR},
    {"RSV3", 0x92, 0x81, "", 0, "x", WS_PROTOCOL_ERROR},
    {"opcode 3", 0x83, 0x81, "", 0, "x", WS_PROTOCOL_ERROR},
    {"opcode 7", 0x87, 0x81, "", 0, "x", WS_PROTOCOL_ERROR},
    {"opcode 11", 0x8b, 0x81, "", 0, "x", WS_PROTOCOL_ERROR},
    {"opcode 15", 0x8f, 0x81, "", 0, "x", WS_PROTOCOL_ERROR},
    {"a frame without a mask", 0x82, 0x01, "", 0, "x", WS_PROTOCOL_ERROR},
    {"a ping without a mask", 0x89, 0x00, "", 0, "", WS_PROTOCOL_ERROR},
    {"a fragmented ping", 0x09, 0x81, "", 0, "x", WS_PROTOCOL_ERROR},
    {"a long ping", 0x89, 0xfe, "\x00\x7e", 2, "", WS_PROTOCOL_ERROR},
    {"a continuation of nothing", 0x80, 0x81, "", 0, "x", WS_PROTOCOL_ERROR},
    {"a 16-bit length that fits 7", 0x82, 0xfe, "\x00\x7d", 2, "", WS_PROTOCOL_ERROR},
    {"a 64-bit length that fits 16", 0x82, 0xff, "\0\0\0\0\0\0\xff\xff", 8, "", WS_PROTOCOL_ERROR},
    {"a negative length", 0x82, 0xff, "\x80\0\0\0\0\0\0\0", 8, "", WS_PROTOCOL_ERROR},
    {"a text that is none", 0x81, 0x82, "", 0, "\xc3(", WS_BAD_DATA},
    {"a text with an overlong form", 0x81, 0x82, "", 0, "\xc0\xaf", WS_BAD_DATA},
    {"a text with a surrogate", 0x81, 0x83, "", 0, "\xed\xa0\x80", WS_BAD_DATA},
    {"a text that ends within a character", 0x81, 0x82, "", 0, "\xe2\x82", WS_BAD_DATA},
};

static void test_what_breaks_the_rules(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(breaks) / sizeof(breaks[0]); i++) {
		const struct broken *b = &breaks[i];
		struct ws_story s;

		begin();
		PUT(FIN | WS_BINARY, "good");
		put(b->first, b->second, b->extra, b->extra_len, b->payload, strlen(b->payload));
		PUT(FIN | WS_BINARY, "never read");
		for (size_t step = 1; step < 9; step++) {
			story_ours(&s, buf_head(&stream), stream.len, step);
			assert_int_equal(buf_terminate(&s.text), 0);
			if (s.code != b->code ||
			    strcmp((const char *)buf_head(&s.text), "2 4 good\n"))
				fail_msg(
				    "%s: %u, %s", b->what, s.code, (const char *)buf_head(&s.text));
			buf_free(&s.text);
		}
	}
}

static void test_a_message_within_another(void **state)
{
	(void)state;
	begin();
	PUT(WS_TEXT, "one");
	PUT(FIN | WS_BINARY, "two");
	expect("", WS_PROTOCOL_ERROR);
}

/* What is wrong is found with the byte that makes it wrong, and a text not only at its end. */
static void test_errors_are_found_at_once(void **state)
{
	(void)state;
	begin();
	PUT(WS_TEXT, "ok \xe2\x82");
	PUT(WS_CONTINUATION, "(");
	PUT(FIN | WS_PING, "not read");
	expect("", WS_BAD_DATA);
	begin();
	assert_int_equal(buf_append(&stream, "\x83", 1), 0);
	expect_ours("", WS_PROTOCOL_ERROR);
}

static void test_closes(void **state)
{
	static const struct {
		const char *payload;
		size_t n;
		unsigned int code;
	} cases[] = {
	    {"", 0, WS_NO_STATUS},
	    {"\x03\xe8", 2, 1000},
	    {"\x03\xe9"
	     "bye \xe2\x9c\x93",
		9, 1001},
	    {"\x0b\xb8", 2, 3000},
	    {"\x13\x87", 2, 4999},
	    {"\x03\xf6", 2, 1014},
	    {"\x03", 1, WS_PROTOCOL_ERROR},
	    {"\x03\xe7", 2, WS_PROTOCOL_ERROR}, /* 999 */
	    {"\x03\xec", 2, WS_PROTOCOL_ERROR}, /* 1004: reserved */
	    {"\x03\xed", 2, WS_PROTOCOL_ERROR}, /* 1005: means that there is none */
	    {"\x03\xee", 2, WS_PROTOCOL_ERROR}, /* 1006 */
	    {"\x03\xf7", 2, WS_PROTOCOL_ERROR}, /* 1015 */
	    {"\x0b\xb7", 2, WS_PROTOCOL_ERROR}, /* 2999 */
	    {"\x13\x88", 2, WS_PROTOCOL_ERROR}, /* 5000 */
	    {"\x03\xe8\xff", 3, WS_BAD_DATA},
	    {"\x03\xe8\xe2\x9c", 4, WS_BAD_DATA},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		enum ws_code code = WS_NORMAL;
		bool bad = cases[i].code == WS_PROTOCOL_ERROR || cases[i].code == WS_BAD_DATA;
		struct ws_story s;

		assert_int_equal(
		    ws_read_close((const uint8_t *)cases[i].payload, cases[i].n, &code),
		    bad ? -EBADMSG : 0);
		assert_int_equal(code, cases[i].code);
		begin();
		put_short(FIN | WS_CLOSE, cases[i].payload, cases[i].n);
		PUT(FIN | WS_PING, "after it");
		for (size_t step = 1; step < 5; step++) {
			story_ours(&s, buf_head(&stream), stream.len, step);
			assert_int_equal(s.text.len, 0);
			assert_int_equal(s.code, cases[i].code);
			buf_free(&s.text);
		}
	}
}

/* A client that is wslay's is understood. */
static void test_ours_reads_wslay(void **state)
{
	static uint8_t payload[70000];
	static const size_t sizes[] = {
	    0, 1, 2, 3, 4, 5, 7, 8, 9, 125, 126, 127, 65535, 65536, 70000};
	struct ws_story want = {.code = 0};
	struct story_peer peer = {.s = &want};
	wslay_event_context_ptr ctx;

	(void)state;
	for (size_t i = 0; i < sizeof(payload); i++)
		payload[i] = (uint8_t)(i * 131 >> 3);
	buf_init(&peer.out, STORY_MAX);
	buf_init(&want.text, STORY_MAX);
	assert_int_equal(wslay_event_context_client_init(&ctx, &story_callbacks, &peer), 0);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		const struct wslay_event_msg m = {WSLAY_BINARY_FRAME, payload, sizes[i]};

		assert_int_equal(wslay_event_queue_msg(ctx, &m), 0);
		story_tell(&want, WS_BINARY, payload, sizes[i]);
	}
	assert_int_equal(wslay_event_send(ctx), 0); /* control frames go first, with it */
	assert_int_equal(wslay_event_queue_close(ctx, 1000, (const uint8_t *)"bye", 3), 0);
	want.code = 1000;
	assert_int_equal(wslay_event_send(ctx), 0);
	for (size_t step = 1; step < 80000; step = step * 3 + 1) {
		struct ws_story got;

		story_ours(&got, buf_head(&peer.out), peer.out.len, step);
		assert_true(story_same(&want, &got));
		buf_free(&got.text);
	}
	wslay_event_context_free(ctx);
	buf_free(&peer.out);
	buf_free(&want.text);
}

static int free_stream(void **state)
{
	(void)state;
	buf_free(&stream);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_accept),
	    cmocka_unit_test(test_refused_handshakes),
	    cmocka_unit_test(test_heads),
	    cmocka_unit_test(test_put_close),
	    cmocka_unit_test(test_wslay_reads_ours),
	    cmocka_unit_test(test_messages),
	    cmocka_unit_test(test_fragments_with_control_frames_between),
	    cmocka_unit_test(test_lengths),
	    cmocka_unit_test(test_what_breaks_the_rules),
	    cmocka_unit_test(test_a_message_within_another),
	    cmocka_unit_test(test_errors_are_found_at_once),
	    cmocka_unit_test(test_closes),
	    cmocka_unit_test(test_ours_reads_wslay),
	};

	return cmocka_run_group_tests(tests, NULL, free_stream);
}
