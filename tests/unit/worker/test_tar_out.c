/* tar_out: what a helper says, as an archive that tar_in reads back; and what it may not say. */
#include <errno.h>
#include <sys/stat.h>

#include "tests/unit/worker/tar_testing.h"
#include "worker/tar_out.h"

/* Records, as the helper would write them. */
static void say(struct buf *b, enum entry_type type, const void *p, size_t n)
{
	const struct entry_head h = {.size = (uint32_t)n, .type = (uint16_t)type};

	assert_int_equal(buf_append(b, &h, sizeof(h)), 0);
	assert_int_equal(buf_append(b, p, n), 0);
}

static void say_member(struct buf *b, struct entry_member m, const char *path, const char *link)
{
	uint8_t record[sizeof(m) + 2 * ENTRY_PATH_MAX];

	m.path_len = (uint32_t)strlen(path);
	m.link_len = (uint32_t)strlen(link);
	memcpy(record, &m, sizeof(m));
	memcpy(record + sizeof(m), path, m.path_len);
	memcpy(record + sizeof(m) + m.path_len, link, m.link_len);
	say(b, ENTRY_MEMBER, record, sizeof(m) + m.path_len + m.link_len);
}

static void say_piece(struct buf *b, uint64_t offset, const void *p, size_t n)
{
	uint8_t record[ENTRY_SIZE_MAX];

	memcpy(record, &offset, sizeof(offset));
	if (n)
		memcpy(record + sizeof(offset), p, n);
	say(b, ENTRY_PIECE, record, sizeof(offset) + n);
}

static void say_done(struct buf *b)
{
	const struct entry_done done = {.version = AGENT_VERSION};

	say(b, ENTRY_DONE, &done, sizeof(done));
}

static void say_file(struct buf *b, const char *path, const char *data)
{
	const struct entry_member m = {.kind = ENTRY_FILE, .size = strlen(data), .mode = 0644};

	say_member(b, m, path, "");
	if (*data)
		say_piece(b, 0, data, strlen(data));
	say_piece(b, m.size, NULL, 0);
}

/* The archive that the records make, in parts of any size. 0 or what tar_out_feed() said. */
static int make(const struct buf *records, size_t part, struct buf *archive)
{
	struct tar_out *t = calloc(1, sizeof(*t));
	int rc = 0;

	assert_non_null(t);
	for (size_t at = 0; rc == 0 && at < records->len; at += part) {
		size_t n = records->len - at < part ? records->len - at : part;

		rc = tar_out_feed(t, buf_head(records) + at, n, archive);
	}
	if (rc == 0)
		assert_int_equal(t->state, TAR_OUT_DONE);
	free(t);
	return rc;
}

/* The records as tar_in sees them after they went through an archive. */
static struct t_heard *there_and_back(struct buf *records)
{
	static const size_t parts[] = {1, 100, 1U << 20};
	struct t_heard *h = NULL;
	struct buf first;

	buf_init(&first, T_ARCHIVE_MAX);
	say_done(records);
	for (size_t i = 0; i < 3; i++) {
		struct buf archive;

		buf_init(&archive, T_ARCHIVE_MAX);
		assert_int_equal(make(records, parts[i], &archive), 0);
		assert_int_equal(archive.len % 512, 0);
		assert_true(archive.len <= 1024 + TAR_OUT_FACTOR * records->len);
		if (i == 0)
			assert_int_equal(buf_append(&first, buf_head(&archive), archive.len), 0);
		assert_int_equal(archive.len, first.len);
		assert_memory_equal(buf_head(&archive), buf_head(&first), first.len);
		buf_free(&archive);
	}
	h = t_read_all(&first, 1000);
	buf_free(&first);
	return h;
}

