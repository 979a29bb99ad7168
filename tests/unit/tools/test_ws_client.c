/* Frames of a WebSocket client, held against the server's side. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tools/ws_client.h"

static void test_the_server_reads_what_we_write(void **state)
{
	static const size_t lengths[] = {0, 1, 125, 126, 65535, 65536, 200000};
	static uint8_t bytes[200000];

	(void)state;
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 7);
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		struct ws_in in = {.head_len = 0};
		size_t got = 0;
		bool end = false;
		struct buf b;

		buf_init(&b, 1U << 20);
		assert_int_equal(ws_client_put(&b, WS_BINARY, bytes, lengths[i]), 0);
		while (!end) {
			struct ws_part part = {.n = 0};
			size_t used = 0;

			assert_int_equal(
			    ws_in_feed(&in, b.data + b.off, b.len, &used, &part), WS_DATA);
			assert_int_equal(part.opcode, WS_BINARY);
			assert_memory_equal(part.p, bytes + got, part.n);
			got += part.n;
			end = part.end;
			buf_consume(&b, used);
		}
		assert_int_equal(got, lengths[i]);
		assert_int_equal(b.len, 0);
		buf_free(&b);
	}
}

static void test_masks_differ(void **state)
{
	static const uint8_t much[64];
	struct buf b;

	(void)state;
	buf_init(&b, 64);
	assert_int_equal(ws_client_put(&b, WS_TEXT, "aaaa", 4), 0);
	assert_int_equal(ws_client_put(&b, WS_TEXT, "aaaa", 4), 0);
	assert_memory_not_equal(buf_head(&b), buf_head(&b) + b.len / 2, b.len / 2);
	assert_int_equal(ws_client_put(&b, WS_TEXT, much, 64), -ENOBUFS);
	buf_free(&b);
}

static void test_we_read_what_the_server_writes(void **state)
{
	static const size_t lengths[] = {0, 1, 125, 126, 65535, 65536, WS_CLIENT_FRAME_MAX};
	static uint8_t bytes[WS_HEAD_MAX + WS_CLIENT_FRAME_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		struct ws_client_frame f = {.n = 0};
		size_t head = ws_put_head(bytes, WS_TEXT, lengths[i]);
		size_t all = head + lengths[i];
		size_t used = 0;
		struct err err;

		for (size_t n = 0; n < all; n += n < 12 || n + 1 >= all ? 1 : all - n - 1)
			assert_int_equal(ws_client_next(bytes, n, &used, &f, &err), 0);
		assert_int_equal(ws_client_next(bytes, all, &used, &f, &err), 1);
		assert_int_equal(used, all);
		assert_int_equal(f.opcode, WS_TEXT);
		assert_int_equal(f.n, lengths[i]);
		assert_ptr_equal(f.payload, bytes + head);
	}
}

static void test_what_no_server_sends(void **state)
{
	static const uint8_t frames[][10] = {
	    {0x02, 0x01},			 /* a fragment */
	    {0xc2, 0x01},			 /* an extension */
	    {0x82, 0x81},			 /* masked */
	    {0x83, 0x01},			 /* an opcode that there is not */
	    {0x82, 127, 0, 0, 0, 1, 0, 0, 0, 0}, /* 4 GiB */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(frames) / sizeof(frames[0]); i++) {
		struct ws_client_frame f;
		size_t used = 0;
		struct err err;

		assert_int_equal(
		    ws_client_next(frames[i], sizeof(frames[i]), &used, &f, &err), -EBADMSG);
	}
}

static void test_handshake(void **state)
{
	char key[WS_CLIENT_KEY_LEN];
	char other[WS_CLIENT_KEY_LEN];
	char accept[WS_ACCEPT_LEN];
	struct err err;

	(void)state;
	/* RFC 6455, 1.3 */
	assert_int_equal(
	    ws_client_check("dGhlIHNhbXBsZSBub25jZQ==", "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=", &err), 0);
	assert_int_equal(ws_client_key(key), 0);
	assert_int_equal(ws_client_key(other), 0);
	assert_int_equal(strlen(key), 24);
	assert_string_not_equal(key, other);
	ws_put_accept(key, accept);
	assert_int_equal(ws_client_check(key, accept, &err), 0);
	assert_int_equal(ws_client_check(other, accept, &err), -EBADMSG);
	assert_int_equal(ws_client_check(key, "", &err), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_the_server_reads_what_we_write),
	    cmocka_unit_test(test_masks_differ),
	    cmocka_unit_test(test_we_read_what_the_server_writes),
	    cmocka_unit_test(test_what_no_server_sends),
	    cmocka_unit_test(test_handshake),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
