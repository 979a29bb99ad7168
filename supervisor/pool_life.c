/*
 * pool_life: what happens to a box: booted, checked, parked, failed, closed, cleaned. Runs in sbxd.
 */
#include <bsd/string.h>

#include "lib/log.h"
#include "supervisor/pool_int.h"

static void note_error(struct pool_box *b, const char *text)
{
	(void)strlcpy(b->last_error, text, sizeof(b->last_error));
}

void pool_park(struct pool *p, uint64_t now, struct pool_box *b, bool skip_right, const char *why)
{
	pool_move(p, now, b, SLOT_WARM, why);
	b->parked = now;
	b->skip_right = skip_right;
	b->claimed = false;
	if (p->rules.idle_timeout)
		pool_expect(p, &b->due, now + p->rules.idle_timeout);
	pool_tell(p, POOL_PARK, b);
	pool_room_freed(p, now);
}

/* Its clients' part in it ends. */
static void end_use(struct pool *p, struct pool_box *b, const char *why)
{
	b->flags &= ~SLOT_FLAG_SAVED; /* whoever wants it saved says so afterwards */
	pool_drop_leases(p, b, why);
	pool_orders_lost(p, b, why);
}

/* The worker is told to stop the box; without one there is nothing to stop. */
static void stop_box(struct pool *p, uint64_t now, struct pool_box *b, const char *why)
{
	end_use(p, b, why);
	pool_move(p, now, b, SLOT_CLOSING, why);
	if (!b->has_worker) {
		(void)pool_act(p, POOL_CLEAN, b);
		pool_limit(p, b, now + POOL_CLEAN_WAIT);
	} else {
		pool_tell(p, POOL_CLOSE, b);
		pool_limit(p, b, now + p->rules.close_grace + POOL_CLOSE_SLACK);
	}
	pool_boot_next(p, now); /* it may have held a boot permit */
}

void pool_close_box(struct pool *p, uint64_t now, struct pool_box *b, const char *why)
{
	if (b->state == SLOT_CLOSING) {
		b->flags &= ~(SLOT_FLAG_SAVED | SLOT_FLAG_FAILED);
		pool_touch(p, b);
		return;
	}
	stop_box(p, now, b, why);
	pool_room_freed(p, now);
}

/* As pool_close_box(), but its room is the caller's. */
void pool_evict_box(struct pool *p, uint64_t now, struct pool_box *b, const char *why)
{
	pool_record(p, EVENT_EVICT, b, 0, why);
	stop_box(p, now, b, why);
}

/* Its worker closes the box of its own accord, or says next that the box has died. One that was to
 * be saved when that is done still is: its worker only goes. */
void pool_closes_itself(struct pool *p, uint64_t now, struct pool_box *b, const char *why)
{
	uint32_t saved = b->state == SLOT_CLOSING ? b->flags & SLOT_FLAG_SAVED : 0;

	end_use(p, b, why);
	b->flags |= saved;
	if (b->state != SLOT_CLOSING) {
		pool_move(p, now, b, SLOT_CLOSING, why);
		b->flags |= SLOT_FLAG_FAILED;
	}
	pool_limit(p, b, now + p->rules.close_grace + POOL_CLOSE_SLACK);
	pool_boot_next(p, now);
	pool_room_freed(p, now);
}

void pool_kill_box(struct pool *p, uint64_t now, struct pool_box *b, const char *why)
{
	end_use(p, b, why);
	if (b->state != SLOT_CLOSING)
		pool_move(p, now, b, SLOT_CLOSING, why);
	note_error(b, why);
	pool_touch(p, b);
	b->killed = true;
	pool_limit(p, b, now + POOL_KILL_WAIT);
	(void)pool_act(p, POOL_KILL, b);
	pool_boot_next(p, now);
	pool_room_freed(p, now);
}

static struct pool_scope *detach_scope(struct pool_box *b)
{
	struct pool_scope *s = b->scope;

	b->scope = NULL;
	b->waiters = 0;
	if (s)
		s->box = NULL;
	return s;
}

/* The box of `s` is no more: who waits there needs another one, in turn with all who do. */
static void scope_goes_on(struct pool *p, uint64_t now, struct pool_scope *s)
{
	if (s && !TAILQ_EMPTY(&s->waiters))
		pool_room_queue(p, TAILQ_FIRST(&s->waiters));
	pool_scope_drop_if_empty(s);
	pool_room_freed(p, now);
}

