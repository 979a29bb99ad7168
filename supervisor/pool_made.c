/*
 * pool_made: boxes that belong to their creator until they are removed: what they are called, and
 * how they are started and stopped. Runs in sbxd; a successor finds them in the table, with what
 * they are at.
 *
 * A made box is active for as long as it lives: its creator has a lease that nothing ends. So it is
 * never parked, given to an acquire or looked for when room is needed. What it is at stands in its
 * flags. Orders wait in the queue of its scope, behind its creation, and one after the other.
 */
#include <bsd/string.h>
#include <errno.h>

#include "supervisor/pool_int.h"

bool pool_is_order(const struct pool_waiter *w)
{
	return w->r.want == POOL_WANT_START || w->r.want == POOL_WANT_STOP;
}

bool pool_is_made(const struct pool_box *b)
{
	return (b->flags & SLOT_FLAG_MADE) != 0;
}

const struct pool_box *pool_box_named(const struct pool *p, uid_t uid, const char *name)
{
	const struct pool_scope *s = pool_scope_named(p, uid, name);

	return s ? s->box : NULL;
}

/* A name is taken as long as a box has it, or somebody waits for one that will. */
bool pool_may_keep_name(const struct pool_scope *s)
{
	const struct pool_waiter *w = TAILQ_FIRST(&s->waiters);

	if (s->box && s->box->state != SLOT_CLOSING)
		return true;
	return w && w->r.want == POOL_WANT_MADE; /* it is the first, or has left */
}

/* ---- orders ---- */

static void put_rest(struct pool *p, struct pool_box *b, uint32_t rest)
{
	if ((b->flags & SLOT_FLAGS_REST) == rest)
		return;
	b->flags = (b->flags & ~SLOT_FLAGS_REST) | rest;
	pool_touch(p, b);
}

static void start(struct pool *p, struct pool_box *b, const char *why)
{
	if (!(b->flags & SLOT_FLAGS_REST))
		return;
	put_rest(p, b, 0);
	pool_record(p, EVENT_START, b, 0, why);
}

static void begin_stop(struct pool *p, uint64_t now, struct pool_box *b, uint64_t timeout)
{
	put_rest(p, b, SLOT_FLAG_STOPPING);
	pool_act(p, POOL_STOP, b)->timeout = timeout;
	pool_limit(p, b, now + timeout + POOL_STOP_SLACK);
}

void pool_stop_again(struct pool *p, uint64_t now, struct pool_box *b)
{
	if (b->state == SLOT_ACTIVE && (b->flags & SLOT_FLAG_STOPPING))
		begin_stop(p, now, b, POOL_STOP_AGAIN);
}

static void obeyed(struct pool *p, struct pool_waiter *w, const struct pool_box *b)
{
	pool_act(p, POOL_OBEYED, b)->req = w->r.req;
	pool_waiter_free(p, w);
}

/* One step for an order that is the first of its scope; true when it left the queue. */
bool pool_order_advance(struct pool *p, uint64_t now, struct pool_scope *s, struct pool_waiter *w)
{
	struct pool_box *b = s->box;

	if (!b || b->state >= SLOT_CLOSING) {
		pool_waiter_refuse(p, w, b ? API_BOX_DIED : API_NOT_FOUND, 0,
		    b ? "the box is being closed" : "there is no such box any more");
		return true;
	}
	if (b->adopting || b->state != SLOT_ACTIVE || (b->flags & SLOT_FLAG_STOPPING))
		return false; /* an event will come */
	if (w->r.want == POOL_WANT_START) {
		start(p, b, "started");
	} else if (!(b->flags & SLOT_FLAG_STOPPED)) {
		begin_stop(p, now, b, w->r.stop_timeout);
		return false;
	}
	obeyed(p, w, b);
	return true;
}

/* The box is on its way out: nobody waits for what it will not do any more. */
void pool_orders_lost(struct pool *p, struct pool_box *b, const char *why)
{
	struct pool_waiter *w;
	struct pool_waiter *next;

	if (!b->scope)
		return;
	TAILQ_FOREACH_SAFE (w, &b->scope->waiters, link, next) {
		if (pool_is_order(w))
			pool_waiter_refuse(p, w, API_BOX_DIED, 0, why);
	}
}

int pool_order(struct pool *p, uint64_t now, uid_t uid, const char *token, enum pool_want want,
    uint64_t timeout, uint64_t req)
{
	struct pool_scope *s = pool_scope_get(p, uid, token);
	const struct pool_request r = {
	    .want = want,
	    .req = req,
	    .uid = uid,
	    .stop_timeout = timeout,
	    /* A stop has its own bound, which comes first. */
	    .wait_limit = want == POOL_WANT_STOP ? timeout + 2 * POOL_STOP_SLACK : 0,
	};

	if (!s || !s->box)
		return -ENOENT;
	if (!pool_is_made(s->box))
		return -EINVAL;
	if (p->shutting_down || p->leaving)
		pool_refuse(p, req, API_SHUTTING_DOWN, 0,
		    p->leaving ? POOL_LEAVING_TEXT : "the service is shutting down");
	else if (!pool_waiter_make(p, now, s, &r))
		pool_refuse(p, req, API_INTERNAL, 1, "out of memory");
	else
		pool_scope_advance(p, now, s);
	return 0;
}

/* ---- what happens to the box ---- */

bool pool_use(struct pool *p, uint32_t slot, uint64_t gen)
{
	struct pool_box *b = pool_box_current(p, slot, gen);

	if (!b || !pool_is_made(b))
		return true;
	if (b->flags & SLOT_FLAG_STOPPING)
		return false;
	start(p, b, "used");
	return true;
}

void pool_stopped(
    struct pool *p, uint64_t now, uint32_t slot, uint64_t gen, bool ok, const char *text)
{
	struct pool_box *b = pool_box_current(p, slot, gen);
	struct pool_waiter *w;

	if (!b || b->state != SLOT_ACTIVE || b->adopting || !(b->flags & SLOT_FLAG_STOPPING))
		return;
	b->deadline = CLOCK_NEVER;
	put_rest(p, b, ok ? SLOT_FLAG_STOPPED : 0);
	pool_record(p, ok ? EVENT_STOP : EVENT_ERROR, b, 0, ok ? "stopped" : text);
	w = TAILQ_FIRST(&b->scope->waiters);
	if (!ok && w && w->r.want == POOL_WANT_STOP)
		pool_waiter_refuse(p, w, API_TIMEOUT, 0, text);
	pool_scope_advance(p, now, b->scope);
}
