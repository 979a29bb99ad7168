/* Unit tests of lib/utf8.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>

#include "lib/utf8.h"

/* The plain definition, to compare with. 0: not a character of n bytes. */
static size_t encode(uint32_t c, uint8_t out[4])
{
	if (c >= 0xd800 && c <= 0xdfff)
		return 0;
	if (c < 0x80) {
		out[0] = (uint8_t)c;
		return 1;
	}
	if (c < 0x800) {
		out[0] = (uint8_t)(0xc0 | c >> 6);
		out[1] = (uint8_t)(0x80 | (c & 63));
		return 2;
	}
	if (c < 0x10000) {
		out[0] = (uint8_t)(0xe0 | c >> 12);
		out[1] = (uint8_t)(0x80 | (c >> 6 & 63));
		out[2] = (uint8_t)(0x80 | (c & 63));
		return 3;
	}
	out[0] = (uint8_t)(0xf0 | c >> 18);
	out[1] = (uint8_t)(0x80 | (c >> 12 & 63));
	out[2] = (uint8_t)(0x80 | (c >> 6 & 63));
	out[3] = (uint8_t)(0x80 | (c & 63));
	return 4;
}

static void test_every_character(void **state)
{
	uint8_t s[4];
	bool cut;

	(void)state;
	for (uint32_t c = 0; c <= 0x10ffff; c++) {
		size_t n = encode(c, s);

		if (utf8_valid_prefix(s, n, &cut) != n || cut)
			fail_msg("U+%04X was refused", c);
		for (size_t part = 1; part < n; part++) {
			if (utf8_valid_prefix(s, part, &cut) != 0 || !cut)
				fail_msg("U+%04X cut at %zu is not incomplete", c, part);
		}
	}
}

/* Of all pairs that begin past ASCII, exactly U+0080 to U+07FF are whole. */
static void test_every_pair(void **state)
{
	uint8_t s[2];
	bool cut;
	unsigned int valid = 0;

	(void)state;
	for (unsigned int a = 0x80; a < 0x100; a++) {
		for (unsigned int b = 0; b < 0x100; b++) {
			s[0] = (uint8_t)a;
			s[1] = (uint8_t)b;
			valid += utf8_valid_prefix(s, 2, &cut) == 2;
		}
	}
	assert_int_equal(valid, 0x800 - 0x80);
}

static void test_refused(void **state)
{
	static const struct {
		const char *text;
		size_t prefix;
		bool cut;
	} rows[] = {
	    {"\x80", 0, false},
	    {"abc\xc0\x80", 3, false},
	    {"\xc1\xbf", 0, false},
	    {"\xe0\x9f\xbf", 0, false},
	    {"\xe0\x9f", 0, false},
	    {"\xed\xa0\x80", 0, false},
	    {"\xed\xa0", 0, false},
	    {"\xf0\x8f\xbf\xbf", 0, false},
	    {"\xf0\x8f", 0, false},
	    {"\xf4\x90\x80\x80", 0, false},
	    {"\xf4\x90", 0, false},
	    {"\xf5\x80\x80\x80", 0, false},
	    {"\xff", 0, false},
	    {"12345678\xe2\x82\xac\xe2\x82", 11, true},
	    {"12345678\xe2\x82\xac\xe2(", 11, false},
	    {"1234567\xf0\x9f\x98", 7, true},
	    {"1234567\xf0\x9f\x98z", 7, false},
	    {"a\xc3", 1, true},
	    {"a\xc3 b", 1, false},
	};
	bool cut;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		size_t n = strlen(rows[i].text);
		uint8_t *copy = malloc(n);

		memcpy(copy, rows[i].text, n);
		assert_int_equal(utf8_valid_prefix(copy, n, &cut), rows[i].prefix);
		assert_int_equal(cut, rows[i].cut);
		assert_int_equal(utf8_valid_prefix(copy, n, NULL), rows[i].prefix);
		free(copy);
	}
	assert_int_equal(utf8_valid_prefix(NULL, 0, &cut), 0);
	assert_false(cut);
	assert_int_equal(utf8_valid_prefix((const uint8_t *)"a\0b", 3, &cut), 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_every_character),
	    cmocka_unit_test(test_every_pair),
	    cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
