/*
 * conn_body: the body of a request, on its way to the operation or to nowhere. sbx-worker. If we
 * die here, sbxd answers the client.
 */
#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>

#include "lib/clock.h"
#include "worker/conn.h"

#define CONN_READ_CHUNKED (64U * 1024U) /* with what may follow the body it still fits `raw` */

void conn_fail_body(struct conn *c)
{
	char why[64];

	(void)snprintf(why, sizeof(why), "the request body is longer than %llu bytes",
	    (unsigned long long)c->body_max);
	conn_fail(c, API_TOO_LARGE, why);
}

static void body_count(struct conn *c, size_t n)
{
	c->body_seen += n;
	if (c->body_left != UINT64_MAX)
		c->body_left -= n < c->body_left ? n : c->body_left;
	c->since_ns = c->phase == CONN_BODY ? loop_now(c->s->loop) : c->since_ns;
}

static void body_take(struct conn *c, const uint8_t *p, size_t n)
{
	body_count(c, n);
	if (c->phase == CONN_DRAIN) {
		if (c->body_seen > CONN_DRAIN_MAX) {
			c->keep_alive = false;
			c->phase = CONN_FLUSH;
		}
		return;
	}
	if (c->body_seen > c->body_max) {
		op_abandon(c->op);
		conn_fail_body(c);
	} else if (c->op->cls->body) {
		c->op->cls->body(c->op, p, n);
	}
}

static void body_done(struct conn *c)
{
	if (c->phase == CONN_DRAIN) {
		c->phase = CONN_FLUSH;
		return;
	}
	c->phase = CONN_SERVE;
	if (c->op->cls->body_end)
		c->op->cls->body_end(c->op);
}

/* There is no telling where the next request would begin. */
static void body_malformed(struct conn *c, const struct err *err)
{
	c->keep_alive = false;
	if (c->phase == CONN_BODY) {
		op_abandon(c->op);
		conn_fail(c, API_MALFORMED, err->text);
	}
	c->phase = CONN_FLUSH;
}

/* The client will send no more, and may still read. */
static bool body_ended(struct conn *c)
{
	const struct err err = {.text = "the request's body ended early"};

	body_malformed(c, &err);
	return true;
}

static bool body_open(const struct conn *c)
{
	return !c->dead && (c->phase == CONN_BODY || c->phase == CONN_DRAIN);
}

/* Feeds n bytes, as long as they belong to the body; returns how many were used. */
static size_t body_feed(struct conn *c, const uint8_t *p, size_t n)
{
	struct err err = {0};
	const uint8_t *part = NULL;
	size_t part_len = 0;
	size_t off = 0;
	size_t used;
	int rc = HTTP_BODY;

	while (rc == HTTP_BODY && body_open(c)) {
		used = 0;
		rc = http_in_feed(c->in, p + off, n - off, &used, &part, &part_len, &err);
		off += used;
		if (rc == HTTP_BODY)
			body_take(c, part, part_len);
		else if (rc == HTTP_END)
			body_done(c);
		else if (rc < 0)
			body_malformed(c, &err);
	}
	return off;
}

static size_t body_room(const struct conn *c)
{
	size_t room = SERVICE_SCRATCH;

	if (c->phase == CONN_BODY && c->op->cls->room)
		room = c->op->cls->room(c->op);
	return room < SERVICE_SCRATCH ? room : SERVICE_SCRATCH;
}

/*
 * From the socket to the operation, by reference. As read(2), but -errno; -EOPNOTSUPP: it must be
 * copied. TCP's must, because its splice(2) waits when somebody has made the socket blocking.
 */
static ssize_t body_pour(struct conn *c, size_t want)
{
	ssize_t n;

	if (c->phase != CONN_BODY || !c->op->cls->pour || c->body_left == UINT64_MAX ||
	    (c->who.flags & CTL_CONN_TCP))
		return -EOPNOTSUPP;
	n = c->op->cls->pour(c->op, c->fd, want);
	if (n > 0) {
		http_in_skip(c->in, (size_t)n);
		body_count(c, (size_t)n);
	}
	return n;
}

/* Reads from the socket straight to the operation. True: go on. */
static bool body_read(struct conn *c, size_t room)
{
	size_t want = room;
	size_t used;
	ssize_t n;

	if (!c->readable || room == 0)
		return false;
	if (c->body_left == UINT64_MAX && want > CONN_READ_CHUNKED)
		want = CONN_READ_CHUNKED;
	else if (want > c->body_left)
		want = (size_t)c->body_left;
	n = body_pour(c, want);
	if (n > 0)
		return true;
	if (n == -EOPNOTSUPP) {
		n = recv(c->fd, c->s->scratch, want, MSG_DONTWAIT);
		n = n < 0 ? -errno : n;
	}
	if (n == -EAGAIN || n == -EINTR) {
		c->readable = n == -EINTR;
		return c->readable;
	}
	if (n == 0)
		return body_ended(c);
	if (n < 0) {
		c->dead = true;
		return false;
	}
	used = body_feed(c, c->s->scratch, (size_t)n);
	if (!c->dead && buf_append(&c->raw, c->s->scratch + used, (size_t)n - used) < 0)
		c->dead = true;
	return true;
}

bool conn_run_body(struct conn *c)
{
	size_t room = body_room(c);
	size_t n = c->raw.len < room ? c->raw.len : room;

	/* Also with n 0: a body may be at its end without a further byte. */
	buf_consume(&c->raw, body_feed(c, buf_head(&c->raw), n));
	if (!body_open(c))
		return !c->dead;
	if (n > 0)
		return true;
	return body_read(c, room);
}
