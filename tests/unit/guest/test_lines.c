/* lines and regex: text that is none, long lines, and patterns. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "guest/files/lines.h"
#include "guest/files/regex.h"

#define BAD "\xef\xbf\xbd"

static void test_repair(void **state)
{
	static const struct {
		const char *from;
		const char *to;
	} rows[] = {
	    {"", ""},
	    {"plain", "plain"},
	    {"na\xc3\xafve", "na\xc3\xafve"},
	    {"\xff", BAD},
	    {"a\xff\xfe z", "a" BAD BAD " z"},
	    {"\x80\x80", BAD BAD},
	    {"\xc3", BAD},
	    {"\xc3(", BAD "("},
	    {"\xe2\x82", BAD}, /* what begins a character is one piece */
	    {"\xe2\x82x", BAD "x"},
	    {"\xf0\x9f\x98x", BAD "x"},
	    {"\xf0\x9f\xc3\xaf", BAD "\xc3\xaf"},
	    {"\xe0\x80\x80", BAD BAD BAD}, /* no character begins like this */
	    {"\xed\xa0\x80", BAD BAD BAD}, /* a surrogate */
	    {"\xc0\xaf", BAD BAD},
	    {"\xf5\x80\x80\x80", BAD BAD BAD BAD},
	    {"\xf4\x90\x80\x80", BAD BAD BAD BAD},
	    {"\xc3\xc3\xc3\xaf", BAD BAD "\xc3\xaf"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint8_t to[64];
		size_t from = strlen(rows[i].from);
		size_t n = lines_repair((const uint8_t *)rows[i].from, from, to);

		assert_true(n <= LINES_REPAIRED_MAX(from));
		if (n != strlen(rows[i].to) || memcmp(to, rows[i].to, n) != 0)
			fail_msg("row %zu: %.*s", i, (int)n, (const char *)to);
	}
}

/* `count` times a character. */
static size_t fill(uint8_t *to, const char *character, size_t count)
{
	size_t len = strlen(character);

	for (size_t i = 0; i < count; i++)
		memcpy(to + i * len, character, len);
	return count * len;
}

static void test_long_lines(void **state)
{
	static const char *const characters[] = {
	    "x", "\xc3\xaf", "\xe2\x9c\x93", "\xf0\x9f\x98\x80"};
	static uint8_t line[4 * 3000];
	uint8_t to[LINES_PRINTED_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(characters) / sizeof(characters[0]); i++) {
		size_t len = strlen(characters[i]);
		size_t n = fill(line, characters[i], LINES_LONGEST);

		assert_false(lines_is_longer(line, n, LINES_LONGEST));
		n = fill(line, characters[i], LINES_LONGEST + 1);
		assert_true(lines_is_longer(line, n, LINES_LONGEST));

		n = fill(line, characters[i], LINES_PRINTED);
		assert_int_equal(lines_cut(line, n, to), n);
		assert_memory_equal(to, line, n);
		n = fill(line, characters[i], LINES_PRINTED + 1);
		assert_int_equal(lines_cut(line, n, to), 197 * len + 3);
		assert_memory_equal(to, line, 197 * len);
		assert_memory_equal(to + 197 * len, "...", 3);
	}
}

static int find(const char *pattern, unsigned int flags, const char *line)
{
	struct text why;
	struct regex *r;
	int rc;

	text_clear(&why);
	r = regex_compile(pattern, flags, &why);
	if (r == NULL)
		fail_msg("%s: %s", pattern, why.s);
	rc = regex_find(r, (const uint8_t *)line, strlen(line));
	regex_free(r);
	return rc;
}

static void test_patterns(void **state)
{
	(void)state;
	assert_int_equal(find("a.c", 0, "xabcx"), 1);
	assert_int_equal(find("a.c", 0, "xABCx"), 0);
	assert_int_equal(find("a.c", REGEX_ANY_CASE, "xABCx"), 1);
	assert_int_equal(find("a.c", REGEX_LITERAL, "xabcx"), 0);
	assert_int_equal(find("a.c", REGEX_LITERAL | REGEX_ANY_CASE, "xA.Cx"), 1);
	assert_int_equal(find("^a.c$", 0, "a\xc3\xafx"), 0);
	assert_int_equal(find("^a.c$", 0,
			     "a\xc3\xaf"
			     "c"),
	    1); /* a dot is a character */
	assert_int_equal(find("\xc3\xbc"
			      "BER",
			     REGEX_ANY_CASE,
			     "\xc3\x9c"
			     "ber"),
	    1);
	assert_int_equal(find("^\\w+$", 0, "na\xc3\xafve"), 1);
	assert_int_equal(find("^$", 0, ""), 1);
	assert_int_equal(find("\\p{Greek}", 0, "\xce\xb1"), 1);
	assert_int_equal(find("(?<=a)b", 0, "ab"), 1);
}

static void test_bad_patterns(void **state)
{
	static const struct {
		const char *pattern;
		const char *says;
	} rows[] = {
	    {"a(", "at offset 2"},
	    {"[z", "at offset 2"},
	    {"\xc3\xaf\xc3\xaf(", "at offset 3"}, /* characters */
	    {"*", "at offset 0"},
	    {"a\\C", "at offset 3"},
	    {"\xff", "UTF-8"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct text why;

		text_clear(&why);
		assert_null(regex_compile(rows[i].pattern, 0, &why));
		if (strstr(why.s, rows[i].says) == NULL)
			fail_msg("%s: %s", rows[i].pattern, why.s);
	}
}

/* It gives up instead, and says so: nothing found would be a lie. */
static void test_endless_patterns(void **state)
{
	static const char *const patterns[] = {"(a+)+zzz", "(a|aa)+zzz", "(?:(a+)|(a+))+zzz\\1"};
	char line[1003];

	(void)state;
	memset(line, 'a', 1000);
	memcpy(line + 1000, "zz", sizeof("zz"));
	for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++)
		if (find(patterns[i], 0, line) != -1)
			fail_msg("%s", patterns[i]);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_repair),
	    cmocka_unit_test(test_long_lines),
	    cmocka_unit_test(test_patterns),
	    cmocka_unit_test(test_bad_patterns),
	    cmocka_unit_test(test_endless_patterns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
