/*
 * stop: the ask and the answer of AGENT_STOP. sbx-guest; if we die here PID 1 is dead and the
 * kernel ends the box.
 */
#include "guest/stop.h"

#include <errno.h>
#include <string.h>

#include "guest/mux.h"

/* False when the queue is full of answers that the worker does not read: later, then. */
static bool stop_answer(struct guest *g)
{
	struct stop *s = &g->stopping;

	if (!out_put_quick(&g->out, AGENT_PONG, 0, 0, &s->nonce, sizeof(s->nonce)))
		return false;
	s->active = false;
	return true;
}

int stop_begin(struct guest *g, const uint8_t *payload, size_t n)
{
	struct stop *s = &g->stopping;
	struct agent_stop ask;

	if (n != sizeof(ask))
		return -EBADMSG;
	memcpy(&ask, payload, sizeof(ask));
	if ((ask.flags & ~AGENT_STOP_CANCEL) != 0)
		return -EBADMSG;
	if (s->active)
		(void)stop_answer(g); /* frames are served only while there is room */
	*s = (struct stop){
	    .active = true,
	    .nonce = ask.nonce,
	    .kill_at = mux_clock() + ask.timeout_ms * MUX_MS,
	};
	if ((ask.flags & AGENT_STOP_CANCEL) != 0)
		(void)stop_answer(g);
	else
		kill_begin(g);
	return 0;
}

void stop_looked(struct guest *g, uint32_t count)
{
	struct stop *s = &g->stopping;

	s->empty = count == 0 ? s->empty + 1 : 0;
}

void stop_step(struct guest *g)
{
	if (g->stopping.active && g->stopping.empty >= STOP_EMPTY)
		(void)stop_answer(g);
}
