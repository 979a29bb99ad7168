/*
 * pool_acquire: from a request to a lease: the queue of each scope, and what the first in it needs
 * next. Runs in sbxd; waiting clients of a dead sbxd see their connection end.
 */
#include <bsd/string.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/log.h"
#include "supervisor/pool_int.h"

void pool_refuse(
    struct pool *p, uint64_t req, enum api_error error, double retry_after, const char *text)
{
	struct pool_action *a = pool_act(p, POOL_REFUSE, NULL);

	a->req = req;
	a->error = error;
	a->retry_after = retry_after;
	(void)strlcpy(a->text, text, sizeof(a->text));
}

void pool_waiter_refuse(struct pool *p, struct pool_waiter *w, enum api_error error,
    double retry_after, const char *text)
{
	pool_refuse(p, w->r.req, error, retry_after, text);
	pool_waiter_free(p, w);
}

void pool_scope_refuse_all(
    struct pool *p, struct pool_scope *s, enum api_error error, const char *text)
{
	struct pool_waiter *w;

	while ((w = TAILQ_FIRST(&s->waiters)))
		pool_waiter_refuse(p, w, error, 0, text);
}

/* Gives `w` a lease of `b`, which becomes (or stays) active, and takes it out of the queue. */
void pool_grant(
    struct pool *p, uint64_t now, struct pool_waiter *w, struct pool_box *b, enum shm_source source)
{
	uint64_t expires = w->r.lease_ttl ? now + w->r.lease_ttl : CLOCK_NEVER;
	struct pool_lease *l = pool_lease_give(p, b, w->r.lease_id, w->r.cookie, expires);
	uint64_t before = pool_blame(p, w->r.req);
	struct pool_action *a;

	b->acquires++;
	b->saves = 0;
	b->source = source;
	b->leased = now;
	if (b->state != SLOT_ACTIVE) {
		pool_move(p, now, b, SLOT_ACTIVE, "acquired");
		pool_tell(p, POOL_PROMOTE, b);
	}
	if (p->rules.active_idle_timeout && !pool_is_made(b))
		pool_expect(p, &b->due, now + p->rules.active_idle_timeout);

	a = pool_act(p, POOL_GRANT, b);
	a->req = w->r.req;
	a->source = source;
	a->lease_id = l->id;
	a->waited = now - w->since;
	(void)pool_blame(p, before);
	pool_waiter_free(p, w);
	pool_touch(p, b);
}

/* Makes b the box of s, as w asks. */
static void assign(
    struct pool *p, struct pool_scope *s, const struct pool_waiter *w, struct pool_box *b)
{
	b->uid = s->uid;
	memcpy(b->token, s->token, sizeof(b->token));
	memcpy(b->identity, s->identity, sizeof(b->identity));
	memcpy(b->user, w->user, sizeof(b->user));
	memcpy(b->thread, w->thread, sizeof(b->thread));
	memcpy(b->name, s->name, sizeof(b->name));
	b->flags |= (w->r.anonymous ? SLOT_FLAG_ANONYMOUS : 0) |
		    (w->r.no_user ? SLOT_FLAG_NO_USER : 0) |
		    (w->r.want == POOL_WANT_MADE ? SLOT_FLAG_MADE | SLOT_FLAG_FRESH : 0);
	b->scope = s;
	b->waiters = s->waiter_count;
	s->box = b;
	pool_touch(p, b);
}

static bool may_skip_check(const struct pool *p, uint64_t now, const struct pool_box *b)
{
	uint64_t since = b->state == SLOT_STOCK ? b->state_since : b->parked;

	return p->rules.check_skip && b->skip_right && !(b->flags & SLOT_FLAG_ADOPTED) &&
	       now - since <= p->rules.check_skip;
}

/* The box is up but was not in use: it is proven, then given. True when it is given already. */
static bool give_idle(struct pool *p, uint64_t now, struct pool_waiter *w, struct pool_box *b)
{
	if (may_skip_check(p, now, b)) {
		pool_grant(p, now, w, b, b->claimed ? SOURCE_PREWARMED : SOURCE_WARM);
		return true;
	}
	pool_move(p, now, b, SLOT_CHECKING, "acquire");
	pool_limit(p, b, now + p->rules.check_timeout);
	pool_tell(p, POOL_CHECK, b);
	return false;
}

static bool claim_stock(struct pool *p, uint64_t now, struct pool_waiter *w, struct pool_box *b)
{
	bool given;

	pool_room_served(p, w);
	assign(p, w->scope, w, b);
	b->claimed = true;
	pool_tell(p, POOL_CLAIM, b);
	given = give_idle(p, now, w, b);
	pool_stock_want(p, now);
	return given;
}

static void reserve_slot(struct pool *p, uint64_t now, struct pool_waiter *w)
{
	struct pool_box *b = pool_slot_take(p);

	pool_room_served(p, w);
	assign(p, w->scope, w, b);
	b->spec = w->r.spec;
	b->created = now;
	pool_move(p, now, b, SLOT_RESERVED, "acquire");
	pool_boot_next(p, now);
}

/* A box for the first waiter of a scope that has none. Without room it goes on waiting, or is
 * refused. True when it left the queue. */
static bool start_box(struct pool *p, uint64_t now, struct pool_waiter *w)
{
	struct pool_scope *s = w->scope;
	struct pool_waiter *first = pool_room_first(p);
	struct pool_box *b;

	if (first && first != w) {
		pool_room_queue(p, w); /* nobody overtakes those who wait already */
		return false;
	}
	if (!pool_room_reserve(p, now, w))
		return TAILQ_FIRST(&s->waiters) != w;
	b = pool_stock_first(p, w);
	if (b)
		return claim_stock(p, now, w, b);
	reserve_slot(p, now, w);
	return false;
}

