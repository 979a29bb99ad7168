/* How files in boxes are named on a command line, and what a copy becomes. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tools/cli_cp.h"
#include "tools/cli_place.h"

static void test_read(void **state)
{
	static const struct {
		const char *word;
		const char *box; /* NULL: a name on the host */
		const char *path;
	} cases[] = {
	    {"box:/a/b", "box", "/a/b"},
	    {"1000:0123456789abcdef:/", "1000:0123456789abcdef", "/"},
	    {"box:/a:/b", "box", "/a:/b"},
	    {"box:a", NULL, NULL},
	    {"box", NULL, NULL},
	    {"-", NULL, NULL},
	    {":/a", NULL, NULL},
	    {"./box:/a", NULL, NULL},
	    {"/dir:/a", NULL, NULL},
	    {"dir/box:/a", NULL, NULL},
	    {"", NULL, NULL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct cli_place place;

		assert_int_equal(cli_place_read(cases[i].word, &place), cases[i].box != NULL);
		if (cases[i].box) {
			assert_string_equal(place.box, cases[i].box);
			assert_string_equal(place.path, cases[i].path);
		}
	}
}

static void test_target(void **state)
{
	static const struct {
		const char *source;
		const char *folder;
		const char *target; /* NULL: none */
	} cases[] = {
	    {"a", "/tmp", "/tmp/a"},
	    {"x/a/", "/tmp/", "/tmp/a"},
	    {"/a", "/", "/a"},
	    {"a/.", "/tmp", "/tmp"},
	    {".", "/tmp", "/tmp"},
	    {"/", "/tmp", "/tmp"},
	    {"..", "/tmp", NULL},
	    {"a/..", "/tmp", NULL},
	    {"a/...", "/tmp", "/tmp/..."},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char out[PATH_MAX];
		int rc = cli_copy_target(cases[i].source, cases[i].folder, out);

		assert_int_equal(rc, cases[i].target ? 0 : -EINVAL);
		if (cases[i].target)
			assert_string_equal(out, cases[i].target);
	}
}

static void test_plain(void **state)
{
	static const char *const cases[][2] = {
	    {"/a/b", "/a/b"},
	    {"/a/", "/a"},
	    {"/a/.", "/a"},
	    {"/a/./", "/a"},
	    {"/", "/"},
	    {"/.", "/"},
	    {"/a.", "/a."},
	    {"/a/..", "/a/.."},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *plain = cli_copy_plain(cases[i][0]);

		assert_string_equal(plain, cases[i][1]);
		free(plain);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_read),
	    cmocka_unit_test(test_target),
	    cmocka_unit_test(test_plain),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
