/*
 * exec_attach: between an execution and the WebSocket of its client. sbx-worker. If we die here the
 * execution dies with the box, and sbxd closes the connection.
 *
 * Towards the client: binary messages of one byte (1 stdout, 2 stderr) and output; text {"type":
 * "exit", ...}, then a Close; text {"type": "error", "message"}. From it: binary, which is stdin,
 * and the text messages of exec_order_parse().
 */
#include "worker/exec_attach.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>

#include "lib/clock.h"
#include "wire/json.h"
#include "worker/conn.h"
#include "worker/conn_ws.h"
#include "worker/exec.h"
#include "worker/exec_api.h"
#include "worker/exec_say.h"

#define ATTACH_QUEUED (16U * 1024U)	  /* with more for the client, output waits where it is */
#define ATTACH_HOLD_NS (100 * NS_PER_MS)  /* for the rest of a character */
#define ATTACH_STUCK_NS (500 * NS_PER_MS) /* of a client that neither reads nor can write */

/* The beginning of a character at the end of a stream, which waits for the rest. */
struct attach_tail {
	size_t len; /* 0: there is none */
	uint64_t due_ns;
};

struct exec_attach {
	struct conn_ws ws;   /* first */
	struct execution *x; /* NULL: it let go of it */
	bool read_only;
	bool told; /* that it writes in vain */
	struct attach_tail tails[EXEC_STREAMS];
	struct loop_timer hold;	 /* due: some tail has waited long enough */
	struct loop_timer stuck; /* due: it may be one that writes before it reads */
};

static struct exec_attach *attach_of(struct conn_ws *w)
{
	return (struct exec_attach *)(void *)w;
}

/* ---- to the client ---- */

/* Sends what there is of stream i and the client takes. True when it was something. */
static bool attach_push_stream(struct exec_attach *a, unsigned int i)
{
	struct conn *c = a->ws.op.conn;
	struct exec_output *o = &a->x->out[i];
	bool all = a->x->state == EXEC_OVER ||
		   (a->tails[i].len && loop_now(c->s->loop) >= a->tails[i].due_ns);
	bool sent = false;
	const uint8_t *p;
	size_t n;

	while (conn_queued(c) < ATTACH_QUEUED && (n = exec_output_next(o, all, &p)) > 0) {
		if (!conn_ws_send(&a->ws, (uint8_t)(i + 1), p, n))
			break;
		exec_sent(a->x, i, n);
		sent = true;
	}
	return sent;
}

/* What is left of stream i is the beginning of a character, unless the client takes no more. */
static void attach_note_tail(struct exec_attach *a, unsigned int i, bool sent)
{
	struct conn *c = a->ws.op.conn;
	struct attach_tail *t = &a->tails[i];
	size_t left = exec_output_left(&a->x->out[i]);

	if (conn_queued(c) >= ATTACH_QUEUED)
		left = 0;
	if (left && (sent || left != t->len))
		t->due_ns = loop_now(c->s->loop) + ATTACH_HOLD_NS;
	t->len = left;
}

static void attach_on_hold(struct loop *loop, struct loop_timer *t)
{
	(void)loop; /* the service knows its loop */
	exec_attach_pump(LOOP_OWNER(t, struct exec_attach, hold));
}

static void attach_hold(struct exec_attach *a)
{
	struct loop *loop = a->ws.op.s->loop;
	uint64_t at = CLOCK_NEVER;

	for (unsigned int i = 0; i < EXEC_STREAMS; i++) {
		if (a->tails[i].len && a->tails[i].due_ns < at)
			at = a->tails[i].due_ns;
	}
	if (at == CLOCK_NEVER)
		loop_timer_clear(loop, &a->hold);
	else if (loop_timer_set(loop, &a->hold, at, attach_on_hold) < 0)
		conn_die(a->ws.op.conn);
}

static bool attach_may_write(const struct exec_attach *a)
{
	return a->x->state == EXEC_RUNNING && a->x->stdin_open && !a->read_only;
}

static void attach_relieve(struct exec_attach *a);

static void attach_on_stuck(struct loop *loop, struct loop_timer *t)
{
	(void)loop; /* the service knows its loop */
	attach_relieve(LOOP_OWNER(t, struct exec_attach, stuck));
}

/*
 * Some clients do not read while they write. When the command waits for such a one to read, and it
 * for the command to read, neither would ever go on.
 */
static void attach_relieve(struct exec_attach *a)
{
	struct loop *loop = a->ws.op.s->loop;
	struct conn *c = a->ws.op.conn;
	uint64_t at = c->written_ns + ATTACH_STUCK_NS; /* since then nothing was taken */

	if (!c->blocked || !attach_may_write(a) || agent_chan_room(&a->x->chan) > 0)
		loop_timer_clear(loop, &a->stuck);
	else if (loop_now(loop) >= at)
		exec_relieve(a->x);
	else if (loop_timer_set(loop, &a->stuck, at, attach_on_stuck) < 0)
		conn_die(c);
}

void exec_attach_pump(struct exec_attach *a)
{
	const struct execution *x = a->x;
	size_t left = 0;

	for (unsigned int i = 0; i < EXEC_STREAMS; i++) {
		attach_note_tail(a, i, attach_push_stream(a, i));
		left += exec_output_left(&x->out[i]);
	}
	attach_hold(a);
	attach_relieve(a);
	if (x->state == EXEC_OVER && left == 0) {
		exec_say_exit(&a->ws, x->exit_code, exec_status(x), x->message);
		conn_ws_close(&a->ws, WS_NORMAL, "");
	}
}

