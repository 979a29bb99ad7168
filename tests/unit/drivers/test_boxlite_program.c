/* Tests of what sbx-boxlite is made of: the decoder of its stream, the notes of its threads, and
 * its calls. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/boxlite/program/caller.h"
#include "drivers/boxlite/program/inbox.h"
#include "drivers/boxlite/program/text64.h"
#include "wire/base64.h"

#define WAIT_MS 20000

/* ---- text64 ---- */

/* Pieces of every small length, each padded, cut at every place. */
static void test_pieces_cut_anywhere(void **state)
{
	uint8_t plain[64];
	char text[256];
	size_t plain_len = 0;
	size_t text_len = 0;

	(void)state;
	for (size_t n = 1; n <= 9; n++) {
		for (size_t i = 0; i < n; i++)
			plain[plain_len + i] = (uint8_t)(plain_len * 37 + i * 91);
		base64_encode(plain + plain_len, n, text + text_len);
		plain_len += n;
		text_len += base64_len(n);
		if (n % 2)
			text[text_len++] = '\n';
	}
	for (size_t cut = 0; cut <= text_len; cut++) {
		struct text64 t = {.len = 0};
		struct buf out;

		buf_init(&out, 1024);
		assert_int_equal(text64_decode(&t, text, cut, &out), 0);
		assert_int_equal(text64_decode(&t, text + cut, text_len - cut, &out), 0);
		assert_int_equal(out.len, plain_len);
		assert_memory_equal(buf_head(&out), plain, plain_len);
		assert_int_equal(t.len, 0);
		buf_free(&out);
	}
}

static void test_what_is_no_base64(void **state)
{
	static const char *const bad[] = {"hello, world", "QUJ*", "=AAA", "QQ=A", "QUI=QU=="};
	struct buf out;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct text64 t = {.len = 0};
		int rc;

		buf_init(&out, 1024);
		rc = text64_decode(&t, bad[i], strlen(bad[i]), &out);
		assert_int_equal(rc, -EINVAL);
		buf_free(&out);
	}
}

/* ---- inbox ---- */

static bool readable(const struct inbox *in, int timeout_ms)
{
	struct pollfd p = {.fd = inbox_fd(in), .events = POLLIN};

	return poll(&p, 1, timeout_ms) == 1;
}

static size_t take_all(struct inbox *in, size_t *bytes)
{
	struct note *n = inbox_take(in);
	size_t count = 0;

	while (n) {
		struct note *next = n->next;

		*bytes += n->len;
		count++;
		free(n);
		n = next;
	}
	return count;
}

#define CHUNKS 64
#define CHUNK 65536U

static void *put_much(void *arg)
{
	static const uint8_t bytes[CHUNK];

	for (int i = 0; i < CHUNKS; i++)
		inbox_put(arg, note_new(NOTE_OUTPUT, 0, bytes, sizeof(bytes)));
	inbox_put(arg, note_new(NOTE_EXIT, 0, NULL, 0));
	return NULL;
}

/* Output waits for room; what is in the box is never more than its bound and one piece. */
static void test_output_is_bounded_and_nothing_is_lost(void **state)
{
	struct inbox *in = inbox_create();
	pthread_t thread;
	size_t total = 0;
	size_t notes = 0;

	(void)state;
	assert_non_null(in);
	assert_int_equal(pthread_create(&thread, NULL, put_much, in), 0);
	while (notes < CHUNKS + 1) {
		size_t bytes = 0;

		assert_true(readable(in, WAIT_MS));
		notes += take_all(in, &bytes);
		assert_true(bytes <= INBOX_OUTPUT_MAX + CHUNK);
		total += bytes;
		inbox_passed(in, bytes);
	}
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(total, CHUNKS * CHUNK);
	assert_false(readable(in, 0));
	assert_false(inbox_lost(in));
	inbox_put(in, NULL); /* there was no memory for it */
	assert_true(readable(in, 0));
	assert_true(inbox_lost(in));
	inbox_put(in, note_new(NOTE_ERRORS, 0, "not taken", 9));
	inbox_free(in);
}

/* ---- caller ---- */

struct counted {
	struct call call; /* first */
	int *order;
	int at;
};

static void count_fn(struct call *c)
{
	struct counted *k = (struct counted *)(void *)c;

	k->at = (*k->order)++;
}

static void test_calls_are_made_in_order_and_told(void **state)
{
	struct inbox *in = inbox_create();
	struct caller *caller = in ? caller_create(in) : NULL;
	struct counted calls[16];
	int order = 0;
	size_t told = 0;

	(void)state;
	assert_non_null(caller);
	for (int i = 0; i < 16; i++) {
		calls[i] = (struct counted){.call.fn = count_fn, .order = &order, .at = -1};
		caller_post(caller, &calls[i].call);
	}
	while (told < 16) {
		struct note *n;

		assert_true(readable(in, WAIT_MS));
		for (n = inbox_take(in); n;) {
			struct note *next = n->next;

			assert_int_equal(n->kind, NOTE_CALLED);
			assert_ptr_equal(n->handle, &calls[told].call);
			assert_int_equal(calls[told].at, told);
			told++;
			free(n);
			n = next;
		}
	}
	caller_free(caller);
	inbox_free(in);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_pieces_cut_anywhere),
	    cmocka_unit_test(test_what_is_no_base64),
	    cmocka_unit_test(test_output_is_bounded_and_nothing_is_lost),
	    cmocka_unit_test(test_calls_are_made_in_order_and_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
