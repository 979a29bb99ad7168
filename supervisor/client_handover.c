/* client_handover: a connection on its way to a worker and back. Runs in sbxd; when sbxd dies the
 * worker keeps it. */
#include <bsd/string.h>
#include <errno.h>
#include <string.h>

#include "lib/fd.h"
#include "supervisor/client_int.h"

int client_fd(const struct client *c)
{
	return c->fd;
}

/* A worker may serve its box, and not learn what opens all the boxes of a user. */
static void hide_authorization(struct client *c)
{
	const struct http_head *head = http_in_head(c->http);
	size_t len = strlen(head->authorization);

	if (len > 0)
		memset(c->in.data + c->in.off + head->authorization_at, '*', len);
}

/* Where the request whose head was read ends, in what was read: what comes after it has a token of
 * its own. What cannot be told ends with what was read. */
static size_t request_end(struct client *c)
{
	const uint8_t *body = NULL;
	size_t body_len = 0;
	struct err err = {0};
	size_t end = c->fed;
	size_t used = 0;
	int event = HTTP_BODY;

	if (http_in_head(c->http)->upgrade_websocket)
		return c->in.len; /* what follows is no HTTP, if all goes well */
	while (event == HTTP_BODY) {
		event = http_in_feed(c->http, buf_head(&c->in) + end, c->in.len - end, &used, &body,
		    &body_len, &err);
		end += used;
	}
	return event < 0 ? c->in.len : end;
}

void client_pass_on(struct client *c, struct route_error *error)
{
	size_t n = c->in.len;

	hide_authorization(c);
	if (c->peer.by_token)
		n = request_end(c);
	route_hand_over(c->cs->s, c, &c->match, buf_head(&c->in), n, error);
}

void client_fill_conn(const struct client *c, size_t n, struct ctl_conn *out)
{
	*out = (struct ctl_conn){.cookie = c->cookie, .uid = (uint32_t)c->peer.uid};
	if (c->peer.by_token)
		out->flags = CTL_CONN_TCP | CTL_CONN_ONCE | (n < c->in.len ? CTL_CONN_READ_ON : 0);
	(void)strlcpy(out->request_id, c->request_id, sizeof(out->request_id));
	(void)strlcpy(out->traceparent, c->traceparent, sizeof(out->traceparent));
}

void client_handed_over(struct client *c, size_t n, struct worker *w, struct client_list *list)
{
	loop_del(client_loop(c), &c->watch);
	loop_timer_clear(client_loop(c), &c->timer);
	clients_give_reader(c->cs, &c->http);
	c->fed = 0;
	buf_consume(&c->in, n);
	if (c->in.len == 0)
		buf_free(&c->in);
	c->state = CLIENT_HANDED;
	c->worker = w;
	c->worker_list = list;
	TAILQ_INSERT_TAIL(list, c, link);
}

void client_mark_owner(struct client *c, uid_t owner)
{
	c->abroad = c->peer.uid != owner;
}

bool client_adopt(struct clients *cs, int fd, const struct ctl_conn *conn, uid_t owner,
    struct worker *w, struct client_list *list)
{
	struct client *c = client_new(cs, fd);

	if (!c) {
		fd_close(&fd);
		return false;
	}
	(void)strlcpy(c->request_id, conn->request_id, sizeof(c->request_id));
	(void)strlcpy(c->traceparent, conn->traceparent, sizeof(c->traceparent));
	c->tied = true; /* some lease may be: the pool knows */
	c->gap = (conn->flags & CTL_CONN_READ_ON) != 0;
	client_mark_owner(c, owner);
	client_handed_over(c, 0, w, list);
	return true;
}

void client_forget_worker(struct client *c)
{
	if (c->worker)
		TAILQ_REMOVE(c->worker_list, c, link);
	c->worker = NULL;
	c->worker_list = NULL;
}

const struct client *client_next_handed(const struct client *c)
{
	return TAILQ_NEXT(c, link);
}

struct client *client_find_handed(const struct client_list *list, uint64_t cookie)
{
	struct client *c;

	TAILQ_FOREACH (c, list, link) {
		if (c->cookie == cookie)
			return c;
	}
	return NULL;
}

/* False when it had to be closed. */
static bool client_take_back(struct client *c)
{
	client_forget_worker(c);
	c->state = CLIENT_READING;
	if (loop_add(client_loop(c), &c->watch, c->fd, EPOLLIN, client_on_event) < 0) {
		client_close(c);
		return false;
	}
	client_await_request(c);
	return true;
}

/*
 * A request that comes back is asked anew, but for two: a worker speaks for its own uid only; and
 * one over TCP was shown to it without its token (it comes back when the box was told to stop just
 * before it was looked at).
 */
void client_handed_back(struct client *c, const uint8_t *bytes, size_t n, bool idle)
{
	if (c->gap || (idle && n == 0 && !c->tied)) {
		client_close(c);
		return;
	}
	if (!client_take_back(c))
		return;
	if (n > 0 && (c->abroad || c->peer.by_token)) {
		c->keep_alive = false;
		c->linger = true;
		client_reply_error(c, API_INVALID_STATE,
		    c->abroad ? "this connection was one to another user's box: open a new one"
			      : "the box is being stopped");
		return;
	}
	if (buf_append(&c->in, bytes, n) < 0)
		client_malformed(c, -EMSGSIZE, NULL);
	else
		client_process(c);
}

void client_worker_died(struct client *c, const struct shm_page *page)
{
	unsigned int owed =
	    CONN_REQUEST; /* not in the table: the worker had not even begun with it */

	for (int i = 0; i < SHM_CONNS; i++) {
		uint64_t word = atomic_load_explicit(&page->conns[i], memory_order_relaxed);

		if (CONN_COOKIE(word) == c->cookie && CONN_STATE(word) != CONN_FREE)
			owed = CONN_STATE(word);
	}
	if (owed == CONN_RESPONDING || (owed == CONN_IDLE && c->gap)) {
		client_close(c);
		return;
	}
	if (!client_take_back(c))
		return;
	if (owed == CONN_IDLE) {
		client_process(c);
		return;
	}
	c->keep_alive = false; /* what the worker read of the request is lost */
	c->linger = true;
	client_reply_error(c, API_WORKER_CRASHED, "the box's worker ended before it could answer");
}
