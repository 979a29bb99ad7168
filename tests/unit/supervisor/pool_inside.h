/*
 * pool_inside: what must hold of the pool's inside after every event. Part of pool_testing.h.
 */
#ifndef SBXD_TESTS_UNIT_SUPERVISOR_POOL_INSIDE_H
#define SBXD_TESTS_UNIT_SUPERVISOR_POOL_INSIDE_H

/* ---- boxes ---- */

static inline void rig_check_lists(const struct rig *r)
{
	const struct pool *p = r->pool;
	const struct pool_box *b;
	uint64_t parked = 0;
	uint32_t warm = 0;
	uint32_t queued = 0;

	TAILQ_FOREACH (b, &p->warm, queue) {
		RIG_CHECK(r, b->state == SLOT_WARM && b->parked >= parked);
		parked = b->parked;
		warm++;
	}
	TAILQ_FOREACH (b, &p->boot_queue, queue) {
		RIG_CHECK(r, b->state == SLOT_RESERVED);
		queued++;
	}
	RIG_CHECK(r, warm == p->state_count[SLOT_WARM]);
	RIG_CHECK(r, queued == p->state_count[SLOT_RESERVED]);
	RIG_CHECK(r, p->booting == p->state_count[SLOT_BOOTING]);
	RIG_CHECK(r, p->booting <= p->rules.max_boots);
	/* No permit lies idle. */
	RIG_CHECK(r, queued == 0 || p->booting == p->rules.max_boots || p->leaving);
}

/* What waits for a moment, in a heap. */
static inline void rig_check_heap(const struct rig *r)
{
	const struct pool *p = r->pool;

	for (uint32_t i = 1; i <= p->heap_count; i++) {
		RIG_CHECK(r, p->heap[i].due->pos == i && p->heap[i].due->at == p->heap[i].at);
		RIG_CHECK(r, p->heap[i].at >= pool_deadline(p));
	}
}

/* Stock is kept, and no more than that. */
static inline void rig_check_stock(const struct rig *r)
{
	const struct pool *p = r->pool;
	const struct pool_box *b;
	uint32_t listed = 0;
	uint32_t boots = 0;
	uint32_t count = 0;
	uint64_t at = p->stock_after > r->now ? p->stock_after : r->now;

	TAILQ_FOREACH (b, &p->stock, queue) {
		RIG_CHECK(r, rig_is_stock(r, b->slot) && !b->scope && b->lease_count == 0);
		RIG_CHECK(r, !memcmp(b->spec.digest, p->rules.stock.digest, 32));
		boots += b->state == SLOT_BOOTING;
		listed++;
	}
	for (uint32_t i = 0; i < p->rules.slots; i++)
		count += rig_is_stock(r, i);
	RIG_CHECK(r, count == listed && count == pool_stock_count(p) && boots == p->stock_boots);
	RIG_CHECK(r, count <= p->rules.prewarm || p->shutting_down);
	if (count < p->rules.prewarm && p->booting < p->rules.max_boots &&
	    (boots == 0 || boots + 1 < p->rules.max_boots) && p->free_count > 0 &&
	    !p->shutting_down && !p->leaving)
		RIG_CHECK(r, pool_deadline(p) <= at);
}

/* Each has a place of its own, the lowest that was free, and is found by its connection. */
static inline void rig_check_leases(const struct rig *r, const struct pool_box *b)
{
	const struct pool_lease *l;
	const struct pool_lease *tied;
	uint64_t places[POOL_LEASES / 64] = {0};
	uint32_t leases = 0;

	TAILQ_FOREACH (l, &b->leases, link) {
		RIG_CHECK(r, l->box == b && l->place < POOL_LEASES);
		RIG_CHECK(r, !(places[l->place / 64] >> l->place % 64 & 1));
		places[l->place / 64] |= UINT64_C(1) << l->place % 64;
		leases++;
		if (l->cookie == 0)
			continue;
		LIST_FOREACH (tied, &r->pool->tied[l->cookie & r->pool->hash_mask], tied_link) {
			if (tied == l)
				break;
		}
		RIG_CHECK(r, tied != NULL); /* cookies of tests are small */
	}
	RIG_CHECK(r, leases == b->lease_count && leases <= POOL_LEASES);
	RIG_CHECK(r, !memcmp(places, b->places, sizeof(places)));
	RIG_CHECK(r, (b->state == SLOT_ACTIVE) == (leases > 0));
}

/* The scope of b, if it has one, is b's; and nobody else is of that scope. */
static inline void rig_check_scope_of(const struct rig *r, const struct pool_box *b)
{
	const struct pool_scope *s = b->scope;

	if (!s) {
		RIG_CHECK(r, b->state == SLOT_CLOSING || rig_is_stock(r, b->slot));
		return;
	}
	RIG_CHECK(r, s->box == b && s->uid == b->uid && !strcmp(s->token, b->token));
	RIG_CHECK(r, !memcmp(s->identity, b->identity, sizeof(s->identity)));
	RIG_CHECK(r, b->waiters == s->waiter_count);
	for (uint32_t i = b->slot + 1; i < r->rules.slots; i++) {
		const struct pool_box *other = &r->pool->boxes[i];

		if (other->scope)
			RIG_CHECK(r, other->uid != b->uid || strcmp(other->token, b->token) != 0);
	}
}

