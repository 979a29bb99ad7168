/* The line that tells how far it is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tools/cli_progress.h"

static void test_line(void **state)
{
	static const struct {
		struct cli_progress p;
		double seconds;
		int columns;
		const char *line;
	} cases[] = {
	    {{.what = "file", .total = 4096, .done = 1024}, 1, 79,
		"file  1.0K of 4.0K  25%  1.0K/s  3.0s left"},
	    {{.what = "file", .total = 0, .done = 1024}, 2, 79, "file  1.0K  512/s"},
	    {{.what = "file", .total = 10, .done = 0}, 1, 79, "file  0  0/s"},
	    {{.what = "file", .total = 10, .done = 20}, 1, 79, "file  20  20/s"}, /* it grew */
	    {{.what = "a-long-name-of-a-file", .total = 0, .done = 2048}, 1, 24,
		"a-long-na~  2.0K  2.0K/s"},
	    {{.what = "a-long-name-of-a-file", .total = 0, .done = 2048}, 1, 15, "2.0K  2.0K/s"},
	    {{.what = "a-long-name-of-a-file", .total = 0, .done = 2048}, 1, 6, "2.0K  "},
	    {{.what = "e\x1b[31m", .total = 0, .done = 1}, 1, 79, "e?[31m  1  1/s"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char line[2048];

		cli_progress_line(
		    &cases[i].p, cases[i].seconds, cases[i].columns, line, sizeof(line));
		assert_string_equal(line, cases[i].line);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
