/*
 * conn: phases, events and deadlines of a client connection. sbx-worker. If we die here, sbxd
 * answers what is owed, by the word that conn_mark() keeps in the slot page.
 */
#include "worker/conn.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "lib/clock.h"
#include "lib/fault.h"
#include "lib/fd.h"
#include "lib/log.h"
#include "worker/route.h"

#define CONN_READ_HEAD (16U * 1024U)

void conn_mark(struct conn *c, enum shm_conn_state state)
{
	report_conn(c->s->report, c->index, c->who.cookie, state);
}

void conn_die(struct conn *c)
{
	c->dead = true;
	conn_wake(c);
}

/* A name for the request, so that it can be followed through all logs. */
static void conn_name_request(struct conn *c, const struct http_head *h)
{
	uint64_t id = 0;

	if (*h->request_id)
		(void)snprintf(c->request_id, sizeof(c->request_id), "%s", h->request_id);
	else if (*c->who.request_id)
		memcpy(c->request_id, c->who.request_id, sizeof(c->request_id));
	else if (getrandom(&id, sizeof(id), 0) >= 0)
		(void)snprintf(
		    c->request_id, sizeof(c->request_id), "req_%016llx", (unsigned long long)id);
	(void)snprintf(c->traceparent, sizeof(c->traceparent), "%s",
	    *h->traceparent ? h->traceparent : c->who.traceparent);
	/* What sbxd made up was for this request only. */
	c->who.request_id[0] = '\0';
	c->who.traceparent[0] = '\0';
}

/*
 * Back to sbxd with all that was not used. h: the head of the request that it is given back for, if
 * there is one. False: there is nothing more to do here. The watch goes first: sbxd's descriptor is
 * the same socket, and closing ours alone would not end it.
 */
static bool conn_give_back(struct conn *c, const struct http_head *h)
{
	struct service *s = c->s;

	loop_del(s->loop, &c->watch);
	if (s->ops->hand_back(s, c->fd, c->index, c->seq, &c->who, buf_head(&c->raw), c->raw.len)) {
		c->fd = -1;
		FAULT_POINT("worker.handback");
		conn_free(c);
		return false;
	}
	c->keep_alive = false;
	if (c->raw.len == 0 || loop_add(s->loop, &c->watch, c->fd, 0, conn_on_event) < 0)
		c->dead = true;
	if (h)
		conn_name_request(c, h);
	if (!c->dead)
		conn_fail_away(c);
	c->phase = CONN_FLUSH; /* what was not used is not ours to read */
	return true;
}

/* The head is complete: ours or not? */
static bool conn_route(struct conn *c)
{
	const struct http_head *h = http_in_head(c->in);
	const struct route *r = NULL;
	enum route_result where = route_lookup(c, h, &r);
	bool first = c->first;

	c->first = false;
	/* sbxd found the first request to be ours: given back, it would come again, for ever. But
	 * not when the box was stopped in between. */
	if ((where == ROUTE_ELSEWHERE && !first) || c->s->resting)
		return conn_give_back(c, h);
	buf_consume(&c->raw, c->fed);
	c->fed = 0;
	conn_name_request(c, h);
	c->phase = CONN_BODY;
	c->since_ns = loop_now(c->s->loop);
	c->keep_alive = h->keep_alive;
	c->head_request = h->method == HTTP_HEAD;
	c->body_left = h->content_length;
	c->body_seen = 0;
	c->body_max = r ? route_body_max(r, c->s->limits) : 0;
	c->awaits_continue = h->expect_continue && c->raw.len == 0;
	if (c->s->state != SERVICE_UP)
		conn_fail(c, API_BOX_DIED, "the box is stopped");
	else if (r && h->content_length != UINT64_MAX && h->content_length > c->body_max)
		conn_fail_body(c);
	else if (r)
		r->begin(c, h);
	else
		route_refuse(c, where, h);
	if (c->op && c->awaits_continue && c->body_left > 0)
		conn_put_continue(c);
	return true;
}

static bool conn_reject_head(struct conn *c, int rc, const struct err *err)
{
	c->keep_alive = false;
	conn_fail(c, rc == -EMSGSIZE ? API_HEAD_TOO_LARGE : API_MALFORMED, err->text);
	c->phase = CONN_FLUSH; /* there is no telling where a body would begin or end */
	return true;
}

