/* match and ignore: which paths are like a pattern, and which names a search passes over. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "guest/files/ignore.h"
#include "guest/files/match.h"

static bool matches(const char *pattern, const char *path)
{
	static struct match m;
	const char *why;

	if (match_compile(&m, pattern, &why) != 0)
		fail_msg("%s: %s", pattern, why);
	return match_path(&m, path, strlen(path));
}

static void test_patterns(void **state)
{
	static const struct {
		const char *pattern;
		const char *path;
		bool is_like;
	} rows[] = {
	    /* anchored at the right end, whole components */
	    {"b", "a/b", true},
	    {"b", "b", true},
	    {"b", "b/a", false},
	    {"b", "ab", false},
	    {"a/b", "x/a/b", true},
	    {"a/b", "xa/b", false},
	    {"a/b", "b", false},
	    {"./a/", "x/a", true},
	    /* wildcards and slashes */
	    {"*", "a", true},
	    {"*", "a/b", true},
	    {"*", ".hidden", true},
	    {"a*c", "abbc", true},
	    {"a*c", "ac", true},
	    {"a*c", "a/c", false},
	    {"a?c", "a/c", false},
	    {"a[/]c", "a/c", false},
	    {"a?c", "abc", true},
	    {"?", "", false},
	    {"*a*b*", "xxaxxbxx", true},
	    {"*a*b*", "xxbxxaxx", false},
	    {"*.tar.*", "x.tar.tar.gz", true},
	    {"**a", "xa", true}, /* two asterisks in a component are one */
	    {"**a", "x/b", false},
	    {"*.PY", "a.py", false},
	    /* any number of components */
	    {"**", "a/b/c", true},
	    {"**/b", "b", true},
	    {"**/b", "a/x/b", true},
	    {"a/**/b", "a/b", true},
	    {"a/**/b", "x/a/1/2/3/b", true},
	    {"a/**/b", "a/b/c", false},
	    {"a/**/b/**/c", "a/b/b/x/c/c", true},
	    {"a/**", "a", true},
	    {"a/**", "a/b/c", true},
	    {"a/**", "b/c", false},
	    {"a/**/**/b", "a/b", true},
	    {"a/*/b", "a/b", false},
	    /* sets */
	    {"[abc]", "b", true},
	    {"[abc]", "d", false},
	    {"[a-c]x", "bx", true},
	    {"[a-c]x", "-x", false},
	    {"[a-]x", "-x", true},
	    {"[-a]x", "-x", true},
	    {"[!a-c]", "d", true},
	    {"[!a-c]", "b", false},
	    {"[^a]", "b", true},
	    {"[^a]", "a", false},
	    {"[]x]", "]", true},
	    {"[!]x]", "y", true},
	    {"[!]x]", "]", false},
	    {"[c-a]", "b", false},
	    {"[[]x]", "[x]", true},
	    {"[x", "[x", true}, /* no end: itself */
	    {"[", "[", true},
	    {"a[", "a[", true},
	    {"\\*", "\\anything", true}, /* a backslash is itself */
	    {"[*]", "*", true},
	    {"[*]", "a", false},
	    {"[?]", "a", false},
	    /* characters, not bytes */
	    {"na?ve", "na\xc3\xafve", true},
	    {"na??ve", "na\xc3\xafve", false},
	    {"[\xc3\xa0-\xc3\xbf]", "\xc3\xaf", true},
	    {"[!\xc3\xa0]", "\xc3\xa1", true},
	    {"?", "\xf0\x9f\x98\x80", true},
	    {"*\x80", "\xf0\x9f\x98\x80", false},
	    {"?", "\xff", true},
	    {"\xff", "\xff", true},
	    {"\xff", "\xfe", false},
	    {"??", "\xc3\x28", true},
	    {"a:b\n\"c'", "x/a:b\n\"c'", true},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (matches(rows[i].pattern, rows[i].path) != rows[i].is_like)
			fail_msg(
			    "%s and %s: not %d", rows[i].pattern, rows[i].path, rows[i].is_like);
	}
}

static void test_bad_patterns(void **state)
{
	static const char *const bad[] = {"", "/", ".", "/a", "..", "a/../b"};
	char text[MATCH_PATTERN_MAX + 2];
	struct match m;
	const char *why;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		why = NULL;
		assert_int_equal(match_compile(&m, bad[i], &why), -EINVAL);
		assert_non_null(why);
	}
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	assert_int_equal(match_compile(&m, text, &why), -EINVAL);
	text[MATCH_PATTERN_MAX] = '\0';
	assert_int_equal(match_compile(&m, text, &why), 0);
	for (size_t i = 1; i < MATCH_PATTERN_MAX; i += 2)
		text[i] = '/';
	assert_int_equal(match_compile(&m, text, &why), -EINVAL);
}

/* Asterisks are not tried in all ways there are: this would never end. */
static void test_many_asterisks(void **state)
{
	char pattern[201];
	char path[2001];

	(void)state;
	for (size_t i = 0; i < 200; i++)
		pattern[i] = i % 2 ? 'a' : '*';
	pattern[200] = '\0';
	memset(path, 'a', 2000);
	path[1999] = 'b';
	path[2000] = '\0';
	assert_false(matches(pattern, path));
	path[1999] = 'a';
	assert_true(matches(pattern, path));
}

static void test_ignored_names(void **state)
{
	static const char *const yes[] = {".git", "node_modules", "env", ".env", "build", "a.log",
	    ".log", "x~", "~", "a.egg-info", ".upload-x.part", ".upload-.part", "Thumbs.db",
	    ".DS_Store", "x.cache", ".cache", "logs", "out", "a.b.tmp"};
	static const char *const no[] = {"env.py", "a.logs", ".gitignore", "git", "builds", "outer",
	    ".upload-part", "upload-x.part", "thumbs.db", "NODE_MODULES", "log", "tmp", "cache",
	    "a.LOG", "x.part", "~x"};

	(void)state;
	for (size_t i = 0; i < sizeof(yes) / sizeof(yes[0]); i++)
		if (!ignore_name(yes[i], strlen(yes[i])))
			fail_msg("%s is not passed over", yes[i]);
	for (size_t i = 0; i < sizeof(no) / sizeof(no[0]); i++)
		if (ignore_name(no[i], strlen(no[i])))
			fail_msg("%s is passed over", no[i]);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_patterns),
	    cmocka_unit_test(test_bad_patterns),
	    cmocka_unit_test(test_many_asterisks),
	    cmocka_unit_test(test_ignored_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
