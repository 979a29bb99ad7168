/*
 * conn_ws: WebSocket sessions. sbx-worker. If we die here, sbxd closes the connections: a frame may
 * be half sent, so there is nothing that it could say.
 *
 * Whoever closes first, the other's data is read to its end: a socket that is closed with unread
 * data takes back what was sent on it last.
 */
#include "worker/conn_ws.h"

#include <stdio.h>

#include "lib/clock.h"
#include "lib/log.h"
#include "worker/conn.h"

static struct conn_ws *ws_of(struct op *op)
{
	return (struct conn_ws *)(void *)op;
}

/* ---- out ---- */

static void ws_queue(struct conn_ws *w, enum ws_opcode opcode, const void *p, size_t n)
{
	uint8_t head[WS_HEAD_MAX];

	if (!w->op.conn || w->closing)
		return;
	conn_queue(w->op.conn, head, ws_put_head(head, opcode, n));
	conn_queue(w->op.conn, p, n);
}

void conn_ws_text(struct conn_ws *w, const void *p, size_t n)
{
	ws_queue(w, WS_TEXT, p, n);
}

void conn_ws_ping(struct conn_ws *w)
{
	w->pinged_ns = loop_now(w->op.s->loop);
	ws_queue(w, WS_PING, "", 0);
}

bool conn_ws_send(struct conn_ws *w, uint8_t first, const void *p, size_t n)
{
	uint8_t head[WS_HEAD_MAX + 1];
	size_t len = ws_put_head(head, WS_BINARY, n + 1);
	const struct iovec iov[2] = {{head, len + 1}, {(void *)(uintptr_t)p, n}};

	if (!w->op.conn || w->closing)
		return false;
	head[len] = first;
	conn_send(w->op.conn, iov, 2);
	return !w->op.conn->dead;
}

/* ---- the end ---- */

static void ws_over(struct conn_ws *w)
{
	const struct conn_ws_ops *ops = w->ops;

	if (w->closing)
		return;
	w->closing = true;
	ops->over(w);
}

/*
 * Both have closed, or the client cannot be understood any more. The connection ends when the
 * client has seen that, or after a while; what it still sends is read and thrown away.
 */
static void ws_end(struct conn_ws *w)
{
	w->ended = true;
	conn_end_output(w->op.conn);
}

static void ws_on_timer(struct loop *loop, struct loop_timer *t);

static void ws_set_timer(struct conn_ws *w, uint64_t at)
{
	if (loop_timer_set(w->op.s->loop, &w->timer, at, ws_on_timer) < 0)
		conn_die(w->op.conn);
}

void conn_ws_close(struct conn_ws *w, enum ws_code code, const char *reason)
{
	uint8_t payload[WS_CONTROL_MAX];
	size_t n = code == WS_NO_STATUS ? 0 : ws_put_close(payload, code, reason);

	if (!w->op.conn || w->closing)
		return;
	ws_queue(w, WS_CLOSE, payload, n);
	ws_over(w);
	ws_set_timer(w, loop_now(w->op.s->loop) + CONN_WS_LEAVE_NS);
	conn_more_body(w->op.conn); /* it is listened to now, if it was not */
}

static void ws_take_close(struct conn_ws *w, const struct ws_part *part)
{
	enum ws_code code;
	int rc = ws_read_close(part->p, part->n, &code);

	/* As RFC 6455, 5.5.1 has it, with the code that came. */
	conn_ws_close(w, code, rc < 0 ? "a malformed Close" : "");
	ws_end(w);
}

/* ---- signs of life ---- */

static void ws_heard(struct conn_ws *w)
{
	w->heard_ns = loop_now(w->op.s->loop);
}

static void ws_watch(struct conn_ws *w)
{
	uint64_t ping = w->pinged_ns + CONN_WS_PING_NS;
	uint64_t dead = w->heard_ns + CONN_WS_DEAD_NS;

	ws_set_timer(w, ping < dead ? ping : dead);
}

static void ws_check_life(struct conn_ws *w)
{
	uint64_t now = loop_now(w->op.s->loop);

	/* Whom we do not listen to has no chance to be heard; a client that goes is still seen. */
	if (w->ops->room(w) == 0)
		w->heard_ns = now;
	else if (w->op.conn->taken_ns > w->heard_ns)
		w->heard_ns = w->op.conn->taken_ns;
	if (now >= w->heard_ns + CONN_WS_DEAD_NS) {
		conn_ws_close(w, WS_POLICY, "no sign of life");
		return;
	}
	if (now >= w->pinged_ns + CONN_WS_PING_NS) {
		w->pinged_ns = now;
		if (conn_queued(w->op.conn) == 0) /* behind what it does not read one is enough */
			conn_ws_ping(w);
	}
	ws_watch(w);
}

