/*
 * conn: one handed-over client connection: requests in, responses out, one after the other.
 * sbx-worker only.
 *
 * conn.c drives it (phases, events, deadlines), conn_body.c reads request bodies, conn_reply.c
 * writes responses, conn_upgrade.c is what it is after HTTP. Nothing here frees a connection while
 * its operation may be on the stack: it is marked, and the loop comes back to it.
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

/* Between two requests it is s->limits->idle_ms. */
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
	CONN_HEAD,     /* reading a head, or waiting for one */
	CONN_BODY,     /* an operation runs, its request's body is not complete */
	CONN_SERVE,    /* an operation runs */
	CONN_DRAIN,    /* response complete; the rest of the body is read and dropped */
	CONN_FLUSH,    /* response complete; writing what is queued */
	CONN_UPGRADED, /* an operation speaks another protocol, to the connection's end */
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
	bool hung_up;	/* the client; what it has sent before may still be read */

	struct http_in *in;
	struct buf raw;	     /* received and not used; while a head is read, from its start */
	size_t fed;	     /* of raw, what the reader has seen */
	uint64_t since_ns;   /* head begun, or last progress of a body */
	uint64_t written_ns; /* last progress of writing */
	uint64_t taken_ns;   /* when the client was last seen to make room by reading */

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
	char id[CTL_BOX_NAME + 16]; /* the box's id as the client spells it */
	char item[48];		    /* what stands for the ':' of its route */
	char request_id[HTTP_ID_MAX];
	char traceparent[HTTP_ID_MAX];

	struct buf out;
	size_t kept; /* of service.buffered, for what is in out */
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

/* The box is being stopped: its request, if it is not complete, is refused. */
void conn_rest(struct conn *c);

/* What another sbxd must know of it: its request, if one is served, has a name of its own. */
void conn_describe(const struct conn *c, struct ctl_conn *out);

/* The loop comes back to it in this round. */
void conn_wake(struct conn *c);

/* ---- for operations ---- */

/* Its client has nothing to send or to take now: it waits for the operation. */
bool conn_waits(const struct conn *c);

/* op->room() is not 0 any more. */
void conn_more_body(struct conn *c);

/*
 * Answers 101 with further header lines, each ending in \r\n. From now on what comes goes to
 * op->input(); the connection is never one of HTTP again, and conn_cut() or conn_die() ends it.
 */
void conn_upgrade(struct conn *c, const char *extra);

/*
 * The response that follows is of n bytes, which count as kept until the client has taken all of
 * it. False: all operations together keep too much; one that is alone may be as long as it is.
 */
bool conn_keep(struct conn *c, size_t n);

/* Queues n bytes, to be sent when the loop comes back to the connection, or with more. */
void conn_queue(struct conn *c, const void *p, size_t n);

/* Nothing more will be sent: the client is told so at once, if it takes what is queued. */
void conn_end_output(struct conn *c);

/* Sends now what the client takes, after what is queued, and queues the rest. */
void conn_send(struct conn *c, const struct iovec *iov, size_t count);

/* A whole error response. The connection lets go of its operation, as with all the ends below. */
void conn_fail(struct conn *c, enum api_error e, const char *message);

/* The same, 413: the request's body is longer than body_max. */
void conn_fail_body(struct conn *c);

/* The same, 503: for sbxd to answer, and there is none now. */
void conn_fail_away(struct conn *c);

/* The same with further header lines, each ending in \r\n. */
void conn_fail_extra(struct conn *c, enum api_error e, const char *message, const char *extra);

/* The same, 405 with the methods that there are. */
void conn_fail_method(struct conn *c, const char *allow);

/* A whole JSON response; *json is used up. */
void conn_reply(struct conn *c, unsigned int status, struct buf *json);

/* The same with further header lines, each ending in \r\n. */
void conn_reply_extra(struct conn *c, unsigned int status, const char *extra, struct buf *json);

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

/* Much is to come: the socket may hold as much of it as a window, so that its reader and we wake
 * each other less often. */
void conn_widen(struct conn *c);

/* The same for n bytes that lie in a pipe, of a body that is not chunked. */
size_t conn_put_pipe(struct conn *c, int pipe, size_t n);

/* Bytes queued and not yet taken by the client. */
size_t conn_queued(const struct conn *c);

/* The response is complete; or it cannot be completed, and the connection closes. */
void conn_end(struct conn *c);
void conn_cut(struct conn *c);

/* ---- between the conn files ---- */

void conn_on_event(struct loop *loop, struct loop_watch *w, uint32_t events);
void conn_flush(struct conn *c);
void conn_forget(struct conn *c); /* what it keeps counts no more */
void conn_put_continue(struct conn *c);
void conn_mark(struct conn *c, enum shm_conn_state state);
bool conn_run_body(struct conn *c); /* phases CONN_BODY and CONN_DRAIN; true: go on */
bool conn_run_upgraded(struct conn *c);
void conn_die(struct conn *c);
void conn_free(struct conn *c); /* takes it out of everything but the slot page */

#endif
