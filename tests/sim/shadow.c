/*
 * shadow: the state of every slot as the actions tell it, and what must hold of each action when it
 * comes: what is evicted, what is begun, what is given to whom.
 */
#include <string.h>

#include "supervisor/pool_int.h"
#include "tests/sim/sim.h"

/* Boxes that count against replicas: not stock. */
uint32_t sim_counted(const struct sim *s)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < s->rules.slots; i++)
		n += slot_state_counts(s->shadow[i].state) && !s->shadow[i].stock;
	return n;
}

uint32_t sim_shadow_count(const struct sim *s, uint32_t state)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < s->rules.slots; i++)
		n += s->shadow[i].state == state;
	return n;
}

uint32_t sim_cap(const struct sim *s)
{
	switch (s->rules.policy) {
	case REPLICA_SOFT:
		return s->rules.slots + 1;
	case REPLICA_BURST:
		return s->rules.replicas + s->rules.burst_limit;
	case REPLICA_REJECT:
	case REPLICA_WAIT:
		break;
	}
	return s->rules.replicas;
}

/* A warm box that nobody uses or waits for. */
static bool is_evictable(const struct sim *s, uint32_t slot)
{
	const struct pool_box *b = pool_box_at(s->pool, slot);

	return s->shadow[slot].state == SLOT_WARM && s->pages[slot].in_flight == 0 &&
	       b->generation == s->shadow[slot].generation &&
	       !sim_scope_is_wanted(s, b->uid, b->token);
}

bool sim_shadow_evictable(const struct sim *s)
{
	for (uint32_t i = 0; i < s->rules.slots; i++) {
		if (is_evictable(s, i))
			return true;
	}
	return false;
}

void sim_excuse(struct sim *s, uint32_t excuse)
{
	for (uint32_t i = 0; i < s->rules.slots; i++)
		s->shadow[i].excuse |= excuse;
}

/* What the table shows. */
void sim_shadow_restart(struct sim *s, uint32_t slot, bool has_worker)
{
	const struct pool_restored *r = &s->table[slot].part;
	uint32_t state = r->state;

	s->shadow[slot] = (struct sim_shadow){
	    .state = state,
	    .generation = state == SLOT_FREE ? 0 : r->generation,
	    .stock = (state == SLOT_STOCK || state == SLOT_BOOTING) && !r->token[0],
	    .adopted = has_worker,
	    .made = (r->flags & SLOT_FLAG_MADE) != 0,
	    .rest = r->flags & SLOT_FLAGS_REST,
	    .stop_due = CLOCK_NEVER,
	    .since = s->now,
	    .late = state == SLOT_CLOSING,
	    .parked = r->parked,
	    .leased = r->leased,
	};
}

/* ---- records ---- */

static uint64_t idle_since(const struct sim *s, uint32_t slot, uint64_t since)
{
	return s->pages[slot].activity > since ? s->pages[slot].activity : since;
}

static void check_idle_eviction(struct sim *s, const struct pool_action *a)
{
	const struct sim_shadow *v = &s->shadow[a->slot];
	const struct pool_rules *r = &s->rules;

	SIM_CHECK(s, s->pages[a->slot].in_flight == 0, "work in a box keeps it");
	if (v->state == SLOT_WARM)
		SIM_CHECK(s,
		    r->idle_timeout &&
			s->now >= idle_since(s, a->slot, v->parked) + r->idle_timeout,
		    "a warm box is closed only after idle_timeout");
	else
		SIM_CHECK(s,
		    v->state == SLOT_ACTIVE && r->active_idle_timeout &&
			s->now >= idle_since(s, a->slot, v->leased) + r->active_idle_timeout,
		    "an active box is closed only after active_idle_timeout");
	s->shadow[a->slot].excuse |= EXCUSE_IDLE;
}

