/* sbx-files unpack: members into a tree, and what makes no sense into none. */
#include <sched.h>
#include <sys/mount.h>

#include "tests/unit/guest/archive_run.h"

/* Unpacks the records into `name` of the tree, "": the tree itself; the exit status. */
static int unpack(struct tree *t, const char *name, const struct buf *records, const char *more,
    char why[AGENT_ERROR_TEXT + 1])
{
	char path[PATH_MAX + 8];
	const char *args[] = {"unpack", path, more, NULL};
	struct helper h;
	struct buf said;
	int status;

	(void)snprintf(path, sizeof(path), "path=%s", *name ? tree_path(t, name) : t->dir);
	buf_init(&said, ARCHIVE_MAX);
	helper_start(&h, args);
	(void)helper_feed(&h, buf_head(records), records->len);
	status = helper_end(&h, &said);
	memcpy(why, h.why, sizeof(h.why));
	assert_int_equal(said.len > 0, status == AGENT_OK);
	buf_free(&said);
	return status;
}

/* It must succeed, or fail with this code. */
static void expect(struct tree *t, const char *name, const struct buf *records, int code)
{
	char why[AGENT_ERROR_TEXT + 1];
	int status = unpack(t, name, records, "overwrite=1", why);

	if (status != code)
		fail_msg("status %d, not %d: %s", status, code, why);
}