static void test_kinds(void **state)
{
	struct buf r;
	struct t_heard *h;

	(void)state;
	buf_init(&r, T_ARCHIVE_MAX);
	say_member(
	    &r, (struct entry_member){.kind = ENTRY_DIRECTORY, .mode = 01777, .mtime = 7}, "d", "");
	say_file(&r, "d/f", "content");
	say_file(&r, "d/empty", "");
	say_member(&r, (struct entry_member){.kind = ENTRY_SYMLINK, .mode = 0777}, "d/s", "../f");
	say_member(&r, (struct entry_member){.kind = ENTRY_HARDLINK, .mode = 0600}, "d/h", "d/f");
	h = there_and_back(&r);
	assert_int_equal(h->count, 5);
	assert_string_equal(h->all[0].path, "d/");
	assert_int_equal(h->all[0].head.kind, ENTRY_DIRECTORY);
	assert_int_equal(h->all[0].head.mode, 01777);
	assert_int_equal(h->all[0].head.mtime, 7);
	assert_string_equal(h->all[1].path, "d/f");
	assert_memory_equal(buf_head(&h->all[1].data), "content", 7);
	assert_int_equal(h->all[2].head.size, 0);
	assert_string_equal(h->all[3].link, "../f");
	assert_int_equal(h->all[4].head.kind, ENTRY_HARDLINK);
	assert_string_equal(h->all[4].link, "d/f");
	t_heard_free(h);
	buf_free(&r);
}

/* A path of n bytes: parts of `part` bytes of c, with slashes in between. */
static void make_path(char *to, size_t n, size_t part, char c)
{
	for (size_t i = 0; i < n; i++)
		to[i] = i % (part + 1) == part && i + 1 < n ? '/' : c;
	to[n] = '\0';
}

/* Around every limit of the header, in ASCII and not, of files and of what needs a GNU header. */
static void test_names(void **state)
{
	static const size_t lengths[] = {1, 99, 100, 101, 102, 154, 155, 156, 200, 255, 256, 257,
	    258, 300, 1000, ENTRY_PATH_MAX};
	static const size_t splits[] = {20, 99, 100, 101, 154, 155, 156, 250};
	static const char chars[] = {'a', '\xe9'};
	char path[ENTRY_PATH_MAX + 1];
	struct buf r;

	(void)state;
	buf_init(&r, T_ARCHIVE_MAX);
	for (size_t l = 0; l < sizeof(lengths) / sizeof(lengths[0]); l++) {
		for (size_t s = 0; s < sizeof(splits) / sizeof(splits[0]); s++) {
			char c = chars[(l + s) % 2];
			struct entry_extent hole = {.offset = 5, .length = 0};
			struct entry_member sparse = {.kind = ENTRY_FILE, .size = 5, .extents = 1};
			struct t_heard *h;

			buf_clear(&r);
			make_path(path, lengths[l], splits[s], c);
			say_file(&r, path, "x");
			say_member(&r, (struct entry_member){.kind = ENTRY_SYMLINK}, path, path);
			say_member(&r, sparse, path, "");
			say(&r, ENTRY_EXTENTS, &hole, sizeof(hole));
			say_piece(&r, 5, NULL, 0);
			h = there_and_back(&r);
			assert_int_equal(h->count, 3);
			for (size_t i = 0; i < 3; i++)
				assert_string_equal(h->all[i].path, path);
			assert_string_equal(h->all[1].link, path);
			assert_int_equal(h->all[2].head.size, 5);
			assert_int_equal(h->all[2].data.len, 0);
			t_heard_free(h);
		}
	}
	buf_free(&r);
}

static void test_numbers(void **state)
{
	static const struct entry_member all[] = {
	    {.kind = ENTRY_DIRECTORY, .mode = 07777, .uid = 1U << 21, .gid = UINT32_MAX},
	    {.kind = ENTRY_DIRECTORY, .mtime = -1},
	    {.kind = ENTRY_DIRECTORY, .mtime = (1LL << 33) - 1},
	    {.kind = ENTRY_DIRECTORY, .mtime = 1LL << 33},
	    {.kind = ENTRY_DIRECTORY, .mtime = -62135596800},
	};
	struct t_heard *h;
	struct buf r;

	(void)state;
	buf_init(&r, T_ARCHIVE_MAX);
	for (size_t i = 0; i < 5; i++)
		say_member(&r, all[i], "d", "");
	h = there_and_back(&r);
	for (size_t i = 0; i < 5; i++) {
		assert_int_equal(h->all[i].head.mtime, all[i].mtime);
		assert_int_equal(h->all[i].head.mode, all[i].mode);
	}
	t_heard_free(h);
	buf_free(&r);
}