/* For room: the oldest warm one, and never one that is in use. */
static void check_eviction(struct sim *s, const struct pool_action *a)
{
	const struct sim_shadow *v = &s->shadow[a->slot];
	const struct pool_box *b = pool_box_at(s->pool, a->slot);

	SIM_CHECK(s, v->generation == a->generation, "an eviction is about a box that is there");
	SIM_CHECK(s, !v->made, "a made box is not evicted, nor closed for being idle");
	if (a->code == POOL_EVICT_IDLE) {
		check_idle_eviction(s, a);
		return;
	}
	s->shadow[a->slot].excuse |= EXCUSE_EVICTED;
	SIM_CHECK(s, sim_counted(s) >= s->rules.replicas || sim_shadow_count(s, SLOT_FREE) == 0,
	    "nothing is evicted while there is room");
	if (v->stock) {
		SIM_CHECK(
		    s, sim_shadow_count(s, SLOT_FREE) == 0, "stock makes way when slots run out");
		return;
	}
	SIM_CHECK(s, v->state == SLOT_WARM, "only warm boxes are evicted");
	SIM_CHECK(s, !sim_scope_is_wanted(s, b->uid, b->token),
	    "a box that somebody waits for is not evicted");
	SIM_CHECK(s, s->pages[a->slot].in_flight == 0, "work in a box keeps it");
	for (uint32_t i = 0; i < s->rules.slots; i++) {
		if (is_evictable(s, i))
			SIM_CHECK(s, s->shadow[i].parked >= v->parked,
			    "the oldest warm box is evicted first");
	}
}

/* Within one user's requests nobody overtakes. */
static void check_turn(struct sim *s, uint64_t req)
{
	struct sim_request *r = &s->requests[req];

	SIM_CHECK(s, req > 0 && req <= s->last_req, "a box is begun for a request");
	for (uint32_t i = 0; i < SIM_CONNS; i++) {
		const struct sim_request *o = &s->requests[s->conns[i].req];

		if (s->conns[i].req && o != r && o->scope == r->scope && o->place > 0)
			SIM_CHECK(s, r->place > 0 && r->place < o->place,
			    "nobody overtakes those who wait for room");
	}
	r->place = 0;
}

/* Stock is what is left over for it: no more than prewarm, and one permit is left to clients. */
static void check_stock(struct sim *s)
{
	uint32_t kept = 0;
	uint32_t boots = 0;

	for (uint32_t i = 0; i < s->rules.slots; i++) {
		kept += s->shadow[i].stock;
		boots += s->shadow[i].stock && s->shadow[i].state == SLOT_BOOTING;
		SIM_CHECK(s, s->shadow[i].state != SLOT_RESERVED,
		    "stock boots after those that somebody waits for");
	}
	SIM_CHECK(s, kept < s->rules.prewarm, "no more stock than prewarm");
	SIM_CHECK(s, boots == 0 || boots + 1 < s->rules.max_boots,
	    "stock leaves a boot permit to clients");
}

static void check_reserved(struct sim *s, const struct pool_action *a, bool stock)
{
	if (stock) {
		check_stock(s);
		return;
	}
	SIM_CHECK(s, sim_counted(s) < sim_cap(s), "replicas are reserved before a boot");
	SIM_CHECK(s, sim_counted(s) < s->rules.replicas || !sim_shadow_evictable(s),
	    "replicas are exceeded only when no warm box can go");
	check_turn(s, a->req);
}

/* A box with leases is closed for a reason; a warm one too. */
static void check_closing(struct sim *s, const struct pool_action *a)
{
	const struct pool_box *b = pool_box_at(s->pool, a->slot);
	uint32_t excuse = s->shadow[a->slot].excuse;

	if (s->shadow[a->slot].made && s->now >= s->shadow[a->slot].stop_due)
		excuse |= EXCUSE_WORKER; /* it did not stop it */
	if (a->from == SLOT_ACTIVE)
		SIM_CHECK(s,
		    excuse & (EXCUSE_WORKER | EXCUSE_CLIENT | EXCUSE_IDLE | EXCUSE_SHUTDOWN |
				 EXCUSE_RESTART),
		    "a box that is in use is not closed");
	if (a->from == SLOT_WARM && !excuse)
		SIM_CHECK(s, sim_scope_is_wanted(s, b->uid, b->token),
		    "a warm box is closed for a reason");
	if (a->from == SLOT_RESERVED && s->shadow[a->slot].adopted && !excuse)
		SIM_CHECK(s, sim_scope_is_wanted(s, b->uid, b->token),
		    "a saved box needs nobody who waits for it");
	sim_leases_of_box_end(s, a->slot, a->generation);
}

/* Its worker is gone, its machine is not. */
static bool is_saved(const struct pool_action *a)
{
	return a->from == SLOT_CLOSING && a->to == SLOT_RESERVED;
}

