/*
 * files_read: GET fs/read: a file, or a range of it, streamed. sbx-worker. If we die here, sbxd
 * closes the connection or answers it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "wire/http.h"
#include "worker/conn.h"
#include "worker/files.h"

#define READ_TYPE "application/octet-stream"
#define READ_PIPE (256U * 1024U) /* from this size on it pays not to copy */

struct reader {
	struct op op; /* first */
	uint64_t offset;
	uint64_t limit;
	bool lines;
	bool begun; /* the response was */
	bool sized; /* its length is known: `left` bytes are still to come */
	uint64_t left;
	uint64_t taken;	  /* from the guest */
	uint64_t granted; /* of these, back to it as credit */
};

static struct reader *reader_of(struct agent_chan *c)
{
	return (struct reader *)(void *)LOOP_OWNER(c, struct op, chan);
}

/* What is longer than one transfer may be is not begun; it can be had in ranges. */
static void reader_refuse(struct reader *r)
{
	char why[96];

	(void)snprintf(why, sizeof(why), "more than %llu bytes: read them in ranges",
	    (unsigned long long)r->op.s->limits->file_bytes);
	conn_fail(r->op.conn, API_TOO_LARGE, why);
	op_close_chan(&r->op);
}

/* The guest may send as much more as the client has taken. */
static void reader_grant(struct reader *r)
{
	uint64_t done = r->taken - conn_queued(r->op.conn);

	/* Framing is queued too, so `done` may fall behind what was granted before. */
	if (conn_queued(r->op.conn) > r->taken || done <= r->granted)
		return;
	agent_chan_grant(&r->op.chan, AGENT_STDOUT, (size_t)(done - r->granted));
	r->granted = done;
}

static int reader_started(struct agent_chan *c, const uint8_t *payload, size_t n)
{
	struct reader *r = reader_of(c);
	struct agent_stat st;

	if (n != sizeof(st) || r->begun)
		return -EBADMSG;
	memcpy(&st, payload, sizeof(st));
	if (!r->op.conn)
		return 0;
	r->begun = true;
	/* Files of size 0 may well have content: those of /proc do. */
	if (S_ISREG(st.mode) && st.size > 0 && !r->lines) {
		r->sized = true;
		r->left = r->offset < st.size ? st.size - r->offset : 0;
		if (r->left > r->limit)
			r->left = r->limit;
	}
	if (r->sized && r->left > r->op.s->limits->file_bytes) {
		reader_refuse(r);
		return 0;
	}
	conn_begin(r->op.conn, READ_TYPE, r->sized ? r->left : UINT64_MAX);
	if (r->sized && r->left >= READ_PIPE) {
		conn_widen(r->op.conn);
		agent_chan_pipe(c);
	}
	return 0;
}

static void reader_count(struct reader *r, size_t n)
{
	r->taken += n;
	r->left -= r->sized ? n : 0;
	r->op.s->report->work.bytes_out += n;
	reader_grant(r);
}

/* What the client does not take waits in the guest's stream, or, when others need that, here. */
static size_t reader_pass(struct reader *r, const uint8_t *p, size_t n)
{
	size_t sent = conn_put_some(r->op.conn, p, n);

	if (sent < n && !agent_chan_hold(&r->op.chan)) {
		conn_put(r->op.conn, p + sent, n - sent);
		sent = n;
	}
	reader_count(r, sent);
	return sent;
}

static size_t reader_data(struct agent_chan *c, unsigned int stream, const uint8_t *p, size_t n)
{
	struct reader *r = reader_of(c);

	if (r->op.conn && !r->sized && n > r->op.s->limits->file_bytes - r->taken) {
		conn_cut(r->op.conn); /* nobody knew how long it is */
		op_close_chan(&r->op);
	}
	if (r->op.conn && r->begun && (!r->sized || n <= r->left))
		return reader_pass(r, p, n);
	if (r->op.conn && r->begun) {
		/* The file has grown meanwhile: it was announced as it was. */
		op_close_chan(&r->op);
		if (r->left)
			return reader_pass(r, p, (size_t)r->left);
	}
	agent_chan_grant(c, stream, n);
	return n;
}