/* More than eleven octal digits of bytes: only the header, for the archive is that long. */
static void test_huge_file(void **state)
{
	struct buf r;
	struct buf archive;
	struct tar_out *t = calloc(1, sizeof(*t));
	struct tar_in *in = tar_in_create();
	struct t_heard *h = t_heard_new();

	(void)state;
	assert_non_null(t);
	assert_non_null(in);
	buf_init(&r, T_ARCHIVE_MAX);
	buf_init(&archive, T_ARCHIVE_MAX);
	say_member(&r, (struct entry_member){.kind = ENTRY_FILE, .size = 1ULL << 40}, "huge", "");
	assert_int_equal(tar_out_feed(t, buf_head(&r), r.len, &archive), 0);
	tar_in_put(in, buf_head(&archive), archive.len);
	assert_int_equal(tar_in_run(in), TAR_IN_HUNGRY);
	assert_int_equal(entry_feed(&h->reader, buf_head(tar_in_records(in)),
			     tar_in_records(in)->len, t_hear, h),
	    0);
	assert_int_equal(h->all[0].head.size, 1ULL << 40);
	t_heard_free(h);
	tar_in_free(in);
	free(t);
	buf_free(&archive);
	buf_free(&r);
}

#define MIB (1ULL << 20)

/* As many extents as are in the header, and as take several blocks more. */
static void test_holes(void **state)
{
	static const uint32_t counts[] = {1, 2, 4, 5, 25, 26, 300, ENTRY_EXTENTS_MAX};

	(void)state;
	for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++) {
		uint32_t n = counts[c];
		struct entry_member m = {
		    .kind = ENTRY_FILE, .size = 4096 * MIB * 2 + 5, .extents = n};
		struct entry_extent *x = calloc(n, sizeof(*x));
		struct t_heard *h;
		struct buf r;

		assert_non_null(x);
		buf_init(&r, T_ARCHIVE_MAX);
		say_member(&r, m, "f", "");
		for (uint32_t i = 0; i < n; i++)
			x[i] = (struct entry_extent){.offset = (i + 1) * MIB, .length = 3};
		if (n != 25) /* the last stands at the end of the file */
			x[n - 1] = (struct entry_extent){.offset = m.size, .length = 0};
		for (uint32_t at = 0; at < n; at += ENTRY_EXTENTS_AT_ONCE) {
			uint32_t part =
			    n - at < ENTRY_EXTENTS_AT_ONCE ? n - at : ENTRY_EXTENTS_AT_ONCE;

			say(&r, ENTRY_EXTENTS, x + at, part * sizeof(*x));
		}
		for (uint32_t i = 0; i < n; i++) {
			if (x[i].length)
				say_piece(&r, x[i].offset, "abc", 3);
		}
		say_piece(&r, m.size, NULL, 0);
		say_file(&r, "next", "n");
		h = there_and_back(&r);
		assert_int_equal(h->count, 2);
		assert_int_equal(h->all[0].head.size, m.size);
		assert_int_equal(h->all[0].data.len, 3 * (n == 25 ? n : n - 1));
		if (n > 1)
			assert_int_equal(h->all[0].from, MIB);
		assert_memory_equal(buf_head(&h->all[1].data), "n", 1);
		t_heard_free(h);
		buf_free(&r);
		free(x);
	}
}

/* ---- a helper that breaks the rules ---- */

static void lie_data_first(struct buf *b)
{
	say_piece(b, 0, "x", 1);
}

static void lie_too_much(struct buf *b)
{
	say_member(b, (struct entry_member){.kind = ENTRY_FILE, .size = 3}, "f", "");
	say_piece(b, 0, "1234", 4);
}

static void lie_too_little(struct buf *b)
{
	say_member(b, (struct entry_member){.kind = ENTRY_FILE, .size = 3}, "f", "");
	say_piece(b, 0, "12", 2);
	say_piece(b, 2, NULL, 0);
}

static void lie_elsewhere(struct buf *b)
{
	say_member(b, (struct entry_member){.kind = ENTRY_FILE, .size = 3}, "f", "");
	say_piece(b, 1, "12", 2);
}

static void lie_done_early(struct buf *b)
{
	say_member(b, (struct entry_member){.kind = ENTRY_FILE, .size = 3}, "f", "");
	say_done(b);
}

