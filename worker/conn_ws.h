/*
 * conn_ws: an operation whose connection has become a WebSocket (wire/websocket.h): messages in and
 * out, signs of life, the closing handshake. What the messages mean is its user's. sbx-worker only.
 */
#ifndef SBXD_WORKER_CONN_WS_H
#define SBXD_WORKER_CONN_WS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/buf.h"
#include "wire/websocket.h"
#include "worker/op.h"

#define CONN_WS_TEXT_MAX (64U * 1024U)	  /* a text message from the client */
#define CONN_WS_PING_NS (15 * NS_PER_S)	  /* between pings */
#define CONN_WS_DEAD_NS (45 * NS_PER_S)	  /* a client that is silent for longer is gone */
#define CONN_WS_LEAVE_NS (5 * NS_PER_S)	  /* for the client's half of the closing handshake */
#define CONN_WS_QUEUED_MAX (128U * 1024U) /* with more for it, a client is not listened to */

struct conn_ws;

struct conn_ws_ops {
	/* How many bytes of binary messages are taken now; 0: conn_more_body() will be called. */
	size_t (*room)(struct conn_ws *w);
	/* n bytes of a binary message, at most room(). */
	void (*bytes)(struct conn_ws *w, const uint8_t *p, size_t n);
	/* A whole text message. */
	void (*text)(struct conn_ws *w, const uint8_t *p, size_t n);
	/* The client has taken everything that was queued for it. */
	void (*drained)(struct conn_ws *w);
	/* The box is gone: may send a last message. */
	void (*lost)(struct conn_ws *w, enum api_error e, const char *message);
	/* Closing has begun, or the client is gone. Comes once; only free() comes after it. */
	void (*over)(struct conn_ws *w);
	/* Releases its own memory. */
	void (*free)(struct conn_ws *w);
};

/* First member of its user's struct; op is the first of all. */
struct conn_ws {
	struct op op;
	const struct conn_ws_ops *ops;
	struct ws_in in;
	struct buf text;	 /* of a text message that is not complete */
	struct loop_timer timer; /* signs of life; once closing, its end */
	uint64_t heard_ns;	 /* the last sign of life */
	uint64_t pinged_ns;
	bool closing; /* our Close is queued or sent */
	bool ended;   /* nothing that comes means anything any more */
};

/*
 * The request that c has the head of becomes a WebSocket: answers 101 and begins the operation
 * *w, zeroed memory that ops->free() gives back. accept: of ws_check_handshake().
 */
void conn_ws_begin(struct conn_ws *w, const struct conn_ws_ops *ops, struct conn *c,
    const char accept[WS_ACCEPT_LEN]);

/* Sends now, as far as the client takes it, a binary message of one byte and n more. False: it is
 * gone. */
bool conn_ws_send(struct conn_ws *w, uint8_t first, const void *p, size_t n);

/* Queues a text message or a ping. */
void conn_ws_text(struct conn_ws *w, const void *p, size_t n);
void conn_ws_ping(struct conn_ws *w);

/* Begins the closing handshake; nothing more is sent or taken. */
void conn_ws_close(struct conn_ws *w, enum ws_code code, const char *reason);

#endif
