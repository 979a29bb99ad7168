/* mcp_tool_edit: edit_file: the file is read, changed here, and written whole. sbx-mcp; calls for
 * one file run in turn, so that none undoes another's change. */
#include <errno.h>
#include <string.h>

#include "tools/mcp_args.h"
#include "tools/mcp_tools.h"

#define FILE_MAX (8U * 1024U * 1024U)

struct edit {
	const char *old_text;
	size_t old_len;
	const char *new_text;
	size_t new_len;
	bool all;
	struct buf file; /* as it is to be */
	int64_t replaced;
	int64_t line;
};

static int edit_begin(struct mcp_call *call, struct err *err)
{
	struct edit *s = call->state;
	const char *path = NULL;
	const struct json_field fields[] = {
	    {"path", JSON_FIELD_STRING, &path, 0, 0},
	    {"old_text", JSON_FIELD_OTHER, NULL, 0, 0},
	    {"new_text", JSON_FIELD_OTHER, NULL, 0, 0},
	    {"replace_all", JSON_FIELD_BOOL, &s->all, 0, 0},
	};
	int rc = json_take(call->args, fields, sizeof(fields) / sizeof(fields[0]), err);

	if (rc == 0)
		rc = mcp_arg_needed(path, "path", err);
	if (rc == 0)
		rc = mcp_arg_text(call, "old_text", &s->old_text, &s->old_len, err);
	if (rc == 0)
		rc = mcp_arg_text(call, "new_text", &s->new_text, &s->new_len, err);
	if (rc == 0 && s->old_len == 0)
		rc = err_set(err, EINVAL, "\"old_text\" is empty; write_file makes a file");
	return rc < 0 ? rc : mcp_arg_path(call, path, err);
}

static int edit_ask(struct mcp_call *call, struct err *err)
{
	struct mcp_ask ask = {MCP_ASK_DEFAULTS, .method = "GET"};
	struct mcp_rest rest;

	mcp_rest_init(&rest, "/fs/read", call);
	return mcp_rest_ask(&rest, call, &ask, err);
}

static int64_t line_of(const uint8_t *bytes, size_t n)
{
	int64_t line = 1;

	for (size_t i = 0; i < n; i++)
		line += bytes[i] == '\n';
	return line;
}

/* Makes s->file out of the file as it is. 0 or -errno. */
static int replace(struct edit *s, const uint8_t *bytes, size_t n)
{
	const uint8_t *at = bytes;
	const uint8_t *end = bytes + n;
	const uint8_t *found;
	int rc = 0;

	while (rc == 0 && at < end &&
	       (found = memmem(at, (size_t)(end - at), s->old_text, s->old_len)) != NULL) {
		if (s->replaced++ == 0)
			s->line = line_of(bytes, (size_t)(found - bytes));
		rc = buf_append(&s->file, at, (size_t)(found - at));
		if (rc == 0)
			rc = buf_append(&s->file, s->new_text, s->new_len);
		at = found + s->old_len;
	}
	return rc < 0 || at == end ? rc : buf_append(&s->file, at, (size_t)(end - at));
}

static int write_back(struct mcp_call *call, struct err *err)
{
	struct edit *s = call->state;
	struct mcp_ask ask = {MCP_ASK_DEFAULTS, .method = "PUT",
	    .body = s->file.len > 0 ? (const void *)buf_head(&s->file) : "",
	    .body_len = s->file.len};
	struct mcp_rest rest;

	mcp_rest_init(&rest, "/fs/write", call);
	return mcp_rest_ask(&rest, call, &ask, err);
}

static int change(struct mcp_call *call, struct err *err)
{
	struct edit *s = call->state;
	int rc;

	buf_init(&s->file, FILE_MAX);
	if (call->answer.len > FILE_MAX)
		return err_set(err, EFBIG, "%.150s has more than %u bytes; edit it with a command",
		    call->key, FILE_MAX);
	rc = replace(s, buf_head(&call->answer), call->answer.len);
	if (rc < 0)
		return err_set(
		    err, -rc, "%.150s would have more than %u bytes", call->key, FILE_MAX);
	if (s->replaced == 0)
		return err_set(err, ENOENT,
		    "old_text is not in %.150s; it must be exactly as it is there, spaces and all",
		    call->key);
	if (s->replaced > 1 && !s->all)
		return err_set(err, EINVAL,
		    "old_text is %lld times in %.120s, first at line %lld; give more of what is "
		    "around "
		    "it, or replace_all",
		    (long long)s->replaced, call->key, (long long)s->line);
	rc = write_back(call, err);
	return rc < 0 ? rc : 1;
}

static int edit_end(struct mcp_call *call, struct err *err)
{
	struct edit *s = call->state;
	struct json_out j;
	int rc;

	if (s->replaced == 0)
		return change(call, err);
	rc = buf_printf(&call->text, "Replaced %lld in %s, %s line %lld", (long long)s->replaced,
	    call->key, s->replaced == 1 ? "at" : "the first at", (long long)s->line);
	json_out_init(&j, &call->data);
	json_object_begin(&j, NULL);
	json_put_string(&j, "path", call->key);
	json_put_int(&j, "replaced", s->replaced);
	json_put_int(&j, "line", s->line);
	json_put_uint(&j, "bytes", s->file.len);
	json_object_end(&j);
	if (rc == 0)
		rc = json_out_error(&j);
	return rc < 0 ? mcp_no_room(rc, err) : 0;
}

static void edit_drop(struct mcp_call *call)
{
	struct edit *s = call->state;

	buf_free(&s->file);
}

const struct mcp_handler mcp_edit_file = {
    .state_size = sizeof(struct edit),
    .in_turn = true,
    .begin = edit_begin,
    .ask = edit_ask,
    .end = edit_end,
    .drop = edit_drop,
};
