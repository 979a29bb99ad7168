/*
 * pool_queue: who waits, and in which order those who wait for room are served. Runs in sbxd;
 * waiting clients of a dead sbxd see their connection end.
 */
#include "supervisor/pool_int.h"

typedef bool waiting_fn(void *ctx, const struct pool_waiting *w);

static bool show(const struct pool_waiter *w, uint32_t place, waiting_fn *fn, void *ctx)
{
	const struct pool_waiting shown = {
	    .uid = w->r.uid,
	    .user = w->user,
	    .thread = w->thread,
	    .token = w->scope->token,
	    .req = w->r.req,
	    .since = w->since,
	    .deadline = w->deadline,
	    .for_room = w->for_room,
	    .place = place,
	};

	return fn(ctx, &shown);
}

void pool_each_waiting(
    const struct pool *p, bool (*fn)(void *ctx, const struct pool_waiting *w), void *ctx)
{
	const struct pool_waiter *w;
	uint32_t place = 0;

	TAILQ_FOREACH (w, &p->waiters, all_link) {
		if (w->for_room && !show(w, ++place, fn, ctx))
			return;
	}
	TAILQ_FOREACH (w, &p->waiters, all_link) {
		if (!w->for_room && !show(w, 0, fn, ctx))
			return;
	}
}
