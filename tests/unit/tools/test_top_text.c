/* Tests of tools/top_text.c and tools/top_line.c: what reaches a terminal, and its width. */
#include "tools/top_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <locale.h>

#include "lib/clock.h"
#include "tools/top_line.h"

struct fit_case {
	const char *text;
	int columns;
	const char *out;
	int taken;
};

static void check_fits(const struct fit_case *cases, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		char out[64];
		struct top_piece p =
		    top_text_fit(cases[i].text, cases[i].columns, out, sizeof(out));

		assert_string_equal(out, cases[i].out);
		assert_int_equal(p.bytes, strlen(out));
		assert_int_equal(p.columns, cases[i].taken);
	}
}

static void test_cut_by_columns(void **state)
{
	static const struct fit_case cases[] = {
	    {"", 5, "", 0},
	    {"abc", 3, "abc", 3},
	    {"abc", 2, "a~", 2},
	    {"abc", 1, "~", 1},
	    {"abc", 0, "", 0},
	    {"abc", -4, "", 0},
	    {"n\xc3\xa4me", 4, "n\xc3\xa4me", 4},
	    {"n\xc3\xa4me", 3, "n\xc3\xa4~", 3},
	    /* Two columns each; where only one is left, none of them fits. */
	    {"\xe6\x97\xa5\xe6\x9c\xac", 4, "\xe6\x97\xa5\xe6\x9c\xac", 4},
	    {"\xe6\x97\xa5\xe6\x9c\xac", 3, "\xe6\x97\xa5~", 3},
	    {"\xe6\x97\xa5\xe6\x9c\xac", 2, "~", 1},
	    {"a\xe6\x97\xa5\xe6\x9c\xac", 4, "a\xe6\x97\xa5~", 4},
	    /* A mark takes no column and stays with its letter. */
	    {"e\xcc\x81t", 2, "e\xcc\x81t", 2},
	    {"e\xcc\x81te", 2, "e\xcc\x81~", 2},
	    {"\xcc\x81t", 2, "t", 1},
	};

	(void)state;
	check_fits(cases, sizeof(cases) / sizeof(cases[0]));
}

/* What a name may hold, and a terminal must not see. */
static void test_nothing_that_a_terminal_obeys(void **state)
{
	static const struct fit_case cases[] = {
	    {"a\x1b[31mb", 20, "a?[31mb", 7},
	    {"a\nb\tc\x7f", 20, "a?b?c?", 6},
	    {"a\xc2\x9b"
	     "31m",
		20, "a?31m", 5}, /* CSI of the C1 set */
	    {"a\xe2\x80\xae"
	     "b",
		20, "a?b", 3}, /* right-to-left override */
	    {"a\xe2\x80\x8b"
	     "b",
		20, "a?b", 3}, /* zero width space */
	    {"\xef\xb8\x8f"
	     "b",
		20, "?b", 2}, /* variation selector */
	    {"a\xffz", 20, "a?z", 3},
	    {"a\xc3", 20, "a?", 2},		/* cut in the middle of a character */
	    {"a\xed\xa0\x80z", 20, "a???z", 5}, /* surrogate */
	    {"a\xf5\x80\x80\x80z", 20, "a????z", 6},
	};

	(void)state;
	check_fits(cases, sizeof(cases) / sizeof(cases[0]));
}

static void test_marks_are_few(void **state)
{
	char text[100] = "e";
	char out[200];

	(void)state;
	for (int i = 0; i < 40; i++)
		strcat(text, "\xcc\x81");
	assert_int_equal(top_text_fit(text, 10, out, sizeof(out)).columns, 1);
	assert_int_equal(strlen(out), 1 + 4 * 2);
	/* A small buffer is never overrun. */
	for (size_t size = 1; size < 12; size++) {
		memset(out, 'x', sizeof(out));
		assert_true(top_text_fit("\xe6\x97\xa5\xe6\x9c\xac", 9, out, size).bytes < size);
		assert_int_equal(out[size], 'x');
	}
}

static void test_without_utf8_only_ascii_is_shown(void **state)
{
	static const struct fit_case cases[] = {
	    {"n\xc3\xa4me", 9, "n?me", 4},
	    {"\xe6\x97\xa5\xe6\x9c\xac", 9, "??", 2},
	    {"plain", 4, "pla~", 4},
	};

	(void)state;
	assert_non_null(setlocale(LC_CTYPE, "C"));
	check_fits(cases, sizeof(cases) / sizeof(cases[0]));
	assert_non_null(setlocale(LC_CTYPE, "C.UTF-8"));
}

