/*
 * guest/users.c: passwd and group files of any kind, in a root directory of the test's own.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "guest/users.h"

struct root {
	char dir[40];
	int fd;
};

static void put(const struct root *r, const char *name, const char *text)
{
	int fd = openat(r->fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

static int setup(void **state)
{
	struct root *r = calloc(1, sizeof(*r));

	assert_non_null(r);
	memcpy(r->dir, "/tmp/sbx-users-test-XXXXXX", sizeof("/tmp/sbx-users-test-XXXXXX"));
	assert_non_null(mkdtemp(r->dir));
	r->fd = open(r->dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(mkdirat(r->fd, "etc", 0755), 0);
	*state = r;
	return 0;
}

static int teardown(void **state)
{
	struct root *r = *state;

	(void)unlinkat(r->fd, "etc/passwd", 0);
	(void)unlinkat(r->fd, "etc/group", 0);
	(void)unlinkat(r->fd, "etc", AT_REMOVEDIR);
	close(r->fd);
	assert_int_equal(rmdir(r->dir), 0);
	free(r);
	return 0;
}

static const char passwd[] = "root:x:0:0:root:/root:/bin/bash\n"
			     "# a comment: of no kind\n"
			     "\n"
			     "short:x:1\n"
			     "bad:x:abc:5::/:/bin/sh\n"
			     "big:x:4294967296:5::/:/bin/sh\n"
			     "ann:x:1000:1001:Ann,,,:/home/ann:/bin/zsh\n"
			     "bob:x:1002:1003::::\n"
			     "ann:x:7:7::/second:/bin/sh\n"
			     "last:x:1004:1005:no newline:/home/last:/bin/sh";
static const char group[] = "root:x:0:\n"
			    "wheel:x:10:ann,bob\n"
			    "ann:x:1001:ann\n"
			    "annex:x:11:anna,xann\n"
			    "audio:x:12:ann\n"
			    "none:x:13\n"
			    "video:x:14:bob,ann";

static void test_names_and_numbers(void **state)
{
	static const struct {
		const char *spec;
		int rc;
		uint32_t uid;
		uint32_t gid;
		uint32_t groups;
		const char *name;
		const char *home;
		const char *shell;
	} rows[] = {
	    {"", 0, 0, 0, 0, "root", "/root", "/bin/bash"},
	    {"root", 0, 0, 0, 0, "root", "/root", "/bin/bash"},
	    {"0", 0, 0, 0, 0, "root", "/root", "/bin/bash"},
	    {"ann", 0, 1000, 1001, 3, "ann", "/home/ann", "/bin/zsh"},
	    {"1000", 0, 1000, 1001, 3, "ann", "/home/ann", "/bin/zsh"},
	    {"bob", 0, 1002, 1003, 2, "bob", "/", "/bin/sh"},
	    {"last", 0, 1004, 1005, 0, "last", "/home/last", "/bin/sh"},
	    {"555", 0, 555, 0, 0, "555", "/", "/bin/sh"},
	    {"555:666", 0, 555, 666, 0, "555", "/", "/bin/sh"},
	    {"ann:666", 0, 1000, 666, 0, "ann", "/home/ann", "/bin/zsh"},
	    {"ann:wheel", 0, 1000, 10, 0, "ann", "/home/ann", "/bin/zsh"},
	    {"1000:video", 0, 1000, 14, 0, "ann", "/home/ann", "/bin/zsh"},
	    {"carl", -ENOENT, 0, 0, 0, NULL, NULL, NULL},
	    {"short", -ENOENT, 0, 0, 0, NULL, NULL, NULL},
	    {"bad", -ENOENT, 0, 0, 0, NULL, NULL, NULL},
	    {"big", -ENOENT, 0, 0, 0, NULL, NULL, NULL},
	    {"4294967295", -ENOENT, 0, 0, 0, NULL, NULL, NULL},
	    {"-1", -ENOENT, 0, 0, 0, NULL, NULL, NULL},
	    {"ann:carl", -ENOENT, 0, 0, 0, NULL, NULL, NULL},
	    {"ann:", -EINVAL, 0, 0, 0, NULL, NULL, NULL},
	    {":wheel", -EINVAL, 0, 0, 0, NULL, NULL, NULL},
	    {":", -EINVAL, 0, 0, 0, NULL, NULL, NULL},
	};
	const struct root *r = *state;

	put(r, "etc/passwd", passwd);
	put(r, "etc/group", group);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct user u;
		int rc = users_resolve(r->fd, rows[i].spec, &u);

		if (rc != rows[i].rc)
			fail_msg("\"%s\": %d", rows[i].spec, rc);
		if (rc != 0)
			continue;
		assert_int_equal(u.uid, rows[i].uid);
		assert_int_equal(u.gid, rows[i].gid);
		assert_int_equal(u.group_count, rows[i].groups);
		assert_string_equal(u.name, rows[i].name);
		assert_string_equal(u.home, rows[i].home);
		assert_string_equal(u.shell, rows[i].shell);
	}
}

static void test_without_files(void **state)
{
	const struct root *r = *state;
	struct user u;

	assert_int_equal(users_resolve(r->fd, "", &u), 0);
	assert_int_equal(u.uid, 0);
	assert_string_equal(u.home, "/root");
	assert_string_equal(u.name, "root");
	assert_int_equal(users_resolve(r->fd, "77", &u), 0);
	assert_int_equal(u.uid, 77);
	assert_int_equal(users_resolve(r->fd, "ann", &u), -ENOENT);
}

/* The box may have put anything there. */
static void test_files_of_other_kinds(void **state)
{
	const struct root *r = *state;
	struct user u;

	assert_int_equal(mkfifoat(r->fd, "etc/passwd", 0644), 0);
	assert_int_equal(users_resolve(r->fd, "ann", &u), -ENOENT); /* and does not hang */
	assert_int_equal(unlinkat(r->fd, "etc/passwd", 0), 0);
	assert_int_equal(symlinkat("/dev/zero", r->fd, "etc/passwd"), 0);
	assert_int_equal(users_resolve(r->fd, "ann", &u), -ENOENT);
	assert_int_equal(unlinkat(r->fd, "etc/passwd", 0), 0);
	/* An absolute link is one within the root. */
	put(r, "etc/group", passwd);
	assert_int_equal(symlinkat("/etc/group", r->fd, "etc/passwd"), 0);
	assert_int_equal(users_resolve(r->fd, "last", &u), 0);
	assert_int_equal(u.uid, 1004);
}

