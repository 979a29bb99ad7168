/* Unit tests of wire/http_uri.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>

#include "wire/http.h"

static void test_split(void **state)
{
	const char *seg[4] = {NULL};
	char storage[64];

	(void)state;
	assert_int_equal(http_split_path("/", storage, sizeof(storage), seg, 4), 0);
	assert_int_equal(
	    http_split_path("/v1/boxes/a%2Fb/%c3%BC+", storage, sizeof(storage), seg, 4), 4);
	assert_string_equal(seg[0], "v1");
	assert_string_equal(seg[1], "boxes");
	assert_string_equal(seg[2], "a/b");
	assert_string_equal(seg[3], "\xc3\xbc+");
	assert_int_equal(http_split_path("/...", storage, sizeof(storage), seg, 4), 1);
	assert_string_equal(seg[0], "...");
}

static void test_split_refuses(void **state)
{
	static const char *const bad[] = {"", "v1", "//", "/a/", "/a//b", "/.", "/..",
	    "/a/%2e%2E/b", "/%2e", "/a%", "/a%1", "/a%zz", "/a%00b", "/a/b/c/d/e"};
	const char *seg[4];
	char storage[64];

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		if (http_split_path(bad[i], storage, sizeof(storage), seg, 4) != -EINVAL)
			fail_msg("\"%s\" was taken", bad[i]);
	}
}

static void test_split_bound(void **state)
{
	const char *seg[4];
	char *storage = malloc(6);

	(void)state;
	assert_int_equal(http_split_path("/ab/cd", storage, 6, seg, 4), 2);
	assert_int_equal(http_split_path("/ab/cde", storage, 6, seg, 4), -EINVAL);
	assert_int_equal(http_split_path("/ab/cd/e", storage, 6, seg, 4), -EINVAL);
	assert_int_equal(http_split_path("/abcdef", storage, 6, seg, 4), -EINVAL);
	assert_int_equal(http_split_path("/ab/cd/e/f/g", storage, 6, seg, 2), -EINVAL);
	free(storage);
}

static void test_query(void **state)
{
	static const struct {
		const char *query;
		int rc;
		const char *value;
	} rows[] = {
	    {"path=%2Ftmp%2fa+b&x=1", 8, "/tmp/a b"},
	    {"x=path&path=1=2", 3, "1=2"},
	    {"x=1&p%61th=y", 1, "y"},
	    {"path", 0, ""},
	    {"path=", 0, ""},
	    {"&&path=%ff%FE&", 2, "\xff\xfe"},
	    {"", -ENOENT, NULL},
	    {"Path=1&pat=2&paths=3&=4&%=5", -ENOENT, NULL},
	    {"path=1&path=1", -EINVAL, NULL},
	    {"path=%0", -EINVAL, NULL},
	    {"path=a%00b", -EINVAL, NULL},
	    {"path=%g0", -EINVAL, NULL},
	    {"path=%%41", -EINVAL, NULL},
	    {"path=123456789", -ENAMETOOLONG, NULL},
	};
	char out[9];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		memset(out, '#', sizeof(out));
		assert_int_equal(
		    http_query_get(rows[i].query, "path", out, sizeof(out)), rows[i].rc);
		if (rows[i].value)
			assert_string_equal(out, rows[i].value);
		else
			assert_memory_equal(out, "#########", 9);
	}
}

static void test_escape(void **state)
{
	struct buf b;

	(void)state;
	buf_init(&b, 17);
	assert_int_equal(http_put_escaped(&b, "/a Z9-._~", true), 0);
	assert_int_equal(http_put_escaped(&b, "/\xff", false), 0);
	assert_int_equal(buf_terminate(&b), -ENOBUFS);
	assert_int_equal(b.len, 17);
	assert_memory_equal(buf_head(&b), "/a%20Z9-._~%2F%FF", 17);
	assert_int_equal(http_put_escaped(&b, "", false), 0);
	assert_int_equal(http_put_escaped(&b, "a", false), -ENOBUFS);
	assert_int_equal(b.len, 17);
	buf_free(&b);
}

static void test_escape_round_trip(void **state)
{
	char every[256];
	char back[256];
	struct buf b;

	(void)state;
	for (int i = 1; i < 256; i++)
		every[i - 1] = (char)i;
	every[255] = '\0';
	buf_init(&b, 4096);
	assert_int_equal(buf_puts(&b, "k="), 0);
	assert_int_equal(http_put_escaped(&b, every, false), 0);
	assert_int_equal(buf_terminate(&b), 0);
	assert_int_equal(http_query_get((const char *)buf_head(&b), "k", back, sizeof(back)), 255);
	assert_string_equal(back, every);
	buf_free(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_split),
	    cmocka_unit_test(test_split_refuses),
	    cmocka_unit_test(test_split_bound),
	    cmocka_unit_test(test_query),
	    cmocka_unit_test(test_escape),
	    cmocka_unit_test(test_escape_round_trip),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
