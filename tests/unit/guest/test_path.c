/*
 * guest/path.c and guest/text.c: what a client may name, and the texts of errors.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "guest/path.h"
#include "guest/text.h"

static void test_rules(void **state)
{
	static const struct {
		const char *path;
		size_t n;
		bool valid;
	} rows[] = {
	    {"/", 1, true},
	    {"/a", 2, true},
	    {"/a/b.c/..d/...", 14, true},
	    {"/\xff:\n", 4, true},
	    {"/.hidden", 8, true},
	    {"", 0, false},
	    {"a", 1, false},
	    {"./a", 3, false},
	    {"//", 2, false},
	    {"//a", 3, false},
	    {"/a/", 3, false},
	    {"/a//b", 5, false},
	    {"/..", 3, false},
	    {"/a/..", 5, false},
	    {"/../a", 5, false},
	    {"/.", 2, false},
	    {"/a/./b", 6, false},
	    {"/a\0b", 4, false},
	    {"/a\0", 3, false},
	};
	char longest[PATH_LEN_MAX + 1];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		/* In memory that ends with the path. */
		char *exact = malloc(rows[i].n + 1);

		assert_non_null(exact);
		memcpy(exact + 1, rows[i].path, rows[i].n);
		if (path_is_valid(exact + 1, rows[i].n) != rows[i].valid)
			fail_msg("%s", rows[i].path);
		free(exact);
	}
	memset(longest, 'a', sizeof(longest));
	longest[0] = '/';
	assert_true(path_is_valid(longest, PATH_LEN_MAX));
	assert_false(path_is_valid(longest, PATH_LEN_MAX + 1));
}

/* Report 13: no link leads out of the root. */
static void test_report_13_links_stay_in_the_root(void **state)
{
	char dir[] = "/tmp/sbx-path-test-XXXXXX";
	int root;
	int fd;
	char byte;

	(void)state;
	assert_non_null(mkdtemp(dir));
	root = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(symlinkat("../../../../etc/passwd", root, "up"), 0);
	assert_int_equal(symlinkat("/etc/passwd", root, "absolute"), 0);
	assert_int_equal(symlinkat("/", root, "slash"), 0);
	assert_int_equal(path_open(root, "/up", O_RDONLY, 0), -ENOENT);
	assert_int_equal(path_open(root, "/absolute", O_RDONLY, 0), -ENOENT);
	assert_int_equal(path_open(root, "/slash/etc/passwd", O_RDONLY, 0), -ENOENT);
	assert_int_equal(mkdirat(root, "etc", 0755), 0);
	fd = openat(root, "etc/passwd", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	assert_int_equal(write(fd, "i", 1), 1);
	close(fd);
	for (int i = 0; i < 3; i++) {
		static const char *const paths[] = {"/up", "/absolute", "/slash/etc/passwd"};

		fd = path_open_regular(root, paths[i]);
		assert_true(fd >= 0);
		assert_int_equal(read(fd, &byte, 1), 1);
		assert_int_equal(byte, 'i'); /* the inner one */
		assert_true((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
		close(fd);
	}
	assert_int_equal(path_open_regular(root, "/etc"), -EISDIR);
	assert_int_equal(unlinkat(root, "up", 0), 0);
	assert_int_equal(unlinkat(root, "absolute", 0), 0);
	assert_int_equal(unlinkat(root, "slash", 0), 0);
	assert_int_equal(unlinkat(root, "etc/passwd", 0), 0);
	assert_int_equal(unlinkat(root, "etc", AT_REMOVEDIR), 0);
	close(root);
	assert_int_equal(rmdir(dir), 0);
}

static void test_codes(void **state)
{
	struct text t;

	(void)state;
	assert_int_equal(path_code(ENOENT), AGENT_E_NOT_FOUND);
	assert_int_equal(path_code(ENOSPC), AGENT_E_NO_SPACE);
	assert_int_equal(path_code(EDQUOT), AGENT_E_NO_SPACE);
	assert_int_equal(path_code(EIO), AGENT_E_IO);
	assert_int_equal(path_code(ENOSYS), AGENT_E_IO);
	text_clear(&t);
	path_explain(&t, "cannot read", "/x", ENOSYS);
	assert_string_equal(t.s, "cannot read /x: the kernel has no openat2");
}

static void test_text_is_cut(void **state)
{
	struct text t;
	char big[2 * AGENT_ERROR_TEXT];

	(void)state;
	memset(big, 'x', sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	text_clear(&t);
	text_add(&t, big);
	assert_int_equal(t.len, AGENT_ERROR_TEXT);
	assert_int_equal(strlen(t.s), AGENT_ERROR_TEXT);
	text_add(&t, "more");
	assert_int_equal(t.len, AGENT_ERROR_TEXT);
	text_clear(&t);
	text_add_quoted(&t, "ab\n\x1b\x7f", 10);
	assert_string_equal(t.s, "ab???");
	text_clear(&t);
	text_add_quoted(&t, "a\xc3\xa4\xc3\xa4", 4); /* not within a character */
	assert_string_equal(t.s, "a\xc3\xa4...");
	text_clear(&t);
	text_add_quoted(&t, "abcd", 4);
	assert_string_equal(t.s, "abcd");
}

static void test_numbers(void **state)
{
	struct text t;
	uint64_t n = 0;

	(void)state;
	text_clear(&t);
	text_add_uint(&t, 0);
	text_add(&t, " ");
	text_add_uint(&t, UINT64_MAX);
	assert_string_equal(t.s, "0 18446744073709551615");
	assert_int_equal(text_parse_uint("18446744073709551615", 20, UINT64_MAX, &n), 0);
	assert_true(n == UINT64_MAX);
	assert_int_equal(text_parse_uint("18446744073709551616", 20, UINT64_MAX, &n), -EINVAL);
	assert_int_equal(text_parse_uint("255", 3, 255, &n), 0);
	assert_int_equal(n, 255);
	assert_int_equal(text_parse_uint("256", 3, 255, &n), -EINVAL);
	assert_int_equal(text_parse_uint("9", 1, 5, &n), -EINVAL);
	assert_int_equal(text_parse_uint("", 0, 255, &n), -EINVAL);
	assert_int_equal(text_parse_uint("-1", 2, 255, &n), -EINVAL);
	assert_int_equal(text_parse_uint("1 ", 2, 255, &n), -EINVAL);
	assert_int_equal(n, 255);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_rules),
	    cmocka_unit_test(test_report_13_links_stay_in_the_root),
	    cmocka_unit_test(test_codes),
	    cmocka_unit_test(test_text_is_cut),
	    cmocka_unit_test(test_numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