/* A made box is its creator's, and is at one thing at a time. */
static inline void rig_check_made(const struct rig *r, const struct pool_box *b)
{
	uint32_t rest = b->flags & SLOT_FLAGS_REST;

	RIG_CHECK(r, pool_is_made(b) || (rest == 0 && !b->name[0]));
	if (!pool_is_made(b))
		return;
	RIG_CHECK(r, b->state != SLOT_WARM && b->state != SLOT_CHECKING && b->state != SLOT_STOCK);
	RIG_CHECK(r, (rest & (rest - 1)) == 0 && (b->flags & SLOT_FLAG_ANONYMOUS));
	RIG_CHECK(r, b->state != SLOT_ACTIVE || b->lease_count == 1);
	if (b->name[0] && b->state < SLOT_CLOSING)
		RIG_CHECK(r, pool_box_named(r->pool, b->uid, b->name) == b);
	else if (b->name[0])
		RIG_CHECK(r, pool_box_named(r->pool, b->uid, b->name) != b || b->waiters > 0);
}

static inline void rig_check_box(const struct rig *r, const struct pool_box *b)
{
	bool worker = r->slots[b->slot].worker;

	RIG_CHECK(r, b->state == r->slots[b->slot].state);
	rig_check_leases(r, b);
	if (b->state != SLOT_QUARANTINED)
		rig_check_made(r, b);
	if (b->state == SLOT_FREE || b->state == SLOT_QUARANTINED) {
		RIG_CHECK(r, !b->scope && !b->remove_req);
		return;
	}
	RIG_CHECK(r, b->state == SLOT_CLOSING || !r->pool->shutting_down);
	RIG_CHECK(r, pool_box_by_generation(r->pool, b->generation) == b);
	rig_check_scope_of(r, b);
	RIG_CHECK(r, b->has_worker == worker);
	RIG_CHECK(r, b->adopting == rig_is_owed(r, RIG_HELLO, b->slot));
	if (b->state == SLOT_RESERVED)
		RIG_CHECK(r, !worker && (b->waiters > 0 || r->pool->leaving || pool_is_saved(b)));
	else if (b->state != SLOT_CLOSING)
		RIG_CHECK(r, worker);
	else
		RIG_CHECK(r, worker || rig_is_owed(r, POOL_CLEAN, b->slot));
}

static inline void rig_check_boxes(const struct rig *r)
{
	const struct pool *p = r->pool;
	uint32_t count[SLOT_STATES] = {0};

	for (uint32_t i = 0; i < p->rules.slots; i++) {
		RIG_CHECK(r, p->boxes[i].slot == i && p->boxes[i].state < SLOT_STATES);
		count[p->boxes[i].state]++;
		rig_check_box(r, &p->boxes[i]);
	}
	for (uint32_t i = 0; i < SLOT_STATES; i++)
		RIG_CHECK(r, count[i] == pool_count(p, (enum slot_state)i));
	RIG_CHECK(r, p->free_count == count[SLOT_FREE]);
	for (uint32_t i = 0; i < p->free_count; i++)
		RIG_CHECK(r, p->boxes[p->free_slots[i]].state == SLOT_FREE);
}

/* ---- waiters ---- */

/* Who waits must have something to wait for. */
static inline void rig_check_scope(const struct rig *r, const struct pool_scope *s)
{
	const struct pool_waiter *w;
	const struct pool_waiter *before = NULL;
	uint32_t n = 0;

	RIG_CHECK(r, s->box || !TAILQ_EMPTY(&s->waiters));
	RIG_CHECK(r, pool_scope_get(r->pool, s->uid, s->token) == s);
	TAILQ_FOREACH (w, &s->waiters, link) {
		RIG_CHECK(r, w->scope == s && r->requests[w->r.req].outcome == WAITING);
		RIG_CHECK(r, !before || before->r.req < w->r.req);
		RIG_CHECK(r, (w->turn != NULL) == (!s->box && !before));
		RIG_CHECK(r, before || s->box || !pool_is_order(w));
		before = w;
		n++;
	}
	RIG_CHECK(r, n == s->waiter_count);
	if (s->name[0])
		RIG_CHECK(
		    r, pool_may_keep_name(s) && pool_scope_named(r->pool, s->uid, s->name) == s);
	if (n == 0 || !s->box || s->box->adopting)
		return;
	if (pool_is_order(TAILQ_FIRST(&s->waiters)))
		RIG_CHECK(r, s->box->state < SLOT_ACTIVE || (s->box->flags & SLOT_FLAG_STOPPING));
	else
		RIG_CHECK(r, s->box->state != SLOT_ACTIVE && s->box->state != SLOT_WARM);
}

