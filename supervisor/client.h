/*
 * client: one connection of an agent, from accept to close, wherever it is: being read here,
 * waiting for a box, or in the hands of a worker. Identity is the socket's SO_PEERCRED, never what
 * is sent.
 */
#ifndef SBXD_SUPERVISOR_CLIENT_H
#define SBXD_SUPERVISOR_CLIENT_H

#include <bsd/sys/queue.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/buf.h"
#include "lib/log.h"
#include "shm/layout.h"
#include "wire/api_error.h"
#include "wire/control.h"
#include "wire/json.h"

struct client;
struct clients;
struct sbxd;
struct worker;

TAILQ_HEAD(client_list, client);

/* max: connections at a time. NULL without memory. */
struct clients *clients_create(struct sbxd *s, uint32_t max);

/* Closes every connection. */
void clients_destroy(struct clients *cs);
uint32_t clients_count(const struct clients *cs);

/* Takes over an accepted, non-blocking connection. Past the maximum it is told so and closed. */
void client_accept(struct clients *cs, int fd);

/*
 * The same for one that came over TCP: who it is, each of its requests must prove. When there are
 * as many as limits.tcp_connections, the oldest that has proven nothing makes room for it.
 */
void client_accept_tcp(struct clients *cs, int fd);

/* A connection of that cookie is known. Looks at all: for a restart only. */
bool clients_have(const struct clients *cs, uint64_t cookie);

/*
 * Takes over a connection that worker w has had from an earlier supervisor: handed over, on w's
 * list, the box being of uid `owner`. Its identity is read from the socket anew. Takes over fd;
 * false when there is no room.
 */
bool client_adopt(struct clients *cs, int fd, const struct ctl_conn *conn, uid_t owner,
    struct worker *w, struct client_list *list);

/* The client that waits under this number, or NULL. */
struct client *client_by_req(struct clients *cs, uint64_t req);

/* Ends the connection; its leases and its place in queues are given up. */
void client_close(struct client *c);

/* ---- who it is, and what it asked ---- */

uint64_t client_req(const struct client *c); /* names it in the pool */
uint64_t client_cookie(const struct client *c);
uid_t client_uid(const struct client *c);
bool client_is_admin(const struct client *c);	 /* root, our own uid, or in admin_group */
bool client_is_by_token(const struct client *c); /* it came over TCP */
const char *client_request_id(const struct client *c);
struct log_ctx client_log_ctx(const struct client *c);

/* ---- answering; each request gets exactly one of these ---- */

void client_reply_json(struct client *c, unsigned int status, const struct buf *body);
/* extra: complete header lines, each ending in \r\n; NULL none. */
void client_reply_json_more(
    struct client *c, unsigned int status, const struct buf *body, const char *extra);
void client_reply_out(struct client *c, unsigned int status, const struct json_out *j);
void client_reply_text(
    struct client *c, unsigned int status, const char *content_type, const struct buf *body);
void client_reply_empty(struct client *c, unsigned int status, const char *extra);
void client_reply_error(struct client *c, enum api_error error, const char *message);
void client_reply_error_more(
    struct client *c, enum api_error error, const char *message, struct api_error_more *more);

/* The answer comes later, through client_by_req(). Until then only its hanging up is noticed. */
void client_wait(struct client *c);

/* ---- an answer that goes on ---- */

enum stream_next {
	STREAM_IDLE,   /* nothing more now */
	STREAM_MORE,   /* there is more to say at once */
	STREAM_END,    /* that was all */
	STREAM_BROKEN, /* it cannot go on: the connection is cut */
};

/* Embedded in what its owner knows of it; the owner sets the functions. */
struct client_stream {
	struct client *client;
	/*
	 * Appends what comes next to `out`, at most some KiB. overdue: nothing was said for long,
	 * so something must be.
	 */
	enum stream_next (*fill)(struct client_stream *st, struct buf *out, bool overdue);
	/* The stream or its client has ended: nothing refers to it any more. */
	void (*gone)(struct client_stream *st);
	bool chunked;
	bool blocked; /* the socket takes no more */
};

/* Answers 200 and goes on with what st->fill() says, until it ends or the client does. False: it
 * has ended already, and st->gone() was called. */
bool client_stream_begin(struct client *c, const char *content_type, struct client_stream *st);

/* There is more to say than at the last STREAM_IDLE. Closes nothing. */
void client_stream_pump(struct client_stream *st);

/* The stream ends with what st->fill() says now, which is STREAM_END; st may be gone when this
 * returns. */
void client_stream_end(struct client_stream *st);

/* Its leases may be tied to this connection: tell the pool when it ends. */
void client_mark_tied(struct client *c);

/* ---- hand-over ---- */

int client_fd(const struct client *c);

/* What a worker is to know of the connection that it gets with the first n bytes of what was read.
 */
void client_fill_conn(const struct client *c, size_t n, struct ctl_conn *out);

/* It is the worker's now, on its list, and so are these n bytes. */
void client_handed_over(struct client *c, size_t n, struct worker *w, struct client_list *list);
const struct client *client_next_handed(const struct client *c);
struct client *client_find_handed(const struct client_list *list, uint64_t cookie);

/* The box whose worker it is handed to is of uid `owner`: a worker may speak for its own uid only,
 * so from another's no request is taken back. */
void client_mark_owner(struct client *c, uid_t owner);

/* It is ours again, with bytes that the worker had read and not used. idle: because nothing came
 * for as long as limits.connection_idle_timeout. */
void client_handed_back(struct client *c, const uint8_t *bytes, size_t n, bool idle);

/*
 * The worker that had it has died. What the worker last wrote about the connection into its page
 * says what is owed: nothing (it goes on here), an answer (410), or the end (a response was cut).
 */
void client_worker_died(struct client *c, const struct shm_page *page);

#endif
