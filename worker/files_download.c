/*
 * files_download: GET files: a file or a tree of the box as a tar archive. sbx-worker. If we die
 * here, sbxd closes the connection or answers it.
 *
 * The length of the archive is not known beforehand. What goes wrong after its first bytes cuts the
 * response: the client misses the last chunk.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/log.h"
#include "wire/http.h"
#include "worker/conn.h"
#include "worker/files.h"
#include "worker/files_helper.h"
#include "worker/files_tar.h"
#include "worker/tar_out.h"

#define DOWNLOAD_TYPE "application/x-tar"
#define DOWNLOAD_STEP (16U * 1024U) /* of records, before the client's pace is looked at again */
#define DOWNLOAD_PUT (64U * 1024U)  /* of the archive, in one chunk */
#define DOWNLOAD_TAR_MAX (DOWNLOAD_PUT + TAR_OUT_FACTOR * (DOWNLOAD_STEP + ENTRY_SIZE_MAX))

struct download {
	struct op op; /* first */
	struct files_helper helper;
	struct buf kept; /* records that the client is too slow for; at most the stream's window */
	struct buf tar;	 /* of the archive, not yet sent */
	bool begun;	 /* the response was */
	bool broken;	 /* the records make no sense */
	bool over;	 /* the helper has ended, `end` is filled */
	struct agent_end end;
	struct tar_out out;
};

static struct download *download_of(struct op *op)
{
	return (struct download *)(void *)op;
}

static struct download *download_of_chan(struct agent_chan *c)
{
	return download_of(LOOP_OWNER(c, struct op, chan));
}

static void download_put(struct download *d)
{
	if (d->tar.len == 0)
		return;
	if (!d->begun)
		conn_begin(d->op.conn, DOWNLOAD_TYPE, UINT64_MAX);
	d->begun = true;
	d->op.s->report->work.bytes_out += d->tar.len;
	conn_put(d->op.conn, buf_head(&d->tar), d->tar.len);
	buf_clear(&d->tar);
}

/* Makes an archive of records, as far as the client takes it. Returns how many bytes of them. */
static size_t download_take(struct download *d, const uint8_t *p, size_t n)
{
	size_t used = 0;

	while (used < n && !d->broken && conn_queued(d->op.conn) < CONN_OUT_HIGH) {
		size_t step = n - used < DOWNLOAD_STEP ? n - used : DOWNLOAD_STEP;

		if (tar_out_feed(&d->out, p + used, step, &d->tar) < 0)
			d->broken = true;
		if (d->tar.len >= DOWNLOAD_PUT)
			download_put(d);
		used += step;
	}
	download_put(d);
	return d->broken ? n : used;
}

/* Too late for an answer that says why: the log does. */
static void download_cut(struct download *d, const char *why)
{
	const struct log_ctx ctx = {
	    .box = d->op.s->token,
	    .request_id = d->op.conn->request_id,
	    .traceparent = d->op.conn->traceparent,
	};

	log_line(LOG_WARN, &ctx, "download cut: %s", why);
	conn_cut(d->op.conn);
}

/* It is over, and the client has got all there was. */
static void download_finish(struct download *d)
{
	const char *why = "the file helper did not say all";
	enum api_error e = files_helper_result(&d->helper, &d->op, &d->end, &why);

	if (e == API_OK && (d->broken || d->out.state != TAR_OUT_DONE))
		e = API_IO;
	if (e == API_OK)
		conn_end(d->op.conn);
	else if (d->begun)
		download_cut(d, why);
	else
		conn_fail(d->op.conn, e, why);
	op_free(&d->op);
}

static size_t download_data(struct agent_chan *c, unsigned int stream, const uint8_t *p, size_t n)
{
	struct download *d = download_of_chan(c);
	size_t used = n;

	if (stream == AGENT_STDERR) {
		files_helper_keep(&d->helper, &d->op, p, n);
		return n;
	}
	if (d->op.conn)
		used = d->kept.len ? 0 : download_take(d, p, n);
	if (d->broken)
		op_close_chan(&d->op);
	agent_chan_grant(c, stream, used);
	if (used < n && buf_append(&d->kept, p + used, n - used) < 0) {
		d->broken = true;
		op_close_chan(&d->op);
	}
	return n;
}

static void download_drained(struct op *op)
{
	struct download *d = download_of(op);
	size_t used = d->kept.len ? download_take(d, buf_head(&d->kept), d->kept.len) : 0;

	buf_consume(&d->kept, used);
	buf_trim(&d->kept, DOWNLOAD_STEP);
	if (d->broken)
		op_close_chan(op);
	agent_chan_grant(&op->chan, AGENT_STDOUT, used);
	if (d->over && (d->kept.len == 0 || d->broken))
		download_finish(d);
}

static void download_end(struct agent_chan *c, const struct agent_end *end)
{
	struct download *d = download_of_chan(c);

	d->over = true;
	d->end = *end;
	if (!d->op.conn)
		op_free(&d->op);
	else if (d->kept.len == 0 || d->broken)
		download_finish(d);
}

static void download_error(struct agent_chan *c, uint32_t code, const char *text)
{
	struct download *d = download_of_chan(c);

	if (d->op.conn && d->begun)
		download_cut(d, text);
	else if (d->op.conn)
		conn_fail(d->op.conn, files_error(code), text);
	op_free(&d->op);
}

static const struct agent_chan_ops download_chan_ops = {
    .data = download_data,
    .end = download_end,
    .error = download_error,
};

static void download_free(struct op *op)
{
	struct download *d = download_of(op);

	buf_free(&d->kept);
	buf_free(&d->tar);
	free(d);
}

static const struct op_class download_class = {
    .drained = download_drained,
    .abandon = op_close_chan,
    .free = download_free,
};

/* The result is files_helper_open()'s. */
static int download_open(struct download *d, const struct files_tar_query *q)
{
	char path[PATH_MAX + sizeof("path=")];
	const char *const argv[] = {
	    "pack",
	    path,
	    q->flag ? "follow=1" : "follow=0",
	    q->contents ? "contents=1" : "contents=0",
	    q->directory ? "directory=1" : "directory=0",
	    NULL,
	};

	(void)snprintf(path, sizeof(path), "path=%s", q->path);
	return files_helper_open(&d->op, &download_chan_ops, argv, AGENT_EXEC_NO_STDIN);
}

void files_begin_download(struct conn *c, const struct http_head *h)
{
	struct files_tar_query q;
	struct download *d;
	int rc;

	if (files_tar_take_query(c, h, "follow_symlinks", false, &q) < 0)
		return;
	d = calloc(1, sizeof(*d));
	if (!d) {
		conn_fail(c, API_INTERNAL, "no memory for the request");
		return;
	}
	buf_init(&d->kept, AGENT_WINDOW);
	buf_init(&d->tar, DOWNLOAD_TAR_MAX);
	op_init(&d->op, &download_class, c);
	rc = download_open(d, &q);
	if (rc < 0) {
		files_refuse(c, rc);
		op_free(&d->op);
	}
}