static void ws_on_timer(struct loop *loop, struct loop_timer *t)
{
	struct conn_ws *w = LOOP_OWNER(t, struct conn_ws, timer);

	if (!w->closing)
		ws_check_life(w);
	else if (conn_queued(w->op.conn))
		ws_set_timer(w, loop_now(loop) + CONN_WS_LEAVE_NS); /* it has a bound of its own */
	else
		conn_die(w->op.conn);
}

/* ---- in ---- */

static size_t ws_room(struct op *op)
{
	struct conn_ws *w = ws_of(op);

	if (w->closing)
		return SERVICE_SCRATCH; /* to be thrown away */
	if (conn_queued(op->conn) > CONN_WS_QUEUED_MAX)
		return 0;
	return w->ops->room(w);
}

/* A part of a text message. */
static void ws_take_text(struct conn_ws *w, const struct ws_part *part)
{
	if (w->text.len == 0 && part->end && part->n <= CONN_WS_TEXT_MAX) {
		w->ops->text(w, part->p, part->n);
		return;
	}
	if (part->n > buf_room(&w->text)) {
		conn_ws_close(w, WS_TOO_BIG, "a text message is too long");
		return;
	}
	if (buf_append(&w->text, part->p, part->n) < 0) {
		conn_ws_close(w, WS_INTERNAL, "no memory for a message");
		return;
	}
	if (!part->end)
		return;
	w->ops->text(w, buf_head(&w->text), w->text.len);
	buf_free(&w->text);
}

static void ws_take(struct conn_ws *w, const struct ws_part *part)
{
	if (part->opcode == WS_CLOSE)
		ws_take_close(w, part);
	else if (w->closing)
		; /* it had not seen our Close, and need not have sent it */
	else if (part->opcode == WS_PING)
		ws_queue(w, WS_PONG, part->p, part->n);
	else if (part->opcode == WS_TEXT)
		ws_take_text(w, part);
	else if (part->opcode == WS_BINARY && part->n)
		w->ops->bytes(w, part->p, part->n);
}

static void ws_input(struct op *op, uint8_t *p, size_t n)
{
	struct conn_ws *w = ws_of(op);
	struct ws_part part;
	size_t used;
	int rc;

	ws_heard(w);
	while (n > 0 && !w->ended) {
		rc = ws_in_feed(&w->in, p, n, &used, &part);
		if (rc == WS_MORE)
			return;
		if (rc > 0) {
			ws_take(w, &part);
		} else {
			conn_ws_close(w, w->in.code, w->in.why);
			ws_end(w);
		}
		p += used;
		n -= used;
	}
}

static void ws_drained(struct op *op)
{
	struct conn_ws *w = ws_of(op);

	if (w->ended)
		conn_end_output(op->conn);
	else if (!w->closing)
		w->ops->drained(w);
}

static void ws_lost(struct op *op, enum api_error e, const char *message)
{
	struct conn_ws *w = ws_of(op);

	if (w->closing)
		return;
	w->ops->lost(w, e, message);
	conn_ws_close(w, WS_INTERNAL, message);
}

static void ws_free(struct op *op)
{
	struct conn_ws *w = ws_of(op);

	ws_over(w);
	loop_timer_clear(op->s->loop, &w->timer);
	buf_free(&w->text);
	w->ops->free(w);
}

static const struct op_class conn_ws_class = {
    .room = ws_room,
    .input = ws_input,
    .drained = ws_drained,
    .lost = ws_lost,
    .free = ws_free,
};

void conn_ws_begin(struct conn_ws *w, const struct conn_ws_ops *ops, struct conn *c,
    const char accept[WS_ACCEPT_LEN])
{
	char extra[128];

	op_init(&w->op, &conn_ws_class, c);
	w->ops = ops;
	buf_init(&w->text, CONN_WS_TEXT_MAX);
	w->heard_ns = loop_now(w->op.s->loop);
	w->pinged_ns = w->heard_ns;
	(void)snprintf(extra, sizeof(extra),
	    "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: %s\r\n", accept);
	conn_upgrade(c, extra);
	ws_watch(w);
}
