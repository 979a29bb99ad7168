/* api_error: every way a request can fail, as one table. Any process; holds no state. */
#include "wire/api_error.h"

#include <string.h>

#include "wire/http.h"
#include "wire/json.h"

/* type and code: ErrorModel of the BoxLite Box API. reason: ours. */
static const struct api_error_info errors[] = {
    [API_OK] = {200, "", "", ""},
    [API_INVALID_ARGUMENT] = {400, "InvalidArgumentError", "invalid_argument", "invalid_argument"},
    [API_INVALID_PATH] = {400, "InvalidArgumentError", "invalid_argument", "invalid_path"},
    [API_IS_DIRECTORY] = {400, "InvalidArgumentError", "invalid_argument", "is_directory"},
    [API_NOT_A_DIRECTORY] = {400, "InvalidArgumentError", "invalid_argument", "not_a_directory"},
    [API_INVALID_PATTERN] = {400, "InvalidArgumentError", "invalid_argument", "invalid_pattern"},
    [API_CROSS_DEVICE] = {400, "InvalidArgumentError", "invalid_argument", "cross_device"},
    [API_MALFORMED] = {400, "InvalidArgumentError", "invalid_argument", "malformed_request"},
    [API_UNAUTHENTICATED] = {401, "AuthError", "unauthenticated", "unauthenticated"},
    [API_PERMISSION_DENIED] = {403, "AuthError", "permission_denied", "permission_denied"},
    [API_NOT_FOUND] = {404, "NotFoundError", "not_found", "not_found"},
    [API_METHOD] = {405, "UnsupportedError", "unsupported", "method_not_allowed"},
    [API_TIMEOUT] = {408, "TimeoutError", "timeout", "timeout"},
    [API_INVALID_STATE] = {409, "InvalidStateError", "invalid_state", "invalid_state"},
    [API_ALREADY_EXISTS] = {409, "AlreadyExistsError", "already_exists", "already_exists"},
    [API_IDENTITY_COLLISION] = {409, "AlreadyExistsError", "already_exists", "identity_collision"},
    [API_SPEC_MISMATCH] = {409, "InvalidStateError", "invalid_state", "spec_mismatch"},
    [API_NOT_A_TTY] = {409, "InvalidStateError", "invalid_state", "not_a_tty"},
    [API_ATTACHED] = {409, "InvalidStateError", "invalid_state", "attached"},
    [API_NOT_EMPTY] = {409, "InvalidStateError", "invalid_state", "not_empty"},
    [API_BUSY] = {409, "InvalidStateError", "invalid_state", "busy"},
    [API_BOX_DIED] = {410, "StoppedError", "stopped", "box_died"},
    [API_WORKER_CRASHED] = {410, "StoppedError", "stopped", "worker_crashed"},
    [API_STALE_GENERATION] = {410, "StoppedError", "stopped", "stale_generation"},
    [API_TOO_LARGE] = {413, "InvalidArgumentError", "invalid_argument", "too_large"},
    [API_UPGRADE_REQUIRED] = {426, "InvalidArgumentError", "invalid_argument", "upgrade_required"},
    [API_HEAD_TOO_LARGE] = {431, "InvalidArgumentError", "invalid_argument", "head_too_large"},
    [API_EXECUTION_FAILED] = {422, "ExecutionError", "execution_failed", "execution_failed"},
    [API_IMAGE_PULL_FAILED] = {422, "ImageError", "image_pull_failed", "image_pull_failed"},
    [API_KEY_REUSED] = {422, "InvalidArgumentError", "invalid_argument", "idempotency_key_reused"},
    [API_CAPACITY] = {429, "ResourceExhaustedError", "resource_exhausted", "capacity_exceeded"},
    [API_TOO_MANY] = {429, "ResourceExhaustedError", "resource_exhausted", "too_many_connections"},
    [API_EXECUTION_LIMIT] = {429, "ResourceExhaustedError", "resource_exhausted",
	"execution_limit"},
    [API_BOX_RESOURCES] = {429, "ResourceExhaustedError", "resource_exhausted", "box_resources"},
    [API_INTERNAL] = {500, "InternalError", "internal", "internal"},
    [API_UNSUPPORTED] = {501, "UnsupportedError", "unsupported", "unsupported"},
    [API_BOOT_FAILED] = {502, "EngineError", "engine_unavailable", "boot_failed"},
    [API_SHUTTING_DOWN] = {503, "StoppedError", "stopped", "shutting_down"},
    [API_NO_SPACE] = {507, "StorageError", "storage_error", "no_space"},
    [API_IO] = {500, "StorageError", "storage_error", "io"},
};
_Static_assert(sizeof(errors) / sizeof(errors[0]) == API_ERRORS, "every error has its row");

