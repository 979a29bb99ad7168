/* pool_timers: what time alone brings about. Runs in sbxd. */
#include <stddef.h>

#include "supervisor/pool_int.h"

static void waiter_tick(struct pool *p, uint64_t now, struct pool_waiter *w)
{
	struct pool_scope *s = w->scope;

	if (w->turn)
		pool_waiter_refuse(
		    p, w, API_CAPACITY, 1.0, "no room for another box came free in time");
	else
		pool_waiter_refuse(p, w, API_TIMEOUT, 0, "the box was not ready in time");
	pool_scope_left(p, now, s);
}

static void leases_tick(struct pool *p, uint64_t now, struct pool_box *b)
{
	struct pool_lease *l;
	struct pool_lease *next;

	TAILQ_FOREACH_SAFE (l, &b->leases, link, next) {
		if (now >= l->expires)
			pool_lease_end(p, l, "expired");
		else
			pool_expect(p, &b->due, l->expires);
	}
	pool_settle(p, now, b, true, "its leases expired");
}

/* The last moment anything used the box: a lease, its parking, or a client's operation in it. */
static uint64_t last_use(const struct pool *p, const struct pool_box *b, uint64_t since)
{
	uint64_t activity = p->gauge.activity_ns(p->gauge.ctx, b->slot);

	return activity > since ? activity : since;
}

/* Closes b when it lay idle for `limit`; while something runs in it, or somebody waits for it to be
 * adopted, looks again later. */
static void idle_tick(struct pool *p, uint64_t now, struct pool_box *b, uint64_t since,
    uint64_t limit, const char *why)
{
	uint64_t idle_at = last_use(p, b, since) + limit;

	if (now < idle_at) {
		pool_expect(p, &b->due, idle_at);
	} else if (b->waiters > 0 || p->gauge.in_flight(p->gauge.ctx, b->slot) > 0) {
		pool_expect(p, &b->due, now + (limit < NS_PER_S ? limit : NS_PER_S));
	} else {
		pool_record(p, EVENT_EVICT, b, POOL_EVICT_IDLE, why);
		pool_close_box(p, now, b, why);
	}
}

static void boot_overdue(struct pool *p, uint64_t now, struct pool_box *b)
{
	struct pool_scope *s = b->scope;

	if (pool_is_saved(b)) { /* who waits for it waits on, for a new one */
		pool_record(p, EVENT_ERROR, b, 0, "its taking over timed out");
		pool_kill_box(p, now, b, "its taking over timed out");
		return;
	}
	pool_record(p, EVENT_BOOT_FAILED, b, 0, "boot timed out");
	if (pool_is_stock(b))
		pool_stock_lost(p, now);
	pool_kill_box(p, now, b, "boot timed out");
	if (s)
		pool_scope_refuse_all(p, s, API_BOOT_FAILED, "the box did not boot in time");
}

static void check_overdue(struct pool *p, uint64_t now, struct pool_box *b)
{
	pool_record(p, EVENT_CHECK_FAILED, b, 0, "health check timed out");
	pool_kill_box(p, now, b, "health check timed out");
}

static void close_overdue(struct pool *p, uint64_t now, struct pool_box *b)
{
	if (!b->has_worker)
		pool_quarantine(p, now, b, "its remains could not be cleaned up in time");
	else if (b->killed)
		pool_quarantine(p, now, b, "its worker could not be killed");
	else
		pool_kill_and_save(p, now, b, "did not close in time");
}

/* Nothing is heard of its stop, not even that it failed. */
static void stop_overdue(struct pool *p, uint64_t now, struct pool_box *b)
{
	pool_record(p, EVENT_ERROR, b, 0, "its worker did not stop it in time");
	pool_kill_box(p, now, b, "its worker did not stop it in time");
}

/* The states that have a deadline: an active box has one while it is being stopped. */
static void (*const overdue[SLOT_STATES])(struct pool *p, uint64_t now, struct pool_box *b) = {
    [SLOT_BOOTING] = boot_overdue,
    [SLOT_ACTIVE] = stop_overdue,
    [SLOT_CHECKING] = check_overdue,
    [SLOT_CLOSING] = close_overdue,
};

static void deadline_tick(struct pool *p, uint64_t now, struct pool_box *b)
{
	uint64_t before;

	if (now < b->deadline) {
		pool_expect(p, &b->due, b->deadline);
		return;
	}
	before = pool_blame_awaited(p, b);
	overdue[b->state](p, now, b);
	(void)pool_blame(p, before);
}

static void box_tick(struct pool *p, uint64_t now, struct pool_box *b)
{
	leases_tick(p, now, b);
	deadline_tick(p, now, b);
	if (b->state == SLOT_WARM && p->rules.idle_timeout)
		idle_tick(p, now, b, b->parked, p->rules.idle_timeout, "idle_timeout");
	if (b->state == SLOT_ACTIVE && p->rules.active_idle_timeout && !pool_is_made(b))
		idle_tick(
		    p, now, b, b->leased, p->rules.active_idle_timeout, "active_idle_timeout");
}

/* Every box works out anew when it is due. */
void pool_look_at_all(struct pool *p, uint64_t now)
{
	for (uint32_t i = 0; i < p->rules.slots; i++) {
		if (p->boxes[i].state != SLOT_FREE && p->boxes[i].state != SLOT_QUARANTINED)
			pool_expect(p, &p->boxes[i].due, now);
	}
}

#define OWNER(due, type, member) ((type *)(void *)((char *)(due)-offsetof(type, member)))

void pool_tick(struct pool *p, uint64_t now)
{
	struct pool_due *d;

	while ((d = pool_due_take(p, now))) {
		switch ((enum pool_due_kind)d->kind) {
		case DUE_BOX:
			box_tick(p, now, OWNER(d, struct pool_box, due));
			break;
		case DUE_WAITER:
			waiter_tick(p, now, OWNER(d, struct pool_waiter, due));
			break;
		case DUE_ROOM:
			pool_room_freed(p, now);
			break;
		case DUE_STOCK:
			pool_stock_fill(p, now);
			break;
		}
	}
}
