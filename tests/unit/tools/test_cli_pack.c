/* Trees into archives and out of them again: as they were, and never outside of their directory. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/buf.h"
#include "tools/cli_pack.h"
#include "tools/cli_unpack.h"
#include "wire/tar_head.h"

#define PIECE 700 /* of an archive at a time: boundaries fall anywhere */

struct stage {
	char dir[32];
	int root; /* dir/in, into which is unpacked */
	struct buf tar;
};

static int set_up(void **state)
{
	struct stage *t = calloc(1, sizeof(*t));
	char path[64];

	strcpy(t->dir, "/tmp/sbxd-pack-XXXXXX");
	assert_non_null(mkdtemp(t->dir));
	snprintf(path, sizeof(path), "%s/in", t->dir);
	assert_int_equal(mkdir(path, 0755), 0);
	t->root = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(t->root >= 0);
	buf_init(&t->tar, 16U << 20);
	*state = t;
	return 0;
}

static int tear_down(void **state)
{
	struct stage *t = *state;
	char command[64];

	close(t->root);
	buf_free(&t->tar);
	snprintf(command, sizeof(command), "rm -rf %s", t->dir);
	assert_int_equal(system(command), 0);
	free(t);
	return 0;
}

static void put(
    struct stage *t, enum entry_kind kind, const char *name, const char *link, const char *content)
{
	const struct entry_member m = {.kind = kind,
	    .mode = 06755,
	    .size = content ? strlen(content) : 0,
	    .mtime = 1000,
	    .path_len = (uint32_t)strlen(name),
	    .link_len = (uint32_t)strlen(link)};
	const struct tar_head h = {.member = &m, .path = name, .link = link, .data = m.size};

	assert_int_equal(tar_head_put(&t->tar, &h), 0);
	if (content) {
		assert_int_equal(buf_append(&t->tar, content, strlen(content)), 0);
		assert_int_equal(tar_zeros_put(&t->tar, -strlen(content) % TAR_BLOCK), 0);
	}
}

/* As a connection would: some bytes at a time. */
static int give(void *ctx, const uint8_t **bytes, size_t *n, struct err *err)
{
	struct stage *t = ctx;
	static uint8_t piece[PIECE];

	(void)err;
	*n = t->tar.len < PIECE ? t->tar.len : PIECE;
	memcpy(piece, buf_head(&t->tar), *n);
	buf_consume(&t->tar, *n);
	*bytes = piece;
	return *n > 0;
}

static int unpack(struct stage *t, struct err *err)
{
	assert_int_equal(tar_zeros_put(&t->tar, (size_t)2 * TAR_BLOCK), 0);
	return cli_unpack(t->root, give, t, err);
}

static void test_hostile_members(void **state)
{
	static const struct {
		enum entry_kind kind;
		const char *name;
		const char *link;
		int rc;
	} cases[] = {
	    {ENTRY_FILE, "../out", "", -EINVAL},
	    {ENTRY_FILE, "a/../../out", "", -EINVAL},
	    {ENTRY_FILE, "/tmp/out", "", -EINVAL},
	    {ENTRY_FILE, "..", "", -EINVAL},
	    {ENTRY_FILE, "./", "", -EINVAL},
	    {ENTRY_DIRECTORY, "../out/", "", -EINVAL},
	    {ENTRY_SYMLINK, "../out", "x", -EINVAL},
	    {ENTRY_HARDLINK, "hard", "../secret", -EINVAL},
	    {ENTRY_HARDLINK, "hard", "/etc/passwd", -EINVAL},
	    {ENTRY_HARDLINK, "hard", "door/secret", -ELOOP},
	    {ENTRY_FILE, "door/out", "", -ELOOP},
	    {ENTRY_DIRECTORY, "door/", "", -ENOTDIR},
	    {ENTRY_FILE, "missing/out", "", -ENOENT},
	};
	struct stage *t = *state;
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "%s/secret", t->dir);
	assert_int_equal(close(open(path, O_WRONLY | O_CREAT, 0600)), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct err err;

		buf_clear(&t->tar);
		put(t, ENTRY_SYMLINK, "door", "..", NULL);
		put(t, cases[i].kind, cases[i].name, cases[i].link,
		    cases[i].kind == ENTRY_FILE ? "bad" : NULL);
		put(t, ENTRY_FILE, "after", "", "x");
		assert_int_equal(unpack(t, &err), cases[i].rc);
		snprintf(path, sizeof(path), "%s/out", t->dir);
		assert_int_equal(lstat(path, &st), -1);
		assert_int_equal(
		    fstatat(t->root, "after", &st, 0), -1); /* the first error ends it */
		snprintf(path, sizeof(path), "%s/secret", t->dir);
		assert_int_equal(lstat(path, &st), 0);
		assert_int_equal(st.st_nlink, 1);
		assert_int_equal(st.st_size, 0);
	}
}

