/* tar_in: archives that are damaged, cut, or made to do harm. */
#include "tests/unit/worker/tar_testing.h"

static void put_archive(struct buf *b)
{
	uint8_t data[1500];

	memset(data, 'd', sizeof(data));
	t_member(b, "dir/", '5', "", NULL, 0);
	t_member(b, "dir/first", '0', "", data, sizeof(data));
	t_member(b, "second", '0', "", "2", 1);
}

/* Wherever it is cut: it fails, and says where; only a cut within the end mark does no harm. */
static void test_cut_anywhere(void **state)
{
	struct buf b;
	size_t whole;

	(void)state;
	buf_init(&b, T_ARCHIVE_MAX);
	put_archive(&b);
	whole = b.len;
	t_finish(&b);
	for (size_t n = 0; n < whole + 512; n += n % 512 == 1 ? 510 : 1) {
		const char *where = n < 512    ? "no tar archive"
				    : n < 1024 ? "\"dir/\""
				    : n < 3072 ? "\"dir/first\""
				    : n < 4096 ? "\"second\""
					       : "no tar archive";

		if (n >= 1024 && n < 1536)
			where = "\"dir/";
		if (n >= 2560 && n < 3584)
			where = "\"";
		t_expect_failure(buf_head(&b), n, 300, API_INVALID_ARGUMENT, where);
	}
	buf_free(&b);
}

static void test_no_end_mark(void **state)
{
	struct buf b;

	(void)state;
	buf_init(&b, T_ARCHIVE_MAX);
	put_archive(&b);
	t_expect_failure(
	    buf_head(&b), b.len, 5000, API_INVALID_ARGUMENT, "cut: after \"second\" there is no");
	buf_free(&b);
}

static void test_no_archive(void **state)
{
	uint8_t junk[3000] = {0};

	(void)state;
	t_expect_failure(junk, 0, 1, API_INVALID_ARGUMENT, "no tar archive");
	for (size_t i = 0; i < sizeof(junk); i++)
		junk[i] = (uint8_t)(i * 37 + 11);
	t_expect_failure(junk, sizeof(junk), 100, API_INVALID_ARGUMENT, "no tar archive");
	t_expect_failure(junk, 100, 100, API_INVALID_ARGUMENT, "no tar archive");
	memcpy(junk, "\x1f\x8b\x08", 3); /* gzip */
	t_expect_failure(junk, sizeof(junk), 100, API_INVALID_ARGUMENT, "no tar archive");
}

/* A header that is damaged is not searched past. */
static void test_bad_checksum(void **state)
{
	struct buf b;

	(void)state;
	buf_init(&b, T_ARCHIVE_MAX);
	put_archive(&b);
	((uint8_t *)b.data)[b.off + 512] ^= 1; /* the name of "dir/first" */
	t_finish(&b);
	t_expect_failure(buf_head(&b), b.len, 512, API_INVALID_ARGUMENT, "after \"dir/\"");
	buf_free(&b);
}

static void test_no_files(void **state)
{
	static const char types[] = "346";
	struct buf b;

	(void)state;
	buf_init(&b, T_ARCHIVE_MAX);
	for (size_t i = 0; types[i]; i++) {
		buf_clear(&b);
		t_member(&b, "special", types[i], "", NULL, 0);
		t_finish(&b);
		t_expect_failure(
		    buf_head(&b), b.len, 512, API_INVALID_ARGUMENT, "\"special\" is a device");
	}
	buf_free(&b);
}

