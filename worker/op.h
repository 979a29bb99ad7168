/*
 * op: one client operation (a command, a file transfer), between its connection and its channel.
 * sbx-worker only.
 *
 * An operation outlives its connection: a client that goes away only loses the answer; the channel
 * stays until the guest has said that the operation is over.
 */
#ifndef SBXD_WORKER_OP_H
#define SBXD_WORKER_OP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "lib/buf.h"
#include "worker/agent_link.h"
#include "worker/service.h"

struct conn;
struct op;

struct op_class {
	/* What the guest has not done when it stands still; NULL: the operation made no progress.
	 */
	const char *stalled;
	/* How many body bytes it takes now; 0: conn_more_body() will be called. NULL: all. */
	size_t (*room)(struct op *op);
	/* A part of the request's body, at most room() bytes; and its end. */
	void (*body)(struct op *op, const uint8_t *p, size_t n);
	void (*body_end)(struct op *op);
	/* Takes at most n bytes, as above, from a Unix socket itself. As agent_chan_pour(); after
	 * -EOPNOTSUPP they come through body(). NULL: always. */
	ssize_t (*pour)(struct op *op, int fd, size_t n);
	/*
	 * What came on a connection that conn_upgrade() was called for, at most room() bytes, which
	 * may be overwritten. The operation may end within.
	 */
	void (*input)(struct op *op, uint8_t *p, size_t n);
	/* The client has taken everything that was queued for it. */
	void (*drained)(struct op *op);
	/*
	 * The client is gone, or was answered already: op->conn is NULL now. The operation is to be
	 * ended, and frees itself with op_free() when the guest has confirmed it.
	 */
	void (*abandon)(struct op *op);
	/* The box is gone after the response was begun: may add a last message. NULL: nothing. */
	void (*lost)(struct op *op, enum api_error e, const char *message);
	/* Releases what it holds, and its own memory. */
	void (*free)(struct op *op);
};

/* How long the guest may leave an operation as it is while a client waits for it. */
struct op_stall {
	uint64_t max_ms; /* 0: for ever */
	uint64_t moves;	 /* the channel's, at the last beat */
	uint64_t quiet;	 /* beats since it was otherwise: while we are stopped none is missed */
};

/* First member of every operation. */
struct op {
	const struct op_class *cls;
	struct service *s;
	struct conn *conn; /* NULL when nobody waits for it */
	struct agent_chan chan;
	size_t kept;		    /* its share of service.buffered */
	struct loop_timer patience; /* how long the guest may take to confirm AGENT_CLOSE */
	struct op_stall stall;	    /* by default, limits.op_stall_ms */
	LIST_ENTRY(op) entry;
};

/* Begins: pins the box. */
void op_init(struct op *op, const struct op_class *cls, struct conn *c);

/* Counts n more bytes that it keeps, until op_forget() or its end. False: all operations of the box
 * together keep too much. */
bool op_keep(struct op *op, size_t n);

/* It keeps nothing any more. */
void op_forget(struct op *op);

/* A part of its request's body, to be kept in b. When that cannot be, the client is told, and the
 * operation is over. */
void op_keep_body(struct op *op, struct buf *b, const uint8_t *p, size_t n);

/* Ends: unpins, drops the channel if it is open, calls cls->free(). */
void op_free(struct op *op);

/* The connection lets go of it; see abandon(). */
void op_abandon(struct op *op);

/* Has the guest end it; a guest that does not within service_patience_ns() is broken. */
void op_close_chan(struct op *op);

/*
 * Once every REPORT_BEAT_NS: an operation whose channel the guest has left as it was for too long
 * is ended, its client told. Not while that has something to send, or to take.
 */
void op_beat(struct service *s);

#endif
