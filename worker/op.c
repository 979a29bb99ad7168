/*
 * op: what all client operations have in common. sbx-worker. If we die here, sbxd answers the
 * clients and the box is cleaned up.
 */
#include "worker/op.h"

#include <stdio.h>

#include "lib/clock.h"
#include "lib/log.h"
#include "worker/conn.h"

void op_init(struct op *op, const struct op_class *cls, struct conn *c)
{
	*op = (struct op){.cls = cls, .s = c->s, .conn = c};
	op->stall.max_ms = op->s->limits->op_stall_ms;
	c->op = op;
	LIST_INSERT_HEAD(&op->s->ops_running, op, entry);
	report_begin(op->s->report);
}

bool op_keep(struct op *op, size_t n)
{
	if (!service_keep(op->s, n))
		return false;
	op->kept += n;
	return true;
}

void op_forget(struct op *op)
{
	op->s->buffered -= op->kept;
	op->kept = 0;
}

void op_keep_body(struct op *op, struct buf *b, const uint8_t *p, size_t n)
{
	enum api_error e = API_BOX_RESOURCES;
	const char *why = "too much input and output of this box is kept";

	if (op_keep(op, n)) {
		if (buf_append(b, p, n) == 0)
			return;
		e = API_INTERNAL;
		why = "no memory for the request";
	}
	conn_fail(op->conn, e, why);
	op_free(op);
}

void op_free(struct op *op)
{
	struct service *s = op->s;

	if (op->conn)
		op->conn->op = NULL;
	loop_timer_clear(s->loop, &op->patience);
	agent_chan_drop(&op->chan);
	op_forget(op);
	LIST_REMOVE(op, entry);
	op->cls->free(op);
	report_end(s->report);
}

void op_abandon(struct op *op)
{
	op->conn->op = NULL;
	op->conn = NULL;
	if (op->chan.link)
		op->cls->abandon(op);
	else
		op_free(op);
}

static void op_out_of_patience(struct loop *loop, struct loop_timer *t)
{
	struct op *op = LOOP_OWNER(t, struct op, patience);

	(void)loop; /* the service knows its loop */
	op->s->ops->broken(op->s, "the guest did not end an operation in time");
}

void op_close_chan(struct op *op)
{
	if (!op->chan.link || op->chan.closing)
		return;
	agent_chan_close(&op->chan);
	INVARIANT(loop_timer_set(op->s->loop, &op->patience,
		      clock_now_ns() + service_patience_ns(op->s), op_out_of_patience) == 0);
}

/* The channel goes as when the client had gone. */
static void op_end_stalled(struct op *op)
{
	const char *what = op->cls->stalled ? op->cls->stalled : "the operation made no progress";
	struct conn *c = op->conn;
	char why[96];

	(void)snprintf(why, sizeof(why), "%s within %g s", what, (double)op->stall.max_ms / 1000.0);
	op_abandon(op);
	if (c->responding)
		conn_cut(c);
	else
		conn_fail(c, API_TIMEOUT, why);
}

static void op_look(struct op *op)
{
	struct op_stall *t = &op->stall;

	if (t->max_ms == 0 || !op->conn || !op->chan.link || op->chan.closing ||
	    op->chan.moves != t->moves || !conn_waits(op->conn)) {
		t->moves = op->chan.moves;
		t->quiet = 0;
	} else if (t->quiet++ * REPORT_BEAT_NS >= t->max_ms * NS_PER_MS) {
		op_end_stalled(op);
	}
}

void op_beat(struct service *s)
{
	struct op *next;

	for (struct op *op = LIST_FIRST(&s->ops_running); op; op = next) {
		next = LIST_NEXT(op, entry);
		op_look(op);
	}
}