static void test_bad_names(void **state)
{
	struct buf b;
	struct buf r;
	char *name = calloc(1, 10000);

	(void)state;
	assert_non_null(name);
	buf_init(&b, T_ARCHIVE_MAX);
	buf_init(&r, 1U << 20);
	t_member(&b, "", '0', "", NULL, 0);
	t_finish(&b);
	t_expect_failure(buf_head(&b), b.len, 512, API_INVALID_PATH, "no name");
	buf_clear(&b);
	memset(name, 'n', 9999);
	t_record(&r, "path", name, ENTRY_PATH_MAX + 1);
	t_pax(&b, &r);
	t_member(&b, "x", '0', "", NULL, 0);
	t_finish(&b);
	t_expect_failure(buf_head(&b), b.len, 512, API_INVALID_PATH, "too long: \"nnnn");
	buf_clear(&b);
	t_record(&r, "linkpath", name, ENTRY_PATH_MAX + 1);
	t_pax(&b, &r);
	t_member(&b, "x", '2', "y", NULL, 0);
	t_finish(&b);
	t_expect_failure(buf_head(&b), b.len, 512, API_INVALID_PATH, "the link \"x\"");
	buf_clear(&b);
	t_member(&b, "x", '2', "", NULL, 0);
	t_finish(&b);
	t_expect_failure(buf_head(&b), b.len, 512, API_INVALID_PATH, "the link \"x\"");
	/* What comes after a NUL is no part of the name. */
	buf_clear(&b);
	t_record(&r, "path", "ok\0/../../evil", 14);
	t_pax(&b, &r);
	t_member(&b, "y", '0', "", NULL, 0);
	t_finish(&b);
	{
		struct t_heard *h = t_read_all(&b, 512);

		assert_string_equal(h->all[0].path, "ok");
		t_heard_free(h);
	}
	buf_free(&r);
	buf_free(&b);
	free(name);
}

static const struct {
	const char *key;
	const char *value;
} bad_records[] = {
    {"size", "-1"},
    {"size", "99999999999999999999999"},
    {"GNU.sparse.map", "0,3,2,3"},		 /* it goes back */
    {"GNU.sparse.map", "10,100"},		 /* past the end of the file */
    {"GNU.sparse.map", "9223372036854775807,9"}, /* past everything */
    {"GNU.sparse.map", "0,2,3"},		 /* and how much? */
    {"GNU.sparse.map", "0,1,2,99"},		 /* more than there is */
    {"GNU.sparse.map", "x"},
};

static void test_bad_records(void **state)
{
	struct buf b;
	struct buf r;

	(void)state;
	buf_init(&b, T_ARCHIVE_MAX);
	buf_init(&r, 1U << 20);
	for (size_t i = 0; i < sizeof(bad_records) / sizeof(bad_records[0]); i++) {
		buf_clear(&b);
		t_member(&b, "before", '0', "", NULL, 0);
		t_record(
		    &r, bad_records[i].key, bad_records[i].value, strlen(bad_records[i].value));
		t_pax(&b, &r);
		t_member(&b, "f", '0', "", "123456", 6);
		t_finish(&b);
		t_expect_failure(buf_head(&b), b.len, 512, API_INVALID_ARGUMENT, "damaged");
	}
	/* Attributes that cannot be parsed may hide a name. */
	buf_clear(&b);
	t_member(&b, "x", 'x', "", "999 path=evil\n", 14);
	t_member(&b, "f", '0', "", "123456", 6);
	t_finish(&b);
	t_expect_failure(buf_head(&b), b.len, 512, API_INVALID_ARGUMENT, "tar archive");
	buf_free(&r);
	buf_free(&b);
}

/* A header that says there is more than comes. */
static void test_more_claimed_than_comes(void **state)
{
	uint8_t block[512];
	struct buf b;

	(void)state;
	buf_init(&b, T_ARCHIVE_MAX);
	t_fill(block, "claim", '0', 1ULL << 32, "");
	t_seal(block);
	t_put(&b, block);
	for (int i = 0; i < 1000; i++)
		t_member(&b, "data", '0', "", "x", 1);
	t_finish(&b);
	t_expect_failure(buf_head(&b), b.len, 60000, API_INVALID_ARGUMENT, "in \"claim\"");
	buf_free(&b);
}