static void finish_removal(struct pool *p, struct pool_box *b)
{
	if (b->remove_req)
		pool_act(p, POOL_REMOVED, b)->req = b->remove_req;
	b->remove_req = 0;
}

static void check_drained(struct pool *p)
{
	uint32_t idle = p->state_count[SLOT_FREE] + p->state_count[SLOT_QUARANTINED];

	if (!p->shutting_down || p->drained || idle < p->rules.slots)
		return;
	p->drained = true;
	(void)pool_act(p, POOL_DRAINED, NULL);
}

void pool_quarantine(struct pool *p, uint64_t now, struct pool_box *b, const char *why)
{
	struct pool_scope *s = detach_scope(b);

	note_error(b, why);
	pool_move(p, now, b, SLOT_QUARANTINED, why);
	pool_record(p, EVENT_QUARANTINE, b, 0, why);
	finish_removal(p, b);
	scope_goes_on(p, now, s);
	check_drained(p);
}

/* A box is proven to be up. Whoever it was started or checked for may have left, and the next in
 * the queue may want another spec. One that was to be its creator's is nobody else's. */
static void box_ready(
    struct pool *p, uint64_t now, struct pool_box *b, enum shm_source source, const char *left)
{
	struct pool_waiter *w = TAILQ_FIRST(&b->scope->waiters);

	if (w && !pool_is_order(w) && pool_waiter_fits(w, b))
		pool_grant(p, now, w, b, source);
	else if (pool_is_made(b))
		pool_close_box(p, now, b, "its creator is gone");
	else
		pool_park(p, now, b, true, left);
	pool_scope_advance(p, now, b->scope);
}

static void limit_boot(struct pool *p, uint32_t slot, uint64_t gen, uint64_t deadline)
{
	struct pool_box *b = pool_box_current(p, slot, gen);

	if (b && b->state == SLOT_BOOTING)
		pool_limit(p, b, deadline);
}

void pool_boot_waits(struct pool *p, uint64_t now, uint32_t slot, uint64_t gen)
{
	limit_boot(p, slot, gen, now + p->rules.boot_timeout + POOL_IMAGE_WAIT);
}

void pool_boot_begins(struct pool *p, uint64_t now, uint32_t slot, uint64_t gen)
{
	limit_boot(p, slot, gen, now + p->rules.boot_timeout);
}

void pool_booted(struct pool *p, uint64_t now, uint32_t slot, uint64_t gen)
{
	struct pool_box *b = pool_box_current(p, slot, gen);

	if (!b || b->state != SLOT_BOOTING || b->adopting)
		return;
	if (pool_is_stock(b))
		pool_stock_booted(p, now, b);
	else if (pool_is_saved(b))
		pool_saved(p, now, b);
	else
		box_ready(p, now, b, SOURCE_COLD, "booted, but not wanted any more");
	pool_boot_next(p, now);
}

static void boot_failed(struct pool *p, uint64_t now, uint32_t slot, uint64_t gen,
    enum api_error error, const char *text)
{
	struct pool_box *b = pool_box_current(p, slot, gen);
	uint64_t before;

	if (!b || b->state != SLOT_BOOTING)
		return;
	before = pool_blame_awaited(p, b);
	note_error(b, text);
	if (pool_is_saved(b)) {
		pool_not_saved(p, now, b, text);
		(void)pool_blame(p, before);
		return;
	}
	pool_record(p, EVENT_BOOT_FAILED, b, 0, text);
	if (pool_is_stock(b))
		pool_stock_lost(p, now);
	pool_close_box(p, now, b, "boot failed");
	(void)pool_blame(p, before);
	if (b->scope)
		pool_scope_refuse_all(p, b->scope, error, text);
}

void pool_boot_failed(struct pool *p, uint64_t now, uint32_t slot, uint64_t gen, const char *text)
{
	boot_failed(p, now, slot, gen, API_BOOT_FAILED, text);
}

void pool_image_failed(struct pool *p, uint64_t now, uint32_t slot, uint64_t gen, const char *text)
{
	boot_failed(p, now, slot, gen, API_IMAGE_PULL_FAILED, text);
}

void pool_checked(
    struct pool *p, uint64_t now, uint32_t slot, uint64_t gen, bool healthy, const char *text)
{
	struct pool_box *b = pool_box_current(p, slot, gen);
	uint64_t before;

