/* client_int: what the files of a client connection share among themselves. */
#ifndef SBXD_SUPERVISOR_CLIENT_INT_H
#define SBXD_SUPERVISOR_CLIENT_INT_H

#include "lib/clock.h"
#include "lib/loop.h"
#include "supervisor/access.h"
#include "supervisor/client.h"
#include "supervisor/routes.h"
#include "supervisor/sbxd.h"
#include "wire/http.h"

#define CLIENT_READ 16384U
#define CLIENT_IN_MAX CTL_TAIL_MAX /* a head and what came with it: fits a hand-over */
#define CLIENT_KEEP 4096U	   /* a buffer may stay that large between requests */
#define CLIENT_OUT_MAX (64U * 1024U * 1024U)
#define CLIENT_HEAD_TIME (10 * NS_PER_S)  /* from the first byte of a request to its last */
#define CLIENT_WRITE_TIME (30 * NS_PER_S) /* for a client to take its answer */

enum client_state {
	CLIENT_READING,	  /* a request, or nothing yet */
	CLIENT_WAITING,	  /* for the pool */
	CLIENT_WRITING,	  /* the answer did not fit the socket */
	CLIENT_STREAMING, /* the answer goes on */
	CLIENT_LINGERING, /* refused: what it still sends is dropped, so that it reads why */
	CLIENT_HANDED,	  /* a worker serves it */
};

struct client {
	TAILQ_ENTRY(client) link; /* of a worker's list, while handed over */
	struct clients *cs;
	uint32_t index;
	uint32_t round; /* how often this index was used: makes req unique */
	int fd;
	enum client_state state;
	struct loop_watch watch;
	struct loop_timer timer;
	struct peer peer;
	uint64_t cookie;
	bool tied;
	bool abroad; /* it was handed to the worker of another uid's box */
	bool gap; /* a supervisor that is dead read past the request that it is handed over for */
	bool stranger; /* over TCP, and no request of it has brought the token yet */
	TAILQ_ENTRY(client) stranger_link;
	bool keep_alive;
	bool linger;	      /* the connection ends in the middle of what the client sends */
	bool head_request;    /* HEAD: no body in the answer */
	struct http_in *http; /* NULL between requests */
	struct buf in;
	size_t fed; /* bytes of `in` that the parser has seen; they stay for a hand-over */
	struct buf body;
	struct buf out;
	struct route_match match;
	char request_id[HTTP_ID_MAX];
	char traceparent[HTTP_ID_MAX];
	struct client_stream *stream; /* NULL without */
	struct worker *worker;
	struct client_list *worker_list;
};

struct clients {
	struct sbxd *s;
	uint32_t max;
	uint32_t count;
	struct client **slots;
	uint32_t *free_index;
	uint32_t *rounds;
	struct http_in *spare;	      /* a reader that nobody needs now; NULL without */
	uint32_t tcp_count;	      /* those that came over TCP */
	struct client_list strangers; /* oldest first */
};

/* A reader of requests, new or used; NULL without memory. Between requests a client has none. */
struct http_in *clients_take_reader(struct clients *cs);
void clients_give_reader(struct clients *cs, struct http_in **in);

/* A record of the connection fd, watched; NULL, and fd is still the caller's, when there is no
 * room. */
struct client *client_new(struct clients *cs, int fd);

/* Tells whoever it is that there is no room, and closes fd. */
void clients_refuse(struct clients *cs, int fd);

static inline struct loop *client_loop(const struct client *c)
{
	return c->cs->s->loop;
}

/* What says that its client has left, besides EPOLLHUP: over TCP the end of what it sends. Not to
 * be awaited while that is still read. */
static inline uint32_t client_leave_events(const struct client *c)
{
	return c->peer.by_token ? (uint32_t)EPOLLRDHUP : 0;
}

/* Gives the client `span` ns for what it is at. */
void client_set_timer(struct client *c, uint64_t span);

/* Nothing of its next request is there yet: that may last as long as the configuration says. */
void client_await_request(struct client *c);

/* Nothing more is to be proven by it, or it is gone. Idempotent. */
void client_no_stranger(struct client *c);

/*
 * May it ask this? route: what was asked for, NULL when there is no such thing. False with *error
 * when it is a client that has to bring a token, and did not.
 */
bool client_authenticate(struct client *c, const struct http_head *head, const struct route *route,
    struct route_error *error);

/* Gives the request whose head was read to the worker of its box. error->error is set when it could
 * not, and c is then untouched. */
void client_pass_on(struct client *c, struct route_error *error);

/* The request is answered: sends what is there, then goes on with what came meanwhile. */
void client_answered(struct client *c);

/* The socket takes more of a stream. */
void client_stream_ready(struct client *c);

/* sbxd ends: the client is told that its stream ends here. */
void client_stream_cut(struct client *c);

/* Its stream, if it has one, is no more. */
void client_drop_stream(struct client *c);

/* Writes what is there; true while the connection lives. */
bool client_flush(struct client *c);

/* Serves what was read, request by request, until more bytes, the pool or the socket must be waited
 * for. */
void client_process(struct client *c);

/* Answers a message that is no HTTP, or too long (rc is -EMSGSIZE; err may be NULL then). */
void client_malformed(struct client *c, int rc, const struct err *err);

/* Takes it off its worker's list, if it is on one. */
void client_forget_worker(struct client *c);

loop_watch_fn client_on_event;

#endif
