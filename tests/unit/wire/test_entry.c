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

/* It is checked, and nobody hears of it; a sign of life that repeats itself is none. */
static void test_signs_of_life(void **state)
{
	static const uint64_t steps[] = {1, 2, 700, UINT64_MAX};
	uint8_t bytes[256];
	size_t n = 0;

	(void)state;
	n += put_done(bytes + n, 1);
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		n += put(bytes + n, ENTRY_ALIVE, &steps[i], sizeof(steps[i]));
		n += put_done(bytes + n, 2 + i);
	}
	for (size_t piece = 1; piece <= n; piece++) {
		struct entry_reader r = {.len = 0};
		struct seen s = {.count = 0};

		for (size_t at = 0; at < n; at += piece)
			assert_int_equal(
			    feed(&r, bytes + at, n - at < piece ? n - at : piece, &s), 0);
		assert_int_equal(s.count, 5);
		for (uint64_t i = 0; i < 5; i++)
			assert_int_equal(s.entries[i].u.done.count, i + 1);
		assert_int_equal(r.steps, UINT64_MAX);
	}
	for (uint64_t i = 0; i <= 9; i++) {
		struct entry_reader r = {.len = 0};
		struct seen s = {.count = 0};
		const uint64_t first = 8;

		n = put(bytes, ENTRY_ALIVE, &first, sizeof(first));
		n += put(bytes + n, ENTRY_ALIVE, &i, sizeof(i));
		assert_int_equal(feed(&r, bytes, n, &s), i > first ? 0 : -EBADMSG);
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

/* A record of a fixed part and what follows it, which the parts count. */
static size_t put_parts(
    uint8_t *to, uint16_t type, const void *fixed, size_t n, const char *follows, size_t m)
{
	uint8_t payload[256];

	assert_true(n + m <= sizeof(payload));
	memcpy(payload, fixed, n);
	memcpy(payload + n, follows, m);
	return put(to, type, payload, (uint32_t)(n + m));
}

static void test_texts_are_found(void **state)
{
	static const struct entry_item item = {
	    .size = 7, .mtime_ns = -1, .mode = 0120777, .path_len = 3, .link_len = 2};
	static const struct entry_path path = {.path_len = 2};
	static const struct entry_line line = {.number = 9, .path_len = 1, .text_len = 3};
	static const struct entry_problem problem = {.code = AGENT_E_IO, .text_len = 2};
	struct entry_reader r = {.len = 0};
	struct seen s = {.count = 0};
	uint8_t bytes[512];
	size_t n = 0;

	(void)state;
	n += put_parts(bytes + n, ENTRY_ITEM, &item, sizeof(item), "a\xff\n..", 5);
	n += put_parts(bytes + n, ENTRY_PATH, &path, sizeof(path), "xy", 2);
	n += put_parts(bytes + n, ENTRY_LINE, &line, sizeof(line), "p\xc3\xaf\0", 4);
	n += put_parts(bytes + n, ENTRY_PROBLEM, &problem, sizeof(problem), "no", 2);
	/* Not feed(): what is found points into what was fed. */
	assert_int_equal(entry_feed(&r, bytes, n, see, &s), 0);
	assert_int_equal(s.count, 4);
	assert_int_equal(s.entries[0].u.item.mtime_ns, -1);
	assert_int_equal(s.entries[0].path_len, 3);
	assert_memory_equal(s.entries[0].path, "a\xff\n", 3);
	assert_int_equal(s.entries[0].text_len, 2);
	assert_memory_equal(s.entries[0].text, "..", 2);
	assert_memory_equal(s.entries[1].path, "xy", 2);
	assert_int_equal(s.entries[1].text_len, 0);
	assert_int_equal(s.entries[2].u.line.number, 9);
	assert_memory_equal(s.entries[2].text, "\xc3\xaf\0", 3);
	assert_int_equal(s.entries[3].path_len, 0);
	assert_memory_equal(s.entries[3].text, "no", 2);
}

#define FIXED(f) &(f), sizeof(f)

static void test_nonsense_is_refused(void **state)
{
	static const struct entry_done done = {.version = AGENT_VERSION};
	static const struct entry_done other = {.version = AGENT_VERSION + 1};
	static const struct entry_done flags = {.version = AGENT_VERSION, .flags = ~0U};
	static const struct entry_done many = {.version = AGENT_VERSION, .count = 1ULL << 63};
	static const struct entry_item item = {.path_len = 1, .link_len = 1};
	static const struct entry_item item_reserved = {.path_len = 1, .reserved = 1};
	static const struct entry_item item_size = {.path_len = 1, .size = 1ULL << 63};
	static const struct entry_item item_path = {.path_len = ENTRY_PATH_MAX + 1};
	static const struct entry_item item_link = {.path_len = 1, .link_len = ENTRY_PATH_MAX + 1};
	static const struct entry_path path = {.path_len = 2};
	static const struct entry_path no_path = {.path_len = 0};
	static const struct entry_path path_reserved = {.path_len = 2, .reserved = 1};
	static const struct entry_line line = {.number = 1, .path_len = 1, .text_len = 1};
	static const struct entry_line line_zero = {.path_len = 1, .text_len = 1};
	static const struct entry_line line_far = {
	    .number = 1ULL << 63, .path_len = 1, .text_len = 1};
	static const struct entry_line line_long = {
	    .number = 1, .path_len = 1, .text_len = ENTRY_LINE_MAX + 1};
	static const struct entry_problem problem = {.code = AGENT_E_IO, .text_len = 2};
	static const struct entry_problem problem_ok = {.code = AGENT_OK, .text_len = 2};
	static const struct entry_problem problem_code = {.code = AGENT_CODES, .text_len = 2};
	static const struct entry_problem problem_huge = {
	    .code = AGENT_E_IO, .path_len = UINT32_MAX, .text_len = 2};
	static const struct {
		struct entry_head head;
		const void *fixed;
		size_t fixed_len;
		const char *follows;
		size_t follows_len;
	} rows[] = {
	    {{.type = ENTRY_NONE}, "", 0, "", 0},
	    {{.type = ENTRY_TYPES}, "", 0, "", 0},
	    {{.type = UINT16_MAX}, "", 0, "", 0},
	    {{.type = ENTRY_DONE, .size = ENTRY_SIZE_MAX + 1}, "", 0, "", 0},
	    {{.type = ENTRY_DONE, .size = UINT32_MAX}, "", 0, "", 0},
	    {{.type = ENTRY_DONE, .size = sizeof(done), .reserved = 1}, FIXED(done), "", 0},
	    {{.type = ENTRY_DONE, .size = sizeof(done) - 1}, &done, sizeof(done) - 1, "", 0},
	    {{.type = ENTRY_DONE, .size = sizeof(done) + 1}, FIXED(done), "x", 1},
	    {{.type = ENTRY_DONE, .size = 0}, "", 0, "", 0},
	    {{.type = ENTRY_DONE, .size = sizeof(other)}, FIXED(other), "", 0},
	    {{.type = ENTRY_DONE, .size = sizeof(flags)}, FIXED(flags), "", 0},
	    {{.type = ENTRY_DONE, .size = sizeof(many)}, FIXED(many), "", 0},
	    {{.type = ENTRY_ITEM, .size = sizeof(item) + 1}, FIXED(item), "p", 1},
	    {{.type = ENTRY_ITEM, .size = sizeof(item) + 3}, FIXED(item), "plx", 3},
	    {{.type = ENTRY_ALIVE, .size = 7}, "\1\0\0\0\0\0\0", 7, "", 0},
	    {{.type = ENTRY_ALIVE, .size = 9}, "\1\0\0\0\0\0\0\0", 8, "x", 1},
	    {{.type = ENTRY_ITEM, .size = sizeof(item) + 2}, FIXED(item), "\0l", 2},
	    {{.type = ENTRY_ITEM, .size = sizeof(item) + 2}, FIXED(item), "p\0", 2},
	    {{.type = ENTRY_ITEM, .size = sizeof(item) + 1}, FIXED(item_reserved), "p", 1},
	    {{.type = ENTRY_ITEM, .size = sizeof(item) + 1}, FIXED(item_path), "p", 1},
	    {{.type = ENTRY_ITEM, .size = sizeof(item) + 1}, FIXED(item_size), "p", 1},
	    {{.type = ENTRY_ITEM, .size = sizeof(item) + 1}, FIXED(item_link), "p", 1},
	    {{.type = ENTRY_PATH, .size = sizeof(path) + 1}, FIXED(path), "p", 1},
	    {{.type = ENTRY_PATH, .size = sizeof(path) + 2}, FIXED(path_reserved), "pp", 2},
	    {{.type = ENTRY_PATH, .size = sizeof(path)}, FIXED(no_path), "", 0},
	    {{.type = ENTRY_LINE, .size = sizeof(line) + 2}, FIXED(line), "p\xff", 2},
	    {{.type = ENTRY_LINE, .size = sizeof(line) + 2}, FIXED(line_zero), "px", 2},
	    {{.type = ENTRY_LINE, .size = sizeof(line) + 2}, FIXED(line_far), "px", 2},
	    {{.type = ENTRY_LINE, .size = sizeof(line) + 2}, FIXED(line_long), "px", 2},
	    {{.type = ENTRY_PROBLEM, .size = sizeof(problem) + 2}, FIXED(problem), "n\xff", 2},
	    {{.type = ENTRY_PROBLEM, .size = sizeof(problem) + 2}, FIXED(problem_ok), "no", 2},
	    {{.type = ENTRY_PROBLEM, .size = sizeof(problem) + 2}, FIXED(problem_code), "no", 2},
	    {{.type = ENTRY_PROBLEM, .size = sizeof(problem) + 2}, FIXED(problem_huge), "no", 2},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct entry_reader r = {.len = 0};
		struct seen s = {.count = 0};
		uint8_t bytes[128];
		size_t n = sizeof(rows[i].head);

		memcpy(bytes, &rows[i].head, n);
		memcpy(bytes + n, rows[i].fixed, rows[i].fixed_len);
		n += rows[i].fixed_len;
		memcpy(bytes + n, rows[i].follows, rows[i].follows_len);
		n += rows[i].follows_len;
		if (feed(&r, bytes, n, &s) != -EBADMSG)
			fail_msg("row %zu was taken", i);
		assert_int_equal(s.count, 0);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_any_pieces),
	    cmocka_unit_test(test_signs_of_life),
	    cmocka_unit_test(test_refusal_ends_it),
	    cmocka_unit_test(test_texts_are_found),
	    cmocka_unit_test(test_nonsense_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
