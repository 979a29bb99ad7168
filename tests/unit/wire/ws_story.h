/*
 * ws_story: what a stream of WebSocket frames tells a server, as text: once by wire/websocket, cut
 * into pieces of any size, and once by wslay. Used by the unit test and by the fuzz target.
 *
 * One line for each whole message or control frame, up to a Close or an error; then with what code
 * the server closes, if it does.
 */
#ifndef SBXD_TEST_WS_STORY_H
#define SBXD_TEST_WS_STORY_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wslay/wslay.h>

#include "lib/buf.h"
#include "wire/websocket.h"

#define STORY_MAX (64U << 20)

#define STORY_REQUIRE(cond) ((cond) ? (void)0 : (fprintf(stderr, "not so: %s\n", #cond), abort()))

struct ws_story {
	struct buf text;
	unsigned int code; /* that the server closes with; 0: it does not */
	bool in_close;	   /* ours: the stream ended within a Close */
};

static inline void story_tell(struct ws_story *s, unsigned int opcode, const uint8_t *p, size_t n)
{
	STORY_REQUIRE(buf_printf(&s->text, "%u %zu ", opcode, n) == 0);
	STORY_REQUIRE(buf_append(&s->text, p, n) == 0);
	STORY_REQUIRE(buf_puts(&s->text, "\n") == 0);
}

/* One event of ours. False: there is nothing to read any more. */
static inline bool story_take(struct ws_story *s, struct buf *message, const struct ws_part *part)
{
	enum ws_code code;

	if (part->opcode == WS_CLOSE) {
		(void)ws_read_close(part->p, part->n, &code);
		s->code = code;
		return false;
	}
	if (part->opcode >= WS_CLOSE) {
		story_tell(s, part->opcode, part->p, part->n);
		return true;
	}
	STORY_REQUIRE(buf_append(message, part->p, part->n) == 0);
	if (part->end) {
		story_tell(s, part->opcode, message->len ? buf_head(message) : (const uint8_t *)"",
		    message->len);
		buf_clear(message);
	}
	return true;
}

/* By wire/websocket, at most `step` bytes at a time. */
static inline void story_ours(struct ws_story *s, const uint8_t *bytes, size_t n, size_t step)
{
	struct ws_in in = {.head_len = 0};
	struct buf message;
	bool more = true;
	size_t at = 0;

	*s = (struct ws_story){.code = 0};
	buf_init(&s->text, STORY_MAX);
	buf_init(&message, STORY_MAX);
	while (more && at < n) {
		size_t give = n - at < step ? n - at : step;
		/* Of exactly that size, so that a sanitizer sees an access past it. */
		uint8_t *copy = malloc(give);
		size_t off = 0;
		int rc = WS_DATA;

		STORY_REQUIRE(copy != NULL);
		memcpy(copy, bytes + at, give);
		while (more && rc > WS_MORE) {
			struct ws_part part = {.n = 0};
			size_t used = SIZE_MAX;

			rc = ws_in_feed(&in, copy + off, give - off, &used, &part);
			STORY_REQUIRE(used <= give - off);
			off += used;
			if (rc > WS_MORE)
				more = story_take(s, &message, &part);
		}
		if (rc < 0) {
			STORY_REQUIRE(in.why != NULL);
			s->code = in.code;
			more = false;
		}
		STORY_REQUIRE(!more || off == give);
		at += give;
		free(copy);
	}
	s->in_close = more && in.in_payload && in.opcode == WS_CLOSE;
	buf_free(&message);
}

/* ---- wslay ---- */

struct story_peer {
	const uint8_t *in;
	size_t in_left;
	struct buf out;
	struct ws_story *s;
};

static inline ssize_t story_recv(
    wslay_event_context_ptr ctx, uint8_t *buf, size_t n, int flags, void *user)
{
	struct story_peer *p = user;

	(void)flags;
	if (n > p->in_left)
		n = p->in_left;
	if (n == 0) {
		wslay_event_set_error(ctx, WSLAY_ERR_WOULDBLOCK);
		return -1;
	}
	memcpy(buf, p->in, n);
	p->in += n;
	p->in_left -= n;
	return (ssize_t)n;
}

static inline ssize_t story_send(
    wslay_event_context_ptr ctx, const uint8_t *data, size_t n, int flags, void *user)
{
	struct story_peer *p = user;

	(void)ctx;
	(void)flags;
	STORY_REQUIRE(buf_append(&p->out, data, n) == 0);
	return (ssize_t)n;
}

static inline int story_mask(wslay_event_context_ptr ctx, uint8_t *buf, size_t n, void *user)
{
	(void)ctx;
	(void)user;
	for (size_t i = 0; i < n; i++)
		buf[i] = (uint8_t)(0x5a + 37 * i);
	return 0;
}

static inline void story_message(
    wslay_event_context_ptr ctx, const struct wslay_event_on_msg_recv_arg *arg, void *user)
{
	struct story_peer *p = user;

	(void)ctx;
	if (arg->opcode != WSLAY_CONNECTION_CLOSE)
		story_tell(p->s, arg->opcode, arg->msg, arg->msg_length);
}

static const struct wslay_event_callbacks story_callbacks = {
    .recv_callback = story_recv,
    .send_callback = story_send,
    .genmask_callback = story_mask,
    .on_msg_recv_callback = story_message,
};

/* The code of the Close that a server has sent, 0 without one. */
static inline unsigned int story_close_code(const struct buf *out)
{
	size_t at = 0;

	while (out->len - at >= 2) {
		const uint8_t *p = buf_head(out) + at;
		size_t n = p[1]; /* it sends control frames only */

		if ((p[0] & 15) == WS_CLOSE)
			return n >= 2 ? (unsigned int)(p[2] << 8 | p[3]) : WS_NO_STATUS;
		at += 2 + n;
	}
	return 0;
}

/* By wslay. */
static inline void story_wslay(struct ws_story *s, const uint8_t *bytes, size_t n)
{
	struct story_peer peer = {.in = bytes, .in_left = n, .s = s};
	wslay_event_context_ptr ctx;
	int rc;

	*s = (struct ws_story){.code = 0};
	buf_init(&s->text, STORY_MAX);
	buf_init(&peer.out, STORY_MAX);
	STORY_REQUIRE(wslay_event_context_server_init(&ctx, &story_callbacks, &peer) == 0);
	rc = wslay_event_recv(ctx);
	STORY_REQUIRE(wslay_event_send(ctx) == 0);
	s->code = story_close_code(&peer.out);
	/* What is wrong with a frame's head it does not say. */
	if (rc == WSLAY_ERR_CALLBACK_FAILURE)
		s->code = WS_PROTOCOL_ERROR;
	else
		STORY_REQUIRE(rc == 0);
	wslay_event_context_free(ctx);
	buf_free(&peer.out);
}

static inline bool story_same(const struct ws_story *a, const struct ws_story *b)
{
	return a->code == b->code && a->text.len == b->text.len &&
	       (a->text.len == 0 || !memcmp(buf_head(&a->text), buf_head(&b->text), a->text.len));
}

#endif
