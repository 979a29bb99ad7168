/*
 * stop: AGENT_STOP from the ask to the answer. sbx-guest; if we die here PID 1 is dead and the
 * kernel ends the box.
 */
#include "guest/stop.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "guest/mux.h"

#define STOP_EMPTY 2U /* looks in a row that must find nothing: one may miss what forks */

/* False when the queue is full of answers that the worker does not read: later, then. */
static bool stop_answer(struct guest *g, uint64_t nonce)
{
	return out_put_quick(&g->out, AGENT_PONG, 0, 0, &nonce, sizeof(nonce));
}

int stop_begin(struct guest *g, const uint8_t *payload, size_t n)
{
	struct stop *s = &g->stopping;
	struct agent_stop ask;
	bool was_told = s->active && s->told;

	if (n != sizeof(ask))
		return -EBADMSG;
	memcpy(&ask, payload, sizeof(ask));
	if ((ask.flags & ~AGENT_STOP_CANCEL) != 0)
		return -EBADMSG;
	if (s->active)
		(void)stop_answer(g, s->nonce); /* frames are served only while there is room */
	if ((ask.flags & AGENT_STOP_CANCEL) != 0) {
		(void)stop_answer(g, ask.nonce); /* as above */
		s->active = false;
		kill_cancel(g);
		return 0;
	}
	*s = (struct stop){
	    .active = true,
	    .told = was_told,
	    .nonce = ask.nonce,
	    .kill_at = mux_clock() + ask.timeout_ms * MUX_MS,
	};
	kill_begin(g);
	return 0;
}

bool stop_goes_on(const struct guest *g)
{
	return g->stopping.active && g->stopping.empty < STOP_EMPTY;
}

bool stop_mark(struct guest *g)
{
	struct stop *s = &g->stopping;
	struct tree *t = &g->killer.tree;
	bool starting = shim_any_starting(&g->shims);
	bool wait = starting && !s->told && g->now < s->kill_at; /* it is to hear of it, too */
	uint32_t found = starting;

	if (!stop_goes_on(g))
		return false;
	tree_mark(t, g->pid);
	for (uint32_t i = 0; i < t->count; i++) {
		struct tree_entry *e = &t->entries[i];
		bool is_shim = shim_is(&g->shims, e->pid);

		if (is_shim)
			(void)kill(e->pid, SIGCONT); /* ours; it must be able to reap */
		found += e->root != 0 && !is_shim;
		if (is_shim || (wait && e->root == g->pid))
			e->root = 0;
	}
	s->empty = found == 0 ? s->empty + 1 : 0;
	if (found == 0 || wait)
		g->killer.kills = 0; /* the next look comes soon */
	return !wait;
}

void stop_step(struct guest *g)
{
	struct stop *s = &g->stopping;

	if (s->active && s->empty >= STOP_EMPTY && stop_answer(g, s->nonce))
		s->active = false;
}
