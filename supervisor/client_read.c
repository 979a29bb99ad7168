/* client_read: from bytes to requests, and each to its route. Runs in sbxd. */
#include <bsd/string.h>
#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/clock.h"
#include "lib/digest.h"
#include "supervisor/client_int.h"

static void client_begin_request(struct client *c, const struct http_head *head)
{
	uint8_t random[8];
	char hex[17] = "";

	c->body.max = c->cs->s->config.limits.body_bytes;
	c->keep_alive = head->keep_alive;
	c->head_request = head->method == HTTP_HEAD;
	(void)strlcpy(c->traceparent, head->traceparent, sizeof(c->traceparent));
	if (*head->request_id) {
		(void)strlcpy(c->request_id, head->request_id, sizeof(c->request_id));
		return;
	}
	if (digest_draw(&c->cs->s->random, random, sizeof(random)) == 0)
		digest_hex(random, sizeof(random), hex);
	(void)strlcpy(c->request_id, "req_", sizeof(c->request_id));
	(void)strlcat(c->request_id, hex, sizeof(c->request_id));
}

/* The connection ends with the next answer, though the client may still be sending. */
static void client_cut_off(struct client *c)
{
	c->keep_alive = false;
	c->linger = true;
}

/* A request that will not be served: its body is not wanted, so unless there is none the connection
 * ends. */
static void client_refuse(struct client *c, const struct route_error *why)
{
	const struct http_head *head = http_in_head(c->http);

	if (head->content_length != 0 || head->chunked)
		client_cut_off(c);
	else
		buf_consume(&c->in, c->fed);
	c->fed = 0;
	client_reply_error_more(c, why->error, why->text,
	    &(struct api_error_more){.allow = why->allow,
		.authenticate = why->authenticate,
		.retry_after_seconds = why->retry_after});
}

static void client_refuse_body(struct client *c)
{
	char text[64];

	(void)snprintf(
	    text, sizeof(text), "the request body is longer than %zu bytes", c->body.max);
	client_cut_off(c);
	client_reply_error(c, API_TOO_LARGE, text);
}

/* Who asks what, and may it? error->error is set when nothing comes of it. */
static void client_admit(struct client *c, const struct http_head *head, struct route_error *error)
{
	const struct route *route = route_find(head, &c->match, error) == 0 ? c->match.route : NULL;

	if (!client_authenticate(c, head, route, error) || !route ||
	    route_check_generation(c->cs->s, c, &c->match, head, error) < 0)
		return;
	if (route->handed_over)
		client_pass_on(c, error);
	else if (route->unsupported)
		api_unsupported(c->cs->s, c, &c->match, error);
}

/* The head is complete. True when the body is wanted here. */
static bool client_head_done(struct client *c)
{
	const struct http_head *head = http_in_head(c->http);
	static const char go_on[] = "HTTP/1.1 100 Continue\r\n\r\n";
	struct route_error error = {0};

	client_begin_request(c, head);
	client_admit(c, head, &error);
	if (error.error)
		client_refuse(c, &error);
	if (error.error || c->match.route->handed_over)
		return false;
	buf_consume(&c->in, c->fed);
	c->fed = 0;
	if (head->content_length > c->body.max && !head->chunked) {
		client_refuse_body(c);
		return false;
	}
	if (head->expect_continue)
		(void)send(c->fd, go_on, sizeof(go_on) - 1,
		    MSG_NOSIGNAL | MSG_DONTWAIT); /* optional by RFC 9110 */
	return true;
}

static bool client_body(struct client *c, const uint8_t *data, size_t n)
{
	if (buf_append(&c->body, data, n) == 0)
		return true;
	client_refuse_body(c);
	return false;
}

void client_malformed(struct client *c, int rc, const struct err *err)
{
	client_cut_off(c);
	c->request_id[0] = c->traceparent[0] = '\0';
	client_reply_error(c, rc == -EMSGSIZE ? API_HEAD_TOO_LARGE : API_MALFORMED,
	    err ? err->text : "too many bytes were sent before they could be looked at");
}

