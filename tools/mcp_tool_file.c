/* mcp_tool_file: read_file and write_file. sbx-mcp; a write that it dies in leaves the file as it
 * was. */
#include <errno.h>
#include <string.h>

#include "tools/mcp_args.h"
#include "tools/mcp_tools.h"

#define LINES_MAX 1e9

/* ---- read_file ---- */

struct reading {
	int64_t start;
	int64_t end;
};

static int read_begin(struct mcp_call *call, struct err *err)
{
	struct reading *s = call->state;
	const char *path = NULL;
	const struct json_field fields[] = {
	    {"path", JSON_FIELD_STRING, &path, 0, 0},
	    {"start_line", JSON_FIELD_INT, &s->start, 1, LINES_MAX},
	    {"end_line", JSON_FIELD_INT, &s->end, 1, LINES_MAX},
	};
	int rc;

	s->start = 1;
	rc = json_take(call->args, fields, sizeof(fields) / sizeof(fields[0]), err);
	if (rc == 0)
		rc = mcp_arg_needed(path, "path", err);
	if (rc == 0 && s->end && s->end < s->start)
		rc = err_set(err, EINVAL, "\"end_line\" must not be less than \"start_line\"");
	return rc < 0 ? rc : mcp_arg_path(call, path, err);
}

static int read_ask(struct mcp_call *call, struct err *err)
{
	const struct reading *s = call->state;
	struct mcp_ask ask = {MCP_ASK_DEFAULTS, .method = "GET"};
	struct mcp_rest rest;

	mcp_rest_init(&rest, "/fs/read", call);
	mcp_rest_int(&rest, "&start_line=", s->start);
	mcp_rest_int(&rest, "&end_line=", s->end);
	return mcp_rest_ask(&rest, call, &ask, err);
}

/* One byte more than is shown tells that there is more. */
static int read_take(struct mcp_call *call, const uint8_t *bytes, size_t n, struct err *err)
{
	size_t room = call->m->o->output_bytes + 1 - call->answer.len;
	int rc = buf_append(&call->answer, bytes, n < room ? n : room);

	return rc < 0 ? mcp_no_room(rc, err) : n >= room;
}

static int64_t count_lines(const uint8_t *bytes, size_t n)
{
	int64_t lines = n > 0 && bytes[n - 1] != '\n';

	for (size_t i = 0; i < n; i++)
		lines += bytes[i] == '\n';
	return lines;
}

/* How much of what came is shown: whole lines, or the beginning of one that is too long. */
static size_t shown_of(const struct mcp_call *call, bool *cut_line)
{
	size_t n = call->answer.len;
	const uint8_t *bytes = buf_head(&call->answer);
	const uint8_t *end;

	*cut_line = false;
	if (n <= call->m->o->output_bytes)
		return n;
	end = memrchr(bytes, '\n', n - 1);
	*cut_line = !end;
	return end ? (size_t)(end - bytes) + 1 : n - 1;
}

static int put_read(struct mcp_call *call, size_t n, int64_t lines, int64_t next)
{
	const struct reading *s = call->state;
	struct json_out j;
	int rc = buf_append(&call->text, buf_head(&call->answer), n);

	json_out_init(&j, &call->data);
	json_object_begin(&j, NULL);
	json_put_string(&j, "path", call->key);
	json_put_bytes(&j, "content", buf_head(&call->answer), n);
	json_put_int(&j, "start_line", s->start);
	json_put_int(&j, "lines", lines);
	json_put_bool(&j, "truncated", next != 0);
	if (next)
		json_put_int(&j, "next_line", next);
	else
		json_put_null(&j, "next_line");
	json_object_end(&j);
	return rc < 0 ? rc : json_out_error(&j);
}

static int read_end(struct mcp_call *call, struct err *err)
{
	const struct reading *s = call->state;
	bool cut_line;
	bool cut = false;
	size_t n = shown_of(call, &cut_line);
	const uint8_t *bytes = buf_head(&call->answer);
	size_t whole = utf8_valid_prefix(bytes, n, &cut);
	int64_t lines;
	int64_t next;
	int rc;

	if ((n > 0 && memchr(bytes, '\0', n)) || (whole < n && !(cut && cut_line)))
		return err_set(err, EILSEQ,
		    "%.150s is no UTF-8 text; look at it with a command (file, xxd)", call->key);
	lines = count_lines(bytes, whole);
	next = n < call->answer.len ? s->start + lines : 0;
	rc = put_read(call, whole, lines, next);
	if (rc == 0 && cut_line)
		rc = buf_printf(&call->note,
		    "[line %lld is longer than %zu bytes and was cut; the next one is line %lld]",
		    (long long)s->start, call->m->o->output_bytes, (long long)next);
	else if (rc == 0 && next)
		rc = buf_printf(
		    &call->note, "[there is more: go on with start_line %lld]", (long long)next);
	else if (rc == 0 && lines == 0)
		rc = buf_puts(&call->note,
		    s->start > 1 ? "[the file has fewer lines]" : "[the file is empty]");
	return rc < 0 ? mcp_no_room(rc, err) : 0;
}

