/* mcp_tool_find: list_dir, glob and grep. sbx-mcp; they change nothing. */
#include <errno.h>
#include <string.h>

#include "tools/mcp_args.h"
#include "tools/mcp_tools.h"

#define RESULTS_MAX 10000

struct find {
	const char *endpoint;
	const char *pattern;
	const char *glob;
	int64_t depth;
	int64_t max;
	bool literal;
	bool case_sensitive;
	bool dirs;
};

static int find_ask(struct mcp_call *call, struct err *err)
{
	const struct find *s = call->state;
	struct mcp_ask ask = {MCP_ASK_DEFAULTS, .method = "GET"};
	struct mcp_rest rest;

	mcp_rest_init(&rest, s->endpoint, call);
	mcp_rest_text(&rest, "&pattern=", s->pattern);
	mcp_rest_text(&rest, "&glob=", s->glob);
	mcp_rest_int(&rest, "&depth=", s->depth);
	mcp_rest_int(&rest, "&max_results=", s->max);
	mcp_rest_flag(&rest, "&literal=", s->literal);
	mcp_rest_flag(&rest, "&case_sensitive=", s->case_sensitive);
	mcp_rest_flag(&rest, "&include_dirs=", s->dirs);
	return mcp_rest_ask(&rest, call, &ask, err);
}

static int take_args(struct mcp_call *call, const struct json_field *fields, size_t count,
    const char *const *path, struct err *err)
{
	int rc = json_take(call->args, fields, count, err);

	return rc < 0 ? rc : mcp_arg_path(call, *path, err);
}

static int list_begin(struct mcp_call *call, struct err *err)
{
	struct find *s = call->state;
	const char *path = NULL;
	const struct json_field fields[] = {
	    {"path", JSON_FIELD_STRING, &path, 0, 0},
	    {"depth", JSON_FIELD_INT, &s->depth, 1, 2048},
	    {"max_results", JSON_FIELD_INT, &s->max, 1, RESULTS_MAX},
	};

	s->endpoint = "/fs/list";
	s->max = 500;
	return take_args(call, fields, sizeof(fields) / sizeof(fields[0]), &path, err);
}

static int glob_begin(struct mcp_call *call, struct err *err)
{
	struct find *s = call->state;
	const char *path = NULL;
	const struct json_field fields[] = {
	    {"path", JSON_FIELD_STRING, &path, 0, 0},
	    {"pattern", JSON_FIELD_STRING, &s->pattern, 0, 0},
	    {"include_dirs", JSON_FIELD_BOOL, &s->dirs, 0, 0},
	    {"max_results", JSON_FIELD_INT, &s->max, 1, RESULTS_MAX},
	};
	int rc;

	s->endpoint = "/fs/glob";
	rc = take_args(call, fields, sizeof(fields) / sizeof(fields[0]), &path, err);
	return rc < 0 ? rc : mcp_arg_needed(s->pattern, "pattern", err);
}

static int grep_begin(struct mcp_call *call, struct err *err)
{
	struct find *s = call->state;
	const char *path = NULL;
	const struct json_field fields[] = {
	    {"path", JSON_FIELD_STRING, &path, 0, 0},
	    {"pattern", JSON_FIELD_STRING, &s->pattern, 0, 0},
	    {"glob", JSON_FIELD_STRING, &s->glob, 0, 0},
	    {"literal", JSON_FIELD_BOOL, &s->literal, 0, 0},
	    {"case_sensitive", JSON_FIELD_BOOL, &s->case_sensitive, 0, 0},
	    {"max_results", JSON_FIELD_INT, &s->max, 1, RESULTS_MAX},
	};
	int rc;

	s->endpoint = "/fs/grep";
	rc = take_args(call, fields, sizeof(fields) / sizeof(fields[0]), &path, err);
	return rc < 0 ? rc : mcp_arg_needed(s->pattern, "pattern", err);
}

/* ---- the results ---- */

/* One of them as a line of text and as JSON. 0, -EBADMSG (it is no such thing) or -errno. */
typedef int put_fn(struct buf *text, struct json_out *j, const json_t *item);

static int put_entry(struct buf *text, struct json_out *j, const json_t *item)
{
	const char *path = json_string_value(json_object_get(item, "path"));
	const char *type = json_string_value(json_object_get(item, "type"));
	const char *target = json_string_value(json_object_get(item, "link_target"));
	json_int_t size = json_integer_value(json_object_get(item, "size"));
	bool file = type && strcmp(type, "file") == 0;

	if (!path || !type)
		return -EBADMSG;
	json_object_begin(j, NULL);
	json_put_string(j, "path", path);
	json_put_string(j, "type", type);
	json_put_int(j, "size", size);
	json_object_end(j);
	if (file)
		return buf_printf(text, "%s (%lld bytes)\n", path, (long long)size);
	if (target)
		return buf_printf(text, "%s -> %s\n", path, target);
	if (strcmp(type, "directory") == 0)
		return buf_printf(text, "%s/\n", path);
	return buf_printf(text, "%s (%s)\n", path, type);
}