static void test_widths(void **state)
{
	(void)state;
	assert_int_equal(top_text_columns("a\xe6\x97\xa5"
					  "e\xcc\x81\x01\xff"),
	    6);
	assert_int_equal(top_text_within("a\xe6\x97\xa5z", 2), 1);
	assert_int_equal(top_text_within("a\xe6\x97\xa5z", 3), 4);
	assert_int_equal(top_text_within("abc", 9), 3);
	assert_true(top_text_has("Alice", "LIC"));
	assert_true(top_text_has("Alice", ""));
	assert_false(top_text_has("Alice", "bob"));
}

static void test_numbers(void **state)
{
	static const struct {
		uint64_t ns;
		const char *text;
	} latencies[] = {{0, "-"}, {999, "<1us"}, {23456, "23us"}, {999999, "999us"},
	    {1000000, "1.00ms"}, {1234567, "1.23ms"}, {9994000, "9.99ms"}, {9996000, "10.0ms"},
	    {99960000, "100ms"}, {999400000, "999ms"}, {999600000, "1.00s"},
	    {12345678901, "12.3s"}};
	static const struct {
		uint64_t value;
		int columns;
		const char *text;
	} counts[] = {{0, 5, "0"}, {99999, 5, "99999"}, {100000, 5, "100k"}, {1234567, 6, "1.23M"},
	    {1234567, 7, "1234567"}, {999999, 5, "1.00M"}, {UINT64_MAX, 5, "18.4E"}};
	char out[TOP_NUMBER];

	(void)state;
	for (size_t i = 0; i < sizeof(latencies) / sizeof(latencies[0]); i++) {
		top_format_latency(latencies[i].ns, out);
		assert_string_equal(out, latencies[i].text);
	}
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		top_format_count(counts[i].value, counts[i].columns, out);
		assert_string_equal(out, counts[i].text);
	}
	top_format_rate(0.26, out);
	assert_string_equal(out, "0.3");
	top_format_rate(12345.6, out);
	assert_string_equal(out, "12346");
}

/* ---- lines ---- */

static void test_a_line_has_styles(void **state)
{
	struct top_line l;

	(void)state;
	top_line_clear(&l);
	top_line_put(&l, STYLE_LABEL, "a%d", 1);
	top_line_put(&l, STYLE_LABEL, "b");
	top_line_left(&l, STYLE_GOOD, "\xe6\x97\xa5", 4);
	top_line_right(&l, STYLE_BAD, "xy", 4);
	top_line_right(&l, STYLE_BAD, "toolong", 4);
	top_line_pad(&l, STYLE_PLAIN, 20);
	assert_string_equal(l.text, "a1b\xe6\x97\xa5    xytoo~     ");
	assert_int_equal(l.columns, 20);
	assert_int_equal(l.len, strlen(l.text));
	assert_int_equal(l.spans, 4);
	assert_int_equal(l.span[0].style, STYLE_LABEL);
	assert_int_equal(l.span[1].from, 3);
	assert_int_equal(l.span[1].style, STYLE_GOOD);
	assert_int_equal(l.span[2].style, STYLE_BAD);
	assert_int_equal(l.span[3].style, STYLE_PLAIN);
	top_line_cut(&l, 4);
	assert_string_equal(l.text, "a1b");
	assert_int_equal(l.spans, 1);
	top_line_cut(&l, 90);
	assert_string_equal(l.text, "a1b");
}

/* Whatever is put into a line, it stays within its bounds. */
static void test_a_line_is_bounded(void **state)
{
	struct top_line *l = malloc(sizeof(*l));
	char text[600];

	(void)state;
	assert_non_null(l);
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	top_line_clear(l);
	for (int i = 0; i < 5 * TOP_LINE_SPANS; i++)
		top_line_put(l, i % 2 ? STYLE_GOOD : STYLE_BAD, "%d", i % 10);
	assert_int_equal(l->spans, TOP_LINE_SPANS);
	top_line_put(l, STYLE_WARN, "%s", text);
	top_line_left(l, STYLE_WARN, text, 600);
	top_line_right(l, STYLE_WARN, text, 600);
	top_line_pad(l, STYLE_WARN, 10000);
	assert_int_equal(l->columns, TOP_LINE_COLUMNS);
	assert_int_equal(strlen(l->text), l->len);
	free(l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_cut_by_columns),
	    cmocka_unit_test(test_nothing_that_a_terminal_obeys),
	    cmocka_unit_test(test_marks_are_few),
	    cmocka_unit_test(test_without_utf8_only_ascii_is_shown),
	    cmocka_unit_test(test_widths),
	    cmocka_unit_test(test_numbers),
	    cmocka_unit_test(test_a_line_has_styles),
	    cmocka_unit_test(test_a_line_is_bounded),
	};

	if (!setlocale(LC_CTYPE, "C.UTF-8"))
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
