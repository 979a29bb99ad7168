/*
 * client: one connection of an agent, and the table of all. Runs in sbxd; when sbxd dies,
 * connections that workers hold go on, the others end.
 */
#include "supervisor/client.h"

#include <stdlib.h>
#include <sys/socket.h>

#include "lib/fd.h"
#include "supervisor/client_int.h"
#include "supervisor/image_job.h"
#include "supervisor/image_wait.h"
#include "supervisor/making.h"

struct clients *clients_create(struct sbxd *s, uint32_t max)
{
	struct clients *cs = calloc(1, sizeof(*cs));

	if (!cs)
		return NULL;
	cs->s = s;
	cs->max = max;
	TAILQ_INIT(&cs->strangers);
	cs->slots = calloc(max, sizeof(struct client *));
	cs->free_index = calloc(max, sizeof(uint32_t));
	cs->rounds = calloc(max, sizeof(uint32_t));
	if (!cs->slots || !cs->free_index || !cs->rounds) {
		clients_destroy(cs);
		return NULL;
	}
	for (uint32_t i = 0; i < max; i++)
		cs->free_index[i] = max - 1 - i;
	return cs;
}

void clients_destroy(struct clients *cs)
{
	if (!cs)
		return;
	for (uint32_t i = 0; cs->slots && i < cs->max; i++) {
		struct client *c = cs->slots[i];

		if (c && c->stream)
			client_stream_cut(c);
		if (c)
			client_close(c);
	}
	http_in_free(cs->spare);
	free(cs->slots);
	free(cs->free_index);
	free(cs->rounds);
	free(cs);
}

uint32_t clients_count(const struct clients *cs)
{
	return cs->count;
}

bool clients_have(const struct clients *cs, uint64_t cookie)
{
	for (uint32_t i = 0; i < cs->max; i++) {
		if (cs->slots[i] && cs->slots[i]->cookie == cookie)
			return true;
	}
	return false;
}

struct client *client_by_req(struct clients *cs, uint64_t req)
{
	uint32_t index = (uint32_t)req;
	struct client *c = index < cs->max ? cs->slots[index] : NULL;

	return c && client_req(c) == req && c->state == CLIENT_WAITING ? c : NULL;
}

struct http_in *clients_take_reader(struct clients *cs)
{
	struct http_in *in = cs->spare;
	uint32_t head_max = cs->s->config.limits.head_bytes;

	cs->spare = NULL;
	if (in && http_in_head_max(in) == head_max)
		return in;
	http_in_free(in); /* made before the configuration was read again */
	return http_in_create_for(HTTP_REQUEST, head_max);
}

void clients_give_reader(struct clients *cs, struct http_in **in)
{
	if (*in && !cs->spare) {
		http_in_reset(*in);
		cs->spare = *in;
	} else {
		http_in_free(*in);
	}
	*in = NULL;
}

void clients_refuse(struct clients *cs, int fd)
{
	static const char text[] = "too many connections";
	struct buf out;

	publish_count(cs->s, COUNTER_REJECTED_REQUESTS);
	buf_init(&out, 2048);
	if (api_error_put(&out, API_TOO_MANY, text,
		&(struct api_error_more){.retry_after_seconds = 1}, 0) == 0)
		(void)buf_send(&out, fd); /* best effort: it is closed in any case */
	buf_free(&out);
	fd_close(&fd);
}

struct client *client_new(struct clients *cs, int fd)
{
	struct client *c = cs->count < cs->max ? calloc(1, sizeof(*c)) : NULL;
	socklen_t len = sizeof(c->cookie);

	if (!c)
		return NULL;
	c->cs = cs;
	c->fd = fd;
	c->watch.fd = -1;
	buf_init(&c->in, CLIENT_IN_MAX);
	buf_init(&c->body, cs->s->config.limits.body_bytes);
	buf_init(&c->out, CLIENT_OUT_MAX);
	if (access_read_peer(cs->s, fd, &c->peer) < 0 ||
	    getsockopt(fd, SOL_SOCKET, SO_COOKIE, &c->cookie, &len) < 0 ||
	    loop_add(cs->s->loop, &c->watch, fd, EPOLLIN, client_on_event) < 0) {
		free(c);
		return NULL;
	}
	c->index = cs->free_index[cs->max - ++cs->count];
	c->round = ++cs->rounds[c->index];
	cs->slots[c->index] = c;
	cs->tcp_count += c->peer.by_token;
	return c;
}

void client_accept(struct clients *cs, int fd)
{
	struct client *c = client_new(cs, fd);

	if (c)
		client_await_request(c);
	else
		clients_refuse(cs, fd);
}

void client_close(struct client *c)
{
	struct clients *cs = c->cs;
	struct sbxd *s = cs->s;

	if (c->state == CLIENT_WAITING) {
		pool_client_gone(s->pool, loop_now(s->loop), client_req(c));
		making_client_gone(s, client_req(c));
		image_wait_gone(s, client_req(c));
		image_job_unhook(s, client_req(c));
	}
	if (c->tied)
		pool_conn_gone(s->pool, loop_now(s->loop), c->cookie);
	client_forget_worker(c);
	client_no_stranger(c);
	client_drop_stream(c);
	cs->tcp_count -= c->peer.by_token;
	loop_del(s->loop, &c->watch);
	loop_timer_clear(s->loop, &c->timer);
	fd_close(&c->fd);
	clients_give_reader(cs, &c->http);
	buf_free(&c->in);
	buf_free(&c->body);
	buf_free(&c->out);
	cs->slots[c->index] = NULL;
	cs->free_index[cs->max - cs->count--] = c->index;
	free(c);
}

/* ---- who it is ---- */

uint64_t client_req(const struct client *c)
{
	return ((uint64_t)c->round << 32) | c->index;
}

uint64_t client_cookie(const struct client *c)
{
	return c->cookie;
}

uid_t client_uid(const struct client *c)
{
	return c->peer.uid;
}

bool client_is_admin(const struct client *c)
{
	return c->peer.admin;
}

bool client_is_by_token(const struct client *c)
{
	return c->peer.by_token;
}

const char *client_request_id(const struct client *c)
{
	return c->request_id;
}

struct log_ctx client_log_ctx(const struct client *c)
{
	return (struct log_ctx){.request_id = c->request_id, .traceparent = c->traceparent};
}

void client_mark_tied(struct client *c)
{
	c->tied = true;
}
