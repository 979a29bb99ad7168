/* mcp_tool_run: run_command. sbx-mcp; when it dies the service ends the command. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/clock.h"
#include "tools/cli_stream.h"
#include "tools/mcp_args.h"
#include "tools/mcp_clip.h"
#include "tools/mcp_tools.h"

#define BODY_MAX (64U * 1024U * 1024U)
#define TIMEOUT_MAX 86400

struct run {
	const char *command;
	const char *cwd;
	json_t *env;
	double timeout;
	uint64_t began;
	struct cli_stream stream;
	struct mcp_clip out;
	struct mcp_clip err;
};

static void run_drop(struct mcp_call *call)
{
	struct run *s = call->state;

	cli_stream_free(&s->stream);
	mcp_clip_free(&s->out);
	mcp_clip_free(&s->err);
}

static int run_begin(struct mcp_call *call, struct err *err)
{
	struct run *s = call->state;
	const struct json_field fields[] = {
	    {"command", JSON_FIELD_STRING, &s->command, 0, 0},
	    {"cwd", JSON_FIELD_STRING, &s->cwd, 0, 0},
	    {"env", JSON_FIELD_OBJECT, &s->env, 0, 0},
	    {"stdin", JSON_FIELD_OTHER, NULL, 0, 0},
	    {"timeout_seconds", JSON_FIELD_NUMBER, &s->timeout, 0.001, TIMEOUT_MAX},
	};
	const json_t *input = json_object_get(call->args, "stdin");
	int rc;

	s->timeout = call->m->o->command_s;
	rc = json_take(call->args, fields, sizeof(fields) / sizeof(fields[0]), err);
	if (rc == 0)
		rc = mcp_arg_needed(s->command, "command", err);
	if (rc == 0 && input && !json_is_null(input) && !json_is_string(input))
		rc = err_set(err, EINVAL, "\"stdin\" must be a string");
	if (rc == 0 && s->cwd)
		rc = mcp_arg_path(call, s->cwd, err);
	return rc;
}

static int take_output(void *ctx, int stream, const uint8_t *bytes, size_t n)
{
	struct mcp_call *call = ctx;
	struct run *s = call->state;

	mcp_call_doing_bytes(call, bytes, n);
	return mcp_clip_add(stream == 2 ? &s->err : &s->out, bytes, n);
}

static void put_body(const struct mcp_call *call, const struct run *s, struct json_out *j)
{
	const json_t *input = json_object_get(call->args, "stdin");

	json_object_begin(j, NULL);
	json_put_string(j, "command", s->command);
	if (call->key)
		json_put_string(j, "cwd", call->key);
	if (s->env)
		mcp_put_value(j, "env", s->env);
	if (json_is_string(input))
		json_put_base64(
		    j, "stdin_base64", json_string_value(input), json_string_length(input));
	json_put_double(j, "timeout_seconds", s->timeout);
	json_object_end(j);
}

static int run_ask(struct mcp_call *call, struct err *err)
{
	struct run *s = call->state;
	struct mcp_rest rest = {.error = 0};
	struct mcp_ask ask = {MCP_ASK_DEFAULTS, .method = "POST", .accept = "application/x-ndjson",
	    .seconds = s->timeout};
	struct json_out j;
	struct buf body;
	int rc;

	run_drop(call);
	s->began = clock_now_ns();
	cli_stream_init(&s->stream, take_output, call);
	mcp_clip_init(&s->out, call->m->o->output_bytes);
	mcp_clip_init(&s->err, call->m->o->output_bytes);
	mcp_call_doing(call, "running");
	buf_init(&body, BODY_MAX);
	json_out_init(&j, &body);
	put_body(call, s, &j);
	buf_init(&rest.b, 16);
	rest.error = buf_puts(&rest.b, "/run");
	if (json_out_error(&j))
		rest.error = json_out_error(&j);
	ask.body = buf_head(&body);
	ask.body_len = body.len;
	rc = mcp_rest_ask(&rest, call, &ask, err);
	buf_free(&body);
	return rc;
}

static int run_take(struct mcp_call *call, const uint8_t *bytes, size_t n, struct err *err)
{
	struct run *s = call->state;
	int rc;

	err->code = 0;
	rc = cli_stream_feed(&s->stream, bytes, n, err);
	if (rc < 0)
		return err->code ? rc : err_sys(err, -rc, "the output");
	return s->stream.result.known; /* after that there is only the end */
}