const struct api_error_info *api_error_info(enum api_error e)
{
	return &errors[(unsigned int)e < API_ERRORS ? e : API_INTERNAL];
}

enum api_error api_error_by_reason(const char *name)
{
	for (unsigned int e = API_OK + 1; e < API_ERRORS; e++) {
		if (!strcmp(errors[e].reason, name))
			return (enum api_error)e;
	}
	return API_INTERNAL;
}

#define API_ERROR_PART_MAX 8192U /* of the header lines, and of the body */

static int api_error_put_body(struct buf *body, const struct api_error_info *info,
    const char *message, const struct api_error_more *more)
{
	struct json_out j;

	json_out_init(&j, body);
	json_object_begin(&j, NULL);
	json_object_begin(&j, "error");
	json_put_string(&j, "message", message);
	json_put_string(&j, "type", info->type);
	json_put_string(&j, "code", info->code);
	json_put_string(&j, "reason", info->reason);
	if (more->request_id && *more->request_id)
		json_put_string(&j, "request_id", more->request_id);
	if (more->retry_after_seconds > 0)
		json_put_double(&j, "retry_after_seconds", more->retry_after_seconds);
	if (more->has_pool) {
		json_put_uint(&j, "active", more->active);
		json_put_uint(&j, "warm", more->warm);
		json_put_uint(&j, "replicas", more->replicas);
	}
	json_object_end(&j);
	json_object_end(&j);
	return json_out_error(&j);
}

/* Whole seconds, rounded up: who waits that long is not early. */
static unsigned int api_error_whole_seconds(double seconds)
{
	unsigned int whole;

	if (!(seconds < 86400))
		return 86400;
	whole = (unsigned int)seconds;
	return whole + (whole < seconds);
}

static int api_error_put_extra(struct buf *extra, const struct api_error_more *more)
{
	int rc = 0;

	if (more->retry_after_seconds > 0)
		rc = buf_printf(extra, "Retry-After: %u\r\n",
		    api_error_whole_seconds(more->retry_after_seconds));
	if (rc == 0 && more->allow)
		rc = buf_printf(extra, "Allow: %s\r\n", more->allow);
	if (rc == 0 && more->authenticate)
		rc = buf_printf(extra, "WWW-Authenticate: %s\r\n", more->authenticate);
	if (rc == 0 && more->extra)
		rc = buf_puts(extra, more->extra);
	return rc < 0 ? rc : buf_terminate(extra);
}

static int api_error_put_all(struct buf *out, const struct api_error_info *info,
    const struct buf *extra, const struct buf *body, const struct api_error_more *more,
    int keep_alive)
{
	const struct http_reply reply = {
	    .status = info->status,
	    .content_type = "application/json",
	    .content_length = body->len,
	    .keep_alive = keep_alive != 0,
	    .request_id = more->request_id,
	    .traceparent = more->traceparent,
	    .extra = (const char *)buf_head(extra),
	};
	size_t before = out->len;
	int rc = http_put_reply(out, &reply);

	if (rc == 0 && !more->no_body)
		rc = buf_append(out, buf_head(body), body->len);
	if (rc < 0)
		out->len = before;
	return rc;
}

int api_error_put(struct buf *out, enum api_error e, const char *message,
    const struct api_error_more *more, int keep_alive)
{
	static const struct api_error_more none = {.request_id = NULL};
	const struct api_error_info *info = api_error_info(e);
	struct buf extra;
	struct buf body;
	int rc;

	if (!more)
		more = &none;
	buf_init(&extra, API_ERROR_PART_MAX);
	buf_init(&body, API_ERROR_PART_MAX);
	rc = api_error_put_extra(&extra, more);
	if (rc == 0)
		rc = api_error_put_body(&body, info, message, more);
	if (rc == 0)
		rc = api_error_put_all(out, info, &extra, &body, more, keep_alive);
	buf_free(&extra);
	buf_free(&body);
	return rc;
}
