/*
 * Fuzz target of the JSON helpers: what is parsed is what was meant, what is written can be parsed,
 * UTF-8 and base64 agree with an independent judge (jansson, and their own inverse).
 *
 * Input: the document, or the text, as it is.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wire/json.h"

#define REQUIRE(cond) ((cond) ? (void)0 : (fprintf(stderr, "not so: %s\n", #cond), abort()))

static void check_take(json_t *o)
{
	const char *command = NULL;
	double timeout = 5;
	int64_t bytes = 6;
	bool tty = false;
	json_t *argv = NULL;
	json_t *env = NULL;
	const struct json_field fields[] = {
	    {"command", JSON_FIELD_STRING, &command, 0, 0},
	    {"timeout_seconds", JSON_FIELD_NUMBER, &timeout, 0.5, 100},
	    {"max_output_bytes", JSON_FIELD_INT, &bytes, 1, 1000},
	    {"tty", JSON_FIELD_BOOL, &tty, 0, 0},
	    {"argv", JSON_FIELD_ARRAY, &argv, 0, 0},
	    {"env", JSON_FIELD_OBJECT, &env, 0, 0},
	};
	struct err err = {.code = 0};
	int rc = json_take(o, fields, sizeof(fields) / sizeof(fields[0]), &err);

	REQUIRE(rc == 0 ? err.code == 0 : err.code == EINVAL && err.text[0] != '\0');
	REQUIRE(timeout >= 0.5 && timeout <= 100);
	REQUIRE(bytes >= 1 && bytes <= 1000);
	if (rc < 0)
		REQUIRE(!command && !tty && !argv && !env);
	if (command)
		REQUIRE(strlen(command) == json_string_length(json_object_get(o, "command")));
}

static void check_parse(const uint8_t *data, size_t n)
{
	struct err err = {.code = 0};
	json_t *o = json_parse_object(data, n, &err);
	json_t *judge = json_loadb((const char *)data, n, JSON_REJECT_DUPLICATES, NULL);

	if (!o) {
		REQUIRE(err.code == EINVAL && strstr(err.text, "line ") == err.text);
		json_decref(judge);
		return;
	}
	REQUIRE(err.code == 0 && json_is_object(o));
	REQUIRE(n == 0 || json_equal(o, judge));
	check_take(o);
	json_decref(o);
	json_decref(judge);
}

static const char *read_back(struct buf *b, json_t **array)
{
	*array = json_loadb((const char *)buf_head(b), b->len, JSON_ALLOW_NUL, NULL);
	REQUIRE(json_array_size(*array) == 1);
	return json_string_value(json_array_get(*array, 0));
}

static void check_write(const uint8_t *data, size_t n)
{
	char *text = malloc(n + 1);
	struct json_out j;
	struct buf b;
	json_t *array;
	bool cut;
	size_t valid = utf8_valid_prefix(data, n, &cut);

	REQUIRE(text != NULL);
	REQUIRE(valid <= n && (!cut || n - valid <= 3));
	buf_init(&b, 64u << 20);
	json_out_init(&j, &b);
	json_array_begin(&j, NULL);
	json_put_bytes(&j, NULL, data, valid);
	json_array_end(&j);
	REQUIRE(json_out_error(&j) == 0);
	REQUIRE(memcmp(read_back(&b, &array), data, valid) == 0);
	REQUIRE(json_string_length(json_array_get(array, 0)) == valid);
	json_decref(array);

	/* Whatever the bytes, a message is readable; valid ones are not changed. */
	memcpy(text, data, n);
	text[n] = '\0';
	buf_clear(&b);
	json_out_init(&j, &b);
	json_array_begin(&j, NULL);
	json_put_string(&j, NULL, text);
	json_array_end(&j);
	REQUIRE(json_out_error(&j) == 0);
	if (valid >= strlen(text))
		REQUIRE(strcmp(read_back(&b, &array), text) == 0);
	else
		REQUIRE(strstr(read_back(&b, &array), "\xef\xbf\xbd") != NULL);
	json_decref(array);
	buf_free(&b);
	free(text);
}

/* jansson must agree with us on what UTF-8 is. */
static void check_utf8(const uint8_t *data, size_t n)
{
	json_t *s = json_stringn((const char *)data, n);

	REQUIRE((s != NULL) == (utf8_valid_prefix(data, n, NULL) == n));
	json_decref(s);
}

static void check_base64(const uint8_t *data, size_t n)
{
	char *coded = malloc(base64_len(n) + 1);
	size_t len = 0;
	uint8_t *plain;

	REQUIRE(coded != NULL);
	base64_encode(data, n, coded);
	plain = base64_decode(coded, base64_len(n), &len);
	REQUIRE(plain != NULL && len == n && memcmp(plain, data, n) == 0);
	free(plain);
	free(coded);

	/* Every block has one spelling. */
	plain = base64_decode((const char *)data, n, &len);
	if (!plain)
		return;
	REQUIRE(base64_len(len) == n);
	coded = malloc(n + 1);
	REQUIRE(coded != NULL);
	base64_encode(plain, len, coded);
	REQUIRE(memcmp(coded, data, n) == 0);
	free(coded);
	free(plain);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	check_parse(data, n);
	if (n == 0)
		return 0;
	check_write(data, n);
	check_utf8(data, n);
	check_base64(data, n);
	return 0;
}
