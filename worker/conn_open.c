/*
 * conn_open: a connection on its way in, turned away, and out. sbx-worker. If we die here, sbxd
 * answers it: the word in the slot page is there before anything else, and goes after it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "lib/fault.h"
#include "lib/fd.h"
#include "worker/conn.h"

#define OPEN_RETRY_AFTER 1 /* seconds, for a connection to end */

void conn_refuse(int fd, const struct ctl_conn *who, enum api_error e, const char *message)
{
	struct api_error_more more = {
	    .request_id = who->request_id,
	    .traceparent = who->traceparent,
	    .retry_after_seconds = e == API_TOO_MANY ? OPEN_RETRY_AFTER : 0,
	};
	struct buf out;

	buf_init(&out, CONN_OUT_KEEP);
	if (api_error_put(&out, e, message, &more, 0) == 0)
		/* What the socket does not take at once is not worth waiting for. */
		(void)send(fd, buf_head(&out), out.len, MSG_DONTWAIT | MSG_NOSIGNAL);
	buf_free(&out);
	fd_close(&fd);
}

static struct conn *conn_create(struct service *s, int fd, const uint8_t *bytes, size_t n)
{
	struct conn *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->s = s;
	c->fd = fd;
	c->watch.fd = -1;
	c->phase = CONN_HEAD;
	c->first = true;
	buf_init(&c->raw, CTL_TAIL_MAX);
	buf_init(&c->out, SIZE_MAX / 4); /* bounded by what operations queue */
	c->in = http_in_create_for(HTTP_REQUEST, s->limits->head_bytes);
	if (!c->in || fd_set_nonblock(fd) < 0 || buf_append(&c->raw, bytes, n) < 0 ||
	    loop_add(s->loop, &c->watch, fd, EPOLLIN, conn_on_event) < 0) {
		http_in_free(c->in);
		buf_free(&c->raw);
		free(c);
		return NULL;
	}
	return c;
}

void conn_open(struct service *s, int fd, const struct ctl_conn *who, uint64_t seq,
    const uint8_t *bytes, size_t n)
{
	unsigned int index = 0;
	struct conn *c = NULL;

	while (index < SHM_CONNS && (s->conns[index] || s->held[index]))
		index++;
	if (s->conn_count >= s->limits->connections)
		index = SHM_CONNS;
	if (index < SHM_CONNS) {
		/* Owed an answer from the moment sbxd let go of it. */
		FAULT_POINT("worker.handover.taken");
		report_conn(s->report, index, who->cookie, CONN_REQUEST);
		FAULT_POINT("worker.handover.marked");
		c = conn_create(s, fd, bytes, n);
		if (!c)
			report_conn(s->report, index, who->cookie, CONN_RESPONDING);
	}
	if (!c) {
		char why[80];

		(void)snprintf(why, sizeof(why), "the box has %u connections, and takes no more",
		    s->limits->connections);
		conn_refuse(fd, who, API_TOO_MANY, why);
		s->ops->conn_gone(s, index, seq, who->cookie);
		return;
	}
	c->who = *who;
	c->seq = seq;
	c->index = index;
	c->since_ns = loop_now(s->loop);
	s->conns[index] = c;
	s->conn_count++;
	conn_wake(c);
	FAULT_POINT("worker.handover.open");
}

/* Takes the connection out of everything but the slot page, and frees it. */
void conn_free(struct conn *c)
{
	loop_del(c->s->loop, &c->watch);
	loop_timer_clear(c->s->loop, &c->timer);
	loop_timer_clear(c->s->loop, &c->kick);
	if (c->op)
		op_abandon(c->op);
	fd_close(&c->fd);
	http_in_free(c->in);
	buf_free(&c->raw);
	buf_free(&c->out);
	conn_forget(c);
	c->s->conns[c->index] = NULL;
	c->s->conn_count--;
	free(c);
}

void conn_close(struct conn *c)
{
	struct service *s = c->s;
	unsigned int index = c->index;
	uint64_t cookie = c->who.cookie;
	uint64_t seq = c->seq;

	conn_mark(c, CONN_RESPONDING); /* whatever was owed: nobody may answer now */
	conn_free(c);
	s->ops->conn_gone(s, index, seq, cookie);
}

void conn_rest(struct conn *c)
{
	if (c->phase == CONN_BODY && c->op) {
		op_abandon(c->op);
		if (c->responding)
			conn_cut(c);
		else
			conn_fail(c, API_INVALID_STATE, "the box is being stopped");
	}
	conn_wake(c);
}

void conn_describe(const struct conn *c, struct ctl_conn *out)
{
	*out = c->who;
	if (!*c->request_id)
		return; /* what sbxd called it still stands */
	(void)snprintf(out->request_id, sizeof(out->request_id), "%s", c->request_id);
	(void)snprintf(out->traceparent, sizeof(out->traceparent), "%s", c->traceparent);
}
