/* Unit tests of wire/api_error.c: the table against the published vocabularies, and the reply. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>

#include <jansson.h>
#include <stdbool.h>

#include "wire/api_error.h"
#include "wire/http.h"

/* ErrorModel of the BoxLite Box API. */
static const char *const types[] = {"InvalidArgumentError", "UnsupportedError", "AuthError",
    "NotFoundError", "SessionReaped", "AlreadyExistsError", "InvalidStateError", "StoppedError",
    "ImageError", "ExecutionError", "ResourceExhaustedError", "NetworkError",
    "UpstreamUnavailableError", "EngineError", "StorageError", "DatabaseError", "MetadataError",
    "ConfigError", "InternalError", "TimeoutError"};
static const char *const codes[] = {"invalid_argument", "unsupported", "unauthenticated",
    "permission_denied", "not_found", "session_reaped", "already_exists", "invalid_state",
    "stopped", "image_pull_failed", "execution_failed", "resource_exhausted", "network_unavailable",
    "upstream_unavailable", "engine_unavailable", "storage_error", "database_error",
    "metadata_error", "config_error", "internal", "timeout"};

static bool is_in(const char *word, const char *const *list, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (!strcmp(word, list[i]))
			return true;
	}
	return false;
}

static void test_vocabulary(void **state)
{
	(void)state;
	for (unsigned int e = API_OK + 1; e < API_ERRORS; e++) {
		const struct api_error_info *info = api_error_info((enum api_error)e);

		assert_true(info->status >= 400 && info->status < 600);
		assert_true(is_in(info->type, types, sizeof(types) / sizeof(types[0])));
		assert_true(is_in(info->code, codes, sizeof(codes) / sizeof(codes[0])));
		assert_string_not_equal(http_status_text(info->status), "Unknown");
		/* Reasons are unique: they lead back to their error. */
		assert_int_equal(api_error_by_reason(info->reason), e);
	}
	assert_int_equal(api_error_by_reason("no such reason"), API_INTERNAL);
	assert_int_equal(api_error_by_reason(""), API_INTERNAL);
	assert_int_equal(api_error_info((enum api_error)9999)->status, 500);
}

/* Puts an error, reads the reply back: the head in *in, the error object is returned. */
static json_t *put(enum api_error e, const char *message, const struct api_error_more *more,
    int keep_alive, struct http_in **in)
{
	const uint8_t *body = NULL;
	size_t body_len = 0;
	struct err err;
	struct buf b;
	size_t used;
	json_t *o;
	json_t *error;

	*in = http_in_create(HTTP_RESPONSE);
	buf_init(&b, 4096);
	assert_int_equal(api_error_put(&b, e, message, more, keep_alive), 0);
	assert_int_equal(
	    http_in_feed(*in, buf_head(&b), b.len, &used, &body, &body_len, &err), HTTP_HEAD_DONE);
	buf_consume(&b, used);
	assert_int_equal(
	    http_in_feed(*in, buf_head(&b), b.len, &used, &body, &body_len, &err), HTTP_BODY);
	assert_int_equal(used, b.len);
	assert_int_equal(http_in_feed(*in, NULL, 0, &used, &body, &body_len, &err), HTTP_END);
	o = json_loadb((const char *)buf_head(&b), b.len, JSON_REJECT_DUPLICATES, NULL);
	assert_non_null(o);
	assert_int_equal(json_object_size(o), 1);
	error = json_incref(json_object_get(o, "error"));
	assert_non_null(error);
	json_decref(o);
	buf_free(&b);
	return error;
}

static const char *member(const json_t *o, const char *key)
{
	return json_string_value(json_object_get(o, key));
}

static void test_plain(void **state)
{
	struct http_in *in;
	json_t *o = put(API_IS_DIRECTORY, "/tmp/\xff \"x\" is a directory", NULL, 1, &in);

	(void)state;
	assert_int_equal(http_in_head(in)->status, 400);
	assert_true(http_in_head(in)->keep_alive);
	assert_string_equal(http_in_head(in)->content_type, "application/json");
	assert_string_equal(http_in_head(in)->retry_after, "");
	assert_string_equal(member(o, "message"), "/tmp/\xef\xbf\xbd \"x\" is a directory");
	assert_string_equal(member(o, "type"), "InvalidArgumentError");
	assert_string_equal(member(o, "code"), "invalid_argument");
	assert_string_equal(member(o, "reason"), "is_directory");
	assert_int_equal(json_object_size(o), 4);
	json_decref(o);
	http_in_free(in);
}