static void test_long_lines_and_many(void **state)
{
	const struct root *r = *state;
	const size_t size = 200000;
	char *text = malloc(size + 200);
	struct user u;
	size_t n;

	assert_non_null(text);
	memset(text, 'a', size);
	memcpy(text + size, "\nann:x:1000:1001::/home/ann:/bin/sh\n", 37);
	put(r, "etc/passwd", text);
	assert_int_equal(users_resolve(r->fd, "ann", &u), 0);
	assert_int_equal(u.uid, 1000);
	/* The rest of a line that was cut is no line of its own. */
	memset(text, 'a', USERS_LINE_MAX);
	memcpy(text + USERS_LINE_MAX, "eve:x:0:0::/:/bin/sh\n", 22);
	put(r, "etc/passwd", text);
	assert_int_equal(users_resolve(r->fd, "eve", &u), -ENOENT);
	n = 0;
	for (int i = 0; i < 2000; i++)
		n += (size_t)snprintf(
		    text + n, size - n, "u%d:x:%d:%d::/h/%d:/bin/sh\n", i, i + 10, i, i);
	put(r, "etc/passwd", text);
	assert_int_equal(users_resolve(r->fd, "u1999", &u), 0);
	assert_int_equal(u.uid, 2009);
	assert_string_equal(u.home, "/h/1999");
	/* More groups than are taken. */
	n = 0;
	for (int i = 0; i < 100; i++)
		n += (size_t)snprintf(text + n, size - n, "g%d:x:%d:u1999\n", i, i + 50);
	put(r, "etc/group", text);
	assert_int_equal(users_resolve(r->fd, "u1999", &u), 0);
	assert_int_equal(u.group_count, USERS_GROUPS);
	/* A field that does not fit is as if it were empty. */
	memset(text, 'h', 600);
	memcpy(text, "ann:x:1000:1001::/", 18);
	memcpy(text + 600, ":/bin/sh\n", 10);
	put(r, "etc/passwd", text);
	assert_int_equal(users_resolve(r->fd, "ann", &u), 0);
	assert_string_equal(u.home, "/");
	memset(text, 'n', USERS_NAME_MAX);
	text[USERS_NAME_MAX] = '\0';
	assert_int_equal(users_resolve(r->fd, text, &u), -EINVAL);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_names_and_numbers, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_without_files, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_files_of_other_kinds, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_long_lines_and_many, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
