/* mcp_http: HTTP requests over a Unix socket, in the loop. sbx-mcp; when it dies the service sees
 * its connections close, and ends what was done for them. */
#include "tools/mcp_http.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/fd.h"

#define READ_SIZE 65536U
#define PIECE 65536U /* of a file that is sent */

struct mcp_http {
	struct loop *loop;
	struct loop_watch watch;
	struct loop_timer timer;
	const struct mcp_http_events *events;
	void *ctx;
	struct http_in *in;
	struct buf out;	  /* not yet sent */
	struct buf bytes; /* received and not yet parsed */
	int body_fd;
	uint64_t body_left; /* of the file, not yet read */
	uint64_t sent;
	uint64_t patience;
	bool asking;	  /* a request is under way */
	bool until_close; /* the body ends where the connection does */
	bool feeding;	  /* the owner is being called: closing has to wait */
	bool closed;
};

static void on_ready(struct loop *l, struct loop_watch *w, uint32_t events);
static void on_late(struct loop *l, struct loop_timer *t);

int mcp_http_open(struct loop *l, int fd, const struct mcp_http_events *events, void *ctx,
    struct mcp_http **out, struct err *err)
{
	struct mcp_http *h = calloc(1, sizeof(*h));
	int rc;

	if (h)
		h->in = http_in_create(HTTP_RESPONSE);
	if (!h || !h->in) {
		fd_close(&fd);
		free(h);
		return err_sys(err, ENOMEM, "connection");
	}
	h->loop = l;
	h->watch.fd = -1;
	h->events = events;
	h->ctx = ctx;
	h->body_fd = -1;
	buf_init(&h->out, SIZE_MAX / 2); /* bounded by what the owner gives */
	buf_init(&h->bytes, 4 * READ_SIZE);
	rc = loop_add(l, &h->watch, fd, EPOLLIN, on_ready);
	if (rc < 0) {
		fd_close(&fd);
		mcp_http_close(h);
		return err_sys(err, -rc, "connection");
	}
	*out = h;
	return 0;
}

static void free_http(struct mcp_http *h)
{
	http_in_free(h->in);
	buf_free(&h->out);
	buf_free(&h->bytes);
	free(h);
}

void mcp_http_close(struct mcp_http *h)
{
	int fd;

	if (!h || h->closed)
		return;
	h->closed = true;
	fd = h->watch.fd;
	loop_del(h->loop, &h->watch);
	loop_timer_clear(h->loop, &h->timer);
	fd_close(&fd);
	if (!h->feeding)
		free_http(h);
}

uint64_t mcp_http_sent(const struct mcp_http *h)
{
	return h->sent;
}

/* Something moved: the wait begins anew. */
static int be_patient(struct mcp_http *h)
{
	return loop_timer_set(h->loop, &h->timer, loop_now(h->loop) + h->patience, on_late);
}

static int put_request(struct mcp_http *h, const struct mcp_http_request *req)
{
	uint64_t len = req->body_fd >= 0 ? req->body_fd_len : req->body_len;
	bool body = req->body || req->body_fd >= 0;
	int rc = buf_printf(&h->out, "%s %s HTTP/1.1\r\nHost: localhost\r\nAccept: %s\r\n",
	    req->method, req->path, req->accept ? req->accept : "*/*");

	if (rc == 0 && req->traceparent)
		rc = buf_printf(&h->out, "traceparent: %s\r\n", req->traceparent);
	if (rc == 0 && req->box_generation)
		rc = buf_printf(
		    &h->out, "X-Box-Generation: %llu\r\n", (unsigned long long)req->box_generation);
	if (rc == 0 && body)
		rc = buf_printf(&h->out, "Content-Length: %llu\r\n", (unsigned long long)len);
	if (rc == 0)
		rc = buf_puts(&h->out, "\r\n");
	if (rc == 0 && req->body && req->body_fd < 0)
		rc = buf_append(&h->out, req->body, req->body_len);
	return rc;
}

int mcp_http_send(struct mcp_http *h, const struct mcp_http_request *req, struct err *err)
{
	int rc;

	http_in_reset(h->in);
	h->until_close = false;
	h->sent = 0;
	h->body_fd = req->body_fd;
	h->body_left = req->body_fd >= 0 ? req->body_fd_len : 0;
	h->patience = req->patience;
	rc = put_request(h, req);
	if (rc == 0)
		rc = be_patient(h);
	if (rc == 0)
		rc = loop_mod(h->loop, &h->watch, EPOLLIN | EPOLLOUT);
	if (rc < 0)
		return err_sys(err, -rc, "the request");
	h->asking = true;
	return 0;
}

