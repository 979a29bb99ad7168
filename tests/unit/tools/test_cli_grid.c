/* Tables that fit: which columns give, which go, and what is written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tools/cli_grid.h"

static const struct cli_column columns[] = {
    {"BOX", 16, 0, false},
    {"USER", 4, 1, false},
    {"THREAD", 4, 0, false},
    {"N", 0, 2, true},
};

#define COLUMNS (sizeof(columns) / sizeof(columns[0]))

static void test_fit(void **state)
{
	static const struct {
		int natural[COLUMNS];
		int limit;
		int widths[COLUMNS];
	} cases[] = {
	    {{16, 30, 20, 5}, 0, {16, 30, 20, 5}},  /* no terminal */
	    {{16, 30, 20, 5}, 74, {16, 30, 20, 5}}, /* just fits */
	    {{16, 30, 20, 5}, 73, {16, 29, 20, 5}}, /* the widest gives */
	    {{16, 30, 20, 5}, 60, {16, 18, 18, 5}}, /* then both */
	    {{16, 30, 20, 5}, 32, {16, 4, 4, 5}},   /* as little as they need */
	    {{16, 30, 20, 5}, 31, {16, 6, 7, 0}},   /* N goes first, and the others have its room */
	    {{16, 30, 20, 5}, 25, {16, 0, 8, 0}},   /* then USER */
	    {{16, 30, 20, 5}, 10, {5, 0, 4, 0}},    /* what is to stay stays, but less of it */
	    {{16, 2, 3, 5}, 29, {16, 2, 3, 5}}, /* what is shorter than its least needs no more */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int widths[COLUMNS];

		cli_grid_fit(columns, cases[i].natural, COLUMNS, cases[i].limit, widths);
		for (size_t k = 0; k < COLUMNS; k++) {
			if (widths[k] != cases[i].widths[k])
				fail_msg("case %zu: column %zu has %d, not %d", i, k, widths[k],
				    cases[i].widths[k]);
		}
	}
}

static char *put(struct cli_screen screen, const char *user)
{
	const struct cli_cell cells[COLUMNS] = {{"0123456789abcdef", CLI_PLAIN}, {user, CLI_GOOD},
	    {"t\x1b", CLI_PLAIN}, {"7", CLI_PLAIN}};
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);
	struct cli_grid g;

	assert_non_null(f);
	cli_grid_init(&g, columns, COLUMNS);
	cli_grid_add(&g, cells);
	cli_grid_put(&g, f, &screen);
	cli_grid_free(&g);
	assert_int_equal(fclose(f), 0);
	return text;
}

static void test_what_is_written(void **state)
{
	static const struct {
		struct cli_screen screen;
		const char *user;
		const char *text;
	} cases[] = {
	    {{0, false}, "a-long-name-of-a-user",
		"BOX              USER                  THREAD N\n"
		"0123456789abcdef a-long-name-of-a-user t?     7\n"},
	    {{34, false}, "a-long-name-of-a-user",
		"BOX              USER     THREAD N\n"
		"0123456789abcdef a-long-~ t?     7\n"},
	    {{23, false}, "a-long-name-of-a-user",
		"BOX              THREAD\n"
		"0123456789abcdef t?\n"},
	    {{0, true}, "u",
		"\033[1mBOX\033[0m              \033[1mUSER\033[0m \033[1mTHREAD\033[0m "
		"\033[1mN\033[0m\n"
		"0123456789abcdef \033[32mu\033[0m    t?     7\n"},
	    {{0, false}, "\xe6\x97\xa5\xe6\x9c\xac",
		"BOX              USER THREAD N\n"
		"0123456789abcdef \xe6\x97\xa5\xe6\x9c\xac t?     7\n"},
	};

	(void)state;
	(void)cli_screen_of(-1); /* the locale */
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *text = put(cases[i].screen, cases[i].user);

		if (strcmp(text, cases[i].text) != 0)
			fail_msg("case %zu:\n%s", i, text);
		free(text);
	}
}

static void test_what_is_no_terminal_has_no_width_and_no_colours(void **state)
{
	int ends[2];
	struct cli_screen s;

	(void)state;
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(setenv("COLUMNS", "40", 1), 0);
	assert_int_equal(setenv("TERM", "xterm", 1), 0);
	s = cli_screen_of(ends[1]);
	assert_int_equal(s.columns, 0);
	assert_false(s.colors);
	close(ends[0]);
	close(ends[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_fit),
	    cmocka_unit_test(test_what_is_written),
	    cmocka_unit_test(test_what_is_no_terminal_has_no_width_and_no_colours),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
