/* mcp_box: the session's box. The connection on which it was acquired stays open: when it closes,
 * because the session ends or sbx-mcp dies, the service takes the box back. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/clock.h"
#include "lib/log.h"
#include "tools/answer.h"
#include "tools/mcp_call.h"

#define ACQUIRED_MAX 65536U
#define END_S 5 /* for the box to be closed */

static void drop_lease(struct mcp_box *box)
{
	mcp_http_close(box->lease);
	box->lease = NULL;
	box->state = MCP_BOX_NONE;
	free(box->id);
	box->id = NULL;
	buf_free(&box->answer);
}

void mcp_box_lost(struct mcp *m, unsigned int serial)
{
	if (m->box.state == MCP_BOX_HELD && m->box.serial == serial)
		drop_lease(&m->box);
}

static void fail_acquire(struct mcp *m, const struct err *err)
{
	struct err why;

	drop_lease(&m->box);
	(void)err_set(&why, err->code, "no sandbox: %.220s", err->text);
	mcp_calls_fail(m, &why);
}

static void end_ended(struct mcp *m)
{
	drop_lease(&m->box);
	m->box.ending = false;
	if (m->said)
		m->said(m);
}

static void on_head(void *ctx, const struct http_head *head)
{
	struct mcp *m = ctx;

	m->box.status = head->status;
}

static void on_body(void *ctx, const uint8_t *bytes, size_t n)
{
	struct mcp *m = ctx;
	struct err err;
	int rc = buf_append(&m->box.answer, bytes, n);

	if (rc == 0 || m->box.ending)
		return;
	(void)err_sys(&err, -rc, "the answer of the service");
	fail_acquire(m, &err);
}

/* 0 or -EBADMSG. */
static int take_box(struct mcp_box *box, struct err *err)
{
	json_t *answer = json_parse_object(buf_head(&box->answer), box->answer.len, err);
	const char *id = json_string_value(json_object_get(answer, "box_id"));
	const char *source = json_string_value(json_object_get(answer, "source"));
	json_int_t generation = json_integer_value(json_object_get(answer, "generation"));
	int rc = 0;

	if (!answer)
		return -EBADMSG;
	box->id = id && source ? strdup(id) : NULL;
	if (box->id) {
		/* A successor may be warm or active: somebody else was faster to have it. */
		bool kept = (strcmp(source, "warm") == 0 || strcmp(source, "active") == 0) &&
			    (uint64_t)generation == box->generation;

		box->is_new = box->was_there && !kept;
		box->generation = (uint64_t)generation;
		box->was_there = true;
		box->state = MCP_BOX_HELD;
		box->serial++;
	} else {
		rc = err_set(err, EBADMSG, "the answer of the service names no box");
	}
	json_decref(answer);
	buf_free(&box->answer);
	return rc;
}

static void on_end(void *ctx)
{
	struct mcp *m = ctx;
	struct err err;
	int rc;

	if (m->box.ending) {
		end_ended(m);
		return;
	}
	if (m->box.status == 200)
		rc = take_box(&m->box, &err);
	else
		rc = answer_error(m->box.status, buf_head(&m->box.answer), m->box.answer.len, &err);
	if (rc < 0)
		fail_acquire(m, &err);
	else
		mcp_calls_go_on(m);
}

static void on_gone(void *ctx, const struct err *err)
{
	struct mcp *m = ctx;

	if (m->box.ending)
		end_ended(m);
	else if (m->box.state == MCP_BOX_ACQUIRING)
		fail_acquire(m, err);
	else
		drop_lease(&m->box); /* sbxd is gone; the calls under way may not even notice */
}

static const struct mcp_http_events events = {
    .head = on_head, .body = on_body, .end = on_end, .gone = on_gone};

static void put_acquire(const struct mcp *m, struct buf *out, int *error)
{
	struct json_out j;

	json_out_init(&j, out);
	json_object_begin(&j, NULL);
	json_put_string(&j, "user_id", m->o->user);
	json_put_string(&j, "thread_id", m->scope.thread);
	if (m->o->image)
		json_put_string(&j, "image", m->o->image);
	json_put_bool(&j, "release_on_disconnect", true);
	json_put_double(&j, "wait_seconds", m->o->wait_s);
	json_object_end(&j);
	*error = json_out_error(&j);
}

static int send_acquire(struct mcp *m, const struct buf *body, struct err *err)
{
	const struct mcp_http_request req = {.method = "POST",
	    .path = "/v1/acquire",
	    .body = buf_head(body),
	    .body_len = body->len,
	    .body_fd = -1,
	    .patience = clock_seconds_to_ns(m->o->wait_s + m->o->answer_s)};
	int fd = dial_service(&m->o->where, err);
	int rc;

	if (fd < 0)
		return fd;
	rc = mcp_http_open(m->loop, fd, &events, m, &m->box.lease, err);
	return rc < 0 ? rc : mcp_http_send(m->box.lease, &req, err);
}

static void begin_acquire(struct mcp *m)
{
	struct buf body;
	struct err err;
	int rc;

	buf_init(&m->box.answer, ACQUIRED_MAX);
	buf_init(&body, ACQUIRED_MAX);
	m->box.anonymous = m->scope.thread == NULL;
	m->box.state = MCP_BOX_ACQUIRING;
	put_acquire(m, &body, &rc);
	if (rc < 0)
		rc = err_sys(&err, -rc, "the names of user and thread");
	else
		rc = send_acquire(m, &body, &err);
	buf_free(&body);
	if (rc < 0)
		fail_acquire(m, &err);
}

void mcp_box_want(struct mcp *m)
{
	if (m->box.state == MCP_BOX_HELD)
		mcp_calls_go_on(m);
	else if (m->box.state == MCP_BOX_NONE && mcp_scope_known(m))
		begin_acquire(m);
}

bool mcp_box_end(struct mcp *m)
{
	char path[128];
	const struct mcp_http_request req = {
	    .method = "DELETE", .path = path, .body_fd = -1, .patience = END_S * NS_PER_S};
	struct err err;
	int n;

	if (m->box.state != MCP_BOX_HELD || !m->box.anonymous)
		return true;
	n = snprintf(path, sizeof(path), "/v1/boxes/%s?force=true", m->box.id);
	if (n < 0 || (size_t)n >= sizeof(path) || mcp_http_send(m->box.lease, &req, &err) < 0)
		return true;
	m->box.ending = true;
	return false;
}

void mcp_box_drop(struct mcp *m)
{
	drop_lease(&m->box);
}