static void enter(struct sim *s, const struct pool_action *a, const struct pool_box *b)
{
	struct sim_shadow *v = &s->shadow[a->slot];

	v->generation = a->to == SLOT_FREE ? 0 : a->generation;
	if (a->to == SLOT_RESERVED) {
		v->stock = !b->token[0];
		v->made = (b->flags & SLOT_FLAG_MADE) != 0;
		v->rest = v->made ? SLOT_FLAG_FRESH : 0;
	} else if (a->to != SLOT_BOOTING && a->to != SLOT_STOCK) {
		v->stock = false;
	}
	v->stop_due = CLOCK_NEVER;
	if (a->to == SLOT_WARM || a->to == SLOT_STOCK) {
		v->skip_ok = !s->is_reset && !s->is_adoption;
		v->idle = s->now;
	}
	if (a->to == SLOT_WARM)
		v->parked = s->now;
	if (a->to == SLOT_FREE ||
	    a->to == SLOT_RESERVED) /* a saved one is proven before it is given */
		v->adopted = is_saved(a);
	v->state = a->to;
	v->since = s->now;
	v->late = false;
}

/* It has the place that it had, or one that is free. */
static void check_saved(struct sim *s, const struct pool_action *a, const struct pool_box *b)
{
	const struct sim_shadow *v = &s->shadow[a->slot];

	SIM_CHECK(s, s->workers[a->slot] == SIM_NOBODY, "a box is saved when its worker is gone");
	SIM_CHECK(s, !v->made && b->token[0], "stock and made boxes are not saved");
	SIM_CHECK(s, (v->since == s->now && !v->late) || sim_counted(s) < sim_cap(s),
	    "a saved box takes no place that another has got");
}

static void check_state(struct sim *s, const struct pool_action *a)
{
	struct sim_shadow *v = &s->shadow[a->slot];
	const struct pool_box *b;

	SIM_CHECK(s, a->slot < s->rules.slots, "a slot is one of the table's");
	b = pool_box_at(s->pool, a->slot);
	SIM_CHECK(s, v->state == a->from, "states follow each other");
	SIM_CHECK(s,
	    v->generation == 0 || v->generation == a->generation ||
		(is_saved(a) && v->generation < a->generation),
	    "a slot keeps its generation until it is free, or saved");
	SIM_CHECK(s, slot_transition_allowed(a->from, a->to), "a transition is in the table");
	SIM_CHECK(s,
	    !v->made || (a->to != SLOT_WARM && a->to != SLOT_CHECKING && a->to != SLOT_STOCK),
	    "a made box is never parked, nor given to anybody else");
	if (is_saved(a))
		check_saved(s, a, b);
	else if (a->to == SLOT_RESERVED)
		check_reserved(s, a, !b->token[0]);
	if (a->to == SLOT_BOOTING)
		SIM_CHECK(s, sim_shadow_count(s, SLOT_BOOTING) < s->rules.max_boots,
		    "a boot takes a permit");
	if (a->from == SLOT_STOCK && a->to != SLOT_CLOSING) {
		SIM_CHECK(s, sim_counted(s) < sim_cap(s),
		    "replicas are reserved before stock is claimed");
		check_turn(s, a->req);
	}
	if (a->to == SLOT_CLOSING)
		check_closing(s, a);
	enter(s, a, b);
}

static void check_start(struct sim *s, const struct pool_action *a)
{
	struct sim_shadow *v = &s->shadow[a->slot];

	SIM_CHECK(s, v->made && (v->rest & (SLOT_FLAG_FRESH | SLOT_FLAG_STOPPED)),
	    "what is started was at rest");
	v->rest = 0;
}

static void check_record(struct sim *s, const struct pool_action *a)
{
	SIM_CHECK(s, a->event > EVENT_NONE && a->event < EVENT_KINDS, "a record is of a kind");
	SIM_CHECK(s, a->req <= s->last_req, "a record names a request that there was");
	if (a->event == EVENT_EVICT)
		check_eviction(s, a);
	if (a->event == EVENT_STATE)
		check_state(s, a);
	if (a->event == EVENT_START)
		check_start(s, a);
}

/* ---- orders ---- */

/* The states in which an order to a worker makes sense. */
static const uint32_t order_states[] = {
    [POOL_SPAWN] = SLOT_BOOTING,
    [POOL_CHECK] = SLOT_CHECKING,
    [POOL_PARK] = SLOT_WARM,
    [POOL_CLAIM] = SLOT_STOCK,
    [POOL_PROMOTE] = SLOT_ACTIVE,
    [POOL_CLOSE] = SLOT_CLOSING,
    [POOL_KILL] = SLOT_CLOSING,
    [POOL_STOP] = SLOT_ACTIVE,
    [POOL_CLEAN] = SLOT_CLOSING,
    [POOL_DRAINED] = 0,
};

