/*
 * websocket: RFC 6455, the server's side of it: the handshake, frames in and out. Any process; does
 * no I/O and allocates nothing.
 *
 * Why it is not wslay: the distribution has that as a shared object only, and a worker is one
 * static program, whose start is what an acquire waits for. The tests hold the two against each
 * other.
 */
#ifndef SBXD_WIRE_WEBSOCKET_H
#define SBXD_WIRE_WEBSOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/err.h"
#include "wire/http.h"

#define WS_VERSION "13"
#define WS_ACCEPT_LEN 29U   /* Sec-WebSocket-Accept and its NUL */
#define WS_HEAD_MAX 10U	    /* head of a frame of ours: it has no mask */
#define WS_CONTROL_MAX 125U /* payload of a control frame */

enum ws_opcode {
	WS_CONTINUATION = 0,
	WS_TEXT = 1,
	WS_BINARY = 2,
	WS_CLOSE = 8,
	WS_PING = 9,
	WS_PONG = 10,
};

/* Why a connection is closed: the codes of RFC 6455, 7.4.1, that are used here. */
enum ws_code {
	WS_NORMAL = 1000,
	WS_PROTOCOL_ERROR = 1002,
	WS_NO_STATUS = 1005, /* never sent: the peer's Close had no code */
	WS_BAD_DATA = 1007,
	WS_POLICY = 1008,
	WS_TOO_BIG = 1009,
	WS_INTERNAL = 1011,
};

/*
 * Whether a request head asks for a WebSocket as it should; accept: what goes into the answer. 0,
 * -EPROTONOSUPPORT (no upgrade, or another version: 426), -EINVAL (400); *err says what is wrong.
 */
int ws_check_handshake(const struct http_head *h, char accept[WS_ACCEPT_LEN], struct err *err);

/* What a server answers to a key of 24 characters, RFC 6455, 4.2.2. */
void ws_put_accept(const char *key, char accept[WS_ACCEPT_LEN]);

/* ---- frames out ---- */

/* Writes the head of an unfragmented frame with n bytes of payload. Returns its length. */
size_t ws_put_head(uint8_t out[WS_HEAD_MAX], enum ws_opcode opcode, uint64_t n);

/* The payload of a Close; a reason that is too long is cut. Returns its length. */
size_t ws_put_close(uint8_t out[WS_CONTROL_MAX], enum ws_code code, const char *reason);

/* ---- frames in ---- */

/* What a client sends, piece by piece; zero is the beginning. Nothing of it is for others. */
struct ws_in {
	uint8_t head[14]; /* of the frame that is coming */
	uint8_t head_len;
	bool in_payload;
	bool fin;
	uint8_t opcode;
	uint8_t message; /* WS_TEXT or WS_BINARY while a message is not complete, else 0 */
	uint8_t control_len;
	uint8_t tail_len; /* of a character whose rest has not come */
	uint8_t tail[4];
	uint8_t mask[4];
	uint64_t at; /* bytes of the payload that have come */
	uint64_t left;
	uint8_t control[WS_CONTROL_MAX];
	enum ws_code code; /* after a failure: what to close with */
	const char *why;
};

enum ws_event {
	WS_MORE,    /* all bytes used; feed more */
	WS_DATA,    /* a part of a message */
	WS_CONTROL, /* a whole control frame */
};

struct ws_part {
	enum ws_opcode opcode; /* WS_TEXT or WS_BINARY; or WS_CLOSE, WS_PING, WS_PONG */
	const uint8_t *p;
	size_t n;
	bool end; /* the message is complete; a text is valid UTF-8 as far as it has come */
};

/*
 * Reads on from `data`, which is unmasked in place, and stops after the first event; *used says how
 * many bytes it took. Returns an enum ws_event, or -EBADMSG: the client broke the protocol,
 * in->code and in->why say how, and nothing more is to be fed. Parts point into data, or into *in
 * for control frames, until the next call.
 */
int ws_in_feed(struct ws_in *in, uint8_t *data, size_t n, size_t *used, struct ws_part *part);

/*
 * What the n bytes of a received Close say. 0 with its code in *code (WS_NO_STATUS: none), or
 * -EBADMSG with what to answer there.
 */
int ws_read_close(const uint8_t *p, size_t n, enum ws_code *code);

#endif