static void client_serve(struct client *c)
{
	struct route_call call = {
	    .match = &c->match,
	    .head = http_in_head(c->http),
	    .body = c->body.len ? buf_head(&c->body) : NULL,
	    .body_len = c->body.len,
	};
	struct err err = {0};

	/* Here once for all who parse it. */
	if (json_check_depth(call.body, call.body_len, c->cs->s->config.limits.json_depth, &err) <
	    0)
		client_reply_error(c, API_MALFORMED, err.text);
	else
		c->match.route->fn(c->cs->s, c, &call);
}

/* One event of the parser; true when there may be another in what was read. */
static bool client_step(struct client *c)
{
	const uint8_t *body = NULL;
	size_t body_len = 0;
	size_t used = 0;
	struct err err = {0};
	const uint8_t *data = c->in.len ? buf_head(&c->in) + c->fed : NULL;
	int event = http_in_feed(c->http, data, c->in.len - c->fed, &used, &body, &body_len, &err);

	c->fed += used;
	switch (event) {
	case HTTP_MORE:
		return false;
	case HTTP_HEAD_DONE:
		return client_head_done(c);
	case HTTP_BODY:
		if (!client_body(c, body, body_len))
			return false;
		buf_consume(&c->in, c->fed);
		c->fed = 0;
		return true;
	case HTTP_END:
		buf_consume(&c->in, c->fed);
		c->fed = 0;
		client_serve(c);
		return false;
	default:
		client_malformed(c, event, &err);
		return false;
	}
}

/* Serves what lies in `in`, request by request, until more bytes, the pool or the socket must be
 * waited for. */
void client_process(struct client *c)
{
	struct clients *cs = c->cs;
	uint32_t index = c->index;
	uint32_t round = c->round;

	/* A step may answer, close or hand over: the table knows whether c still is the same. */
	while (cs->slots[index] && cs->rounds[index] == round && c->state == CLIENT_READING &&
	       c->in.len > c->fed) {
		if (!c->http) {
			c->http = clients_take_reader(cs);
			if (!c->http) {
				client_close(c);
				return;
			}
			client_set_timer(c, CLIENT_HEAD_TIME);
		}
		while (cs->slots[index] && cs->rounds[index] == round &&
		       c->state == CLIENT_READING && c->http) {
			if (!client_step(c))
				break;
		}
		if (!cs->slots[index] || cs->rounds[index] != round)
			return;
		if (c->http)
			break; /* in the middle of a request: more bytes must come */
	}
	if (cs->slots[index] && cs->rounds[index] == round && c->state == CLIENT_READING)
		buf_trim(&c->in, CLIENT_READ);
}

static void client_drop_input(struct client *c)
{
	uint8_t dropped[CLIENT_READ];
	ssize_t n = recv(c->fd, dropped, sizeof(dropped), MSG_DONTWAIT);

	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		client_close(c);
}

static void client_read(struct client *c)
{
	ssize_t n = buf_recv(&c->in, c->fd, CLIENT_READ);

	if (n == -EAGAIN || n == -EINTR)
		return;
	if (n == -ENOBUFS) { /* only a head that is too long can fill it */
		client_malformed(c, -EMSGSIZE, NULL);
		return;
	}
	if (n <= 0) {
		client_close(c);
		return;
	}
	client_process(c);
}

void client_on_event(struct loop *l, struct loop_watch *watch, uint32_t events)
{
	struct client *c = LOOP_OWNER(watch, struct client, watch);
	struct sbxd *s = c->cs->s;

	(void)l;
	if (events & EPOLLIN && c->state == CLIENT_WAITING) {
		/* Its next request can wait, and must not wake us until then; that it leaves does.
		 */
		(void)loop_mod(s->loop, &c->watch, client_leave_events(c));
	} else if (events & EPOLLIN && c->state == CLIENT_READING) {
		client_read(c);
	} else if (events & EPOLLIN && c->state == CLIENT_LINGERING) {
		client_drop_input(c);
	} else if (events & (EPOLLHUP | EPOLLERR | EPOLLRDHUP)) {
		client_close(c);
	} else if (events & EPOLLOUT && c->state == CLIENT_STREAMING) {
		client_stream_ready(c);
	} else if (events & EPOLLOUT && c->state == CLIENT_WRITING) {
		if (client_flush(c) && c->state == CLIENT_READING)
			client_process(c);
	}
	sbxd_settle(s);
}