static void test_no_body(void **state)
{
	const struct api_error_more more = {.no_body = 1};
	struct http_in *in = http_in_create(HTTP_RESPONSE);
	const uint8_t *body = NULL;
	size_t body_len = 0;
	struct err err;
	struct buf b;
	size_t used;

	(void)state;
	buf_init(&b, 4096);
	assert_int_equal(api_error_put(&b, API_METHOD, "no", &more, 1), 0);
	assert_int_equal(
	    http_in_feed(in, buf_head(&b), b.len, &used, &body, &body_len, &err), HTTP_HEAD_DONE);
	assert_int_equal(used, b.len);
	assert_true(http_in_head(in)->content_length > 0);
	buf_free(&b);
	http_in_free(in);
}

static void test_capacity(void **state)
{
	const struct api_error_more more = {.retry_after_seconds = 1.25,
	    .request_id = "r1",
	    .traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
	    .has_pool = 1,
	    .active = 3,
	    .replicas = 3};
	struct http_in *in;
	json_t *o = put(API_CAPACITY, "full", &more, 0, &in);

	(void)state;
	assert_int_equal(http_in_head(in)->status, 429);
	assert_false(http_in_head(in)->keep_alive);
	assert_string_equal(http_in_head(in)->retry_after, "2");
	assert_string_equal(http_in_head(in)->request_id, "r1");
	assert_string_equal(http_in_head(in)->traceparent, more.traceparent);
	assert_string_equal(member(o, "request_id"), "r1");
	assert_true(json_real_value(json_object_get(o, "retry_after_seconds")) > 1.2);
	assert_int_equal(json_integer_value(json_object_get(o, "active")), 3);
	assert_true(json_is_integer(json_object_get(o, "warm")));
	assert_int_equal(json_integer_value(json_object_get(o, "replicas")), 3);
	json_decref(o);
	http_in_free(in);
}

static void test_retry_after_is_whole(void **state)
{
	static const struct {
		double seconds;
		const char *header;
	} rows[] = {{0, ""}, {-1, ""}, {0.001, "1"}, {1, "1"}, {59.5, "60"}, {1e300, "86400"}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct api_error_more more = {.retry_after_seconds = rows[i].seconds};
		struct http_in *in;

		json_decref(put(API_CAPACITY, "full", &more, 1, &in));
		assert_string_equal(http_in_head(in)->retry_after, rows[i].header);
		http_in_free(in);
	}
}

static void test_allow(void **state)
{
	const struct api_error_more more = {.allow = "GET, POST"};
	struct buf b;

	(void)state;
	buf_init(&b, 4096);
	assert_int_equal(api_error_put(&b, API_METHOD, "no", &more, 1), 0);
	assert_int_equal(buf_terminate(&b), 0);
	assert_non_null(strstr((const char *)buf_head(&b), "\r\nAllow: GET, POST\r\n"));
	buf_free(&b);
}

static void test_authenticate(void **state)
{
	const struct api_error_more more = {.authenticate = "Bearer"};
	struct buf b;

	(void)state;
	buf_init(&b, 4096);
	assert_int_equal(api_error_put(&b, API_UNAUTHENTICATED, "no", &more, 1), 0);
	assert_int_equal(buf_terminate(&b), 0);
	assert_non_null(strstr((const char *)buf_head(&b), "HTTP/1.1 401 Unauthorized\r\n"));
	assert_non_null(strstr((const char *)buf_head(&b), "\r\nWWW-Authenticate: Bearer\r\n"));
	buf_free(&b);
}

static void test_whole_or_nothing(void **state)
{
	struct buf b;
	size_t whole;

	(void)state;
	buf_init(&b, 4096);
	assert_int_equal(api_error_put(&b, API_IO, "x", NULL, 1), 0);
	whole = b.len;
	buf_free(&b);
	for (size_t max = 0; max < whole + 1; max++) {
		buf_init(&b, max + 1);
		assert_int_equal(buf_append(&b, "k", 1), 0);
		assert_int_equal(
		    api_error_put(&b, API_IO, "x", NULL, 1), max < whole ? -ENOBUFS : 0);
		assert_int_equal(b.len, max < whole ? 1 : whole + 1);
		buf_free(&b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_vocabulary),
	    cmocka_unit_test(test_plain),
	    cmocka_unit_test(test_no_body),
	    cmocka_unit_test(test_capacity),
	    cmocka_unit_test(test_retry_after_is_whole),
	    cmocka_unit_test(test_allow),
	    cmocka_unit_test(test_authenticate),
	    cmocka_unit_test(test_whole_or_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
