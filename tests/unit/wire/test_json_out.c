/* Unit tests of wire/json_out.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>

#include <math.h>

#include "wire/json.h"

static const char *text_of(struct buf *b)
{
	assert_int_equal(buf_terminate(b), 0);
	return (const char *)buf_head(b);
}

static void test_shapes(void **state)
{
	struct json_out j;
	struct buf b;

	(void)state;
	buf_init(&b, 4096);
	json_out_init(&j, &b);
	json_object_begin(&j, NULL);
	json_put_string(&j, "s", "x");
	json_put_string(&j, "null", NULL);
	json_array_begin(&j, "a");
	json_array_begin(&j, NULL);
	json_array_end(&j);
	json_object_begin(&j, NULL);
	json_object_end(&j);
	json_put_int(&j, NULL, INT64_MIN);
	json_put_uint(&j, NULL, UINT64_MAX);
	json_array_end(&j);
	json_object_begin(&j, "o\"");
	json_put_bool(&j, "t", true);
	json_put_bool(&j, "f", false);
	json_object_end(&j);
	json_put_null(&j, "n");
	json_put_base64(&j, "b", "\xff\xfe", 2);
	json_put_base64(&j, "e", "", 0);
	json_object_end(&j);
	assert_int_equal(json_out_error(&j), 0);
	assert_string_equal(text_of(&b),
	    "{\"s\":\"x\",\"null\":null,\"a\":[[],{},-9223372036854775808,18446744073709551615],"
	    "\"o\\\"\":{\"t\":true,\"f\":false},\"n\":null,\"b\":\"//4=\",\"e\":\"\"}");
	buf_free(&b);
}

static void check_double(double value, const char *expected)
{
	struct json_out j;
	struct buf b;

	buf_init(&b, 4096);
	json_out_init(&j, &b);
	json_put_double(&j, NULL, value);
	assert_string_equal(text_of(&b), expected);
	buf_free(&b);
}

static void test_doubles(void **state)
{
	(void)state;
	check_double(0, "0.000");
	check_double(1.5, "1.500");
	check_double(-0.0004, "0.000");
	check_double(-12.3456, "-12.346");
	check_double(0.9996, "1.000");
	check_double(1e15, "1000000000000000.000");
	check_double(1e20, "100000000000000000000.000");
	check_double(-1e16, "-10000000000000000.000");
	check_double(NAN, "null");
	check_double(-INFINITY, "null");
}

/* Whatever is put, a JSON parser must read back the same. */
static void round_trip(const uint8_t *s, size_t n)
{
	struct json_out j;
	struct buf b;
	json_t *back;

	buf_init(&b, 1u << 20);
	json_out_init(&j, &b);
	json_array_begin(&j, NULL);
	json_put_bytes(&j, NULL, s, n);
	json_array_end(&j);
	assert_int_equal(json_out_error(&j), 0);
	back = json_loadb((const char *)buf_head(&b), b.len, JSON_ALLOW_NUL, NULL);
	assert_non_null(back);
	assert_int_equal(json_string_length(json_array_get(back, 0)), n);
	assert_memory_equal(json_string_value(json_array_get(back, 0)), s, n);
	json_decref(back);
	buf_free(&b);
}

static void test_escapes(void **state)
{
	uint8_t s[4096];

	(void)state;
	/* Every ASCII byte at every place of a word, in runs of every small length. */
	for (unsigned int c = 0; c < 0x80; c++) {
		for (size_t at = 0; at < 20; at++) {
			memset(s, 'x', 24);
			s[at] = (uint8_t)c;
			s[at + 1] = (uint8_t)c;
			round_trip(s, 24);
			round_trip(s + at, 1);
		}
	}
	for (size_t i = 0; i < sizeof(s); i++)
		s[i] = (uint8_t)(i % 3 ? i % 0x20 : '\\');
	round_trip(s, sizeof(s));
	round_trip((const uint8_t *)"\xc3\xbc\xf0\x9f\x98\x80\xed\x9f\xbf", 9);
	round_trip(s, 0);
}

static void test_escape_spelling(void **state)
{
	struct json_out j;
	struct buf b;

	(void)state;
	buf_init(&b, 4096);
	json_out_init(&j, &b);
	json_put_bytes(&j, NULL, "\0\b\t\n\f\r\x1f\"\\/\x7f", 11);
	assert_string_equal(text_of(&b), "\"\\u0000\\b\\t\\n\\f\\r\\u001f\\\"\\\\/\x7f\"");
	buf_free(&b);
}

static void test_string_replaces_invalid(void **state)
{
	struct json_out j;
	struct buf b;

	(void)state;
	buf_init(&b, 4096);
	json_out_init(&j, &b);
	json_put_string(&j, NULL, "a\xff\xc3\xbc\xc3\n\xe2\x82");
	assert_string_equal(
	    text_of(&b), "\"a\xef\xbf\xbd\xc3\xbc\xef\xbf\xbd\\n\xef\xbf\xbd\xef\xbf\xbd\"");
	buf_free(&b);
}

static void test_bound(void **state)
{
	char text[64];
	struct json_out j;
	struct buf b;

	(void)state;
	memset(text, 'x', sizeof(text));
	for (size_t max = 0; max < 66; max++) {
		buf_init(&b, max);
		json_out_init(&j, &b);
		json_put_bytes(&j, NULL, text, sizeof(text));
		assert_int_equal(json_out_error(&j), -ENOBUFS);
		json_put_null(&j, "ignored");
		assert_true(b.len <= max);
		buf_free(&b);
		buf_init(&b, max);
		json_out_init(&j, &b);
		json_put_base64(&j, NULL, text, 48);
		assert_int_equal(json_out_error(&j), -ENOBUFS);
		buf_free(&b);
	}
	buf_init(&b, 66);
	json_out_init(&j, &b);
	json_put_bytes(&j, NULL, text, sizeof(text));
	assert_int_equal(json_out_error(&j), 0);
	assert_int_equal(b.len, 66);
	buf_free(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_shapes),
	    cmocka_unit_test(test_doubles),
	    cmocka_unit_test(test_escapes),
	    cmocka_unit_test(test_escape_spelling),
	    cmocka_unit_test(test_string_replaces_invalid),
	    cmocka_unit_test(test_bound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