static void lie_member_early(struct buf *b)
{
	say_member(b, (struct entry_member){.kind = ENTRY_FILE, .size = 3}, "f", "");
	say_member(b, (struct entry_member){.kind = ENTRY_FILE, .size = 3}, "f", "");
}

static void lie_after_done(struct buf *b)
{
	say_done(b);
	say_file(b, "f", "x");
}

static void lie_extents_of_none(struct buf *b)
{
	const struct entry_extent x = {.offset = 0, .length = 3};

	say_member(b, (struct entry_member){.kind = ENTRY_FILE, .size = 3}, "f", "");
	say(b, ENTRY_EXTENTS, &x, sizeof(x));
}

static void say_extents(struct buf *b, const struct entry_extent *x, uint32_t n, uint32_t told)
{
	say_member(
	    b, (struct entry_member){.kind = ENTRY_FILE, .size = 100, .extents = told}, "f", "");
	say(b, ENTRY_EXTENTS, x, n * sizeof(*x));
}

static void lie_more_extents(struct buf *b)
{
	say_extents(b, (struct entry_extent[]){{0, 1}, {5, 1}, {9, 1}}, 3, 2);
}

static void lie_extents_overlap(struct buf *b)
{
	say_extents(b, (struct entry_extent[]){{0, 6}, {5, 1}}, 2, 2);
}

static void lie_extent_past_end(struct buf *b)
{
	say_extents(b, (struct entry_extent[]){{0, 6}, {99, 2}}, 2, 2);
}

static void lie_extent_past_all(struct buf *b)
{
	say_extents(b, (struct entry_extent[]){{0, 6}, {50, UINT64_MAX}}, 2, 2);
}

static void lie_empty_extent(struct buf *b)
{
	say_extents(b, (struct entry_extent[]){{0, 0}, {50, 5}}, 2, 2);
}

static void lie_data_in_hole(struct buf *b)
{
	say_extents(b, (struct entry_extent[]){{0, 2}, {50, 5}}, 2, 2);
	say_piece(b, 0, "12", 2);
	say_piece(b, 2, "3", 1);
}

static void lie_over_two_extents(struct buf *b)
{
	say_extents(b, (struct entry_extent[]){{0, 2}, {2, 5}}, 2, 2);
	say_piece(b, 0, "123", 3);
}

static void lie_extent_left_out(struct buf *b)
{
	say_extents(b, (struct entry_extent[]){{0, 2}, {50, 5}}, 2, 2);
	say_piece(b, 0, "12", 2);
	say_piece(b, 100, NULL, 0);
}

static void lie_data_before_extents(struct buf *b)
{
	say_extents(b, (struct entry_extent[]){{0, 2}}, 1, 2);
	say_piece(b, 0, "12", 2);
}

static void lie_slash(struct buf *b)
{
	say_file(b, "f/", "x");
}

static void lie_kind(struct buf *b)
{
	say_member(b, (struct entry_member){.kind = ENTRY_KINDS}, "f", "");
}

static void (*const lies[])(struct buf *b) = {
    lie_data_first,
    lie_too_much,
    lie_too_little,
    lie_elsewhere,
    lie_done_early,
    lie_member_early,
    lie_after_done,
    lie_extents_of_none,
    lie_more_extents,
    lie_extents_overlap,
    lie_extent_past_end,
    lie_extent_past_all,
    lie_empty_extent,
    lie_data_in_hole,
    lie_over_two_extents,
    lie_extent_left_out,
    lie_data_before_extents,
    lie_slash,
    lie_kind,
};

static void test_lies(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		struct buf r;
		struct buf archive;

		buf_init(&r, T_ARCHIVE_MAX);
		buf_init(&archive, T_ARCHIVE_MAX);
		lies[i](&r);
		if (make(&r, 1000, &archive) != -EBADMSG)
			fail_msg("lie %zu was believed", i);
		buf_free(&archive);
		buf_free(&r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_kinds),
	    cmocka_unit_test(test_names),
	    cmocka_unit_test(test_numbers),
	    cmocka_unit_test(test_huge_file),
	    cmocka_unit_test(test_holes),
	    cmocka_unit_test(test_lies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
