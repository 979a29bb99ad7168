/*
 * pool_release: the ways out: leases returned or dropped, removal, reset, shutdown. Runs in sbxd.
 */
#include <errno.h>
#include <string.h>

#include "supervisor/pool_int.h"

static struct pool_box *find(struct pool *p, uid_t uid, const char *token)
{
	struct pool_scope *s = pool_scope_get(p, uid, token);

	return s ? s->box : NULL;
}

/* The last lease is gone: the box is parked, never stopped. In a shutdown none is leased. */
void pool_settle(struct pool *p, uint64_t now, struct pool_box *b, bool skip_right, const char *why)
{
	if (b->state == SLOT_ACTIVE && b->lease_count == 0)
		pool_park(p, now, b, skip_right, why);
}

enum pool_release_result pool_release(
    struct pool *p, uint64_t now, uid_t uid, const char *token, uint64_t lease_id)
{
	struct pool_box *b = find(p, uid, token);
	struct pool_lease *l;
	struct pool_lease *next;

	if (!b)
		return pool_past_has(p, uid, token) ? POOL_RELEASE_CLOSED : POOL_RELEASE_NOT_FOUND;
	if (pool_is_made(b))
		return b->state == SLOT_CLOSING ? POOL_RELEASE_CLOSED : POOL_RELEASE_RUNNING;
	TAILQ_FOREACH_SAFE (l, &b->leases, link, next) {
		if (lease_id == 0 || l->id == lease_id)
			pool_lease_end(p, l, "released");
	}
	pool_settle(p, now, b, true, "released");
	if (b->state == SLOT_WARM || b->state == SLOT_CHECKING || pool_is_saved(b))
		return POOL_RELEASE_WARM;
	return b->state == SLOT_CLOSING ? POOL_RELEASE_CLOSED : POOL_RELEASE_RUNNING;
}

/* In use, so that a removal needs force. */
static bool is_busy(const struct pool_box *b)
{
	if (pool_is_made(b))
		return b->state < SLOT_CLOSING &&
		       !(b->state == SLOT_ACTIVE &&
			   (b->flags & (SLOT_FLAG_FRESH | SLOT_FLAG_STOPPED)));
	return b->lease_count > 0;
}

int pool_remove(
    struct pool *p, uint64_t now, uid_t uid, const char *token, bool force, uint64_t req)
{
	struct pool_box *b = find(p, uid, token);
	uint64_t before;

	if (!b)
		return -ENOENT;
	if (is_busy(b) && !force)
		return -EBUSY;
	if (b->remove_req)
		return -EALREADY;
	b->remove_req = req;
	before = pool_blame(p, req);
	if (pool_is_made(b)) /* else its creator would be given another */
		pool_scope_refuse_all(p, b->scope, API_BOX_DIED, "the box was removed");
	pool_close_box(p, now, b, "removed");
	(void)pool_blame(p, before);
	return 0;
}

/* Settles every box that has lost its leases. Comes after all of them are ended: what is parked may
 * make way for a box that is leased anew, and that one is not meant. */
uint32_t pool_settle_all(struct pool *p, uint64_t now, bool skip_right, const char *why)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < p->rules.slots; i++) {
		if (p->boxes[i].state != SLOT_ACTIVE || p->boxes[i].lease_count > 0)
			continue;
		pool_settle(p, now, &p->boxes[i], skip_right, why);
		count++;
	}
	return count;
}

uint32_t pool_reset(struct pool *p, uint64_t now)
{
	for (uint32_t i = 0; i < p->rules.slots; i++)
		if (!pool_is_made(&p->boxes[i]))
			pool_drop_leases(p, &p->boxes[i], "reset");
	return pool_settle_all(p, now, false, "reset");
}

void pool_refuse_everybody(struct pool *p, const char *text)
{
	struct pool_waiter *w;

	while ((w = TAILQ_FIRST(&p->waiters))) {
		struct pool_scope *s = w->scope;

		pool_waiter_refuse(p, w, API_SHUTTING_DOWN, 0, text);
		pool_scope_drop_if_empty(s);
	}
}

void pool_shutdown(struct pool *p, uint64_t now)
{
	if (p->shutting_down)
		return;
	p->shutting_down = true;
	pool_refuse_everybody(p, "the service is shutting down");
	for (uint32_t i = 0; i < p->rules.slots; i++) {
		struct pool_box *b = &p->boxes[i];

		if (b->state != SLOT_FREE && b->state != SLOT_QUARANTINED)
			pool_close_box(p, now, b, "shutdown");
	}
	if (p->state_count[SLOT_FREE] + p->state_count[SLOT_QUARANTINED] == p->rules.slots) {
		p->drained = true;
		(void)pool_act(p, POOL_DRAINED, NULL);
	}
}