static void assert_text(struct tree *t, const char *name, const char *text)
{
	char got[256] = "";
	int fd = open(tree_path(t, name), O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_true(read(fd, got, sizeof(got) - 1) >= 0);
	(void)close(fd);
	assert_string_equal(got, text);
}

/* How many names a directory of the tree has. */
static int count(struct tree *t, const char *name)
{
	char line[PATH_MAX + 32];
	int n = -1;
	FILE *f;

	(void)snprintf(line, sizeof(line), "ls -A %s | wc -l", tree_path(t, name));
	f = popen(line, "re");
	assert_non_null(f);
	assert_int_equal(fscanf(f, "%d", &n), 1);
	assert_int_equal(pclose(f), 0);
	return n;
}

/* Wherever the records end: nothing that is not whole is there, and no temporary name is. */
static void test_cut_anywhere(void **state)
{
	struct tree *t = *state;
	struct buf r;
	size_t first;

	buf_init(&r, ARCHIVE_MAX);
	tree_text(t, "old", "old");
	say_dir(&r, "d", 0755);
	say_file(&r, "d/first", "content");
	first = r.len;
	say_file(&r, "d/second", "x");
	for (size_t n = 0; n < r.len; n++) {
		struct buf part = r;

		part.len = n;
		expect(t, "dest", &part, AGENT_E_SHORT);
		if (n >= first) {
			assert_int_equal(count(t, "dest/d"), 1);
			assert_text(t, "dest/d/first", "content");
		}
		(void)unlink(tree_path(t, "dest/d/first"));
		if (n < first)
			assert_int_equal(count(t, ""),
			    n == 0 || access(tree_path(t, "dest"), F_OK) != 0 ? 1 : 2);
	}
	/* The same for one file that would take the path's place. */
	buf_clear(&r);
	say_file(&r, "any", "content");
	for (size_t n = 0; n <= r.len; n++) {
		struct buf part = r;

		part.len = n;
		expect(t, "old", &part, AGENT_E_SHORT);
		assert_text(t, "old", "old");
		assert_int_equal(count(t, ""), 2);
	}
	buf_free(&r);
}

static void say_junk(struct buf *b)
{
	assert_int_equal(buf_puts(b, "these are no records at all"), 0);
}

static void say_data_of_none(struct buf *b)
{
	say_piece(b, 0, "x", 1);
}

static void say_data_of_directory(struct buf *b)
{
	say_dir(b, "d", 0755);
	say_piece(b, 0, "x", 1);
}

static void say_extents(struct buf *b)
{
	const struct entry_extent x = {.length = 1};

	say_member(b, (struct entry_member){.kind = ENTRY_FILE, .size = 5, .extents = 1}, "f", "");
	say(b, ENTRY_EXTENTS, &x, sizeof(x));
}

static void say_more_after_the_end(struct buf *b)
{
	say_done(b);
	say_file(b, "f", "x");
}

static void say_member_within_member(struct buf *b)
{
	say_member(b, (struct entry_member){.kind = ENTRY_FILE, .size = 5}, "f", "");
	say_file(b, "g", "x");
}

static void say_end_within_member(struct buf *b)
{
	say_member(b, (struct entry_member){.kind = ENTRY_FILE, .size = 5}, "f", "");
	say_done(b);
}

static void (*const senseless[])(struct buf *b) = {
    say_junk,
    say_data_of_none,
    say_data_of_directory,
    say_extents,
    say_more_after_the_end,
    say_member_within_member,
    say_end_within_member,
};

static void test_senseless_records(void **state)
{
	struct tree *t = *state;
	struct buf r;

	buf_init(&r, ARCHIVE_MAX);
	tree_dir(t, "dest");
	for (size_t i = 0; i < sizeof(senseless) / sizeof(senseless[0]); i++) {
		char why[AGENT_ERROR_TEXT + 1];

		buf_clear(&r);
		senseless[i](&r);
		if (unpack(t, "dest", &r, "overwrite=1", why) != AGENT_E_INVALID)
			fail_msg("records %zu: %s", i, why);
		(void)rmdir(tree_path(t, "dest/d"));
		assert_int_equal(count(t, "dest"), 0);
	}
	buf_free(&r);
}

static void test_bad_arguments(void **state)
{
	struct tree *t = *state;
	struct buf r;
	char why[AGENT_ERROR_TEXT + 1];

	buf_init(&r, ARCHIVE_MAX);
	say_done(&r);
	assert_int_equal(unpack(t, "a/../b", &r, NULL, why), AGENT_E_INVALID_PATH);
	assert_int_equal(unpack(t, "a//b", &r, NULL, why), AGENT_E_INVALID_PATH);
	assert_int_equal(unpack(t, "a", &r, "overwrite=2", why), AGENT_E_INVALID);
	assert_int_equal(unpack(t, "a", &r, "what=1", why), AGENT_E_INVALID);
	assert_int_equal(count(t, ""), 0);
	buf_free(&r);
}

/* A file that is almost only a hole, also at its end. */
static void test_holes(void **state)
{
	struct tree *t = *state;
	struct entry_member m = {.kind = ENTRY_FILE, .mode = 0600, .size = 5ULL << 30};
	struct stat st;
	struct buf r;

	buf_init(&r, ARCHIVE_MAX);
	say_member(&r, m, "f", "");
	say_piece(&r, 1ULL << 30, "data", 4);
	say_piece(&r, m.size, NULL, 0);
	say_done(&r);
	expect(t, "f", &r, AGENT_OK);
	assert_int_equal(stat(tree_path(t, "f"), &st), 0);
	assert_int_equal(st.st_size, m.size);
	assert_true(st.st_blocks < 1000);
	assert_int_equal(st.st_mode & 07777, 0600);
	/* Larger than any file may be. */
	buf_clear(&r);
	m.size = INT64_MAX;
	say_member(&r, m, "f", "");
	say_piece(&r, m.size, NULL, 0);
	say_done(&r);
	expect(t, "f", &r, AGENT_E_TOO_LARGE);
	assert_int_equal(count(t, ""), 1);
	buf_free(&r);
}

static void test_hard_links(void **state)
{
	struct tree *t = *state;
	struct stat st;
	struct buf r;

	buf_init(&r, ARCHIVE_MAX);
	say_dir(&r, "d", 0755);
	say_file(&r, "d/a", "a");
	say_link(&r, ENTRY_HARDLINK, "d/a", "d/a");  /* to itself */
	say_link(&r, ENTRY_HARDLINK, "b", "./d//a"); /* and twice */
	say_link(&r, ENTRY_HARDLINK, "b", "d/a");
	say_file(&r, "c", "c");
	say_link(&r, ENTRY_HARDLINK, "c", "d/a"); /* in place of another file */
	say_link(&r, ENTRY_SYMLINK, "s", "nowhere");
	say_link(&r, ENTRY_HARDLINK, "s2", "s"); /* of the link itself */
	say_done(&r);
	expect(t, "dest", &r, AGENT_OK);
	assert_int_equal(stat(tree_path(t, "dest/d/a"), &st), 0);
	assert_int_equal(st.st_nlink, 3);
	assert_text(t, "dest/c", "a");
	assert_int_equal(lstat(tree_path(t, "dest/s2"), &st), 0);
	assert_int_equal(st.st_nlink, 2);
	assert_int_equal(count(t, "dest"), 5);
	buf_clear(&r);
	say_link(&r, ENTRY_HARDLINK, "e", "d");
	say_done(&r);
	expect(t, "dest", &r, AGENT_E_PERMISSION);
	buf_clear(&r);
	say_link(&r, ENTRY_HARDLINK, "e", "missing");
	say_done(&r);
	expect(t, "dest", &r, AGENT_E_INVALID_PATH);
	assert_int_equal(count(t, "dest"), 5);
	buf_free(&r);
}

/* More directories than are remembered: they still have their modes, the late ones their times too.
 */
static void test_many_directories(void **state)
{
	struct tree *t = *state;
	struct entry_member m = {.kind = ENTRY_DIRECTORY, .mode = 0710, .mtime = 1000};
	static const size_t dirs = 20000; /* of 250 bytes each */
	struct stat st;
	struct buf r;
	char name[300];

	buf_init(&r, ARCHIVE_MAX);
	for (size_t i = 0; i < dirs; i++) {
		(void)snprintf(name, sizeof(name), "%zu/%0240zu", i % 100, i);
		say_member(&r, m, name, "");
	}
	say_done(&r);
	expect(t, "dest", &r, AGENT_OK);
	for (size_t i = 0; i < dirs; i++) {
		(void)snprintf(name, sizeof(name), "dest/%zu/%0240zu", i % 100, i);
		assert_int_equal(stat(tree_path(t, name), &st), 0);
		assert_int_equal(st.st_mode & 07777, 0710);
		assert_int_equal(st.st_mtime, 1000);
	}
	buf_free(&r);
}

/* A directory that no one may write to has what belongs into it; one that comes late is told. */
static void test_modes_of_directories(void **state)
{
	struct tree *t = *state;
	struct entry_member late = {.kind = ENTRY_DIRECTORY, .mode = 0500, .mtime = 7};
	struct stat st;
	struct buf r;

	buf_init(&r, ARCHIVE_MAX);
	say_dir(&r, "none", 0);
	say_dir(&r, "none/in", 0);
	say_file(&r, "none/in/file", "x");
	say_file(&r, "late/in/file", "x");
	say_member(&r, late, "late", "");
	say_member(&r, late, ".", "");
	say_done(&r);
	expect(t, "dest", &r, AGENT_OK);
	assert_int_equal(stat(tree_path(t, "dest/none"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0);
	assert_int_equal(st.st_mtime, 0);
	assert_int_equal(stat(tree_path(t, "dest/late/in"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0755);
	assert_int_equal(stat(tree_path(t, "dest/late"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0500);
	assert_int_equal(st.st_mtime, 7);
	assert_int_equal(stat(tree_path(t, "dest"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0500);
	/* A failure leaves them as they are to be, too. */
	buf_clear(&r);
	say_member(&r, late, "failed", "");
	say_file(&r, "../out", "x");
	expect(t, "dest", &r, AGENT_E_INVALID_PATH);
	assert_int_equal(stat(tree_path(t, "dest/failed"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0500);
	buf_free(&r);
}

/* The destination is found through links, and made in what they lead to. */
static void test_links_to_the_destination(void **state)
{
	struct tree *t = *state;
	struct buf r;

	buf_init(&r, ARCHIVE_MAX);
	tree_dir(t, "real");
	assert_int_equal(symlink("real", tree_path(t, "dir")), 0);
	assert_int_equal(symlink("loop", tree_path(t, "loop")), 0);
	assert_int_equal(symlink("real/new/dest", tree_path(t, "new")), 0);
	say_file(&r, "a", "a");
	say_file(&r, "b", "b");
	say_done(&r);
	expect(t, "dir", &r, AGENT_OK);
	expect(t, "new", &r, AGENT_OK);
	expect(t, "dir/x/y", &r, AGENT_OK);
	expect(t, "loop", &r, AGENT_E_INVALID_PATH);
	expect(t, "loop/x", &r, AGENT_E_INVALID_PATH);
	assert_text(t, "real/a", "a");
	assert_text(t, "real/new/dest/b", "b");
	assert_text(t, "real/x/y/b", "b");
	assert_int_equal(count(t, "real"), 4);
	buf_free(&r);
}

/* What was opened for the last member does not count any more when a link has taken its place. */
static void test_a_link_that_changes(void **state)
{
	struct tree *t = *state;
	struct buf r;

	buf_init(&r, ARCHIVE_MAX);
	say_dir(&r, "one", 0755);
	say_dir(&r, "two", 0755);
	say_link(&r, ENTRY_SYMLINK, "link", "one");
	say_file(&r, "link/a", "a");
	say_link(&r, ENTRY_SYMLINK, "link", "two");
	say_file(&r, "link/b", "b");
	say_file(&r, "link", "file");
	say_done(&r);
	expect(t, "dest", &r, AGENT_OK);
	assert_text(t, "dest/one/a", "a");
	assert_text(t, "dest/two/b", "b");
	assert_text(t, "dest/link", "file");
	buf_clear(&r);
	say_link(&r, ENTRY_SYMLINK, "link", "one");
	say_file(&r, "link/a", "a");
	say_file(&r, "link", "file");
	say_file(&r, "link/b", "b");
	say_done(&r);
	expect(t, "dest", &r, AGENT_E_NOT_A_DIRECTORY);
	buf_free(&r);
}

/* Many file systems below one destination, each of which is to be flushed. */
static void test_file_systems(void **state)
{
	struct tree *t = *state;
	char name[32];
	struct buf r;

	if (geteuid() != 0)
		skip(); /* mounts */
	assert_int_equal(unshare(CLONE_NEWNS), 0);
	assert_int_equal(mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
	buf_init(&r, ARCHIVE_MAX);
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < 12; i++) {
			(void)snprintf(name, sizeof(name), "fs%d", i);
			if (round == 0) {
				tree_dir(t, name);
				assert_int_equal(
				    mount("none", tree_path(t, name), "tmpfs", 0, "size=64k"), 0);
			}
			(void)snprintf(name, sizeof(name), "fs%d/f%d", i, round);
			say_file(&r, name, "x");
		}
	}
	say_done(&r);
	expect(t, "", &r, AGENT_OK);
	assert_text(t, "fs11/f1", "x");
	/* One of them is full: the others are not touched by that. */
	buf_clear(&r);
	say_file(&r, "a", "1");
	say_member(&r, (struct entry_member){.kind = ENTRY_FILE, .size = 100000}, "b", "");
	for (uint64_t at = 0; at < 100000; at += 10000) {
		static const char block[10000];

		say_piece(&r, at, block, sizeof(block));
	}
	say_piece(&r, 100000, NULL, 0);
	say_done(&r);
	expect(t, "fs3", &r, AGENT_E_NO_SPACE);
	assert_int_equal(count(t, "fs3"), 3);
	for (int i = 0; i < 12; i++) {
		(void)snprintf(name, sizeof(name), "fs%d", i);
		assert_int_equal(umount2(tree_path(t, name), MNT_DETACH), 0);
	}
	buf_free(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TREE_TEST(test_cut_anywhere),
	    TREE_TEST(test_senseless_records),
	    TREE_TEST(test_bad_arguments),
	    TREE_TEST(test_holes),
	    TREE_TEST(test_hard_links),
	    TREE_TEST(test_many_directories),
	    TREE_TEST(test_modes_of_directories),
	    TREE_TEST(test_links_to_the_destination),
	    TREE_TEST(test_a_link_that_changes),
	    TREE_TEST(test_file_systems),
	};

	(void)signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
