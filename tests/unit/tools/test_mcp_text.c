/* What sbx-mcp reads and keeps: lines however they are cut, output of any length in bounded memory.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tools/mcp_clip.h"
#include "tools/mcp_stdio.h"

/* ---- lines ---- */

#define LINE_MAX_TEST 8

/* Feeds text in pieces; what comes is written as "<line>", "!" for one that is too long. */
static void feed(const char *text, size_t piece, char *out)
{
	struct mcp_lines l;
	const uint8_t *line = NULL;
	size_t n = 0;
	size_t len = strlen(text);

	*out = '\0';
	mcp_lines_init(&l, LINE_MAX_TEST);
	for (size_t at = 0; at < len;) {
		size_t part = len - at < piece ? len - at : piece;
		int rc;

		part = part < buf_room(&l.b) ? part : buf_room(&l.b);
		assert_true(part > 0);
		assert_int_equal(buf_append(&l.b, text + at, part), 0);
		at += part;
		while ((rc = mcp_lines_next(&l, &line, &n)) != 0) {
			if (rc < 0) {
				assert_int_equal(rc, -EMSGSIZE);
				strcat(out, "!");
				continue;
			}
			strcat(out, "<");
			strncat(out, (const char *)line, n);
			strcat(out, ">");
		}
	}
	mcp_lines_free(&l);
}

static void test_lines(void **state)
{
	static const struct {
		const char *text;
		const char *lines;
	} cases[] = {
	    {"a\nbc\n", "<a><bc>"},
	    {"\n\n", "<><>"},
	    {"open", ""},
	    {"12345678\nx\n", "<12345678><x>"},
	    {"123456789\nx\n", "!<x>"},
	    {"1234567890123456789012345678901234567890\nx\n", "!<x>"},
	    {"a\n123456789\n1234567890\n\nb\n", "<a>!!<><b>"},
	    {"123456789", "!"},
	};
	char out[128];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		for (size_t piece = 1; piece < 12; piece++) {
			feed(cases[i].text, piece, out);
			assert_string_equal(out, cases[i].lines);
		}
	}
}

/* ---- clips ---- */

static char *clip(const char *text, size_t n, size_t max, size_t piece, uint64_t *left_out)
{
	struct mcp_clip c;
	struct buf out;
	char *got;

	mcp_clip_init(&c, max);
	for (size_t at = 0; at < n; at += piece)
		assert_int_equal(
		    mcp_clip_add(&c, (const uint8_t *)text + at, n - at < piece ? n - at : piece),
		    0);
	buf_init(&out, 4096);
	assert_int_equal(mcp_clip_put(&c, &out), 0);
	*left_out = mcp_clip_left_out(&c);
	got = strndup((const char *)buf_head(&out), out.len);
	buf_free(&out);
	mcp_clip_free(&c);
	return got;
}

static void test_clips(void **state)
{
	static const struct {
		const char *text;
		const char *shown;
	} cases[] = {
	    {"", ""},
	    {"abc", "abc"},
	    {"abcdefgh", "abcdefgh"},
	    {"abcdefghi", "abcd\n[... 1 bytes left out ...]\nfghi"},
	    {"abcdefghijklmnopqrstuvwxyz", "abcd\n[... 18 bytes left out ...]\nwxyz"},
	    {"abc\xc3\xbc....\xc3\xbcxyz", "abc\n[... 8 bytes left out ...]\nxyz"},
	    {"ab\xc3\xbc....\xc3\xbcxy", "ab\xc3\xbc\n[... 4 bytes left out ...]\n\xc3\xbcxy"},
	    {"a\xff"
	     "b\xc3",
		"a\xef\xbf\xbd"
		"b\xef\xbf\xbd"},
	};
	uint64_t left_out;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		size_t n = strlen(cases[i].text);

		for (size_t piece = 1; piece < 30; piece++) {
			char *got = clip(cases[i].text, n, 8, piece, &left_out);

			assert_string_equal(got, cases[i].shown);
			assert_int_equal(left_out, n > 8 ? n - 8 : 0);
			free(got);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_lines),
	    cmocka_unit_test(test_clips),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
