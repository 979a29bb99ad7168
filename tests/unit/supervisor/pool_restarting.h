/*
 * pool_restarting: the supervisor dies, and a successor takes over what the table shows: with the
 * rig of pool_testing.h.
 */
#ifndef SBXD_TESTS_UNIT_SUPERVISOR_POOL_RESTARTING_H
#define SBXD_TESTS_UNIT_SUPERVISOR_POOL_RESTARTING_H

#include "tests/unit/supervisor/pool_testing.h"

/* What the table shows of one box. */
struct rig_shown {
	struct pool_restored box;
	struct pool_lease_restored leases[POOL_LEASES];
};

static inline void rig_show(const struct rig *r, const struct pool_box *b, struct rig_shown *out)
{
	const struct pool_lease *l;
	uint32_t n = 0;

	TAILQ_FOREACH (l, &b->leases, link)
		out->leases[n++] =
		    (struct pool_lease_restored){l->id, l->cookie, l->expires, l->place};
	out->box = (struct pool_restored){
	    .slot = b->slot,
	    .state = b->state,
	    .generation = b->generation,
	    .machine = b->machine,
	    .uid = b->uid,
	    .flags = b->flags,
	    .spec = b->spec,
	    .source = b->source,
	    .acquires = b->acquires,
	    .saves = b->saves,
	    .created = b->created,
	    .state_since = b->state_since,
	    .parked = b->parked,
	    .leased = b->leased,
	    .has_worker = r->slots[b->slot].worker,
	    .leases = out->leases,
	    .lease_count = n,
	};
	memcpy(out->box.token, b->token, sizeof(b->token));
	memcpy(out->box.identity, b->identity, sizeof(b->identity));
	memcpy(out->box.user, b->user, sizeof(b->user));
	memcpy(out->box.thread, b->thread, sizeof(b->thread));
	memcpy(out->box.name, b->name, sizeof(b->name));
	memcpy(out->box.last_error, b->last_error, sizeof(b->last_error));
}

/* Who waited sees its connection end. Workers hear nothing more, and owe only what they were told:
 * to close; those that were told to die have died. */
static inline void rig_forget_supervisor(struct rig *r)
{
	uint32_t kept = 0;

	for (uint64_t req = 1; req <= r->last_req; req++) {
		if (r->requests[req].outcome == WAITING)
			r->requests[req].outcome = GONE;
		r->requests[req].removal = r->requests[req].removed;
	}
	for (uint32_t slot = 0; slot < r->rules.slots; slot++) {
		if (rig_is_owed(r, POOL_KILL, slot)) {
			r->slots[slot].worker = false;
			rig_forgive(r, slot);
		}
	}
	for (uint32_t i = 0; i < r->order_count; i++) {
		if (r->orders[i].kind == POOL_CLOSE)
			r->orders[kept++] = r->orders[i];
	}
	r->order_count = kept;
}

/* A worker that lives has to say hello before anything else that it owes. */
static inline void rig_owe_hellos(struct rig *r)
{
	uint32_t owed = r->order_count;

	for (uint32_t i = 0; i < r->rules.slots; i++) {
		if (r->slots[i].worker)
			rig_owe(r, &(struct pool_action){.kind = RIG_HELLO,
				       .slot = i,
				       .generation = r->slots[i].generation});
	}
	for (uint32_t i = 0; i < owed; i++) { /* to the end of the line */
		struct rig_order o = r->orders[0];

		memmove(&r->orders[0], &r->orders[1], (r->order_count - 1) * sizeof(o));
		r->orders[r->order_count - 1] = o;
	}
}

/* Boxes that became warm at one moment may change places. */
static inline void rig_number_parkings(struct rig *r)
{
	const struct pool_box *b;

	TAILQ_FOREACH (b, &r->pool->warm, queue)
		r->slots[b->slot].parked_as = ++r->parkings;
}

/* A pool that takes over what the table shows; the table may have been changed. */
static inline void rig_succeed(struct rig *r, const struct rig_shown *table)
{
	const struct pool_gauge gauge = {rig_gauge_in_flight, rig_gauge_activity, r};

	rig_owe_hellos(r);
	r->pool = pool_create(&r->rules, &gauge, r->generation);
	assert_non_null(r->pool);
	for (uint32_t i = 0; i < r->rules.slots; i++) {
		if (table[i].box.state != SLOT_FREE)
			pool_restore(r->pool, r->now, &table[i].box);
	}
	pool_restored_all(r->pool, r->now);
	rig_take_actions(r);
	rig_number_parkings(r);
}

/* The supervisor dies. Returns what the table shows: of rules.slots slots, freed by the caller. */
static inline struct rig_shown *rig_die(struct rig *r)
{
	struct rig_shown *table = calloc(r->rules.slots, sizeof(*table));

	assert_non_null(table);
	rig_forget_supervisor(r);
	for (uint32_t i = 0; i < r->rules.slots; i++)
		rig_show(r, pool_box_at(r->pool, i), &table[i]);
	r->generation = r->pool->generation;
	pool_destroy(r->pool);
	r->pool = NULL;
	return table;
}

/* It dies, and the next one takes over what it left. */
static inline void rig_die_and_succeed(struct rig *r)
{
	struct rig_shown *table = rig_die(r);

	rig_succeed(r, table);
	free(table);
	rig_settle(r);
}

#endif
