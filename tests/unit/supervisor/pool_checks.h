/*
 * pool_checks: what must hold of every action. Part of pool_testing.h.
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
	RIG_CHECK(r, !pool_is_made(pool_box_at(r->pool, a->slot)));
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

	/* One that is saved has a place, and needs nobody who waits for it. */
	if (a->from == SLOT_CLOSING && a->to == SLOT_RESERVED)
		return;
	if (a->to == SLOT_BOOTING && (pool_box_at(r->pool, a->slot)->flags & SLOT_FLAG_SAVED))
		return;
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
	    [POOL_STOP] = {true, true, SLOT_ACTIVE},
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
	if (a->kind == POOL_GRANT || a->kind == POOL_REFUSE || a->kind == POOL_OBEYED)
		rig_check_reply(r, a);
	if (a->kind == POOL_GRANT)
		rig_check_grant(r, a);
	if (a->kind == POOL_REMOVED)
		RIG_CHECK(r, r->requests[a->req].removal && !r->requests[a->req].removed);
	if (a->kind == POOL_DRAINED)
		RIG_CHECK(r, r->drained == 0);
}

#endif