/* ---- from the client ---- */

void exec_attach_listen(struct exec_attach *a)
{
	conn_more_body(a->ws.op.conn);
}

static size_t attach_room(struct conn_ws *w)
{
	struct exec_attach *a = attach_of(w);

	attach_relieve(a);
	/* What it says is passed on only as fast as the guest reads it, orders too. */
	if (a->x->state == EXEC_RUNNING && agent_chan_crowded(&a->x->chan))
		return 0;
	return attach_may_write(a) ? agent_chan_room(&a->x->chan) : SERVICE_SCRATCH;
}

static void attach_bytes(struct conn_ws *w, const uint8_t *p, size_t n)
{
	struct exec_attach *a = attach_of(w);

	if (attach_may_write(a)) {
		exec_write(a->x, p, n);
	} else if (a->x->state == EXEC_RUNNING && !a->told) {
		a->told = true;
		exec_say_error(&a->ws, a->read_only ? "this client may not write to stdin"
						    : "stdin of the execution is closed");
	}
}

static void attach_text(struct conn_ws *w, const uint8_t *p, size_t n)
{
	struct exec_attach *a = attach_of(w);
	struct exec_order order;
	struct err err = {0};

	if (json_check_depth(p, n, w->op.s->limits->json_depth, &err) < 0 ||
	    exec_order_parse(p, n, &order, &err) < 0)
		exec_say_error(&a->ws, err.text);
	else if (a->read_only)
		exec_say_error(&a->ws, "this client may only read");
	else if (order.type == EXEC_ORDER_RESIZE && !a->x->tty)
		exec_say_error(&a->ws, "the execution has no terminal");
	else if (a->x->state == EXEC_RUNNING)
		exec_obey(a->x, &order);
}

/* ---- its end ---- */

static void attach_drained(struct conn_ws *w)
{
	exec_attach_pump(attach_of(w));
}

static void attach_lost(struct conn_ws *w, enum api_error e, const char *message)
{
	struct exec_attach *a = attach_of(w);

	(void)e; /* the close code is the same for all */
	exec_say_error(&a->ws, message);
	exec_say_exit(
	    &a->ws, -SIGKILL, "killed", message); /* with the box, which is as good as gone */
}

static void attach_over(struct conn_ws *w)
{
	struct exec_attach *a = attach_of(w);
	struct execution *x = a->x;

	loop_timer_clear(w->op.s->loop, &a->hold);
	loop_timer_clear(w->op.s->loop, &a->stuck);
	a->x = NULL;
	exec_left(x);
}

static void attach_free(struct conn_ws *w)
{
	free(attach_of(w));
}

static const struct conn_ws_ops attach_ops = {
    .room = attach_room,
    .bytes = attach_bytes,
    .text = attach_text,
    .drained = attach_drained,
    .lost = attach_lost,
    .over = attach_over,
    .free = attach_free,
};

/* ---- its beginning ---- */

/* 0, or -EINVAL after answering. */
static int attach_check(struct conn *c, const struct http_head *h, char accept[WS_ACCEPT_LEN],
    bool *writes, bool *replay)
{
	struct err err = {0};
	int rc = ws_check_handshake(h, accept, &err);

	if (rc == -EPROTONOSUPPORT)
		conn_fail_extra(c, API_UPGRADE_REQUIRED, err.text,
		    "Upgrade: websocket\r\nSec-WebSocket-Version: " WS_VERSION "\r\n");
	else if (rc < 0)
		conn_fail(c, API_INVALID_ARGUMENT, err.text);
	else if (h->content_length > 0)
		conn_fail(c, API_INVALID_ARGUMENT, "this request has no body");
	if (rc < 0 || h->content_length > 0)
		return -EINVAL;
	if (http_query_flag(h->query, "stdin", writes, &err) < 0 ||
	    http_query_flag(h->query, "replay", replay, &err) < 0) {
		conn_fail(c, API_INVALID_ARGUMENT, err.text);
		return -EINVAL;
	}
	return 0;
}

void exec_begin_attach(struct conn *c, const struct http_head *h)
{
	struct execution *x = exec_find_to_attach(c->s, c->item);
	char accept[WS_ACCEPT_LEN];
	struct exec_attach *a;
	bool writes = true;
	bool replay = false;

	if (!x) {
		exec_api_not_found(c);
		return;
	}
	if (attach_check(c, h, accept, &writes, &replay) < 0)
		return;
	if (x->attach) {
		conn_fail(c, API_ATTACHED, "another client is attached to this execution");
		return;
	}
	a = calloc(1, sizeof(*a));
	if (!a) {
		conn_fail(c, API_INTERNAL, "no memory for the request");
		return;
	}
	a->x = x;
	a->read_only = !writes;
	conn_ws_begin(&a->ws, &attach_ops, c, accept);
	exec_joined(x, a, replay);
	exec_say_lost(&a->ws, x);
	if (x->state == EXEC_RUNNING)
		conn_ws_ping(&a->ws); /* clients give up a connection that nothing comes on */
	exec_attach_pump(a);
}
