/*
 * files_write: PUT fs/write: a request's body becomes a file. sbx-worker. If we die here the box
 * dies with us: the file is written whole or not at all.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "wire/http.h"
#include "wire/json.h"
#include "worker/conn.h"
#include "worker/files.h"
#include "worker/files_json.h"

#define WRITE_MODE 0644U
#define WRITE_POUR 4096U /* less than a page is copied anyway */
#define WRITE_JSON_MAX (8U * PATH_MAX + 256U)

struct writer {
	struct op op; /* first */
	char *path;
};

static struct writer *writer_of(struct agent_chan *c)
{
	return (struct writer *)(void *)LOOP_OWNER(c, struct op, chan);
}

static void writer_sendable(struct agent_chan *c)
{
	struct writer *w = writer_of(c);

	if (w->op.conn)
		conn_more_body(w->op.conn);
}

static void writer_end(struct agent_chan *c, const struct agent_end *end)
{
	struct writer *w = writer_of(c);
	struct json_out j;
	struct buf out;

	buf_init(&out, WRITE_JSON_MAX);
	json_out_init(&j, &out);
	json_object_begin(&j, NULL);
	files_put_name(&j, "path", w->path, strlen(w->path));
	json_put_uint(&j, "bytes", end->bytes);
	json_object_end(&j);
	if (w->op.conn && json_out_error(&j) == 0)
		conn_reply(w->op.conn, 200, &out);
	else if (w->op.conn)
		conn_fail(w->op.conn, API_INTERNAL, "no memory for the answer");
	buf_free(&out);
	op_free(&w->op);
}

static void writer_error(struct agent_chan *c, uint32_t code, const char *text)
{
	struct writer *w = writer_of(c);

	if (w->op.conn)
		conn_fail(w->op.conn, files_error(code), text);
	op_free(&w->op);
}

static const struct agent_chan_ops writer_chan_ops = {
    .sendable = writer_sendable,
    .end = writer_end,
    .error = writer_error,
};

static size_t writer_room(struct op *op)
{
	return agent_chan_room(&op->chan);
}

static void writer_body(struct op *op, const uint8_t *p, size_t n)
{
	op->s->report->work.bytes_in += n;
	(void)agent_chan_send(&op->chan, p, n); /* never more than there is room for */
}

static ssize_t writer_pour(struct op *op, int fd, size_t n)
{
	ssize_t taken = n < WRITE_POUR ? -EOPNOTSUPP : agent_chan_pour(&op->chan, fd, n);

	op->s->report->work.bytes_in += taken > 0 ? (uint64_t)taken : 0;
	return taken;
}

static void writer_body_end(struct op *op)
{
	agent_chan_eof(&op->chan);
}

static void writer_free(struct op *op)
{
	struct writer *w = (struct writer *)(void *)op;

	free(w->path);
	free(w);
}

static const struct op_class writer_class = {
    .room = writer_room,
    .body = writer_body,
    .pour = writer_pour,
    .body_end = writer_body_end,
    .abandon = op_close_chan,
    .free = writer_free,
};

static int writer_open(struct writer *w, const struct agent_write *head)
{
	uint8_t request[sizeof(*head) + PATH_MAX];

	memcpy(request, head, sizeof(*head));
	memcpy(request + sizeof(*head), w->path, head->path_len);
	return agent_chan_open(w->op.s->link, &w->op.chan, &writer_chan_ops, AGENT_WRITE, request,
	    sizeof(*head) + head->path_len);
}

/* 0, or -EINVAL after answering. */
static int writer_take_query(struct agent_write *head, struct conn *c, const struct http_head *h)
{
	bool append = false;
	uint64_t mode = WRITE_MODE;
	int rc = files_take_flag(c, h, "append", &append);

	if (rc < 0)
		return rc;
	rc = files_take_number(c, h, "mode", 8, 0, 07777, &mode);
	if (rc < 0)
		return rc;
	head->size = h->content_length;
	head->flags = (append ? AGENT_WRITE_APPEND : 0) | (rc ? AGENT_WRITE_MODE : 0);
	head->mode = (uint32_t)mode;
	return 0;
}

void files_begin_write(struct conn *c, const struct http_head *h)
{
	struct agent_write head = {.size = 0};
	char path[PATH_MAX];
	struct writer *w;
	int n = files_take_path(c, h, path);

	if (n < 0 || writer_take_query(&head, c, h) < 0)
		return;
	head.path_len = (uint32_t)n;
	w = calloc(1, sizeof(*w));
	if (w)
		w->path = strdup(path);
	if (!w || !w->path) {
		free(w);
		conn_fail(c, API_INTERNAL, "no memory for the request");
		return;
	}
	op_init(&w->op, &writer_class, c);
	n = writer_open(w, &head);
	if (n < 0) {
		files_refuse(c, n);
		op_free(&w->op);
	}
}