/* Reads more of a head. True when there is something new. */
static bool conn_read_head(struct conn *c)
{
	uint8_t *dst;
	ssize_t n;

	if (!c->readable)
		return false;
	dst = buf_reserve(&c->raw, CONN_READ_HEAD);
	if (!dst) {
		c->dead = true;
		return false;
	}
	/* Before the bytes are ours: if we die with them, sbxd must know that an answer is owed. */
	if (c->raw.len == 0)
		conn_mark(c, CONN_REQUEST);
	n = recv(c->fd, dst, CONN_READ_HEAD, MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
		if (c->raw.len == 0)
			conn_mark(c, CONN_IDLE);
		c->readable = errno == EINTR;
		return c->readable;
	}
	if (n <= 0) {
		c->dead = true;
		return false;
	}
	if (c->raw.len == 0)
		c->since_ns = loop_now(c->s->loop);
	buf_commit(&c->raw, (size_t)n);
	c->readable = (size_t)n == CONN_READ_HEAD;
	return true;
}

static bool conn_run_head(struct conn *c)
{
	struct err err = {0};
	const uint8_t *body;
	size_t body_len;
	size_t used;
	int rc;

	for (;;) {
		if (c->fed < c->raw.len) {
			used = 0;
			rc = http_in_feed(c->in, buf_head(&c->raw) + c->fed, c->raw.len - c->fed,
			    &used, &body, &body_len, &err);
			c->fed += used;
			if (rc == HTTP_HEAD_DONE)
				return conn_route(c);
			if (rc != HTTP_MORE)
				return conn_reject_head(c, rc, &err);
		}
		if (c->s->state != SERVICE_UP || c->s->resting)
			return conn_give_back(c, NULL);
		if (!conn_read_head(c))
			return false;
	}
}

static bool conn_run_serve(struct conn *c)
{
	(void)c; /* everything is up to the operation */
	return false;
}

/* The response is complete; when it is written, the next request begins. */
static bool conn_run_flush(struct conn *c)
{
	if (!c->blocked)
		conn_flush(c);
	if (c->out.len || c->dead)
		return false;
	if (!c->keep_alive) {
		c->dead = true;
		return false;
	}
	http_in_reset(c->in);
	c->phase = CONN_HEAD;
	c->responding = false;
	c->head_request = false;
	c->request_id[0] = '\0';
	c->traceparent[0] = '\0';
	c->fed = 0;
	c->since_ns = loop_now(c->s->loop);
	if (c->raw.len == 0)
		buf_trim(&c->raw, CONN_READ_HEAD * 2);
	conn_mark(c, c->raw.len ? CONN_REQUEST : CONN_IDLE);
	return c->who.flags & CTL_CONN_ONCE ? conn_give_back(c, NULL) : true;
}

static bool (*const phase_fns[CONN_PHASES])(struct conn *c) = {
    [CONN_HEAD] = conn_run_head,
    [CONN_BODY] = conn_run_body,
    [CONN_SERVE] = conn_run_serve,
    [CONN_DRAIN] = conn_run_body,
    [CONN_FLUSH] = conn_run_flush,
    [CONN_UPGRADED] = conn_run_upgraded,
};

bool conn_waits(const struct conn *c)
{
	bool sends = c->phase == CONN_BODY && (c->watch.events & EPOLLIN);

	return !c->blocked && c->out.len == 0 && !sends;
}

/* What must happen next, and by when. */
static uint64_t conn_deadline(const struct conn *c)
{
	if (c->blocked)
		return c->written_ns + CONN_WRITE_NS;
	if (c->phase == CONN_HEAD && c->raw.len)
		return c->since_ns + CONN_HEAD_NS;
	if (c->phase == CONN_HEAD && c->s->limits->idle_ms)
		return c->since_ns + c->s->limits->idle_ms * NS_PER_MS;
	if (c->phase == CONN_BODY && (c->watch.events & EPOLLIN))
		return c->since_ns + CONN_BODY_NS;
	if (c->phase == CONN_DRAIN)
		return c->since_ns + CONN_DRAIN_NS;
	return CLOCK_NEVER;
}

