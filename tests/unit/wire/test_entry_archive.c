/* entry: records of archives that keep, and that break, the rules. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "wire/agent.h"
#include "wire/entry.h"

static int see(void *ctx, const struct entry *e)
{
	*(struct entry *)ctx = *e;
	return 0;
}

/* A record in memory that ends where it ends, so that sanitizers see a read too far. */
static int feed(uint16_t type, const void *payload, size_t n, struct entry *seen)
{
	const struct entry_head h = {.size = (uint32_t)n, .type = type};
	static struct entry_reader r;
	static uint8_t *exact;
	int rc;

	free(exact); /* what *seen points to lives until the next call */
	exact = malloc(sizeof(h) + n);
	assert_non_null(exact);
	memcpy(exact, &h, sizeof(h));
	if (n > 0)
		memcpy(exact + sizeof(h), payload, n);
	r.len = 0;
	*seen = (struct entry){.type = ENTRY_NONE};
	rc = entry_feed(&r, exact, sizeof(h) + n, see, seen);
	assert_int_equal(rc == 0, seen->type == type);
	return rc;
}

static int feed_member(struct entry_member m, const char *texts, size_t n, struct entry *seen)
{
	uint8_t payload[sizeof(m) + 2 * ENTRY_PATH_MAX + 2];

	memcpy(payload, &m, sizeof(m));
	memcpy(payload + sizeof(m), texts, n);
	return feed(ENTRY_MEMBER, payload, sizeof(m) + n, seen);
}

static void test_members(void **state)
{
	struct entry_member m = {
	    .kind = ENTRY_FILE, .mode = 07777, .size = INT64_MAX, .mtime = -5, .path_len = 4};
	struct entry e;

	(void)state;
	m.mtime_nsec = 999999999;
	m.extents = ENTRY_EXTENTS_MAX;
	assert_int_equal(feed_member(m,
			     "a/\xff"
			     "c",
			     4, &e),
	    0);
	assert_int_equal(e.path_len, 4);
	assert_memory_equal(e.path,
	    "a/\xff"
	    "c",
	    4);
	assert_int_equal(e.text_len, 0);
	assert_memory_equal(&e.u.member, &m, sizeof(m));
	m = (struct entry_member){.kind = ENTRY_SYMLINK, .path_len = 1, .link_len = 3};
	assert_int_equal(feed_member(m, "p../", 4, &e), 0);
	assert_memory_equal(e.text, "../", 3);
}

static const struct {
	struct entry_member m;
	const char *texts;
	size_t n;
} bad[] = {
    {{.kind = ENTRY_KIND_NONE, .path_len = 1}, "a", 1},
    {{.kind = ENTRY_KINDS, .path_len = 1}, "a", 1},
    {{.kind = ENTRY_FILE, .path_len = 1, .mode = 010000}, "a", 1},
    {{.kind = ENTRY_FILE, .path_len = 1, .size = 1ULL << 63}, "a", 1},
    {{.kind = ENTRY_FILE, .path_len = 1, .mtime_nsec = 1000000000}, "a", 1},
    {{.kind = ENTRY_FILE, .path_len = 1, .extents = ENTRY_EXTENTS_MAX + 1}, "a", 1},
    {{.kind = ENTRY_FILE, .path_len = 0}, "", 0},
    {{.kind = ENTRY_FILE, .path_len = 2}, "a", 1},
    {{.kind = ENTRY_FILE, .path_len = 1}, "ab", 2},
    {{.kind = ENTRY_FILE, .path_len = 3}, "a\0b", 3},
    {{.kind = ENTRY_FILE, .path_len = UINT32_MAX}, "a", 1},
    {{.kind = ENTRY_FILE, .path_len = 1, .link_len = 1}, "ab", 2},
    {{.kind = ENTRY_DIRECTORY, .path_len = 1, .size = 1}, "a", 1},
    {{.kind = ENTRY_DIRECTORY, .path_len = 1, .extents = 1}, "a", 1},
    {{.kind = ENTRY_SYMLINK, .path_len = 1}, "a", 1},
    {{.kind = ENTRY_HARDLINK, .path_len = 1}, "a", 1},
    {{.kind = ENTRY_SYMLINK, .path_len = 1, .link_len = 2}, "a\0b", 3},
    {{.kind = ENTRY_SYMLINK, .path_len = 1, .link_len = UINT32_MAX}, "ab", 2},
};

static void test_bad_members(void **state)
{
	static char longest[ENTRY_PATH_MAX + 1];
	struct entry_member m = {.kind = ENTRY_FILE};
	struct entry e;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		if (feed_member(bad[i].m, bad[i].texts, bad[i].n, &e) != -EBADMSG)
			fail_msg("member %zu was believed", i);
	}
	memset(longest, 'n', sizeof(longest));
	m.path_len = ENTRY_PATH_MAX;
	assert_int_equal(feed_member(m, longest, m.path_len, &e), 0);
	m.path_len++;
	assert_int_equal(feed_member(m, longest, m.path_len, &e), -EBADMSG);
	assert_int_equal(feed(ENTRY_MEMBER, &m, sizeof(m) - 1, &e), -EBADMSG);
}

static void test_data(void **state)
{
	struct entry_extent x[2] = {{1, 2}, {3, 4}};
	uint8_t bytes[64] = {0};
	uint64_t offset = INT64_MAX - 3;
	struct entry e;

	(void)state;
	assert_int_equal(feed(ENTRY_EXTENTS, x, sizeof(x), &e), 0);
	assert_int_equal(e.text_len, sizeof(x));
	assert_memory_equal(e.text, x, sizeof(x));
	assert_int_equal(feed(ENTRY_EXTENTS, x, sizeof(x) - 1, &e), -EBADMSG);
	assert_int_equal(feed(ENTRY_EXTENTS, x, 0, &e), -EBADMSG);
	memcpy(bytes, &offset, sizeof(offset));
	assert_int_equal(feed(ENTRY_PIECE, bytes, sizeof(offset) + 3, &e), 0);
	assert_int_equal(e.u.piece.offset, offset);
	assert_int_equal(e.text_len, 3);
	assert_int_equal(feed(ENTRY_PIECE, bytes, sizeof(offset) + 4, &e), -EBADMSG);
	assert_int_equal(feed(ENTRY_PIECE, bytes, sizeof(offset) - 1, &e), -EBADMSG);
	offset = UINT64_MAX;
	memcpy(bytes, &offset, sizeof(offset));
	assert_int_equal(feed(ENTRY_PIECE, bytes, sizeof(offset), &e), -EBADMSG);
	offset = INT64_MAX;
	memcpy(bytes, &offset, sizeof(offset));
	assert_int_equal(feed(ENTRY_PIECE, bytes, sizeof(offset), &e), 0);
	assert_int_equal(e.text_len, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_members),
	    cmocka_unit_test(test_bad_members),
	    cmocka_unit_test(test_data),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
