/*
 * conn: one handed-over client connection: requests in, responses out, one after the other.
 * sbx-worker only.
 *
 * conn.c drives it (phases, events, deadlines), conn_body.c reads request bodies, conn_reply.c
 * writes responses. Nothing here frees a connection while its operation may be on the stack: it is
 * marked, and the loop comes back to it.
 */
#ifndef SBXD_WORKER_CONN_H
#define SBXD_WORKER_CONN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "lib/buf.h"
#include "lib/loop.h"
#include "wire/api_error.h"
#include "wire/control.h"
#include "wire/http.h"
#include "worker/op.h"
#include "worker/service.h"

#define CONN_HEAD_NS (10 * NS_PER_S)   /* a head, once begun */
#define CONN_BODY_NS (30 * NS_PER_S)   /* progress of a body */
#define CONN_WRITE_NS (120 * NS_PER_S) /* progress of a response */
#define CONN_DRAIN_NS (10 * NS_PER_S)  /* the rest of a body nobody wants */
/* As long as the longest body: else a client that sends before it reads never reads why. */
#define CONN_DRAIN_MAX (1024ULL * 1024U * 1024U)
#define CONN_DRAIN_KEEP (1024U * 1024U) /* for more than this the connection is not kept */
#define CONN_OUT_KEEP (64U * 1024U)	/* memory that is kept for the next response */
#define CONN_OUT_HIGH (256U * 1024U)	/* operations hold back above this */

enum conn_phase {
	CONN_HEAD,  /* reading a head, or waiting for one */
	CONN_BODY,  /* an operation runs, its request's body is not complete */
	CONN_SERVE, /* an operation runs */
	CONN_DRAIN, /* response complete; the rest of the body is read and dropped */
	CONN_FLUSH, /* response complete; writing what is queued */
	CONN_PHASES,
};

struct conn {
	struct service *s;
	int fd; /* owned */
	struct loop_watch watch;
	struct loop_timer timer; /* the deadline of the phase */
	struct loop_timer kick;	 /* due: the connection is driven on */
	struct ctl_conn who;
	uint64_t seq; /* of the hand-over */
	unsigned int index;
	enum conn_phase phase;
	bool first;	/* its first request is the one that sbxd chose us for */
	bool readable;	/* the socket may hold more */
	bool blocked;	/* the socket takes no more for now */
	bool dead;	/* to be closed by the loop */
	bool drain_due; /* op->drained() is owed */

	struct http_in *in;
	struct buf raw;	     /* received and not used; while a head is read, from its start */
	size_t fed;	     /* of raw, what the reader has seen */
	uint64_t since_ns;   /* head begun, or last progress of a body */
	uint64_t written_ns; /* last progress of writing */

	/* The request that is being served. */
	struct op *op;
	uint64_t body_left; /* UINT64_MAX: not known */
	uint64_t body_seen;
	uint64_t body_max;
	bool keep_alive;
	bool head_request;    /* HEAD: no body in the answer */
	bool awaits_continue; /* the client sends its body only when it is told to */
	bool chunked;	      /* the response is */
	bool responding;
	char id[48]; /* the box's id as the client spells it */
	char request_id[HTTP_ID_MAX];
	char traceparent[HTTP_ID_MAX];

	struct buf out;
};

/*
 * Takes over a connection with the n bytes that sbxd has read from it, and serves it from the next
 * round of the loop on. When there is no place for it, the client is told and the descriptor
 * closed.
 */
void conn_open(struct service *s, int fd, const struct ctl_conn *who, uint64_t seq,
    const uint8_t *bytes, size_t n);

/* Answers `e` on a descriptor that is not served, and closes it. */
void conn_refuse(int fd, const struct ctl_conn *who, enum api_error e, const char *message);

/* Closes it now, whatever it was doing: never from within its operation. */
void conn_close(struct conn *c);

/* What another sbxd must know of it: its request, if one is served, has a name of its own. */
void conn_describe(const struct conn *c, struct ctl_conn *out);

/* The loop comes back to it in this round. */
void conn_wake(struct conn *c);

/* ---- for operations ---- */

/* op->room() is not 0 any more. */
void conn_more_body(struct conn *c);

/* A whole error response. The connection lets go of its operation, as with all the ends below. */
void conn_fail(struct conn *c, enum api_error e, const char *message);

/* The same, 503: for sbxd to answer, and there is none now. */
void conn_fail_away(struct conn *c);

/* The same, 405 with the methods that there are. */
void conn_fail_method(struct conn *c, const char *allow);

/* A whole JSON response; *json is used up. */
void conn_reply(struct conn *c, unsigned int status, struct buf *json);

/* A whole response without a body. */
void conn_reply_empty(struct conn *c, unsigned int status);

/* Begins a response 200 of `length` bytes, or UINT64_MAX: chunked. */
void conn_begin(struct conn *c, const char *content_type, uint64_t length);

/* A part of its body. Never fails: what cannot be sent is queued, or the connection is dead. */
void conn_put(struct conn *c, const void *p, size_t n);

/*
 * As much of a part as the client takes now; op->drained() will come when it is not all. For a
 * chunked body: all, queued if need be.
 */
size_t conn_put_some(struct conn *c, const void *p, size_t n);

/* The same for n bytes that lie in a pipe, of a body that is not chunked. */
size_t conn_put_pipe(struct conn *c, int pipe, size_t n);

/* Bytes queued and not yet taken by the client. */
size_t conn_queued(const struct conn *c);

/* The response is complete; or it cannot be completed, and the connection closes. */
void conn_end(struct conn *c);
void conn_cut(struct conn *c);

/* ---- between the conn files ---- */

void conn_on_event(struct loop *loop, struct loop_watch *w, uint32_t events);
void conn_send(struct conn *c, const struct iovec *iov, size_t count);
void conn_flush(struct conn *c);
void conn_put_continue(struct conn *c);
void conn_mark(struct conn *c, enum shm_conn_state state);
bool conn_run_body(struct conn *c); /* phases CONN_BODY and CONN_DRAIN; true: go on */
void conn_die(struct conn *c);
void conn_free(struct conn *c); /* takes it out of everything but the slot page */

#endif