static void conn_on_timer(struct loop *loop, struct loop_timer *t);

static void conn_settle(struct conn *c)
{
	uint32_t events = c->blocked ? EPOLLOUT : 0;
	uint64_t at;

	if (c->phase == CONN_HEAD || c->phase == CONN_DRAIN ||
	    (c->phase == CONN_BODY && c->op && (!c->op->cls->room || c->op->cls->room(c->op))) ||
	    (c->phase == CONN_UPGRADED && c->op && c->op->cls->room(c->op)))
		events |= EPOLLIN;
	/* Over TCP the end of what a client sends is all that is seen of one that is gone: also of
	 * one that is not read any further for now. */
	if ((c->who.flags & CTL_CONN_TCP) &&
	    (c->phase == CONN_SERVE ||
		((c->phase == CONN_BODY || c->phase == CONN_UPGRADED) && !(events & EPOLLIN))))
		events |= EPOLLRDHUP;
	/* While it is served it stays watched until it sends: most clients do not. */
	if (c->phase == CONN_SERVE && !c->readable)
		events |= c->watch.events & EPOLLIN;
	if (loop_mod(c->s->loop, &c->watch, events) < 0)
		conn_die(c);
	at = conn_deadline(c);
	if (at == CLOCK_NEVER)
		loop_timer_clear(c->s->loop, &c->timer);
	else if ((c->timer.pos == 0 || c->timer.at != at) &&
		 loop_timer_set(c->s->loop, &c->timer, at, conn_on_timer) < 0)
		conn_die(c);
}

/* Drives the connection as far as it goes. It may be gone afterwards. */
static void conn_run(struct conn *c)
{
	struct service *s = c->s;
	unsigned int index = c->index;

	while (!c->dead && phase_fns[c->phase](c))
		;
	if (s->conns[index] != c)
		return; /* handed back */
	if (!c->dead && !c->blocked && c->out.len)
		conn_flush(c);
	if (c->drain_due && !c->blocked && !c->dead) {
		c->drain_due = false;
		if (c->op && c->op->cls->drained)
			c->op->cls->drained(c->op);
	}
	if (c->dead)
		conn_close(c);
	else
		conn_settle(c);
}

static void conn_on_kick(struct loop *loop, struct loop_timer *t)
{
	(void)loop; /* the service knows its loop */
	conn_run(LOOP_OWNER(t, struct conn, kick));
}

void conn_wake(struct conn *c)
{
	INVARIANT(loop_timer_set(c->s->loop, &c->kick, 0, conn_on_kick) == 0);
}

void conn_on_event(struct loop *loop, struct loop_watch *w, uint32_t events)
{
	struct conn *c = LOOP_OWNER(w, struct conn, watch);

	if ((events & (EPOLLHUP | EPOLLRDHUP)) && c->phase == CONN_UPGRADED)
		c->hung_up = true;
	else if (events & (EPOLLHUP | EPOLLERR))
		c->dead = true; /* both directions: nobody is there to take an answer */
	if ((events & EPOLLRDHUP) && (c->phase == CONN_SERVE || c->phase == CONN_BODY))
		c->dead = true;
	if (events & EPOLLIN)
		c->readable = true;
	if ((events & EPOLLOUT) && !c->dead) {
		c->taken_ns = loop_now(loop);
		conn_flush(c);
	}
	conn_run(c);
}

static void conn_on_timer(struct loop *loop, struct loop_timer *t)
{
	struct conn *c = LOOP_OWNER(t, struct conn, timer);

	(void)loop; /* the service knows its loop */
	if (c->blocked || c->responding || c->phase == CONN_DRAIN) {
		c->dead = true;
	} else if (c->phase == CONN_HEAD && c->raw.len == 0) {
		c->who.flags |= CTL_CONN_IDLE; /* whether it may stay, sbxd knows */
		if (!conn_give_back(c, NULL))
			return;
	} else {
		if (c->op)
			op_abandon(c->op);
		c->keep_alive = false;
		conn_fail(c, API_TIMEOUT, "the request did not arrive in time");
		c->phase = CONN_FLUSH;
	}
	conn_run(c);
}
