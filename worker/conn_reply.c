/*
 * conn_reply: responses: heads, bodies, errors, and writing them. sbx-worker. If we die here, sbxd
 * closes the connections whose response was begun.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "lib/clock.h"
#include "lib/log.h"
#include "worker/conn.h"

#define REPLY_IOV 8
#define REPLY_AWAY_SECONDS 1 /* a restart takes less */

/* Writes what is queued and then iov, as far as the socket takes it. Returns how much of iov was.
 */
static size_t reply_write(struct conn *c, const struct iovec *iov, size_t count)
{
	struct iovec all[REPLY_IOV];
	struct msghdr msg = {.msg_iov = all};
	size_t queued = c->out.len;
	size_t total = queued;
	ssize_t n;

	INVARIANT(count < REPLY_IOV);
	if (c->blocked || c->dead)
		return 0;
	if (queued)
		all[msg.msg_iovlen++] = (struct iovec){c->out.data + c->out.off, queued};
	for (size_t i = 0; i < count; i++) {
		all[msg.msg_iovlen++] = iov[i];
		total += iov[i].iov_len;
	}
	n = sendmsg(c->fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n < 0 && errno != EAGAIN && errno != EINTR) {
		conn_die(c);
		return 0;
	}
	c->written_ns = loop_now(c->s->loop);
	if (n < 0)
		n = 0;
	if ((size_t)n < total) {
		c->blocked = true;
		c->drain_due = true;
		conn_wake(c);
	}
	if ((size_t)n < queued) {
		buf_consume(&c->out, (size_t)n);
		return 0;
	}
	buf_consume(&c->out, queued);
	return (size_t)n - queued;
}

bool conn_keep(struct conn *c, size_t n)
{
	if (c->s->buffered == 0)
		c->s->buffered = n;
	else if (!service_keep(c->s, n))
		return false;
	c->kept += n;
	return true;
}

void conn_forget(struct conn *c)
{
	c->s->buffered -= c->kept;
	c->kept = 0;
}

void conn_flush(struct conn *c)
{
	c->blocked = false;
	if (c->out.len)
		(void)reply_write(c, NULL, 0); /* none of nothing */
	if (c->out.len)
		return;
	buf_trim(&c->out, CONN_OUT_KEEP);
	conn_forget(c);
}

void conn_send(struct conn *c, const struct iovec *iov, size_t count)
{
	size_t sent = reply_write(c, iov, count);

	for (size_t i = 0; i < count && !c->dead; i++) {
		size_t skip = sent < iov[i].iov_len ? sent : iov[i].iov_len;

		sent -= skip;
		if (buf_append(&c->out, (const uint8_t *)iov[i].iov_base + skip,
			iov[i].iov_len - skip) < 0)
			conn_die(c);
	}
	if (c->out.len)
		c->drain_due = true;
}

/* As conn_send(), but what is left over is kept without being copied. */
static void reply_send_buf(struct conn *c, struct buf *b)
{
	const struct iovec iov = {b->data + b->off, b->len};
	size_t sent = reply_write(c, &iov, 1);

	buf_consume(b, sent);
	if (b->len && c->out.len == 0) {
		b->max = c->out.max;
		buf_free(&c->out);
		c->out = *b;
		buf_init(b, 0);
	} else if (b->len && !c->dead && buf_append(&c->out, buf_head(b), b->len) < 0) {
		conn_die(c);
	}
	buf_free(b);
}

void conn_put_continue(struct conn *c)
{
	static const char line[] = "HTTP/1.1 100 Continue\r\n\r\n";
	const struct iovec iov = {(void *)(uintptr_t)line, sizeof(line) - 1};

	c->awaits_continue = false;
	conn_send(c, &iov, 1);
}

/* Whether the rest of the request, if there is one, can be read past. */
static void reply_decide_keep(struct conn *c)
{
	if (c->phase == CONN_BODY && (c->awaits_continue || c->body_left > CONN_DRAIN_KEEP))
		c->keep_alive = false;
}

static void reply_head(
    struct conn *c, unsigned int status, const char *type, uint64_t length, const char *extra)
{
	const struct http_reply r = {
	    .status = status,
	    .content_type = type,
	    .content_length = length,
	    .keep_alive = (reply_decide_keep(c), c->keep_alive),
	    .request_id = c->request_id,
	    .traceparent = c->traceparent,
	    .extra = extra,
	};

	c->chunked = length == UINT64_MAX;
	c->responding = true;
	conn_mark(c, CONN_RESPONDING);
	if (http_put_reply(&c->out, &r) < 0)
		conn_die(c);
}

/* The response is complete, or as complete as it gets. */
static void reply_finish(struct conn *c)
{
	if (c->op) {
		c->op->conn = NULL;
		c->op = NULL;
	}
	c->drain_due = false;
	if (c->phase == CONN_BODY && !c->awaits_continue) {
		c->phase = CONN_DRAIN;
		c->body_seen = 0;
		c->since_ns = loop_now(c->s->loop);
	} else {
		c->phase = CONN_FLUSH;
	}
	conn_wake(c);
}

