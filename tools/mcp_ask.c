/* mcp_ask: what a call asks the service, and what comes of it. sbx-mcp; when it dies, the service
 * sees the connection close and ends what was asked for. */
#include <errno.h>
#include <string.h>

#include "lib/clock.h"
#include "tools/answer.h"
#include "tools/mcp_call.h"

static void on_head(void *ctx, const struct http_head *head)
{
	struct mcp_call *call = ctx;

	call->status = head->status;
}

static bool is_success(const struct mcp_call *call)
{
	return call->status >= 200 && call->status <= 299;
}

static void end_answer(struct mcp_call *call)
{
	struct err err;
	int rc = call->tool->handler->end(call, &err);

	if (rc < 0)
		mcp_call_fail(call, &err);
	else if (rc == 0)
		mcp_call_complete(call);
}

static void on_body(void *ctx, const uint8_t *bytes, size_t n)
{
	struct mcp_call *call = ctx;
	struct err err;
	int rc;

	if (is_success(call) && call->tool->handler->take) {
		rc = call->tool->handler->take(call, bytes, n, &err);
	} else {
		rc = buf_append(&call->answer, bytes, n);
		if (rc < 0)
			rc = err_sys(&err, -rc, "the answer of the service");
	}
	if (rc < 0) {
		mcp_call_fail(call, &err);
	} else if (rc > 0) {
		mcp_http_close(call->http);
		call->http = NULL;
		end_answer(call);
	}
}

bool mcp_reason_is_loss(const char *reason)
{
	static const char *const losses[] = {"box_died", "worker_crashed", "stale_generation"};

	for (size_t i = 0; i < sizeof(losses) / sizeof(losses[0]); i++) {
		if (strcmp(reason, losses[i]) == 0)
			return true;
	}
	return false;
}

/* No box of that id, or another one: ours went before this was asked, and nothing was begun. */
static bool was_gone(const struct mcp_call *call, const struct err *err)
{
	if (call->status == 410)
		return strstr(err->text, "(stale_generation)") != NULL;
	return call->status == 404 && strncmp(err->text, "box not found", 13) == 0;
}

/* Then it can be begun anew, once. */
static bool begin_anew(struct mcp_call *call, const struct err *err)
{
	if (!was_gone(call, err))
		return false;
	mcp_box_lost(call->m, call->box);
	if (call->asked > 1)
		return false;
	mcp_http_close(call->http); /* its end, which may come now, says nothing of what follows */
	call->http = NULL;
	call->stage = MCP_CALL_BOX;
	call->generation = 0;
	mcp_box_want(call->m); /* may end it */
	return true;
}

static void on_end(void *ctx)
{
	struct mcp_call *call = ctx;
	struct err err;
	int rc = 0;

	if (is_success(call)) {
		end_answer(call);
		return;
	}
	(void)answer_error(call->status, buf_head(&call->answer), call->answer.len, &err);
	if (begin_anew(call, &err))
		return;
	if (call->status == 410)
		mcp_box_lost(call->m, call->box);
	else if (call->tool->handler->refused)
		rc = call->tool->handler->refused(call, call->status, &err);
	if (rc <= 0)
		mcp_call_fail(call, &err);
}

static void on_gone(void *ctx, const struct err *err)
{
	struct mcp_call *call = ctx;

	/* Whatever is wrong there: the next acquire finds out, or waits for somebody who mends it.
	 */
	mcp_box_lost(call->m, call->box);
	mcp_call_fail(call, err);
}

static const struct mcp_http_events events = {
    .head = on_head, .body = on_body, .end = on_end, .gone = on_gone};

static int put_path(struct buf *path, const char *box, const struct buf *rest)
{
	int rc = buf_puts(path, "/v1/boxes/");

	if (rc == 0)
		rc = http_put_escaped(path, box, false);
	if (rc == 0)
		rc = buf_append(path, buf_head(rest), rest->len);
	return rc < 0 ? rc : buf_terminate(path);
}

static int send_ask(
    struct mcp_call *call, const struct mcp_ask *ask, const struct buf *path, struct err *err)
{
	const struct mcp_http_request req = {.method = ask->method,
	    .path = (const char *)buf_head(path),
	    .accept = ask->accept,
	    .traceparent = call->traceparent,
	    .box_generation = call->generation,
	    .body = ask->body,
	    .body_len = ask->body_len,
	    .body_fd = ask->body_fd,
	    .body_fd_len = ask->body_fd_len,
	    .patience = clock_seconds_to_ns(call->m->o->answer_s + ask->seconds)};
	int fd = dial_service(&call->m->o->where, err);
	int rc;

	if (fd < 0)
		return fd;
	rc = mcp_http_open(call->m->loop, fd, &events, call, &call->http, err);
	return rc < 0 ? rc : mcp_http_send(call->http, &req, err);
}

int mcp_call_ask(struct mcp_call *call, const struct mcp_ask *ask, struct err *err)
{
	const struct mcp_box *box = &call->m->box;
	struct buf path;
	int rc;

	/* What one box said is not carried on in another one. */
	if (box->state != MCP_BOX_HELD || (call->generation && call->generation != box->generation))
		return err_set(err, EIO, "the sandbox was lost in the middle of it");
	call->generation = box->generation;
	mcp_http_close(call->http);
	call->http = NULL;
	call->status = 0;
	call->asked++;
	call->box = box->serial;
	buf_clear(&call->answer);
	buf_init(&path, HTTP_HEAD_MAX / 2);
	rc = put_path(&path, box->id, ask->rest);
	if (rc < 0)
		rc = err_sys(err, -rc, "the path or pattern is too long");
	else
		rc = send_ask(call, ask, &path, err);
	buf_free(&path);
	return rc;
}
