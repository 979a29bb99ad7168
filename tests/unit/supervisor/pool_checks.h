/*
 * pool_checks: what must hold of every action, and of the pool's inside after every event. Part of
 * pool_testing.h.
 */
#ifndef SBXD_TESTS_UNIT_SUPERVISOR_POOL_CHECKS_H
#define SBXD_TESTS_UNIT_SUPERVISOR_POOL_CHECKS_H

/* ---- actions ---- */

/* Never used, and nobody's: up, or about to be. */
static inline bool rig_is_stock(const struct rig *r, uint32_t slot)
{
	uint32_t state = r->slots[slot].state;

	return state == SLOT_STOCK || ((state == SLOT_RESERVED || state == SLOT_BOOTING) &&
					  !pool_box_at(r->pool, slot)->token[0]);
}

/* Slots that count against replicas, in the rig's own picture. */
static inline uint32_t rig_counted(const struct rig *r)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < r->rules.slots; i++)
		n += slot_state_counts(r->slots[i].state) && !rig_is_stock(r, i);
	return n;
}

static inline bool rig_is_owed(const struct rig *r, enum pool_action_kind kind, uint32_t slot)
{
	for (uint32_t i = 0; i < r->order_count; i++) {
		if (r->orders[i].kind == kind && r->orders[i].slot == slot)
			return true;
	}
	return false;
}

static inline bool rig_waits(const struct rig *r, uint64_t req)
{
	return req > 0 && req <= r->last_req && r->requests[req].outcome == WAITING;
}

static inline uint32_t rig_cap(const struct rig *r)
{
	switch (r->rules.policy) {
	case REPLICA_SOFT:
		return r->rules.slots;
	case REPLICA_BURST:
		return r->rules.replicas + r->rules.burst_limit;
	case REPLICA_REJECT:
	case REPLICA_WAIT:
		break;
	}
	return r->rules.replicas;
}

/* Only what is idle is evicted, and for room only the oldest of it. */
static inline void rig_check_evict(const struct rig *r, const struct pool_action *a)
{
	const struct rig_slot *victim = &r->slots[a->slot];

	RIG_CHECK(r, a->code == POOL_EVICT_IDLE ? a->req == 0 : rig_waits(r, a->req));
	if (!strcmp(a->text, "max_boxes reached: unused stock")) {
		RIG_CHECK(r, rig_is_stock(r, a->slot));
		return;
	}
	RIG_CHECK(r, r->in_flight[a->slot] == 0);
	if (!strcmp(a->text, "active_idle_timeout")) {
		RIG_CHECK(r, victim->state == SLOT_ACTIVE);
		return;
	}
	RIG_CHECK(r, victim->state == SLOT_WARM);
	if (!strcmp(a->text, "idle_timeout"))
		return;
	for (uint32_t i = 0; i < r->rules.slots; i++) {
		/* For one that has not said hello somebody may have waited at that time. */
		if (r->slots[i].state == SLOT_WARM && r->in_flight[i] == 0 &&
		    !rig_is_owed(r, RIG_HELLO, i))
			RIG_CHECK(r, r->slots[i].parked_as >= victim->parked_as);
	}
}

/* What is begun for a client names its request, and is within the cap. */
static inline void rig_check_cause(const struct rig *r, const struct pool_action *a)
{
	bool scoped = pool_box_at(r->pool, a->slot)->token[0] != '\0';

	if (a->to == SLOT_RESERVED || a->to == SLOT_BOOTING)
		RIG_CHECK(r, scoped ? rig_waits(r, a->req) : a->req == 0);
	if (a->to == SLOT_CHECKING || a->to == SLOT_ACTIVE)
		RIG_CHECK(r, rig_waits(r, a->req));
	if ((a->to == SLOT_RESERVED && scoped) || (a->from == SLOT_STOCK && a->to != SLOT_CLOSING))
		RIG_CHECK(r, rig_counted(r) < rig_cap(r));
}

static inline void rig_check_record(const struct rig *r, const struct pool_action *a)
{
	RIG_CHECK(r, a->event > EVENT_NONE && a->event < EVENT_KINDS);
	if (a->event == EVENT_EVICT)
		rig_check_evict(r, a);
	if (a->event != EVENT_STATE)
		return;
	RIG_CHECK(r, a->slot < r->rules.slots && a->from == r->slots[a->slot].state);
	RIG_CHECK(r, slot_transition_allowed(a->from, a->to));
	rig_check_cause(r, a);
}