/* Whatever is unusual goes through reader_data(). */
static size_t reader_piped(struct agent_chan *c, unsigned int stream, int pipe, size_t n)
{
	struct reader *r = reader_of(c);
	size_t sent;

	(void)stream; /* there is one */
	if (!r->op.conn || n > r->left)
		return 0;
	sent = conn_put_pipe(r->op.conn, pipe, n);
	reader_count(r, sent);
	if (sent < n)
		(void)agent_chan_hold(c); /* if not, the rest comes through reader_data() */
	return sent;
}

static void reader_end(struct agent_chan *c, const struct agent_end *end)
{
	struct reader *r = reader_of(c);

	(void)end; /* what counts was sent */
	if (r->op.conn && !r->begun)
		conn_begin(r->op.conn, READ_TYPE, UINT64_MAX);
	if (r->op.conn && r->sized && r->left)
		conn_cut(r->op.conn); /* the file has shrunk meanwhile */
	else if (r->op.conn)
		conn_end(r->op.conn);
	op_free(&r->op);
}

static void reader_error(struct agent_chan *c, uint32_t code, const char *text)
{
	struct reader *r = reader_of(c);

	if (r->op.conn && r->begun)
		conn_cut(r->op.conn);
	else if (r->op.conn)
		conn_fail(r->op.conn, files_error(code), text);
	op_free(&r->op);
}

static const struct agent_chan_ops reader_chan_ops = {
    .started = reader_started,
    .data = reader_data,
    .piped = reader_piped,
    .end = reader_end,
    .error = reader_error,
};

static void reader_drained(struct op *op)
{
	reader_grant((struct reader *)(void *)op);
	agent_chan_release(&op->chan);
}

static void reader_free(struct op *op)
{
	free(op);
}

static const struct op_class reader_class = {
    .drained = reader_drained,
    .abandon = op_close_chan,
    .free = reader_free,
};

/* The range that the query names. 0, or -EINVAL after answering. */
static int reader_take_range(struct reader *r, struct conn *c, const struct http_head *h)
{
	uint64_t first = 1;
	uint64_t last = UINT64_MAX;
	int bytes = 0;
	int lines = 0;
	int rc;

	r->limit = UINT64_MAX;
	if ((rc = files_take_number(c, h, "offset", 10, 0, INT64_MAX, &r->offset)) < 0)
		return rc;
	bytes |= rc;
	if ((rc = files_take_number(c, h, "limit", 10, 0, UINT64_MAX, &r->limit)) < 0)
		return rc;
	bytes |= rc;
	if ((rc = files_take_number(c, h, "start_line", 10, 1, UINT64_MAX, &first)) < 0)
		return rc;
	lines |= rc;
	if ((rc = files_take_number(c, h, "end_line", 10, first, UINT64_MAX, &last)) < 0)
		return rc;
	lines |= rc;
	if (bytes && lines) {
		conn_fail(
		    c, API_INVALID_ARGUMENT, "a range is given in bytes or in lines, not both");
		return -EINVAL;
	}
	r->lines = lines != 0;
	if (r->lines) {
		r->offset = first;
		r->limit = last;
	}
	return 0;
}

static int reader_open(struct reader *r, const char *path, size_t path_len)
{
	struct agent_read head = {
	    .offset = r->offset,
	    .limit = r->limit,
	    .flags = r->lines ? AGENT_READ_LINES : 0,
	    .path_len = (uint32_t)path_len,
	};
	uint8_t request[sizeof(head) + PATH_MAX];

	memcpy(request, &head, sizeof(head));
	memcpy(request + sizeof(head), path, path_len);
	return agent_chan_open(r->op.s->link, &r->op.chan, &reader_chan_ops, AGENT_READ, request,
	    sizeof(head) + path_len);
}

void files_begin_read(struct conn *c, const struct http_head *h)
{
	struct reader want = {.offset = 0};
	char path[PATH_MAX];
	struct reader *r;
	int n = files_take_path(c, h, path);

	if (n < 0 || reader_take_range(&want, c, h) < 0)
		return;
	r = malloc(sizeof(*r));
	if (!r) {
		conn_fail(c, API_INTERNAL, "no memory for the request");
		return;
	}
	*r = want;
	op_init(&r->op, &reader_class, c);
	n = reader_open(r, path, (size_t)n);
	if (n < 0) {
		files_refuse(c, n);
		op_free(&r->op);
	}
}