/* What a model reads: the output, and a word about what is unusual. */
static int put_text(struct mcp_call *call, const struct buf *out, const struct buf *err_text)
{
	struct run *s = call->state;
	const struct cli_result *r = &s->stream.result;
	bool line = out->len > 0 && buf_head(out)[out->len - 1] != '\n';
	int rc = buf_append(&call->text, buf_head(out), out->len);

	if (rc == 0 && err_text->len > 0)
		rc = buf_puts(&call->text, line ? "\n[stderr]\n" : "[stderr]\n");
	if (rc == 0)
		rc = buf_append(&call->text, buf_head(err_text), err_text->len);
	if (rc == 0 && call->text.len == 0)
		rc = buf_puts(&call->text, "(no output)");
	if (rc == 0 && r->timed_out)
		rc = buf_printf(&call->note,
		    "[timed out after %.15g s: the command and all that it started were killed]",
		    s->timeout);
	else if (rc == 0 && r->signal)
		rc = buf_printf(&call->note, "[ended by signal %d]", r->signal);
	else if (rc == 0 && r->exit_code != 0)
		rc = buf_printf(&call->note, "[exit code %d]", r->exit_code);
	return rc;
}

static void put_or_null(struct json_out *j, const char *key, bool there, int value)
{
	if (there)
		json_put_int(j, key, value);
	else
		json_put_null(j, key);
}

static int put_data(struct mcp_call *call, const struct buf *out, const struct buf *err_text)
{
	struct run *s = call->state;
	const struct cli_result *r = &s->stream.result;
	uint64_t took = clock_now_ns() - s->began;
	struct json_out j;

	json_out_init(&j, &call->data);
	json_object_begin(&j, NULL);
	put_or_null(&j, "exit_code", r->exit_code >= 0, r->exit_code);
	put_or_null(&j, "signal", r->signal != 0, r->signal);
	json_put_bool(&j, "timed_out", r->timed_out);
	json_put_bytes(&j, "stdout", buf_head(out), out->len);
	json_put_bytes(&j, "stderr", buf_head(err_text), err_text->len);
	json_put_bool(&j, "truncated", mcp_clip_left_out(&s->out) || mcp_clip_left_out(&s->err));
	json_put_double(&j, "duration_ms", (double)took / (double)NS_PER_MS);
	json_object_end(&j);
	return json_out_error(&j);
}

static int run_end(struct mcp_call *call, struct err *err)
{
	struct run *s = call->state;
	const struct cli_result *r = &s->stream.result;
	struct buf out;
	struct buf err_text;
	int rc;

	if (r->failed && mcp_reason_is_loss(r->reason))
		mcp_box_lost(call->m, call->box);
	if (r->failed)
		return err_set(err, EIO, "%s (%s)", r->message, r->reason);
	if (!r->known)
		return err_set(err, EBADMSG, "the answer ended before the command did");
	buf_init(&out, SIZE_MAX / 2); /* what was kept is bounded, three bytes for each at most */
	buf_init(&err_text, SIZE_MAX / 2);
	rc = mcp_clip_put(&s->out, &out);
	if (rc == 0)
		rc = mcp_clip_put(&s->err, &err_text);
	if (rc == 0)
		rc = put_text(call, &out, &err_text);
	if (rc == 0)
		rc = put_data(call, &out, &err_text);
	buf_free(&out);
	buf_free(&err_text);
	call->is_error = r->timed_out;
	return rc < 0 ? mcp_no_room(rc, err) : 0;
}

const struct mcp_handler mcp_run_command = {
    .state_size = sizeof(struct run),
    .begin = run_begin,
    .ask = run_ask,
    .take = run_take,
    .end = run_end,
    .drop = run_drop,
};
