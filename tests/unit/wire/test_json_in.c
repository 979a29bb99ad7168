/* Unit tests of wire/json_in.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>

#include "wire/json.h"

static json_t *parse(const char *text, struct err *err)
{
	size_t n = strlen(text);
	uint8_t *copy = malloc(n + 1); /* exactly sized, not NUL-terminated */
	json_t *o;

	*err = (struct err){.code = 0};
	memcpy(copy, text, n);
	o = json_parse_object(copy, n, err);
	free(copy);
	return o;
}

static void test_parse(void **state)
{
	struct err err;
	json_t *o = parse(" {\"a\": [1, {\"b\": \"\\u00fc\\n\"}]} \n", &err);

	(void)state;
	assert_non_null(o);
	assert_int_equal(json_object_size(o), 1);
	json_decref(o);
	o = json_parse_object(NULL, 0, &err);
	assert_non_null(o);
	assert_int_equal(json_object_size(o), 0);
	assert_int_equal(err.code, 0);
	json_decref(o);
}

static void test_parse_refuses(void **state)
{
	static const struct {
		const char *text;
		const char *why;
	} rows[] = {
	    {"[]", "not a JSON object"},
	    {"1", "line 1, column"},
	    {"{", "line 1, column 1"},
	    {"{\n \"a\": 1,\n \"b\": }", "line 3, column 7"},
	    {"{\"a\":1,\"a\":2}", "duplicate object key"},
	    {"{\"a\":1}x", "end of file expected"},
	    {"{\"a\":\"\xff\"}", "line 1, column"},
	    {"{\"a\":\"x\\u0000y\"}", "\\u0000"},
	    {"{\"a\":\"\\ud800\"}", "line 1, column"},
	    {"{\"a\":1e999}", "line 1, column"},
	    {"{\"a\":NaN}", "line 1, column"},
	    {"{'a':1}", "line 1, column"},
	    {"{\"a\":\"unended\\\"}", "line 1, column"},
	};
	struct err err;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_null(parse(rows[i].text, &err));
		assert_int_equal(err.code, EINVAL);
		if (!strstr(err.text, rows[i].why))
			fail_msg("%s: \"%s\" lacks \"%s\"", rows[i].text, err.text, rows[i].why);
	}
}

/* {"a":[[[...]]]} with `depth` levels in all, and brackets in strings that do not count. */
static char *nested(unsigned int depth)
{
	char *text = calloc(1, depth * 2 + 200);

	strcpy(text, "{\"\\\"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\":\n");
	memset(text + strlen(text), '[', depth - 1);
	memset(text + strlen(text), ']', depth - 1);
	strcat(text, "}");
	return text;
}

static void test_depth(void **state)
{
	struct err err;
	char *text = nested(JSON_DEPTH_MAX);
	json_t *o = parse(text, &err);

	(void)state;
	assert_non_null(o);
	json_decref(o);
	free(text);
	text = nested(JSON_DEPTH_MAX + 1);
	assert_null(parse(text, &err));
	assert_string_equal(err.text, "line 2, column 128: nested deeper than 128 levels");
	free(text);
	text = nested(1000000);
	assert_null(parse(text, &err));
	free(text);
}

static void test_depth_of_clients(void **state)
{
	static const char three[] = "{\"[[\":[{}]}";
	struct err err = {0};

	(void)state;
	assert_int_equal(json_check_depth((const uint8_t *)three, strlen(three), 3, &err), 0);
	assert_int_equal(err.code, 0);
	assert_int_equal(json_check_depth((const uint8_t *)three, strlen(three), 2, &err), -EINVAL);
	assert_string_equal(err.text, "line 1, column 8: nested deeper than 2 levels");
	assert_int_equal(json_check_depth(NULL, 0, 0, &err), 0);
	assert_int_equal(json_check_depth((const uint8_t *)"]]]", 3, 0, &err), 0); /* no JSON */
}

struct taken {
	const char *s;
	double n;
	int64_t i;
	bool b;
	json_t *a;
	json_t *o;
};

