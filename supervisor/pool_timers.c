/*
 * pool_timers: what time alone brings about. Runs in sbxd.
 *
 * `due` is never later than the earliest deadline, and may be earlier when a deadline was dropped:
 * then a tick finds nothing to do and works `due` out anew. A tick looks at every box once.
 */
#include "supervisor/pool_int.h"

static struct pool_waiter *overdue_waiter(const struct pool *p, uint64_t now)
{
	struct pool_waiter *w;

	TAILQ_FOREACH (w, &p->waiters, all_link) {
		if (now >= w->deadline)
			return w;
	}
	return NULL;
}

static void waiters_tick(struct pool *p, uint64_t now)
{
	struct pool_waiter *w;

	/* From the start each time: serving those behind it may take others out of the list. */
	while ((w = overdue_waiter(p, now))) {
		struct pool_scope *s = w->scope;

		if (w->for_room)
			pool_waiter_refuse(
			    p, w, API_CAPACITY, 1.0, "no room for another box came free in time");
		else
			pool_waiter_refuse(p, w, API_TIMEOUT, 0, "the box was not ready in time");
		pool_scope_left(p, now, s);
	}
	TAILQ_FOREACH (w, &p->waiters, all_link) {
		pool_expect(p, w->deadline);
	}
}

static void leases_tick(struct pool *p, uint64_t now, struct pool_box *b)
{
	struct pool_lease *l;
	struct pool_lease *next;

	TAILQ_FOREACH_SAFE (l, &b->leases, link, next) {
		if (now >= l->expires)
			pool_lease_end(p, l, "expired");
		else
			pool_expect(p, l->expires);
	}
	if (b->state == SLOT_ACTIVE && b->lease_count == 0)
		pool_park(p, now, b, true, "its leases expired");
}

/* The last moment anything used the box: a lease, its parking, or a client's operation in it. */
static uint64_t last_use(const struct pool *p, const struct pool_box *b, uint64_t since)
{
	uint64_t activity = p->gauge.activity_ns(p->gauge.ctx, b->slot);

	return activity > since ? activity : since;
}

/* Closes b when it lay idle for `limit`; while something runs in it, looks again later. */
static void idle_tick(struct pool *p, uint64_t now, struct pool_box *b, uint64_t since,
    uint64_t limit, const char *why)
{
	uint64_t idle_at = last_use(p, b, since) + limit;

	if (now < idle_at) {
		pool_expect(p, idle_at);
	} else if (p->gauge.in_flight(p->gauge.ctx, b->slot) > 0) {
		pool_expect(p, now + (limit < NS_PER_S ? limit : NS_PER_S));
	} else {
		pool_record(p, EVENT_EVICT, b, POOL_EVICT_IDLE, why);
		pool_close_box(p, now, b, why);
	}
}

static void overdue(struct pool *p, uint64_t now, struct pool_box *b)
{
	switch ((enum slot_state)b->state) {
	case SLOT_BOOTING:
		pool_record(p, EVENT_BOOT_FAILED, b, 0, "boot timed out");
		pool_scope_refuse_all(p, b->scope, API_BOOT_FAILED, "the box did not boot in time");
		pool_kill_box(p, now, b, "boot timed out");
		return;
	case SLOT_CHECKING:
		pool_record(p, EVENT_CHECK_FAILED, b, 0, "health check timed out");
		pool_kill_box(p, now, b, "health check timed out");
		return;
	case SLOT_CLOSING:
		if (!b->has_worker)
			pool_quarantine(p, now, b, "its remains could not be cleaned up in time");
		else if (b->killed)
			pool_quarantine(p, now, b, "its worker could not be killed");
		else
			pool_kill_box(p, now, b, "did not close in time");
		return;
	case SLOT_FREE:
	case SLOT_RESERVED:
	case SLOT_STOCK:
	case SLOT_ACTIVE:
	case SLOT_WARM:
	case SLOT_QUARANTINED:
	case SLOT_STATES:
		b->deadline = CLOCK_NEVER; /* these states have none */
		return;
	}
}

static void box_tick(struct pool *p, uint64_t now, struct pool_box *b)
{
	leases_tick(p, now, b);
	if (now >= b->deadline)
		overdue(p, now, b);
	else
		pool_expect(p, b->deadline);
	if (b->state == SLOT_WARM && p->rules.idle_timeout)
		idle_tick(p, now, b, b->parked, p->rules.idle_timeout, "idle_timeout");
	if (b->state == SLOT_ACTIVE && p->rules.active_idle_timeout)
		idle_tick(
		    p, now, b, b->leased, p->rules.active_idle_timeout, "active_idle_timeout");
}

void pool_tick(struct pool *p, uint64_t now)
{
	if (now < p->due)
		return;
	p->due = CLOCK_NEVER;
	waiters_tick(p, now);
	for (uint32_t i = 0; i < p->rules.slots; i++) {
		if (p->boxes[i].state != SLOT_FREE && p->boxes[i].state != SLOT_QUARANTINED)
			box_tick(p, now, &p->boxes[i]);
	}
	pool_room_freed(p, now);
}
