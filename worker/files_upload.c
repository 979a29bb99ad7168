/*
 * files_upload: PUT files: a tar archive is unpacked in the box. sbx-worker. If we die here the box
 * dies with us: each of its files is as it was, or as it was to be.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/clock.h"
#include "lib/log.h"
#include "wire/http.h"
#include "worker/conn.h"
#include "worker/files.h"
#include "worker/files_helper.h"
#include "worker/files_tar.h"
#include "worker/tar_in.h"

struct upload {
	struct op op; /* first */
	struct files_helper helper;
	struct tar_in *in;
	enum tar_in_state state;
	bool full;  /* the connection was told that there is no room */
	bool ended; /* the helper was told that there is no more */
};

static struct upload *upload_of(struct op *op)
{
	return (struct upload *)(void *)op;
}

static struct upload *upload_of_chan(struct agent_chan *c)
{
	return upload_of(LOOP_OWNER(c, struct op, chan));
}

/* Sends records as far as the guest takes them. True: all that there are. */
static bool upload_send(struct upload *u)
{
	struct buf *records = tar_in_records(u->in);

	while (records->len) {
		size_t room = agent_chan_room(&u->op.chan);
		size_t n = agent_chan_send(
		    &u->op.chan, buf_head(records), records->len < room ? records->len : room);

		if (n == 0)
			return false; /* upload_sendable() will come */
		buf_consume(records, n);
	}
	return true;
}

/* Goes on until it wants more of the archive, or the guest takes no more. */
static void upload_pump(struct upload *u)
{
	while (!u->ended && upload_send(u)) {
		if (u->state == TAR_IN_DONE || u->state == TAR_IN_FAILED) {
			/* Without the last record the helper knows that it was broken off. */
			u->ended = true;
			agent_chan_eof(&u->op.chan);
			break;
		}
		u->state = tar_in_run(u->in);
		if (u->state == TAR_IN_HUNGRY) {
			(void)upload_send(u); /* what stays here comes with the next call */
			break;
		}
	}
	if (u->full && u->op.conn && tar_in_room(u->in)) {
		u->full = false;
		conn_more_body(u->op.conn);
	}
}

static size_t upload_data(struct agent_chan *c, unsigned int stream, const uint8_t *p, size_t n)
{
	struct upload *u = upload_of_chan(c);

	if (stream == AGENT_STDERR)
		files_helper_keep(&u->helper, &u->op, p, n);
	else
		agent_chan_grant(c, stream, n); /* that it is done, its exit status says too */
	return n;
}

static void upload_sendable(struct agent_chan *c)
{
	upload_pump(upload_of_chan(c));
}

static void upload_answer(struct upload *u, const struct agent_end *end)
{
	const char *why = "the file helper ended too early";
	enum api_error e = files_helper_result(&u->helper, &u->op, end, &why);

	/* What is wrong with the archive is the reason for whatever the helper says. */
	if (u->state == TAR_IN_FAILED)
		e = tar_in_error(u->in, &why);
	else if (e == API_OK && u->state != TAR_IN_DONE)
		e = API_IO;
	if (e == API_OK)
		conn_reply_empty(u->op.conn, 204);
	else
		conn_fail(u->op.conn, e, why);
}

static void upload_end(struct agent_chan *c, const struct agent_end *end)
{
	struct upload *u = upload_of_chan(c);

	if (u->op.conn)
		upload_answer(u, end);
	op_free(&u->op);
}

static void upload_error(struct agent_chan *c, uint32_t code, const char *text)
{
	struct upload *u = upload_of_chan(c);

	if (u->op.conn)
		conn_fail(u->op.conn, files_error(code), text);
	op_free(&u->op);
}

static const struct agent_chan_ops upload_chan_ops = {
    .data = upload_data,
    .sendable = upload_sendable,
    .end = upload_end,
    .error = upload_error,
};

static size_t upload_room(struct op *op)
{
	struct upload *u = upload_of(op);
	size_t room = tar_in_room(u->in);

	u->full |= room == 0;
	return room;
}

static void upload_body(struct op *op, const uint8_t *p, size_t n)
{
	struct upload *u = upload_of(op);

	op->s->report->work.bytes_in += n;
	tar_in_put(u->in, p, n);
	upload_pump(u);
}

static void upload_body_end(struct op *op)
{
	struct upload *u = upload_of(op);

	tar_in_end(u->in);
	upload_pump(u);
}

static void upload_out_of_patience(struct loop *loop, struct loop_timer *t)
{
	(void)loop; /* the service knows its loop */
	op_close_chan(LOOP_OWNER(t, struct op, patience));
}

/*
 * The helper is not killed but told that nothing more comes: it removes what it has begun, and
 * ends. Half of the patience is for that.
 */
static void upload_abandon(struct op *op)
{
	struct upload *u = upload_of(op);

	if (!u->ended)
		agent_chan_eof(&op->chan);
	u->ended = true;
	INVARIANT(
	    loop_timer_set(op->s->loop, &op->patience,
		clock_now_ns() + service_patience_ns(op->s) / 2, upload_out_of_patience) == 0);
}

static void upload_free(struct op *op)
{
	struct upload *u = upload_of(op);

	tar_in_free(u->in);
	free(u);
}

static const struct op_class upload_class = {
    .room = upload_room,
    .body = upload_body,
    .body_end = upload_body_end,
    .abandon = upload_abandon,
    .free = upload_free,
};

/* The result is files_helper_open()'s. */
static int upload_open(struct upload *u, const struct files_tar_query *q)
{
	char path[PATH_MAX + sizeof("path=")];
	const char *const argv[] = {
	    "unpack",
	    path,
	    q->flag ? "overwrite=1" : "overwrite=0",
	    q->directory ? "directory=1" : "directory=0",
	    NULL,
	};

	(void)snprintf(path, sizeof(path), "path=%s", q->path);
	return files_helper_open(&u->op, &upload_chan_ops, argv, 0);
}

void files_begin_upload(struct conn *c, const struct http_head *h)
{
	struct files_tar_query q;
	struct upload *u;
	int rc;

	if (files_tar_take_query(c, h, "overwrite", true, &q) < 0)
		return;
	u = calloc(1, sizeof(*u));
	if (u)
		u->in = tar_in_create();
	if (!u || !u->in) {
		free(u);
		conn_fail(c, API_INTERNAL, "no memory for the request");
		return;
	}
	op_init(&u->op, &upload_class, c);
	rc = upload_open(u, &q);
	if (rc < 0) {
		files_refuse(c, rc);
		op_free(&u->op);
	}
}