const struct mcp_handler mcp_read_file = {
    .state_size = sizeof(struct reading),
    .begin = read_begin,
    .ask = read_ask,
    .take = read_take,
    .end = read_end,
};

/* ---- write_file ---- */

enum write_step {
	WRITE_FILE,
	WRITE_DIR, /* its directory is made */
	WRITE_AGAIN,
};

struct writing {
	const char *content;
	size_t len;
	const char *mode;
	bool append;
	enum write_step step;
};

static int write_begin(struct mcp_call *call, struct err *err)
{
	struct writing *s = call->state;
	const char *path = NULL;
	const struct json_field fields[] = {
	    {"path", JSON_FIELD_STRING, &path, 0, 0},
	    {"content", JSON_FIELD_OTHER, NULL, 0, 0},
	    {"append", JSON_FIELD_BOOL, &s->append, 0, 0},
	    {"mode", JSON_FIELD_STRING, &s->mode, 0, 0},
	};
	int rc = json_take(call->args, fields, sizeof(fields) / sizeof(fields[0]), err);

	if (rc == 0)
		rc = mcp_arg_needed(path, "path", err);
	if (rc == 0)
		rc = mcp_arg_text(call, "content", &s->content, &s->len, err);
	return rc < 0 ? rc : mcp_arg_path(call, path, err);
}

static int write_ask(struct mcp_call *call, struct err *err)
{
	const struct writing *s = call->state;
	struct mcp_ask ask = {
	    MCP_ASK_DEFAULTS, .method = "PUT", .body = s->content, .body_len = s->len};
	struct mcp_rest rest;

	mcp_rest_init(&rest, "/fs/write", call);
	mcp_rest_flag(&rest, "&append=", s->append);
	mcp_rest_text(&rest, "&mode=", s->mode);
	return mcp_rest_ask(&rest, call, &ask, err);
}

/* Models forget to make directories. 1, or -errno with *err. */
static int make_parent(struct mcp_call *call, struct err *err)
{
	size_t dir = (size_t)(strrchr(call->key, '/') - call->key);
	struct mcp_ask ask = {MCP_ASK_DEFAULTS, .method = "POST"};
	struct mcp_rest rest = {.error = 0};
	struct json_out j;
	struct buf body;
	int rc;

	buf_init(&body, HTTP_HEAD_MAX);
	json_out_init(&j, &body);
	json_object_begin(&j, NULL);
	json_put_bytes(&j, "path", call->key, dir);
	json_put_bool(&j, "parents", true);
	json_object_end(&j);
	buf_init(&rest.b, 16);
	rest.error = buf_puts(&rest.b, "/fs/mkdir");
	if (json_out_error(&j))
		rest.error = json_out_error(&j);
	ask.body = buf_head(&body);
	ask.body_len = body.len;
	rc = mcp_rest_ask(&rest, call, &ask, err);
	buf_free(&body);
	return rc < 0 ? rc : 1;
}

static int write_refused(struct mcp_call *call, unsigned int status, struct err *err)
{
	struct writing *s = call->state;

	if (status != 404 || s->step != WRITE_FILE || strrchr(call->key, '/') == call->key)
		return 0;
	s->step = WRITE_DIR;
	return make_parent(call, err);
}

static int write_end(struct mcp_call *call, struct err *err)
{
	struct writing *s = call->state;
	struct json_out j;
	int rc;

	if (s->step == WRITE_DIR) {
		s->step = WRITE_AGAIN;
		rc = write_ask(call, err);
		return rc < 0 ? rc : 1;
	}
	rc = buf_printf(
	    &call->text, "%s %zu bytes to %s", s->append ? "Added" : "Wrote", s->len, call->key);
	json_out_init(&j, &call->data);
	json_object_begin(&j, NULL);
	json_put_string(&j, "path", call->key);
	json_put_uint(&j, "bytes", s->len);
	json_object_end(&j);
	if (rc == 0)
		rc = json_out_error(&j);
	return rc < 0 ? mcp_no_room(rc, err) : 0;
}

const struct mcp_handler mcp_write_file = {
    .state_size = sizeof(struct writing),
    .in_turn = true,
    .begin = write_begin,
    .ask = write_ask,
    .end = write_end,
    .refused = write_refused,
};