/* The next piece of the file. 0 or -errno; a file that became shorter is -ENODATA. */
static int refill(struct mcp_http *h)
{
	size_t want = h->body_left < PIECE ? (size_t)h->body_left : PIECE;
	ssize_t n;

	if (want == 0 || h->out.len > 0)
		return 0;
	n = buf_read_fd(&h->out, h->body_fd, want);
	if (n <= 0)
		return n == 0 ? -ENODATA : (int)n;
	h->body_left -= (uint64_t)n;
	h->sent += (uint64_t)n;
	return 0;
}

/* A peer that has hung up is no error here: it may have answered before. 0 or -errno. */
static int push(struct mcp_http *h)
{
	ssize_t n = 0;
	int rc;

	while ((rc = refill(h)) == 0 && h->out.len > 0) {
		n = buf_send(&h->out, h->watch.fd);
		if (n <= 0)
			break;
	}
	if (n == -EPIPE || n == -ECONNRESET) {
		h->body_left = 0;
		buf_clear(&h->out);
	} else if (rc < 0 || (n < 0 && n != -EAGAIN && n != -EINTR)) {
		return rc < 0 ? rc : (int)n;
	}
	rc = loop_mod(
	    h->loop, &h->watch, h->out.len > 0 || h->body_left > 0 ? EPOLLIN | EPOLLOUT : EPOLLIN);
	return rc < 0 || !h->asking ? rc : be_patient(h);
}

static void lose(struct mcp_http *h, const struct err *err)
{
	h->asking = false;
	loop_timer_clear(h->loop, &h->timer);
	h->events->gone(h->ctx, err);
}

/* What was not sent when the answer is complete is not wanted any more. */
static void finish(struct mcp_http *h)
{
	h->asking = false;
	h->body_left = 0;
	buf_clear(&h->out);
	(void)loop_mod(
	    h->loop, &h->watch, EPOLLIN); /* fails for want of memory: then it is done again */
	loop_timer_clear(h->loop, &h->timer);
	h->events->end(h->ctx);
}

/* One event of the answer. 1: there may be more; 0: not before more bytes come. */
static int take_event(struct mcp_http *h)
{
	const uint8_t *body = NULL;
	struct err err;
	size_t used = 0;
	size_t len = 0;
	int rc = http_in_feed(h->in, buf_head(&h->bytes), h->bytes.len, &used, &body, &len, &err);

	if (rc < 0) {
		lose(h, &err);
		return 0;
	}
	if (rc == HTTP_HEAD_DONE) {
		const struct http_head *head = http_in_head(h->in);

		h->until_close = !head->chunked && head->content_length == UINT64_MAX;
		h->events->head(h->ctx, head);
	} else if (rc == HTTP_BODY) {
		h->events->body(h->ctx, body, len);
	}
	if (h->closed)
		return 0;
	buf_consume(&h->bytes, used);
	if (rc == HTTP_END)
		finish(h);
	return rc == HTTP_HEAD_DONE || rc == HTTP_BODY;
}

static void pull(struct mcp_http *h)
{
	ssize_t n = buf_recv(&h->bytes, h->watch.fd, READ_SIZE);
	struct err err;

	if (n == -EAGAIN || n == -EINTR)
		return;
	if (n > 0 && h->asking) {
		if (be_patient(h) < 0)
			n = -ENOMEM;
		while (n > 0 && h->asking && !h->closed && take_event(h))
			;
		if (n > 0)
			return;
	}
	if ((n == 0 || n == -ECONNRESET) && h->asking && h->until_close) {
		finish(h);
		return;
	}
	if (n >= 0 || n == -ECONNRESET)
		(void)err_set(&err, ECONNRESET, "the service closed the connection");
	else
		(void)err_sys(&err, (int)-n, "reading the answer");
	lose(h, &err);
}

static void on_ready(struct loop *l, struct loop_watch *w, uint32_t events)
{
	struct mcp_http *h = LOOP_OWNER(w, struct mcp_http, watch);
	struct err err;
	int rc = 0;

	(void)l;
	h->feeding = true;
	if (events & EPOLLOUT)
		rc = push(h);
	if (rc < 0) {
		(void)err_sys(&err, -rc, "sending the request");
		lose(h, &err);
	} else if (events & ~(uint32_t)EPOLLOUT) {
		pull(h);
	}
	h->feeding = false;
	if (h->closed)
		free_http(h);
}

static void on_late(struct loop *l, struct loop_timer *t)
{
	struct mcp_http *h = LOOP_OWNER(t, struct mcp_http, timer);
	struct err err;

	(void)l;
	(void)err_set(&err, ETIMEDOUT, "the service did not answer in time");
	h->feeding = true;
	lose(h, &err);
	h->feeding = false;
	if (h->closed)
		free_http(h);
}