/* What is kept of one member is bounded: its special headers, and the map of its holes. */
static void test_headers_without_end(void **state)
{
	static char text[900000];
	uint8_t block[512];
	struct buf b;
	struct buf r;

	(void)state;
	memset(text, 'c', sizeof(text));
	buf_init(&b, T_ARCHIVE_MAX);
	buf_init(&r, 1U << 20);
	t_member(&b, "before", '0', "", NULL, 0);
	for (int i = 0; i < 10; i++) {
		t_record(&r, "comment", text, sizeof(text));
		t_pax(&b, &r);
	}
	t_member(&b, "f", '0', "", NULL, 0);
	t_finish(&b);
	t_expect_failure(buf_head(&b), b.len, 100000, API_INVALID_ARGUMENT, "too long");
	/* A map of millions of extents. */
	buf_clear(&b);
	t_member(&b, "before", '0', "", NULL, 0);
	t_record(&r, "GNU.sparse.major", "1", 1);
	t_record(&r, "GNU.sparse.minor", "0", 1);
	t_record(&r, "GNU.sparse.realsize", "999999999", 9);
	t_pax(&b, &r);
	t_fill(block, "f", '0', 32U << 20, "");
	t_seal(block);
	t_put(&b, block);
	assert_int_equal(buf_puts(&b, "9000000\n"), 0);
	for (int i = 0; i < 4000000; i++)
		assert_int_equal(buf_append(&b, "1\n0\n", 4), 0);
	t_expect_failure(buf_head(&b), b.len, 100000, API_INVALID_ARGUMENT, "\"before\"");
	/* And headers of headers. */
	buf_clear(&b);
	t_member(&b, "before", '0', "", NULL, 0);
	for (int i = 0; i < 100; i++) {
		t_record(&r, "comment", "c", 1);
		t_pax(&b, &r);
	}
	t_member(&b, "f", '0', "", NULL, 0);
	t_finish(&b);
	t_expect_failure(buf_head(&b), b.len, 512, API_INVALID_ARGUMENT, "after \"before\"");
	buf_free(&r);
	buf_free(&b);
}

/* However far it has come, everything is given back (which the sanitizer sees). */
static void test_free_in_the_middle(void **state)
{
	struct buf b;

	(void)state;
	tar_in_free(NULL);
	tar_in_free(tar_in_create());
	buf_init(&b, T_ARCHIVE_MAX);
	put_archive(&b);
	for (int i = 0; i < 100; i++) /* so that the records are more than it keeps */
		put_archive(&b);
	for (size_t n = 0; n < b.len; n += 1000) {
		struct tar_in *t = tar_in_create();
		size_t room;

		assert_non_null(t);
		for (size_t at = 0; at < n && (room = tar_in_room(t)) > 0; at += room) {
			room = room < n - at ? room : n - at;
			tar_in_put(t, buf_head(&b) + at, room);
			assert_true(tar_in_run(t) < TAR_IN_DONE);
		}
		tar_in_free(t);
	}
	buf_free(&b);
}

/* Records that nobody takes stop it: neither they nor the input grow. */
static void test_backpressure(void **state)
{
	struct tar_in *t = tar_in_create();
	struct buf b;
	size_t at = 0;
	size_t room;

	(void)state;
	assert_non_null(t);
	buf_init(&b, T_ARCHIVE_MAX);
	for (int i = 0; i < 1000; i++)
		put_archive(&b);
	while ((room = tar_in_room(t)) > 0) {
		tar_in_put(t, buf_head(&b) + at, room);
		at += room;
		assert_true(at < 512U * 1024U);
		(void)tar_in_run(t);
	}
	assert_int_equal(tar_in_run(t), TAR_IN_FULL);
	assert_true(tar_in_records(t)->len < 128U * 1024U);
	do {
		buf_consume(tar_in_records(t), tar_in_records(t)->len);
	} while (tar_in_run(t) == TAR_IN_FULL);
	assert_true(tar_in_room(t) > 64U * 1024U);
	tar_in_free(t);
	buf_free(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_cut_anywhere),
	    cmocka_unit_test(test_no_end_mark),
	    cmocka_unit_test(test_no_archive),
	    cmocka_unit_test(test_bad_checksum),
	    cmocka_unit_test(test_no_files),
	    cmocka_unit_test(test_bad_names),
	    cmocka_unit_test(test_bad_records),
	    cmocka_unit_test(test_more_claimed_than_comes),
	    cmocka_unit_test(test_headers_without_end),
	    cmocka_unit_test(test_free_in_the_middle),
	    cmocka_unit_test(test_backpressure),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