	if (!b || b->state != SLOT_CHECKING)
		return;
	if (healthy) {
		b->flags &= ~SLOT_FLAG_ADOPTED;
		box_ready(p, now, b, b->claimed ? SOURCE_PREWARMED : SOURCE_WARM,
		    "checked, but not wanted any more");
		return;
	}
	before = pool_blame_awaited(p, b);
	pool_record(p, EVENT_CHECK_FAILED, b, 0, text);
	pool_kill_box(p, now, b, text);
	(void)pool_blame(p, before);
}

/* A boot that was lost is tried again for those who wait, but not for ever. */
static void count_lost_boot(struct pool *p, const struct pool_box *b, const char *text)
{
	struct pool_waiter *w;
	struct pool_waiter *next;

	TAILQ_FOREACH_SAFE (w, &b->scope->waiters, link, next) {
		if (++w->boots_lost >= POOL_BOOT_TRIES)
			pool_waiter_refuse(p, w, API_BOOT_FAILED, 0, text);
	}
}

/* The box is no more, though nobody closed it. */
static void box_lost(
    struct pool *p, uint64_t now, struct pool_box *b, const char *text, const char *how)
{
	bool booted = b->state != SLOT_BOOTING || pool_is_saved(b);

	note_error(b, text);
	end_use(p, b, how);
	if (pool_is_stock(b))
		pool_stock_lost(p, now);
	pool_move(p, now, b, SLOT_CLOSING, how);
	if (!booted && b->scope)
		count_lost_boot(p, b, text);
	pool_boot_next(p, now);
}

void pool_box_failed(struct pool *p, uint64_t now, uint32_t slot, uint64_t gen, const char *text)
{
	struct pool_box *b = pool_box_current(p, slot, gen);
	uint64_t before;

	if (!b || !b->has_worker || b->state == SLOT_CLOSING || b->state == SLOT_QUARANTINED)
		return;
	/* What is left of it is not worth more. */
	if (b->state == SLOT_BOOTING && pool_is_saved(b)) {
		pool_boot_failed(p, now, slot, gen, text);
		return;
	}
	before = pool_blame_awaited(p, b);
	/* One that stood still may be found dead only when a check has it go on. */
	pool_record(p, b->state == SLOT_CHECKING ? EVENT_CHECK_FAILED : EVENT_ERROR, b, 0, text);
	box_lost(p, now, b, text, "box died");
	b->flags |= SLOT_FLAG_FAILED;
	(void)pool_blame(p, before);
	/* The worker answers its clients and exits by itself. */
	pool_limit(p, b, now + POOL_FAILED_GRACE);
	pool_room_freed(p, now);
}

void pool_worker_gone(
    struct pool *p, uint64_t now, uint32_t slot, uint64_t gen, int32_t code, const char *text)
{
	struct pool_box *b = pool_box_current(p, slot, gen);
	uint64_t before;
	bool save;

	if (!b || !b->has_worker)
		return;
	b->has_worker = false;
	b->adopting = false;
	pool_touch(p, b); /* the table shows no worker from now on */
	if (b->state == SLOT_QUARANTINED)
		return;
	if (b->state != SLOT_CLOSING) {
		before = pool_blame_awaited(p, b);
		save = pool_may_save(p, b);
		pool_record(p, EVENT_WORKER_CRASH, b, code, text);
		box_lost(p, now, b, text, "worker crashed");
		(void)pool_blame(p, before);
	} else {
		save = pool_is_still_saved(p, b);
	}
	if (save) {
		pool_save(p, now, b);
		pool_boot_next(p, now);
	} else {
		b->flags &= ~(SLOT_FLAG_SAVED | SLOT_FLAG_FAILED);
		(void)pool_act(p, POOL_CLEAN, b);
		pool_limit(p, b, now + POOL_CLEAN_WAIT);
	}
	pool_room_freed(p, now); /* or its slot was waited for, and does not come free */
}

void pool_cleaned(
    struct pool *p, uint64_t now, uint32_t slot, uint64_t gen, bool ok, const char *text)
{
	struct pool_box *b = pool_box_current(p, slot, gen);
	struct pool_scope *s;

	if (!b || b->state != SLOT_CLOSING || b->has_worker)
		return;
	if (!ok) {
		pool_quarantine(p, now, b, text);
		return;
	}
	s = detach_scope(b);
	finish_removal(p, b);
	pool_slot_give(p, now, b);
	scope_goes_on(p, now, s);
	check_drained(p);
}