struct rig_queue {
	const struct rig *r;
	uint32_t length;
	uint64_t round;
	uint64_t arrival;
};

/* In the order of rounds and, within one, of arrival; each user once in a round. */
static inline bool rig_check_place(void *ctx, const struct pool_waiting *shown)
{
	struct rig_queue *q = ctx;
	const struct rig *r = q->r;
	const struct pool_waiter *w = pool_waiter_by_req(r->pool, shown->req);
	const struct pool_waiter *next;

	RIG_CHECK(r, w && shown->for_room == (shown->place > 0));
	if (shown->place == 0)
		return false;
	RIG_CHECK(r, shown->place == ++q->length && w->round >= r->pool->round);
	RIG_CHECK(r, w->round > q->round || (w->round == q->round && w->arrival > q->arrival));
	next = TAILQ_NEXT(w, user_link);
	RIG_CHECK(r, !next || next->round > w->round);
	q->round = w->round;
	q->arrival = w->arrival;
	return true;
}

/* The length of the queue for room, which is seen whole. */
static inline uint32_t rig_room_queue(const struct rig *r)
{
	struct rig_queue q = {.r = r};

	pool_each_waiting(r->pool, rig_check_place, &q);
	return q.length;
}

static inline void rig_check_waiters(const struct rig *r)
{
	const struct pool *p = r->pool;
	const struct pool_scope *s;
	const struct pool_waiter *w;
	uint32_t in_scopes = 0;
	uint32_t waiting = 0;
	uint32_t for_room = 0;

	for (uint32_t i = 0; i <= p->hash_mask; i++) {
		LIST_FOREACH (s, &p->scopes[i], hash_link) {
			rig_check_scope(r, s);
			in_scopes += s->waiter_count;
		}
	}
	TAILQ_FOREACH (w, &p->waiters, all_link) {
		waiting++;
		for_room += w->turn != NULL;
	}
	RIG_CHECK(r, waiting == pool_waiters(p) && waiting == in_scopes);
	RIG_CHECK(r, for_room == rig_room_queue(r));
	if (for_room > 0 && rig_counted(r) < rig_cap(r)) {
		/* It is slots they wait for, and none is kept from them. */
		RIG_CHECK(r, p->free_count == 0);
		RIG_CHECK(r, p->state_count[SLOT_CLOSING] > 0 || TAILQ_EMPTY(&p->stock));
		RIG_CHECK(r, !pool_stock_first(p, pool_room_first(p)));
	}
	RIG_CHECK(r, waiting == 0 || (!p->shutting_down && !p->leaving));
}

/* ---- time ---- */

static inline void rig_check_idle(
    const struct rig *r, const struct pool_box *b, uint64_t since, uint64_t limit)
{
	uint64_t used = r->activity[b->slot] > since ? r->activity[b->slot] : since;
	uint64_t at = used + limit;

	if (limit == 0)
		return;
	if (at <= r->now) /* something runs in it: it is looked at again and again */
		at = r->now + NS_PER_S;
	RIG_CHECK(r, pool_deadline(r->pool) <= at);
}

static inline void rig_check_time(const struct rig *r)
{
	const struct pool *p = r->pool;
	const struct pool_waiter *w;
	const struct pool_lease *l;

	TAILQ_FOREACH (w, &p->waiters, all_link) {
		RIG_CHECK(r, pool_deadline(p) <= w->deadline);
	}
	if (pool_room_first(p) && !TAILQ_EMPTY(&p->warm))
		RIG_CHECK(r, pool_deadline(p) <= r->now + POOL_ROOM_LOOK);
	for (uint32_t i = 0; i < p->rules.slots; i++) {
		const struct pool_box *b = &p->boxes[i];

		if (b->state == SLOT_BOOTING || b->state == SLOT_CHECKING ||
		    b->state == SLOT_CLOSING ||
		    (b->state == SLOT_ACTIVE && !b->adopting && (b->flags & SLOT_FLAG_STOPPING)))
			RIG_CHECK(r, b->deadline != CLOCK_NEVER && pool_deadline(p) <= b->deadline);
		if (b->state == SLOT_WARM)
			rig_check_idle(r, b, b->parked, p->rules.idle_timeout);
		if (b->state == SLOT_ACTIVE && !pool_is_made(b))
			rig_check_idle(r, b, b->leased, p->rules.active_idle_timeout);
		TAILQ_FOREACH (l, &b->leases, link) {
			RIG_CHECK(r, pool_deadline(p) <= l->expires);
		}
	}
}

static inline void rig_check_pool(const struct rig *r)
{
	rig_check_lists(r);
	rig_check_heap(r);
	rig_check_stock(r);
	rig_check_boxes(r);
	rig_check_waiters(r);
	rig_check_time(r);
}

#endif
