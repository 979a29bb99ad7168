/* tar_in: archives of every format, in parts of any size. */
#include "tests/unit/worker/tar_testing.h"

static const size_t parts[] = {1, 7, 511, 512, 513, 100000};

#define PARTS (sizeof(parts) / sizeof(parts[0]))

static void test_ustar(void **state)
{
	struct buf b;
	uint8_t block[512];

	(void)state;
	buf_init(&b, T_ARCHIVE_MAX);
	t_member(&b, "dir/", '5', "", NULL, 0);
	t_fill(block, "deep/file", '0', 5, "");
	memcpy(block + 345, "some/prefix", 11);
	t_seal(block);
	t_put(&b, block);
	assert_int_equal(buf_append(&b, "hello", 5), 0);
	t_pad(&b);
	t_member(&b, "link", '2', "../target", NULL, 0);
	t_member(&b, "hard", '1', "some/prefix/deep/file", NULL, 0);
	t_member(&b, "empty", '0', "", NULL, 0);
	t_member(&b, "old", '\0', "", "x", 1);
	t_member(&b, "olddir/", '\0', "", NULL, 0);
	t_finish(&b);
	for (size_t i = 0; i < PARTS; i++) {
		struct t_heard *h = t_read_all(&b, parts[i]);

		assert_int_equal(h->count, 7);
		assert_int_equal(h->all[0].head.kind, ENTRY_DIRECTORY);
		assert_string_equal(h->all[0].path, "dir/");
		assert_int_equal(h->all[1].head.kind, ENTRY_FILE);
		assert_string_equal(h->all[1].path, "some/prefix/deep/file");
		assert_int_equal(h->all[1].head.size, 5);
		assert_int_equal(h->all[1].head.mode, 0640);
		assert_int_equal(h->all[1].head.mtime, 1700000000);
		assert_memory_equal(buf_head(&h->all[1].data), "hello", 5);
		assert_int_equal(h->all[2].head.kind, ENTRY_SYMLINK);
		assert_string_equal(h->all[2].link, "../target");
		assert_int_equal(h->all[3].head.kind, ENTRY_HARDLINK);
		assert_string_equal(h->all[3].link, "some/prefix/deep/file");
		assert_true(h->all[4].complete && h->all[4].data.len == 0);
		assert_int_equal(h->all[5].head.kind, ENTRY_FILE);
		assert_int_equal(h->all[6].head.kind, ENTRY_DIRECTORY);
		t_heard_free(h);
	}
	buf_free(&b);
}

static void fill(char *to, size_t n, char c)
{
	memset(to, c, n);
	to[n] = '\0';
}

static void test_long_names_of_gnu(void **state)
{
	char name[301];
	char link[401];
	struct buf b;
	struct t_heard *h;

	(void)state;
	buf_init(&b, T_ARCHIVE_MAX);
	fill(name, 300, 'n');
	fill(link, 400, 'l');
	t_member(&b, "././@LongLink", 'K', "", link, 401);
	t_member(&b, "././@LongLink", 'L', "", name, 301);
	t_member(&b, "nnn", '2', "lll", NULL, 0);
	t_finish(&b);
	h = t_read_all(&b, 100);
	assert_int_equal(h->count, 1);
	assert_string_equal(h->all[0].path, name);
	assert_string_equal(h->all[0].link, link);
	t_heard_free(h);
	buf_free(&b);
}