static int put_path(struct buf *text, struct json_out *j, const json_t *item)
{
	const char *path = json_string_value(item);

	if (!path)
		return -EBADMSG;
	json_put_string(j, NULL, path);
	return buf_printf(text, "%s\n", path);
}

static int put_match(struct buf *text, struct json_out *j, const json_t *item)
{
	const char *path = json_string_value(json_object_get(item, "path"));
	const json_t *line = json_object_get(item, "line");
	json_int_t number = json_integer_value(json_object_get(item, "line_number"));
	int rc;

	if (!path || !json_is_string(line))
		return -EBADMSG;
	json_object_begin(j, NULL);
	json_put_string(j, "path", path);
	json_put_int(j, "line_number", number);
	json_put_bytes(j, "line", json_string_value(line), json_string_length(line));
	json_object_end(j);
	rc = buf_printf(text, "%s:%lld:", path, (long long)number);
	if (rc == 0)
		rc = buf_append(text, json_string_value(line), json_string_length(line));
	return rc < 0 ? rc : buf_puts(text, "\n");
}

/* As many as fit. How many, or -errno. */
static long put_items(struct mcp_call *call, struct json_out *j, const json_t *items, put_fn *put)
{
	const json_t *item;
	size_t i;
	int rc;

	json_array_foreach(items, i, item)
	{
		if (call->text.len >= call->m->o->output_bytes)
			break;
		rc = put(&call->text, j, item);
		if (rc < 0)
			return rc;
	}
	return (long)i;
}

static int put_note(struct mcp_call *call, long shown, bool more, const json_t *answer)
{
	json_int_t failed = json_integer_value(json_object_get(answer, "error_count"));
	int rc = 0;

	if (shown == 0)
		rc = buf_puts(&call->text, "(nothing)");
	if (rc == 0 && more)
		rc = buf_printf(&call->note, "[there is more than these %ld]", shown);
	if (rc == 0 && failed > 0)
		rc = buf_printf(&call->note, "[%lld could not be read]", (long long)failed);
	return rc;
}

static int put_result(struct mcp_call *call, const json_t *answer, const char *member, put_fn *put)
{
	const json_t *items = json_object_get(answer, member);
	bool more = json_is_true(json_object_get(answer, "truncated"));
	struct json_out j;
	long shown;

	if (!json_is_array(items))
		return -EBADMSG;
	json_out_init(&j, &call->data);
	json_object_begin(&j, NULL);
	json_put_string(&j, "path", call->key);
	json_array_begin(&j, member);
	shown = put_items(call, &j, items, put);
	json_array_end(&j);
	more = more || (shown >= 0 && (size_t)shown < json_array_size(items));
	json_put_bool(&j, "truncated", more);
	json_object_end(&j);
	if (shown < 0)
		return (int)shown;
	return json_out_error(&j) ? json_out_error(&j) : put_note(call, shown, more, answer);
}

static int find_end(struct mcp_call *call, const char *member, put_fn *put, struct err *err)
{
	json_error_t wrong;
	/* Not json_parse_object(): a line may hold NUL. */
	json_t *answer = json_loadb((const char *)buf_head(&call->answer), call->answer.len,
	    JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &wrong);
	int rc = answer ? put_result(call, answer, member, put) : -EBADMSG;

	json_decref(answer);
	return rc < 0 ? mcp_no_room(rc, err) : 0;
}

static int list_end(struct mcp_call *call, struct err *err)
{
	return find_end(call, "entries", put_entry, err);
}

static int glob_end(struct mcp_call *call, struct err *err)
{
	return find_end(call, "matches", put_path, err);
}

static int grep_end(struct mcp_call *call, struct err *err)
{
	return find_end(call, "matches", put_match, err);
}

const struct mcp_handler mcp_list_dir = {
    .state_size = sizeof(struct find), .begin = list_begin, .ask = find_ask, .end = list_end};

const struct mcp_handler mcp_glob = {
    .state_size = sizeof(struct find), .begin = glob_begin, .ask = find_ask, .end = glob_end};

const struct mcp_handler mcp_grep = {
    .state_size = sizeof(struct find), .begin = grep_begin, .ask = find_ask, .end = grep_end};