bool pool_waiter_fits(const struct pool_waiter *w, const struct pool_box *b)
{
	return !memcmp(w->r.spec.digest, b->spec.digest, sizeof(b->spec.digest));
}

/* A further lease of a box that is in use. */
static void join_active(struct pool *p, uint64_t now, struct pool_waiter *w, struct pool_box *b)
{
	char text[64];

	if (!pool_waiter_fits(w, b)) {
		pool_waiter_refuse(p, w, API_SPEC_MISMATCH, 0,
		    "the scope's box is in use with another image or other limits");
	} else if (b->lease_count == POOL_LEASES) {
		(void)snprintf(text, sizeof(text), "the box has %u leases, and no more are given",
		    POOL_LEASES);
		pool_waiter_refuse(p, w, API_TOO_MANY, 0, text);
	} else {
		pool_grant(p, now, w, b, SOURCE_ACTIVE);
	}
}

/* One step for the first waiter; true when it left the queue, so that the next may be served. */
static bool advance_first(struct pool *p, uint64_t now, struct pool_scope *s, struct pool_waiter *w)
{
	struct pool_box *b = s->box;

	if (pool_is_order(w))
		return pool_order_advance(p, now, s, w);
	if (!b)
		return start_box(p, now, w);
	if (b->adopting)
		return false; /* pool_adopted() or its failure will come */
	switch ((enum slot_state)b->state) {
	case SLOT_ACTIVE:
		join_active(p, now, w, b);
		return true;
	case SLOT_WARM:
		if (pool_waiter_fits(w, b))
			return give_idle(p, now, w, b);
		pool_close_box(p, now, b, "replaced by another spec");
		return false;
	case SLOT_RESERVED:
		if (!pool_waiter_fits(w, b)) /* whoever it was reserved for has left */
			pool_close_box(p, now, b, "replaced by another spec");
		return false;
	case SLOT_BOOTING:
	case SLOT_STOCK:
	case SLOT_CHECKING:
	case SLOT_CLOSING:
		return false; /* an event will come */
	case SLOT_FREE:
	case SLOT_QUARANTINED:
	case SLOT_STATES:
		break;
	}
	log_panic(__FILE__, __LINE__, "a scope's box is neither free nor quarantined");
}

void pool_scope_advance(struct pool *p, uint64_t now, struct pool_scope *s)
{
	struct pool_waiter *w;

	while ((w = TAILQ_FIRST(&s->waiters))) {
		uint64_t before = pool_blame(p, w->r.req);
		bool left = advance_first(p, now, s, w);

		(void)pool_blame(p, before);
		if (!left)
			return;
	}
}

void pool_acquire(struct pool *p, uint64_t now, const struct pool_request *r)
{
	struct pool_scope *s;
	bool for_room;

	if (p->shutting_down) {
		pool_refuse(p, r->req, API_SHUTTING_DOWN, 0, "the service is shutting down");
		return;
	}
	if (p->leaving) {
		pool_refuse(p, r->req, API_SHUTTING_DOWN, 0, POOL_LEAVING_TEXT);
		return;
	}
	s = pool_scope_get(p, r->uid, r->id.token);
	if (s && memcmp(s->identity, r->id.digest, sizeof(s->identity)) != 0) {
		pool_refuse(p, r->req, API_IDENTITY_COLLISION, 0,
		    "another user and thread with the same scope token have a box");
		return;
	}
	if (r->name && *r->name && pool_scope_named(p, r->uid, r->name)) {
		pool_refuse(p, r->req, API_ALREADY_EXISTS, 0, "there is a box of that name");
		return;
	}
	if (!s)
		s = pool_scope_make(p, r->uid, r->id.token, r->id.digest);
	if (!pool_waiter_make(p, now, s, r)) {
		pool_refuse(p, r->req, API_INTERNAL, 1, "out of memory");
	} else {
		if (r->name)
			pool_scope_name(p, s, r->name);
		pool_scope_advance(p, now, s);
	}
	for_room = !s->box && !TAILQ_EMPTY(&s->waiters);
	pool_scope_drop_if_empty(s);
	if (for_room)
		pool_room_freed(p, now); /* no event tells of all the room there is */
}

/* Somebody waits for the scope's box itself; orders only follow. */
static bool is_awaited(const struct pool_scope *s)
{
	const struct pool_waiter *w = TAILQ_FIRST(&s->waiters);

	return w && !pool_is_order(w);
}

/* The first in the queue of `s` may have left it unserved. */
void pool_scope_left(struct pool *p, uint64_t now, struct pool_scope *s)
{
	/* A box that is not started yet is wanted by nobody now; one that boots goes on, and
	 * becomes warm if it can. */
	if (s->box && s->box->state == SLOT_RESERVED && !is_awaited(s) && !pool_is_saved(s->box))
		pool_close_box(p, now, s->box, "nobody waits for it any more");
	else
		pool_scope_advance(p, now, s);
	pool_scope_drop_if_empty(s);
	pool_room_freed(p, now);
}

void pool_client_gone(struct pool *p, uint64_t now, uint64_t req)
{
	struct pool_waiter *w = pool_waiter_by_req(p, req);
	struct pool_scope *s;

	if (!w)
		return;
	s = w->scope;
	pool_waiter_free(p, w);
	pool_scope_left(p, now, s);
}
