/* entry: records from a helper that keeps, and that breaks, the rules. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "wire/agent.h"
#include "wire/entry.h"

#define SEEN_MAX 16

struct seen {
	size_t count;
	int stop_at; /* the record that fn refuses, from 1; 0: none */
	struct entry entries[SEEN_MAX];
};

static int see(void *ctx, const struct entry *e)
{
	struct seen *s = ctx;

	assert_true(s->count < SEEN_MAX);
	s->entries[s->count++] = *e;
	return s->stop_at == (int)s->count ? -EPROTO : 0;
}

static size_t put(uint8_t *to, uint16_t type, const void *payload, uint32_t size)
{
	const struct entry_head h = {.size = size, .type = type};

	memcpy(to, &h, sizeof(h));
	if (size)
		memcpy(to + sizeof(h), payload, size);
	return sizeof(h) + size;
}

static size_t put_done(uint8_t *to, uint64_t count)
{
	const struct entry_done done = {.version = AGENT_VERSION, .count = count};

	return put(to, ENTRY_DONE, &done, sizeof(done));
}

/* A copy that ends where the bytes end, so that sanitizers see a read too far. */
static int feed(struct entry_reader *r, const uint8_t *bytes, size_t n, struct seen *s)
{
	uint8_t *exact = malloc(n ? n : 1);
	int rc;

	assert_non_null(exact);
	memcpy(exact, bytes, n);
	rc = entry_feed(r, exact, n, see, s);
	free(exact);
	return rc;
}

/* The same records, whatever the pieces they come in. */
static void test_any_pieces(void **state)
{
	uint8_t bytes[256];
	size_t n = 0;

	(void)state;
	for (uint64_t i = 0; i < 5; i++)
		n += put_done(bytes + n, i);
	for (size_t piece = 1; piece <= n; piece++) {
		struct entry_reader r = {.len = 0};
		struct seen s = {.count = 0};

		for (size_t at = 0; at < n; at += piece)
			assert_int_equal(
			    feed(&r, bytes + at, n - at < piece ? n - at : piece, &s), 0);
		assert_int_equal(s.count, 5);
		assert_int_equal(r.len, 0);
		for (uint64_t i = 0; i < 5; i++) {
			assert_int_equal(s.entries[i].type, ENTRY_DONE);
			assert_int_equal(s.entries[i].u.done.count, i);
		}
	}
}

static void test_refusal_ends_it(void **state)
{
	struct entry_reader r = {.len = 0};
	struct seen s = {.stop_at = 2};
	uint8_t bytes[256];
	size_t n = 0;

	(void)state;
	for (uint64_t i = 0; i < 3; i++)
		n += put_done(bytes + n, i);
	assert_int_equal(feed(&r, bytes, n, &s), -EPROTO);
	assert_int_equal(s.count, 2);
}

static void test_nonsense_is_refused(void **state)
{
	static const struct entry_done done = {.version = AGENT_VERSION};
	static const struct entry_done other = {.version = AGENT_VERSION + 1};
	static const struct entry_done flags = {.version = AGENT_VERSION, .flags = ~0U};
	static const struct {
		struct entry_head head;
		const void *payload;
		size_t n;
	} rows[] = {
	    {{.type = ENTRY_NONE}, "", 0},
	    {{.type = ENTRY_TYPES}, "", 0},
	    {{.type = UINT16_MAX}, "", 0},
	    {{.type = ENTRY_DONE, .size = ENTRY_SIZE_MAX + 1}, "", 0},
	    {{.type = ENTRY_DONE, .size = UINT32_MAX}, "", 0},
	    {{.type = ENTRY_DONE, .size = sizeof(done), .reserved = 1}, &done, sizeof(done)},
	    {{.type = ENTRY_DONE, .size = sizeof(done) - 1}, &done, sizeof(done) - 1},
	    {{.type = ENTRY_DONE, .size = 0}, "", 0},
	    {{.type = ENTRY_DONE, .size = sizeof(other)}, &other, sizeof(other)},
	    {{.type = ENTRY_DONE, .size = sizeof(flags)}, &flags, sizeof(flags)},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct entry_reader r = {.len = 0};
		struct seen s = {.count = 0};
		uint8_t bytes[64];

		memcpy(bytes, &rows[i].head, sizeof(rows[i].head));
		memcpy(bytes + sizeof(rows[i].head), rows[i].payload, rows[i].n);
		if (feed(&r, bytes, sizeof(rows[i].head) + rows[i].n, &s) != -EBADMSG)
			fail_msg("row %zu was taken", i);
		assert_int_equal(s.count, 0);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_any_pieces),
	    cmocka_unit_test(test_refusal_ends_it),
	    cmocka_unit_test(test_nonsense_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