/* Whatever the bytes of a name are, and whatever the header says that they are. */
static void test_names_of_pax(void **state)
{
	static const char *const names[] = {"plain", "na\xc3\xafve/\xe2\x82\xac",
	    "e\xcc\x81-combined", "latin-\xe9", "\xff\xfe\x80", "a=b\nc", "\xe2\x84\xaa"};
	char longest[301];
	struct buf b;
	struct buf records;
	struct t_heard *h;

	(void)state;
	buf_init(&b, T_ARCHIVE_MAX);
	buf_init(&records, 1U << 20);
	fill(longest, 300, '\xfc');
	for (int binary = 0; binary < 2; binary++) {
		buf_clear(&b);
		for (size_t i = 0; i < 8; i++) {
			const char *name = i < 7 ? names[i] : longest;

			if (binary)
				t_record(&records, "hdrcharset", "BINARY", 6);
			t_record(&records, "path", name, strlen(name));
			t_record(&records, "linkpath", name, strlen(name));
			t_record(&records, "uname", name, strlen(name));
			t_pax(&b, &records);
			t_member(&b, "other", '2', "other", NULL, 0);
		}
		t_finish(&b);
		h = t_read_all(&b, 1000);
		assert_int_equal(h->count, 8);
		for (size_t i = 0; i < 8; i++) {
			assert_string_equal(h->all[i].path, i < 7 ? names[i] : longest);
			assert_string_equal(h->all[i].link, i < 7 ? names[i] : longest);
		}
		t_heard_free(h);
	}
	buf_free(&records);
	buf_free(&b);
}

static void test_pax_overrides(void **state)
{
	struct buf b;
	struct buf records;
	struct t_heard *h;

	(void)state;
	buf_init(&b, T_ARCHIVE_MAX);
	buf_init(&records, 1U << 20);
	t_record(&records, "comment", "of all", 6);
	t_member(&b, "global", 'g', "", buf_head(&records), records.len);
	buf_clear(&records);
	t_record(&records, "mtime", "1600000000.25", 13);
	t_record(&records, "SCHILY.xattr.user.x", "a\0b", 3);
	t_record(&records, "SCHILY.acl.access", "nonsense", 8);
	t_record(&records, "uid", "99999999", 8);
	t_pax(&b, &records);
	t_member(&b, "f", '0', "", "data", 4);
	t_record(&records, "mtime", "-5", 2);
	t_pax(&b, &records);
	/* In pax a hard link may come with data: it is what the file has anyway. */
	t_member(&b, "h", '1', "f", "data", 4);
	t_member(&b, "g", '0', "", "more", 4);
	t_finish(&b);
	h = t_read_all(&b, 333);
	assert_int_equal(h->count, 3);
	assert_int_equal(h->all[0].head.mtime, 1600000000);
	assert_int_equal(h->all[0].head.mtime_nsec, 250000000);
	assert_int_equal(h->all[1].head.kind, ENTRY_HARDLINK);
	assert_int_equal(h->all[1].head.mtime, -5);
	assert_memory_equal(buf_head(&h->all[2].data), "more", 4);
	t_heard_free(h);
	buf_free(&records);
	buf_free(&b);
}

#define GIB (1ULL << 30)

static void check_sparse(const struct buf *b)
{
	for (size_t i = 0; i < PARTS; i++) {
		struct t_heard *h = t_read_all(b, parts[i]);
		const struct t_member *m = &h->all[0];

		assert_int_equal(h->count, 2);
		assert_string_equal(m->path, "sparse");
		assert_int_equal(m->head.size, 4 * GIB + 3);
		assert_int_equal(m->data.len, 6);
		assert_memory_equal(buf_head(&m->data), "abcxyz", 6);
		assert_int_equal(m->from, 0);
		assert_string_equal(h->all[1].path, "next");
		assert_memory_equal(buf_head(&h->all[1].data), "n", 1);
		t_heard_free(h);
	}
}

static void test_sparse_of_gnu(void **state)
{
	uint8_t block[512];
	struct buf b;

	(void)state;
	buf_init(&b, T_ARCHIVE_MAX);
	t_fill(block, "sparse", 'S', 6, "");
	memcpy(block + 257, "ustar  ", 8);
	(void)snprintf((char *)block + 386, 12, "%011o", 0U);
	(void)snprintf((char *)block + 398, 12, "%011o", 3U);
	(void)snprintf((char *)block + 410, 12, "%011llo", 4 * GIB);
	(void)snprintf((char *)block + 422, 12, "%011o", 3U);
	(void)snprintf((char *)block + 483, 12, "%011llo", 4 * GIB + 3);
	t_seal(block);
	t_put(&b, block);
	assert_int_equal(buf_append(&b, "abcxyz", 6), 0);
	t_pad(&b);
	t_member(&b, "next", '0', "", "n", 1);
	t_finish(&b);
	check_sparse(&b);
	buf_free(&b);
}