static void reply_error(
    struct conn *c, enum api_error e, const char *message, struct api_error_more *more)
{
	const struct log_ctx ctx = {
	    .box = c->s->token,
	    .request_id = c->request_id,
	    .traceparent = c->traceparent,
	};

	reply_decide_keep(c);
	log_line(api_error_info(e)->status >= 500 ? LOG_WARN : LOG_DEBUG, &ctx,
	    "request failed: %s: %s", api_error_info(e)->reason, message);
	c->responding = true;
	conn_mark(c, CONN_RESPONDING);
	more->request_id = c->request_id;
	more->traceparent = c->traceparent;
	more->no_body = c->head_request;
	if (api_error_put(&c->out, e, message, more, c->keep_alive) < 0)
		conn_die(c);
	reply_finish(c);
}

void conn_fail(struct conn *c, enum api_error e, const char *message)
{
	struct api_error_more more = {.allow = NULL};

	reply_error(c, e, message, &more);
}

void conn_fail_away(struct conn *c)
{
	struct api_error_more more = {.retry_after_seconds = REPLY_AWAY_SECONDS};

	reply_error(c, API_SHUTTING_DOWN, "the service is not running", &more);
}

void conn_fail_extra(struct conn *c, enum api_error e, const char *message, const char *extra)
{
	struct api_error_more more = {.extra = extra};

	reply_error(c, e, message, &more);
}

void conn_fail_method(struct conn *c, const char *allow)
{
	struct api_error_more more = {.allow = allow};

	reply_error(c, API_METHOD, "this endpoint has no such method", &more);
}

void conn_reply_extra(struct conn *c, unsigned int status, const char *extra, struct buf *json)
{
	reply_head(c, status, "application/json", json->len, extra);
	reply_send_buf(c, json);
	reply_finish(c);
}

void conn_reply(struct conn *c, unsigned int status, struct buf *json)
{
	conn_reply_extra(c, status, NULL, json);
}

void conn_reply_empty(struct conn *c, unsigned int status)
{
	reply_head(c, status, NULL, 0, NULL);
	reply_finish(c);
}

void conn_begin(struct conn *c, const char *content_type, uint64_t length)
{
	reply_head(c, 200, content_type, length, NULL);
	conn_wake(c); /* the head goes out also when no body follows yet */
}

void conn_put(struct conn *c, const void *p, size_t n)
{
	char size[24];
	struct iovec iov[3];

	if (n == 0)
		return;
	iov[1] = (struct iovec){(void *)(uintptr_t)p, n};
	if (!c->chunked) {
		conn_send(c, &iov[1], 1);
		return;
	}
	(void)snprintf(size, sizeof(size), "%zx\r\n", n);
	iov[0] = (struct iovec){size, strlen(size)};
	iov[2] = (struct iovec){(void *)(uintptr_t) "\r\n", 2};
	conn_send(c, iov, 3);
}

size_t conn_put_some(struct conn *c, const void *p, size_t n)
{
	const struct iovec iov = {(void *)(uintptr_t)p, n};
	size_t sent = n;

	if (c->chunked)
		conn_put(c, p, n);
	else if (n)
		sent = reply_write(c, &iov, 1);
	c->drain_due |= sent < n;
	return c->dead ? n : sent;
}

void conn_widen(struct conn *c)
{
	static const int size = AGENT_WINDOW / 2; /* the kernel doubles it */

	/* It only makes large transfers faster. */
	(void)setsockopt(c->fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
}

size_t conn_put_pipe(struct conn *c, int pipe, size_t n)
{
	ssize_t sent = 0;

	if (c->out.len && !c->blocked)
		conn_flush(c);
	if (!c->blocked && !c->dead && c->out.len == 0)
		sent = splice(pipe, NULL, c->fd, NULL, n, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
	if (sent < 0 && errno != EAGAIN && errno != EINTR)
		conn_die(c);
	if (sent > 0)
		c->written_ns = loop_now(c->s->loop);
	if (sent == (ssize_t)n)
		return n;
	if (!c->blocked) {
		c->blocked = true;
		c->written_ns = loop_now(c->s->loop);
		conn_wake(c);
	}
	c->drain_due = true;
	return sent > 0 ? (size_t)sent : 0;
}

size_t conn_queued(const struct conn *c)
{
	return c->out.len;
}

void conn_end(struct conn *c)
{
	if (c->chunked && http_put_chunk(&c->out, NULL, 0) < 0)
		conn_die(c);
	reply_finish(c);
}

void conn_cut(struct conn *c)
{
	c->keep_alive = false;
	reply_finish(c);
}

void conn_more_body(struct conn *c)
{
	conn_wake(c);
}
