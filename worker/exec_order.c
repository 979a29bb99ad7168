/*
 * exec_order: what clients do with an execution that runs: orders, stdin, output taken. sbx-worker.
 * If we die here the box dies with us.
 */
#include "worker/exec.h"

void exec_obey(struct execution *x, const struct exec_order *order)
{
	switch (order->type) {
	case EXEC_ORDER_RESIZE:
		agent_chan_resize(&x->chan, order->cols, order->rows);
		break;
	case EXEC_ORDER_SIGNAL:
		agent_chan_signal(&x->chan, order->signal);
		break;
	case EXEC_ORDER_STDIN_EOF:
		if (x->stdin_open)
			agent_chan_eof(&x->chan);
		x->stdin_open = false;
		break;
	}
}

void exec_write(struct execution *x, const uint8_t *p, size_t n)
{
	/* It has room; what a broken link does not take, nobody will ever read. */
	x->s->report->work.bytes_in += agent_chan_send(&x->chan, p, n);
}

void exec_sent(struct execution *x, unsigned int i, size_t n)
{
	agent_chan_grant(&x->chan, AGENT_STDOUT + i, exec_output_sent(&x->out[i], n));
	x->s->buffered -= exec_output_settle(&x->out[i]);
}

void exec_relieve(struct execution *x)
{
	for (unsigned int i = 0; i < EXEC_STREAMS; i++) {
		struct exec_output *o = &x->out[i];

		if (x->s->buffered + o->owed > SERVICE_BUFFER_MAX / 2)
			continue;
		x->s->buffered += o->owed;
		agent_chan_grant(&x->chan, AGENT_STDOUT + i, exec_output_yield(o));
	}
}
