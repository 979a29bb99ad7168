/* client_reply: answering a client, and what becomes of one that does not take its answer. Runs in
 * sbxd. */
#include <errno.h>
#include <sys/socket.h>

#include "lib/clock.h"
#include "lib/log.h"
#include "supervisor/client_int.h"

#define CLIENT_LINGER_TIME (2 * NS_PER_S) /* for a refused client to stop sending */

static void on_client_timer(struct loop *l, struct loop_timer *t)
{
	struct client *c = LOOP_OWNER(t, struct client, timer);
	struct sbxd *s = c->cs->s;

	(void)l;
	if (c->state == CLIENT_READING && c->http) {
		c->keep_alive = false;
		client_reply_error(c, API_TIMEOUT, "the request did not arrive in time");
	} else {
		client_close(c); /* it does not take its answer, or has nothing to ask */
	}
	sbxd_settle(s);
}

void client_set_timer(struct client *c, uint64_t span)
{
	if (loop_timer_set(
		client_loop(c), &c->timer, loop_now(client_loop(c)) + span, on_client_timer) < 0)
		log_warn("no memory for a timer: a slow client is not timed out");
}

void client_await_request(struct client *c)
{
	uint64_t idle = c->cs->s->config.limits.connection_idle_ns;

	if (c->stranger)
		client_set_timer(c, CLIENT_HEAD_TIME);
	else if (idle > 0 && !c->tied) /* else a lease lasts as long as the connection */
		client_set_timer(c, idle);
	else
		loop_timer_clear(client_loop(c), &c->timer);
}

/*
 * Closing a socket with unread bytes in it resets the connection, and a client that is still
 * sending would never read its answer. So: no more from us, and a while to hang up by itself.
 */
static void client_linger(struct client *c)
{
	c->linger = false;
	c->state = CLIENT_LINGERING;
	(void)shutdown(
	    c->fd, SHUT_WR); /* fails only when the client is gone, which EPOLLHUP tells */
	client_set_timer(c, CLIENT_LINGER_TIME);
	(void)loop_mod(client_loop(c), &c->watch, EPOLLIN);
}

bool client_flush(struct client *c)
{
	ssize_t n = 0;

	while (c->out.len > 0 && n >= 0)
		n = buf_send(&c->out, c->fd);
	if (n == -EAGAIN) {
		if (c->state != CLIENT_WRITING)
			client_set_timer(c, CLIENT_WRITE_TIME);
		c->state = CLIENT_WRITING;
		(void)loop_mod(client_loop(c), &c->watch, EPOLLOUT);
		return true;
	}
	if (n >= 0 && c->linger) {
		client_linger(c);
		return true;
	}
	if (n < 0 || !c->keep_alive) {
		client_close(c);
		return false;
	}
	buf_trim(&c->out, CLIENT_KEEP);
	c->state = CLIENT_READING;
	client_await_request(c);
	(void)loop_mod(client_loop(c), &c->watch, EPOLLIN);
	return true;
}

void client_answered(struct client *c)
{
	/* Else the caller is in the midst of what the client sent, and goes on with it. */
	bool later = c->state == CLIENT_WAITING || c->state == CLIENT_STREAMING;

	clients_give_reader(c->cs, &c->http);
	c->head_request = false;
	buf_clear(&c->body);
	buf_trim(&c->body, CLIENT_KEEP);
	c->state = CLIENT_READING;
	if (client_flush(c) && later && c->state == CLIENT_READING)
		client_process(c);
}

static void client_send(struct client *c, const struct http_reply *r, const struct buf *body)
{
	int rc = http_put_reply(&c->out, r);

	if (rc == 0 && body && !c->head_request)
		rc = buf_append(&c->out, buf_head(body), body->len);
	if (rc < 0)
		c->keep_alive = false; /* out of memory: a cut answer, then the end */
	client_answered(c);
}

static void reply_whole(struct client *c, unsigned int status, const char *content_type,
    const struct buf *body, const char *extra)
{
	client_send(c,
	    &(struct http_reply){
		.status = status,
		.content_type = content_type,
		.content_length = body->len,
		.keep_alive = c->keep_alive,
		.request_id = c->request_id,
		.traceparent = c->traceparent,
		.extra = extra,
	    },
	    body);
}

void client_reply_text(
    struct client *c, unsigned int status, const char *content_type, const struct buf *body)
{
	reply_whole(c, status, content_type, body, NULL);
}

void client_reply_json_more(
    struct client *c, unsigned int status, const struct buf *body, const char *extra)
{
	reply_whole(c, status, "application/json", body, extra);
}

void client_reply_json(struct client *c, unsigned int status, const struct buf *body)
{
	reply_whole(c, status, "application/json", body, NULL);
}

/* What was written into j, if all of it could be. */
void client_reply_out(struct client *c, unsigned int status, const struct json_out *j)
{
	if (json_out_error(j))
		client_reply_error(c, API_INTERNAL, "the answer does not fit memory");
	else
		client_reply_json(c, status, j->b);
}

void client_reply_empty(struct client *c, unsigned int status, const char *extra)
{
	client_send(c,
	    &(struct http_reply){
		.status = status,
		.keep_alive = c->keep_alive,
		.request_id = c->request_id,
		.traceparent = c->traceparent,
		.extra = extra,
	    },
	    NULL);
}

void client_reply_error_more(
    struct client *c, enum api_error error, const char *message, struct api_error_more *more)
{
	more->request_id = c->request_id;
	more->traceparent = c->traceparent;
	more->no_body = c->head_request;
	publish_count(c->cs->s, COUNTER_REJECTED_REQUESTS);
	if (api_error_put(&c->out, error, message, more, c->keep_alive) < 0)
		c->keep_alive = false;
	client_answered(c);
}

void client_reply_error(struct client *c, enum api_error error, const char *message)
{
	client_reply_error_more(c, error, message, &(struct api_error_more){0});
}

void client_wait(struct client *c)
{
	c->state = CLIENT_WAITING;
	loop_timer_clear(client_loop(c), &c->timer); /* the pool has the deadline now */
}
