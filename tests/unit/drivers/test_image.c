/* Tests of drivers/namespace/image_copy.c and image_host.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "drivers/namespace/image_copy.h"
#include "drivers/namespace/image_host.h"
#include "drivers/namespace/site.h"
#include "lib/fd.h"

struct dirs {
	char path[40];
	int top;
	int src;
	int dst;
};

static int setup(void **state)
{
	struct dirs *d = calloc(1, sizeof(*d));

	assert_non_null(d);
	(void)snprintf(d->path, sizeof(d->path), "/tmp/sbxd-test-image-XXXXXX");
	assert_non_null(mkdtemp(d->path));
	d->top = open(d->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(mkdirat(d->top, "src", 0755), 0);
	assert_int_equal(mkdirat(d->top, "dst", 0755), 0);
	d->src = openat(d->top, "src", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	d->dst = openat(d->top, "dst", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(d->src >= 0 && d->dst >= 0);
	*state = d;
	return 0;
}

static int teardown(void **state)
{
	struct dirs *d = *state;

	fd_close(&d->src);
	fd_close(&d->dst);
	fd_close(&d->top);
	assert_int_equal(record_remove_tree(AT_FDCWD, d->path), 0);
	free(d);
	return 0;
}

static void put(int dir, const char *name, const char *text, mode_t mode)
{
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(fchmod(fd, mode), 0);
	(void)close(fd);
}

static int has(int dir, const char *name)
{
	struct stat st;

	return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static void test_copies_what_is_public(void **state)
{
	struct dirs *d = *state;
	struct stat st;
	char text[64];

	assert_int_equal(mkdirat(d->src, "t", 0755), 0);
	assert_int_equal(mkdirat(d->src, "t/closed", 0700), 0);
	put(d->src, "t/file", "hello", 0644);
	put(d->src, "t/program", "#!", 0755);
	put(d->src, "t/secret", "x", 0640);
	put(d->src, "t/page.1.gz", "x", 0644);
	put(d->src, "t/closed/file", "x", 0644);
	assert_int_equal(symlinkat("/nowhere", d->src, "t/link"), 0);
	assert_int_equal(mkfifoat(d->src, "t/fifo", 0644), 0);
	assert_int_equal(image_copy(d->src, d->dst, "t"), 0);

	assert_int_equal(fd_read_file_at(d->dst, "t/file", text, sizeof(text)), 5);
	assert_string_equal(text, "hello");
	assert_int_equal(fstatat(d->dst, "t/file", &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, 0644);
	assert_int_equal(fstatat(d->dst, "t/program", &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, 0755);
	assert_int_equal(readlinkat(d->dst, "t/link", text, sizeof(text)), 8);
	assert_false(has(d->dst, "t/secret"));
	assert_false(has(d->dst, "t/page.1.gz"));
	assert_false(has(d->dst, "t/closed"));
	assert_false(has(d->dst, "t/fifo"));
}

static void test_missing_is_left_out(void **state)
{
	struct dirs *d = *state;

	assert_int_equal(image_copy(d->src, d->dst, "missing"), 0);
	assert_false(has(d->dst, "missing"));
}

static void test_prefix(void **state)
{
	struct dirs *d = *state;

	put(d->src, "java-17", "x", 0644);
	put(d->src, "java-21", "x", 0644);
	put(d->src, "javascript", "x", 0644);
	assert_int_equal(image_copy_prefix(d->src, d->dst, "java-"), 0);
	assert_true(has(d->dst, "java-17") && has(d->dst, "java-21"));
	assert_false(has(d->dst, "javascript"));
}

/* A umask must not decide what the users of a box can read. */
static void test_umask_does_not_matter(void **state)
{
	struct dirs *d = *state;
	struct stat st;
	mode_t before = umask(077);
	struct err err = {0};

	assert_int_equal(image_build_base(d->dst, &err), 0);
	(void)umask(before);
	assert_int_equal(fstatat(d->dst, "tmp", &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, 01777);
	assert_int_equal(fstatat(d->dst, "dev/null", &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, 0644);
}

static void test_host_layer(void **state)
{
	static const char *const there[] = {"etc/passwd", "etc/hosts", "etc/resolv.conf", "usr",
	    "bin", "proc", "root", "home", "run", "tmp", "var/tmp", "mnt/skills",
	    "mnt/user-data/workspace", "mnt/user-data/uploads", "mnt/user-data/outputs"};
	static const char *const absent[] = {
	    "etc/shadow", "etc/gshadow", "etc/ssh", "etc/ssl/private", "etc/sudoers", "etc/fstab"};
	struct dirs *d = *state;
	struct ns_prepared *prep = calloc(1, sizeof(*prep));
	struct err err = {0};
	char text[1024];

	assert_non_null(prep);
	if (image_build_host(d->dst, prep, &err) < 0)
		fail_msg("%s", err.text);
	for (size_t i = 0; i < sizeof(there) / sizeof(there[0]); i++)
		assert_true(has(d->dst, there[i]));
	for (size_t i = 0; i < sizeof(absent) / sizeof(absent[0]); i++)
		assert_false(has(d->dst, absent[i]));
	assert_int_equal(fd_read_file_at(d->dst, "etc/resolv.conf", text, sizeof(text)), 0);
	assert_true(fd_read_file_at(d->dst, "etc/passwd", text, sizeof(text)) > 0);
	assert_int_equal(strncmp(text, "root:x:0:0:", 11), 0);
	free(prep);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_copies_what_is_public, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_missing_is_left_out, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_prefix, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_umask_does_not_matter, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_host_layer, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