/* An answer goes to who waits, and to nobody twice. */
static inline void rig_check_reply(const struct rig *r, const struct pool_action *a)
{
	RIG_CHECK(r, a->req > 0 && a->req <= r->last_req);
	RIG_CHECK(r, r->requests[a->req].outcome == WAITING);
	if (a->kind == POOL_REFUSE)
		RIG_CHECK(r, a->error > API_OK && a->error < API_ERRORS && a->text[0]);
}

static inline void rig_check_grant(const struct rig *r, const struct pool_action *a)
{
	const struct pool_box *b = pool_box_at(r->pool, a->slot);
	const struct pool_lease *l;
	const struct pool_waiter *w;

	RIG_CHECK(r, b->generation == a->generation && b->state == SLOT_ACTIVE);
	RIG_CHECK(r, r->slots[a->slot].state == SLOT_ACTIVE && r->slots[a->slot].worker);
	TAILQ_FOREACH (l, &b->leases, link) {
		if (l->id == a->lease_id)
			break;
	}
	RIG_CHECK(r, l != NULL);
	/* What another supervisor left is proven before it is given. */
	RIG_CHECK(r, a->source == SOURCE_ACTIVE || !(b->flags & SLOT_FLAG_ADOPTED));
	TAILQ_FOREACH (w, &b->scope->waiters, link) {
		RIG_CHECK(r, w->r.req > a->req); /* first come, first served */
	}
}

static inline void rig_check_action(const struct rig *r, const struct pool_action *a)
{
	static const struct {
		bool order;
		bool worker; /* whether the slot must have one */
		uint32_t state;
	} orders[] = {
	    [POOL_SPAWN] = {true, false, SLOT_BOOTING},
	    [POOL_CHECK] = {true, true, SLOT_CHECKING},
	    [POOL_PARK] = {true, true, SLOT_WARM},
	    [POOL_CLAIM] = {true, true, SLOT_STOCK},
	    [POOL_PROMOTE] = {true, true, SLOT_ACTIVE},
	    [POOL_CLOSE] = {true, true, SLOT_CLOSING},
	    [POOL_KILL] = {true, true, SLOT_CLOSING},
	    [POOL_CLEAN] = {true, false, SLOT_CLOSING},
	    [POOL_DRAINED] = {false, false, 0},
	};

	RIG_CHECK(r, a->kind > POOL_NOTHING && a->kind <= POOL_DRAINED);
	if (orders[a->kind].order) {
		RIG_CHECK(r, a->slot < r->rules.slots);
		RIG_CHECK(r, r->slots[a->slot].state == orders[a->kind].state);
		RIG_CHECK(r, r->slots[a->slot].worker == orders[a->kind].worker);
		RIG_CHECK(r, !rig_is_owed(r, a->kind, a->slot));
		/* Who has not said hello hears nothing. */
		RIG_CHECK(r, a->kind == POOL_KILL || !rig_is_owed(r, RIG_HELLO, a->slot));
		if (orders[a->kind].worker)
			RIG_CHECK(r, r->slots[a->slot].generation == a->generation);
	}
	if (a->kind == POOL_RECORD)
		rig_check_record(r, a);
	if (a->kind == POOL_GRANT || a->kind == POOL_REFUSE)
		rig_check_reply(r, a);
	if (a->kind == POOL_GRANT)
		rig_check_grant(r, a);
	if (a->kind == POOL_REMOVED)
		RIG_CHECK(r, r->requests[a->req].removal && !r->requests[a->req].removed);
	if (a->kind == POOL_DRAINED)
		RIG_CHECK(r, r->drained == 0);
}

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

static inline void rig_check_box(const struct rig *r, const struct pool_box *b)
{
	bool worker = r->slots[b->slot].worker;

	RIG_CHECK(r, b->state == r->slots[b->slot].state);
	rig_check_leases(r, b);
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
		RIG_CHECK(r, !worker && (b->waiters > 0 || r->pool->leaving));
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
		before = w;
		n++;
	}
	RIG_CHECK(r, n == s->waiter_count);
	if (n > 0 && s->box && !s->box->adopting)
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
		    b->state == SLOT_CLOSING)
			RIG_CHECK(r, b->deadline != CLOCK_NEVER && pool_deadline(p) <= b->deadline);
		if (b->state == SLOT_WARM)
			rig_check_idle(r, b, b->parked, p->rules.idle_timeout);
		if (b->state == SLOT_ACTIVE)
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