static void check_stop(struct sim *s, const struct pool_action *a)
{
	struct sim_shadow *v = &s->shadow[a->slot];

	SIM_CHECK(s, v->made, "what was acquired is not stopped");
	SIM_CHECK(s, v->stop_due == CLOCK_NEVER, "a box is stopped once at a time");
	v->rest = SLOT_FLAG_STOPPING;
	v->stop_due = s->now + a->timeout + POOL_STOP_SLACK;
}

static void check_order(struct sim *s, const struct pool_action *a)
{
	uint32_t proc;
	bool knows;

	SIM_CHECK(s, a->slot < s->rules.slots, "an order is about a slot");
	proc = s->workers[a->slot];
	knows = proc != SIM_NOBODY;
	SIM_CHECK(s, s->shadow[a->slot].generation == a->generation,
	    "an order is about the box that is there");
	SIM_CHECK(s, s->shadow[a->slot].state == order_states[a->kind],
	    "an order goes with the slot's state");
	if (knows)
		SIM_CHECK(s, s->procs[proc].generation == a->generation,
		    "an order is to the box's own worker");
	if (a->kind == POOL_SPAWN || a->kind == POOL_CLEAN)
		SIM_CHECK(s, !knows, "a slot has one worker, and is cleaned after it");
	else if (a->kind != POOL_KILL)
		SIM_CHECK(s, s->greeted[a->slot] || !knows, "orders wait for the hello");
	if (a->kind == POOL_CHECK || a->kind == POOL_PROMOTE || a->kind == POOL_PARK ||
	    a->kind == POOL_STOP)
		SIM_CHECK(s, knows, "a box that runs has a worker");
	if (a->kind == POOL_STOP)
		check_stop(s, a);
}

void sim_shadow_action(struct sim *s, const struct pool_action *a)
{
	if (a->kind == POOL_RECORD)
		check_record(s, a);
	else if (order_states[a->kind])
		check_order(s, a);
	if (a->kind == POOL_DRAINED) {
		SIM_CHECK(s, s->shutting_down && s->drained == 0, "a shutdown is complete once");
		SIM_CHECK(s,
		    sim_shadow_count(s, SLOT_FREE) + sim_shadow_count(s, SLOT_QUARANTINED) ==
			s->rules.slots,
		    "a shutdown is complete when no box is left");
	}
}

/* ---- grants ---- */

/* An idle box is proven, or has the right not to be. */
static bool is_proven(const struct sim *s, uint32_t slot)
{
	const struct sim_shadow *v = &s->shadow[slot];

	return v->proven || (s->rules.check_skip && v->skip_ok && !v->adopted &&
				s->now - v->idle <= s->rules.check_skip);
}

static bool has_leases(const struct sim *s, const struct pool_action *a)
{
	for (uint32_t i = 0; i < s->lease_count; i++) {
		const struct sim_request *r = &s->requests[s->leases[i]];

		if (r->slot == a->slot && r->generation == a->generation)
			return true;
	}
	return false;
}

void sim_shadow_granted(struct sim *s, const struct pool_action *a, const struct sim_request *r)
{
	const struct pool_box *b = pool_box_at(s->pool, a->slot);
	uint32_t proc = s->workers[a->slot];
	struct sim_proc *p;

	SIM_CHECK(s, s->shadow[a->slot].state == SLOT_ACTIVE, "a box is active when it is given");
	SIM_CHECK(s,
	    b->uid == r->uid && !strcmp(b->token, r->id.token) &&
		!memcmp(b->identity, r->id.digest, sizeof(b->identity)),
	    "a box is given to whom it belongs");
	SIM_CHECK(s, b->spec.digest[0] == r->spec, "a box is what was asked for");
	SIM_CHECK(s, proc != SIM_NOBODY && s->greeted[a->slot], "a box that is given has a worker");
	s->shadow[a->slot].leased = s->now;
	p = &s->procs[proc];
	SIM_CHECK(s,
	    !p->touched ||
		(p->uid == r->uid && !memcmp(p->identity, r->id.digest, sizeof(p->identity))),
	    "what somebody has used is never given to another");
	p->touched = true;
	s->pages[a->slot].owned = true;
	p->uid = s->pages[a->slot].uid = r->uid;
	memcpy(p->identity, r->id.digest, sizeof(p->identity));
	memcpy(s->pages[a->slot].identity, r->id.digest, sizeof(p->identity));
	SIM_CHECK(s, (a->source == SOURCE_ACTIVE) == has_leases(s, a),
	    "a box that is in use is shared, and no other");
	if (a->source == SOURCE_WARM || a->source == SOURCE_PREWARMED)
		SIM_CHECK(s, is_proven(s, a->slot), "an idle box is proven before it is given");
}