static void test_sparse_of_pax(void **state)
{
	static const char map[512] = "2\n0\n3\n4294967296\n3\n";
	uint8_t data[sizeof(map) + 6];
	struct buf b;
	struct buf r;

	(void)state;
	buf_init(&b, T_ARCHIVE_MAX);
	buf_init(&r, 1U << 20);
	/* version 1.0 */
	t_record(&r, "GNU.sparse.major", "1", 1);
	t_record(&r, "GNU.sparse.minor", "0", 1);
	t_record(&r, "GNU.sparse.name", "sparse", 6);
	t_record(&r, "GNU.sparse.realsize", "4294967299", 10);
	t_pax(&b, &r);
	memcpy(data, map, sizeof(map));
	memcpy(data + sizeof(map), "abcxyz", 6);
	t_member(&b, "GNUSparseFile.0/sparse", '0', "", data, sizeof(data));
	t_member(&b, "next", '0', "", "n", 1);
	t_finish(&b);
	check_sparse(&b);
	/* version 0.1 */
	buf_clear(&b);
	t_record(&r, "GNU.sparse.size", "4294967299", 10);
	t_record(&r, "GNU.sparse.numblocks", "2", 1);
	t_record(&r, "GNU.sparse.name", "sparse", 6);
	t_record(&r, "GNU.sparse.map", "0,3,4294967296,3", 16);
	t_pax(&b, &r);
	t_member(&b, "GNUSparseFile.0/sparse", '0', "", "abcxyz", 6);
	t_member(&b, "next", '0', "", "n", 1);
	t_finish(&b);
	check_sparse(&b);
	buf_free(&r);
	buf_free(&b);
}

/* All byte values, and more than any buffer holds. */
static void test_large_data(void **state)
{
	size_t n = (1U << 20) + 77;
	uint8_t *data = malloc(n);
	struct buf b;
	struct t_heard *h;

	(void)state;
	assert_non_null(data);
	for (size_t i = 0; i < n; i++)
		data[i] = (uint8_t)(i * 7 + i / 256);
	buf_init(&b, T_ARCHIVE_MAX);
	t_member(&b, "large", '0', "", data, n);
	t_member(&b, "small", '0', "", "s", 1);
	t_finish(&b);
	h = t_read_all(&b, 70001);
	assert_int_equal(h->count, 2);
	assert_int_equal(h->all[0].data.len, n);
	assert_memory_equal(buf_head(&h->all[0].data), data, n);
	assert_memory_equal(buf_head(&h->all[1].data), "s", 1);
	t_heard_free(h);
	buf_free(&b);
	free(data);
}

/* Blocks of zeros up to the blocking factor, and whatever else comes after the end. */
static void test_after_the_end(void **state)
{
	struct buf b;
	struct t_heard *h;

	(void)state;
	buf_init(&b, T_ARCHIVE_MAX);
	t_member(&b, "f", '0', "", "x", 1);
	t_finish(&b);
	for (int i = 0; i < 40000; i++)
		assert_int_equal(buf_puts(&b, "junk after the end "), 0);
	h = t_read_all(&b, 5000);
	assert_int_equal(h->count, 1);
	t_heard_free(h);
	/* Only an end: an archive of nothing. */
	buf_clear(&b);
	t_finish(&b);
	h = t_read_all(&b, 100);
	assert_int_equal(h->count, 0);
	t_heard_free(h);
	buf_free(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_ustar),
	    cmocka_unit_test(test_long_names_of_gnu),
	    cmocka_unit_test(test_names_of_pax),
	    cmocka_unit_test(test_pax_overrides),
	    cmocka_unit_test(test_sparse_of_gnu),
	    cmocka_unit_test(test_sparse_of_pax),
	    cmocka_unit_test(test_large_data),
	    cmocka_unit_test(test_after_the_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