static int take(const char *text, struct taken *t, struct err *err, json_t **o)
{
	const struct json_field fields[] = {
	    {"s", JSON_FIELD_STRING, &t->s, 0, 0},
	    {"n", JSON_FIELD_NUMBER, &t->n, 0, 10.5},
	    {"i", JSON_FIELD_INT, &t->i, -2, 2},
	    {"b", JSON_FIELD_BOOL, &t->b, 0, 0},
	    {"a", JSON_FIELD_ARRAY, &t->a, 0, 0},
	    {"o", JSON_FIELD_OBJECT, &t->o, 0, 0},
	    {"other", JSON_FIELD_OTHER, NULL, 0, 0},
	};

	*t = (struct taken){.s = "-", .n = -1, .i = -9, .b = true};
	*o = parse(text, err);
	assert_non_null(*o);
	return json_take(*o, fields, sizeof(fields) / sizeof(fields[0]), err);
}

static void test_take(void **state)
{
	struct taken t;
	struct err err;
	json_t *o;

	(void)state;
	assert_int_equal(
	    take("{\"s\":\"x\",\"n\":10.5,\"i\":-2,\"b\":false,\"a\":[1],\"o\":{\"k\":1},"
		 "\"other\":[]}",
		&t, &err, &o),
	    0);
	assert_string_equal(t.s, "x");
	assert_true(t.n > 10.4 && t.n < 10.6);
	assert_int_equal(t.i, -2);
	assert_false(t.b);
	assert_int_equal(json_array_size(t.a), 1);
	assert_int_equal(json_object_size(t.o), 1);
	json_decref(o);

	assert_int_equal(take("{\"n\":3,\"s\":null,\"b\":null,\"later\":null}", &t, &err, &o), 0);
	assert_true(t.n > 2.9 && t.n < 3.1); /* an integer is a number */
	assert_string_equal(t.s, "-");
	assert_true(t.b);
	assert_int_equal(t.i, -9);
	assert_null(t.a);
	json_decref(o);
}

static void test_take_refuses(void **state)
{
	static const struct {
		const char *text;
		const char *why;
	} rows[] = {
	    {"{\"s\":1}", "\"s\" must be a string"},
	    {"{\"n\":\"1\"}", "\"n\" must be a number"},
	    {"{\"n\":10.6}", "\"n\" must be a number from 0 to 10.5"},
	    {"{\"n\":-0.1}", "\"n\" must be a number from 0 to 10.5"},
	    {"{\"i\":1.0}", "\"i\" must be an integer"},
	    {"{\"i\":3}", "\"i\" must be an integer from -2 to 2"},
	    {"{\"b\":0}", "\"b\" must be true or false"},
	    {"{\"a\":{}}", "\"a\" must be an array"},
	    {"{\"o\":[]}", "\"o\" must be an object"},
	    {"{\"s\":\"x\",\"later\":1}", "\"later\" is not known here"},
	    {"{\"s\":\"x\",\"n\":1,\"S\":false}", "\"S\" is not known here"},
	    {"{\"s\":\"x\",\"n\":1,\"o\":1}", "\"o\" must be an object"},
	};
	struct taken t;
	struct err err;
	json_t *o;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(take(rows[i].text, &t, &err, &o), -EINVAL);
		assert_non_null(strstr(err.text, rows[i].why));
		assert_string_equal(t.s, "-"); /* nothing was stored */
		assert_true(t.n < 0 && t.i == -9 && t.b && !t.a && !t.o);
		json_decref(o);
	}
}

static void test_take_refuses_nul(void **state)
{
	const char *s = "-";
	const struct json_field field = {"s", JSON_FIELD_STRING, &s, 0, 0};
	json_t *o = json_object();
	struct err err;

	(void)state;
	assert_int_equal(json_object_set_new(o, "s", json_stringn("a\0b", 3)), 0);
	assert_int_equal(json_take(o, &field, 1, &err), -EINVAL);
	assert_string_equal(s, "-");
	json_decref(o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_parse),
	    cmocka_unit_test(test_parse_refuses),
	    cmocka_unit_test(test_depth),
	    cmocka_unit_test(test_depth_of_clients),
	    cmocka_unit_test(test_take),
	    cmocka_unit_test(test_take_refuses),
	    cmocka_unit_test(test_take_refuses_nul),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