static void test_what_was_there(void **state)
{
	struct stage *t = *state;
	char text[16] = "";
	struct stat st;
	struct err err;
	int fd;

	assert_int_equal(symlinkat("../secret", t->root, "f"), 0);
	assert_int_equal(mkdirat(t->root, "d", 0711), 0);
	put(t, ENTRY_DIRECTORY, "./", "", NULL);
	put(t, ENTRY_FILE, "f", "", "new");
	put(t, ENTRY_HARDLINK, "g", "f", NULL);
	put(t, ENTRY_HARDLINK, "f", "g", NULL); /* over itself */
	put(t, ENTRY_DIRECTORY, "d/", "", NULL);
	put(t, ENTRY_DIRECTORY, "e/", "", NULL);
	put(t, ENTRY_SYMLINK, "e/l", "/nowhere", NULL);
	assert_int_equal(unpack(t, &err), 0);
	assert_int_equal(fstatat(t->root, "f", &st, AT_SYMLINK_NOFOLLOW), 0);
	assert_true(S_ISREG(st.st_mode));
	assert_int_equal(st.st_mode & 07777, 0755); /* no set-id bits */
	assert_int_equal(st.st_nlink, 2);
	assert_int_equal(st.st_mtime, 1000);
	fd = openat(t->root, "f", O_RDONLY);
	assert_int_equal(read(fd, text, sizeof(text)), 3);
	assert_string_equal(text, "new");
	close(fd);
	assert_int_equal(fstatat(t->root, "d", &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, 0711);
	assert_int_equal(fstatat(t->root, "e", &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, 0755);
	assert_int_equal(st.st_mtime, 1000);
}

static void test_archives_that_are_damaged_or_cut(void **state)
{
	struct stage *t = *state;
	struct stat st;
	struct err err;

	put(t, ENTRY_FILE, "whole", "", "x");
	put(t, ENTRY_FILE, "cut", "", "0123456789");
	t->tar.len -= TAR_BLOCK; /* the content of the second */
	assert_int_equal(cli_unpack(t->root, give, t, &err), -EBADMSG);
	assert_int_equal(fstatat(t->root, "whole", &st, 0), 0);
	assert_int_equal(fstatat(t->root, "cut", &st, 0), -1);
	buf_clear(&t->tar);
	put(t, ENTRY_FILE, "f", "", "x");
	t->tar.data[t->tar.off + 148] ^= 1; /* the sum */
	assert_int_equal(unpack(t, &err), -EBADMSG);
}

static void test_a_file_that_becomes_shorter(void **state)
{
	struct cli_progress progress = {.next_ns = 0};
	struct stage *t = *state;
	struct cli_pack *p = NULL;
	char path[64];
	uint8_t *bytes;
	struct stat st;
	struct err err;
	ssize_t n;
	int fd = openat(t->root, "f", O_WRONLY | O_CREAT, 0644);

	assert_int_equal(ftruncate(fd, 300000), 0);
	snprintf(path, sizeof(path), "%s/in", t->dir);
	assert_int_equal(cli_pack_open(path, &progress, &p, &err), 0);
	bytes = malloc(1U << 20);
	n = cli_pack_fill(p, bytes, 2048, &err); /* both heads, and some of it */
	assert_int_equal(n, 2048);
	assert_int_equal(buf_append(&t->tar, bytes, (size_t)n), 0);
	assert_int_equal(ftruncate(fd, 70000), 0);
	while ((n = cli_pack_fill(p, bytes, 1U << 20, &err)) > 0)
		assert_int_equal(buf_append(&t->tar, bytes, (size_t)n), 0);
	assert_int_equal(n, 0);
	assert_int_equal(cli_pack_skipped(p), 1);
	cli_pack_close(p);
	assert_int_equal(unlinkat(t->root, "f", 0), 0);
	assert_int_equal(cli_unpack(t->root, give, t, &err), 0);
	assert_int_equal(fstatat(t->root, "f", &st, 0), 0);
	assert_int_equal(st.st_size, 300000); /* as its head has promised */
	free(bytes);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_hostile_members, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_what_was_there, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(
		test_archives_that_are_damaged_or_cut, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_a_file_that_becomes_shorter, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
