/*
 * pool_room: capacity: reservation against replicas, the four policies at the cap, eviction, and
 * boot permits. Runs in sbxd.
 */
#include <stdio.h>

#include "lib/log.h"
#include "shm/slot.h"
#include "supervisor/pool_int.h"

#define ROOM_RETRY_SECONDS 1.0

/* Boxes that count against replicas: all that run or are about to for somebody, not those on their
 * way out. */
static uint32_t counted(const struct pool *p)
{
	uint32_t n = 0;

	for (uint32_t s = 0; s < SLOT_STATES; s++) {
		if (slot_state_counts(s))
			n += p->state_count[s];
	}
	return n - pool_stock_count(p);
}

/* The oldest warm box that nothing is running in, or NULL. */
static struct pool_box *oldest_idle_warm(const struct pool *p)
{
	struct pool_box *b;

	TAILQ_FOREACH (b, &p->warm, queue) {
		if (b->waiters == 0 && p->gauge.in_flight(p->gauge.ctx, b->slot) == 0)
			return b;
	}
	return NULL;
}

enum room { ROOM_YES, ROOM_WAIT, ROOM_NO };

static enum room room_beyond(const struct pool *p)
{
	switch (p->rules.policy) {
	case REPLICA_SOFT:
		return ROOM_YES;
	case REPLICA_REJECT:
		return ROOM_NO;
	case REPLICA_WAIT:
		return ROOM_WAIT;
	case REPLICA_BURST:
		return counted(p) < p->rules.replicas + p->rules.burst_limit ? ROOM_YES : ROOM_WAIT;
	}
	return ROOM_NO;
}

/* Room below replicas, or beyond them as the policy has it. */
static enum room room_in_replicas(struct pool *p, uint64_t now)
{
	struct pool_box *victim;

	while (counted(p) >= p->rules.replicas && (victim = oldest_idle_warm(p)))
		pool_evict_box(p, now, victim, "replicas reached: oldest warm");
	return counted(p) < p->rules.replicas ? ROOM_YES : room_beyond(p);
}

bool pool_room_is_there(const struct pool *p)
{
	return counted(p) < p->rules.replicas || room_beyond(p) == ROOM_YES;
}

static bool waits_when_full(const struct pool *p)
{
	return p->rules.policy == REPLICA_WAIT || p->rules.policy == REPLICA_BURST;
}

/* max_boxes: slots on their way out come back; otherwise unused stock must go, or an idle warm box.
 */
static enum room room_in_slots(struct pool *p, uint64_t now)
{
	struct pool_box *victim;

	if (p->free_count > 0)
		return ROOM_YES;
	if (p->state_count[SLOT_CLOSING] == 0 && (victim = pool_stock_spare(p)))
		pool_evict_box(p, now, victim, "max_boxes reached: unused stock");
	else if (p->state_count[SLOT_CLOSING] == 0 && (victim = oldest_idle_warm(p)))
		pool_evict_box(p, now, victim, "max_boxes reached: oldest warm");
	if (p->state_count[SLOT_CLOSING] > 0)
		return ROOM_WAIT;
	if (p->state_count[SLOT_QUARANTINED] == p->rules.slots)
		return ROOM_NO; /* and never will there be any */
	return waits_when_full(p) ? ROOM_WAIT : ROOM_NO;
}

bool pool_room_reserve(struct pool *p, uint64_t now, struct pool_waiter *w)
{
	enum room room = room_in_replicas(p, now);

	if (room == ROOM_YES && !pool_stock_first(p, w))
		room = room_in_slots(p, now);
	switch (room) {
	case ROOM_YES:
		if (counted(p) >= p->rules.replicas)
			pool_record(
			    p, EVENT_ERROR, NULL, 0, "replicas exceeded: no warm box to evict");
		return true;
	case ROOM_WAIT:
		pool_room_queue(p, w);
		if (!TAILQ_EMPTY(&p->warm))
			pool_expect(p, &p->room_due, now + POOL_ROOM_LOOK);
		return false;
	case ROOM_NO:
		break;
	}
	pool_waiter_refuse(p, w, API_CAPACITY, ROOM_RETRY_SECONDS, "no room for another box");
	return false;
}

/* Room may have come free: serve those who wait for it, in their order. Closes and parks nothing
 * but victims, whose room is used up here: so this never comes back to itself. */
void pool_room_freed(struct pool *p, uint64_t now)
{
	struct pool_waiter *w = pool_room_first(p);

	while (w) {
		struct pool_scope *s = w->scope;
		uint64_t arrival = w->arrival;

		pool_scope_advance(p, now, s);
		pool_scope_drop_if_empty(s);
		w = pool_room_first(p);
		if (w && w->arrival == arrival)
			return; /* still no room, then for nobody */
	}
}

/* A boot permit is b's. */
void pool_boot(struct pool *p, uint64_t now, struct pool_box *b)
{
	uint64_t before = pool_blame_awaited(p, b);

	pool_move(p, now, b, SLOT_BOOTING, "boot permit");
	b->has_worker = true;
	pool_limit(p, b, now + p->rules.boot_timeout);
	(void)pool_act(p, POOL_SPAWN, b);
	(void)pool_blame(p, before);
}

void pool_boot_next(struct pool *p, uint64_t now)
{
	struct pool_box *b;

	if (p->shutting_down || p->leaving)
		return;
	while (p->booting < p->rules.max_boots && (b = TAILQ_FIRST(&p->boot_queue)))
		pool_boot(p, now, b);
	pool_stock_want(p, now);
}
