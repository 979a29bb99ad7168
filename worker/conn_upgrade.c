/*
 * conn_upgrade: a connection that has left HTTP for good: what comes is its operation's.
 * sbx-worker. If we die here, sbxd closes it: its response was begun.
 */
#include <errno.h>
#include <sys/socket.h>

#include "worker/conn.h"

void conn_upgrade(struct conn *c, const char *extra)
{
	const struct http_reply r = {
	    .status = 101,
	    .keep_alive = true,
	    .request_id = c->request_id,
	    .traceparent = c->traceparent,
	    .extra = extra,
	};

	c->phase = CONN_UPGRADED;
	c->keep_alive = false;
	c->readable = true;
	c->responding = true;
	conn_mark(c, CONN_RESPONDING);
	if (http_put_reply(&c->out, &r) < 0)
		conn_die(c);
	conn_wake(c);
}

void conn_queue(struct conn *c, const void *p, size_t n)
{
	if (buf_append(&c->out, p, n) < 0)
		conn_die(c);
	c->drain_due = true;
	conn_wake(c);
}

void conn_end_output(struct conn *c)
{
	if (!c->blocked && !c->dead)
		conn_flush(c);
	if (c->out.len == 0)
		(void)shutdown(c->fd, SHUT_WR); /* a client that is gone need not be told */
}

/* The operation may end within. */
static void upgraded_pass(struct conn *c, uint8_t *p, size_t n)
{
	c->op->cls->input(c->op, p, n);
}

static bool upgraded_read(struct conn *c, size_t room)
{
	ssize_t n;

	if (!c->readable)
		return false;
	n = recv(
	    c->fd, c->s->scratch, room < SERVICE_SCRATCH ? room : SERVICE_SCRATCH, MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
		c->readable = errno == EINTR;
		return c->readable;
	}
	if (n <= 0) {
		c->dead = true;
		return false;
	}
	upgraded_pass(c, c->s->scratch, (size_t)n);
	return true;
}

bool conn_run_upgraded(struct conn *c)
{
	size_t room = c->op->cls->room(c->op);
	size_t n = c->raw.len < room ? c->raw.len : room;

	if (room == 0) {
		/* Who has hung up and is not listened to would wake us for ever. */
		c->dead |= c->hung_up;
		return false;
	}
	if (c->raw.len == 0)
		return upgraded_read(c, room);
	/* What came right behind the request. */
	upgraded_pass(c, c->raw.data + c->raw.off, n);
	buf_consume(&c->raw, n);
	return true;
}
