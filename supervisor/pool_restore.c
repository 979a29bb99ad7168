/*
 * pool_restore: a pool takes over what the table of a dead supervisor shows, and adopts its workers
 * as they say hello; or leaves it all to a successor. Runs in sbxd; dying here leaves the table to
 * the next one.
 */
#include <bsd/string.h>
#include <stdlib.h>
#include <string.h>

#include "lib/log.h"
#include "supervisor/pool_int.h"

/* ---- one box ---- */

static uint64_t not_later(uint64_t time, uint64_t now)
{
	return time < now ? time : now;
}

/* The texts end, whatever the table said. */
static void fill_box(struct pool_box *b, uint64_t now, const struct pool_restored *r)
{
	b->uid = r->uid;
	if (r->state != SLOT_STOCK)
		(void)strlcpy(b->token, r->token, sizeof(b->token));
	memcpy(b->identity, r->identity, sizeof(b->identity));
	(void)strlcpy(b->user, r->user, sizeof(b->user));
	(void)strlcpy(b->thread, r->thread, sizeof(b->thread));
	(void)strlcpy(b->name, r->name, sizeof(b->name));
	b->flags = r->flags;
	b->machine = r->machine;
	b->spec = r->spec;
	b->source = r->source;
	b->acquires = r->acquires;
	b->saves = r->saves;
	b->created = not_later(r->created, now);
	b->state_since = not_later(r->state_since, now);
	b->parked = not_later(r->parked, now);
	b->leased = not_later(r->leased, now);
	b->has_worker = r->has_worker;
	b->adopting = r->has_worker;
	(void)strlcpy(b->last_error, r->last_error, sizeof(b->last_error));
}

static void restore_leases(struct pool *p, struct pool_box *b, const struct pool_restored *r)
{
	for (uint32_t i = 0; i < r->lease_count && i < POOL_LEASES; i++) {
		const struct pool_lease_restored *l = &r->leases[i];

		pool_lease_put(pool_lease_give(p, b, l->id, l->cookie, l->expires), l->place);
	}
}

/* Its worker, if there is one, is told when it has said hello. Without one it is cleaned when the
 * whole table is read. */
static void go_on_closing(struct pool *p, uint64_t now, struct pool_box *b)
{
	pool_limit(p, b,
	    now + (b->has_worker ? p->rules.close_grace + POOL_CLOSE_SLACK : POOL_CLEAN_WAIT));
}

static void give_up(struct pool *p, uint64_t now, struct pool_box *b, const char *why)
{
	b->flags &= ~(SLOT_FLAG_SAVED | SLOT_FLAG_FAILED);
	if (b->state == SLOT_CLOSING)
		return;
	pool_drop_leases(p, b, why);
	pool_move(p, now, b, SLOT_CLOSING, why);
	go_on_closing(p, now, b);
}

/* ---- what it is a box of ---- */

static bool goes_first(const struct pool_box *a, const struct pool_box *b)
{
	if ((a->lease_count > 0) != (b->lease_count > 0))
		return a->lease_count > 0;
	return a->generation > b->generation;
}

/* A scope has one box. A table that was torn may show two: one of them goes. */
static void join_scope(struct pool *p, uint64_t now, struct pool_box *b)
{
	struct pool_scope *s = pool_scope_get(p, b->uid, b->token);
	struct pool_box *loser;

	if (!s)
		s = pool_scope_make(p, b->uid, b->token, b->identity);
	loser = s->box;
	if (loser && !goes_first(b, loser)) {
		give_up(p, now, b, "its scope has another box");
		return;
	}
	memcpy(s->identity, b->identity, sizeof(s->identity));
	s->box = b;
	b->scope = s;
	if (b->state != SLOT_CLOSING && !pool_scope_named(p, b->uid, b->name))
		pool_scope_name(p, s, b->name);
	if (!loser)
		return;
	loser->scope = NULL;
	give_up(p, now, loser, "its scope has another box");
}

/* ---- states ---- */

static void restore_active(struct pool *p, uint64_t now, struct pool_box *b)
{
	if (b->lease_count > 0)
		return;
	if (pool_is_made(b)) {
		give_up(p, now, b, "its removal was half done");
		return;
	}
	pool_move(p, now, b, SLOT_WARM, "its release was half done");
	b->parked = now;
}

static void restore_checking(struct pool *p, uint64_t now, struct pool_box *b)
{
	pool_move(p, now, b, SLOT_WARM, "its check is lost with the supervisor");
	b->parked = now; /* somebody wanted it just now: the newest */
}

static void restore_booting(struct pool *p, uint64_t now, struct pool_box *b)
{
	if (pool_is_made(b)) /* so its name can be used again at once */
		give_up(p, now, b, "its creator is gone");
	else
		pool_limit(p, b, now + p->rules.boot_timeout);
}

static void restore_reserved(struct pool *p, uint64_t now, struct pool_box *b)
{
	give_up(p, now, b, "nobody waits for it any more");
}

static void restore_nothing(struct pool *p, uint64_t now, struct pool_box *b)
{
	(void)p;
	(void)now;
	(void)b;
}

/* By the state that the table shows. */
static const struct {
	void (*alive)(struct pool *p, uint64_t now, struct pool_box *b); /* it has a worker */
	bool scoped;							 /* it must be somebody's */
	bool loss; /* without a worker something was lost */
} restores[SLOT_STATES] = {
    [SLOT_RESERVED] = {restore_reserved, false, false},
    [SLOT_BOOTING] = {restore_booting, false, true},
    [SLOT_STOCK] = {restore_nothing, false, true},
    [SLOT_ACTIVE] = {restore_active, true, true},
    [SLOT_CHECKING] = {restore_checking, true, true},
    [SLOT_WARM] = {restore_nothing, true, true},
    [SLOT_CLOSING] = {go_on_closing, false, false},
    [SLOT_QUARANTINED] = {restore_nothing, false, false},
};

/* Through closing, as it would go with its supervisor there. */
static void save_dead(struct pool *p, uint64_t now, struct pool_box *b, const char *why)
{
	pool_drop_leases(p, b, why);
	pool_move(p, now, b, SLOT_CLOSING, why);
	pool_save(p, now, b);
}

static void restore_dead(struct pool *p, uint64_t now, struct pool_box *b)
{
	static const char lost[] = "its worker died with the supervisor";
	bool is_loss = restores[b->state].loss;
	bool save = pool_may_save(p, b);

	if (is_loss) {
		pool_record(p, EVENT_WORKER_CRASH, b, 0, lost);
		(void)strlcpy(b->last_error, lost, sizeof(b->last_error));
	}
	if (b->state == SLOT_CLOSING) /* whether its place is still there all of them say */
		go_on_closing(p, now, b);
	else if (b->state == SLOT_RESERVED && pool_is_saved(b))
		return; /* it waits on */
	else if (save)
		save_dead(p, now, b, lost);
	else
		give_up(p, now, b, is_loss ? lost : "its supervisor died before it was begun");
}

static void restore_box(struct pool *p, uint64_t now, struct pool_box *b)
{
	uint32_t shown = b->state;

	if (shown == SLOT_QUARANTINED)
		return;
	pool_save_unheard(p, b);
	if (!b->has_worker)
		restore_dead(p, now, b);
	else
		restores[shown].alive(p, now, b);
	if (b->token[0])
		join_scope(p, now, b);
	else if (restores[shown].scoped)
		give_up(p, now, b, "it is nobody's");
	if (b->has_worker)
		b->flags |= SLOT_FLAG_ADOPTED;
}

void pool_restore(struct pool *p, uint64_t now, const struct pool_restored *r)
{
	struct pool_box *b;

	INVARIANT(r->slot < p->rules.slots && r->state < SLOT_STATES);
	if (r->state == SLOT_FREE)
		return;
	b = &p->boxes[r->slot];
	INVARIANT(b->state == SLOT_FREE);
	fill_box(b, now, r);
	pool_name_box(p, b, r->generation);
	/* That of a quarantined slot may be anything. */
	if (r->state != SLOT_QUARANTINED && p->generation < r->generation)
		p->generation = r->generation;
	pool_enter(p, b, r->state);
	if (r->state == SLOT_ACTIVE)
		restore_leases(p, b, r);
	restore_box(p, now, b);
	pool_touch(p, b);
}

static int by_parking(const void *a, const void *b)
{
	const struct pool_box *const *x = a;
	const struct pool_box *const *y = b;

	if ((*x)->parked != (*y)->parked)
		return (*x)->parked < (*y)->parked ? -1 : 1;
	return (*x)->generation < (*y)->generation ? -1 : 1;
}

/* The warm list was filled in the order of slots. */
static void sort_warm(struct pool *p)
{
	uint32_t n = 0;
	struct pool_box **all = calloc(p->state_count[SLOT_WARM] + 1UL, sizeof(struct pool_box *));
	struct pool_box *b;

	INVARIANT(all != NULL);
	TAILQ_FOREACH (b, &p->warm, queue)
		all[n++] = b;
	qsort(all, n, sizeof(struct pool_box *), by_parking);
	TAILQ_INIT(&p->warm);
	for (uint32_t i = 0; i < n; i++)
		TAILQ_INSERT_TAIL(&p->warm, all[i], queue);
	free(all);
}

/* No worker is left that has it. */
static void restored_dead(struct pool *p, uint64_t now, struct pool_box *b)
{
	if (pool_is_still_saved(p, b)) {
		pool_save(p, now, b);
		return;
	}
	b->flags &= ~(SLOT_FLAG_SAVED | SLOT_FLAG_FAILED);
	(void)pool_act(p, POOL_CLEAN, b);
}

void pool_restored_all(struct pool *p, uint64_t now)
{
	p->free_count = 0;
	for (uint32_t i = p->rules.slots; i-- > 0;) {
		if (p->boxes[i].state == SLOT_FREE)
			p->free_slots[p->free_count++] = i;
	}
	for (uint32_t i = 0; i < p->rules.slots; i++) {
		if (p->boxes[i].state == SLOT_CLOSING && !p->boxes[i].has_worker)
			restored_dead(p, now, &p->boxes[i]);
	}
	sort_warm(p);
	pool_stock_trim(p, now);
	pool_boot_next(p, now); /* those that are saved */
	pool_look_at_all(p, now);
}

/* ---- workers ---- */

/* Orders that came about before its worker could hear them, in one: what it is now. */
static void tell_state(struct pool *p, struct pool_box *b)
{
	static const enum pool_action_kind orders[SLOT_STATES] = {
	    [SLOT_ACTIVE] = POOL_PROMOTE,
	    [SLOT_WARM] = POOL_PARK,
	    [SLOT_CLOSING] = POOL_CLOSE,
	};

	if (orders[b->state])
		(void)pool_act(p, orders[b->state], b);
}

static struct pool_box *adopting(struct pool *p, uint32_t slot, uint64_t gen)
{
	struct pool_box *b = pool_box_current(p, slot, gen);

	return b && b->adopting ? b : NULL;
}

/* Who waits for it by now gets it checked, as all that another supervisor made. */
static void booted_meanwhile(struct pool *p, uint64_t now, struct pool_box *b)
{
	b->flags &= ~SLOT_FLAG_SAVED;
	if (pool_is_stock(b))
		pool_stock_booted(p, now, b);
	else
		pool_park(p, now, b, false, "booted while nobody supervised");
	pool_boot_next(p, now);
}

void pool_adopted(struct pool *p, uint64_t now, uint32_t slot, uint64_t gen, bool up, bool closing)
{
	struct pool_box *b = adopting(p, slot, gen);

	if (!b)
		return;
	b->adopting = false;
	pool_record(p, EVENT_ADOPT, b, 0, closing ? "its worker closes it" : "its worker lives");
	pool_touch(p, b);
	if (b->killed || b->state == SLOT_QUARANTINED)
		return;
	if (closing)
		pool_closes_itself(p, now, b, "its worker was closing it");
	else if (b->state == SLOT_CLOSING && pool_is_saved(b)) /* and was not to close it */
		pool_kill_and_save(p, now, b, "to be saved when its supervisor died");
	else if (!up && b->state != SLOT_CLOSING)
		pool_kill_and_save(p, now, b, "half-made when its supervisor died");
	else if (b->state == SLOT_BOOTING)
		booted_meanwhile(p, now, b);
	else
		tell_state(p, b);
	pool_stop_again(p, now, b);
	if (b->scope)
		pool_scope_advance(p, now, b->scope);
	else if (b->state == SLOT_STOCK)
		pool_room_freed(p, now); /* it may be claimed from now on */
}

void pool_not_adopted(struct pool *p, uint64_t now, uint32_t slot, uint64_t gen, const char *text)
{
	struct pool_box *b = adopting(p, slot, gen);

	if (!b)
		return;
	b->adopting = false;
	pool_record(p, EVENT_ERROR, b, 0, text);
	if (!b->killed && b->state != SLOT_QUARANTINED)
		pool_kill_and_save(p, now, b, text);
}

/* ---- the way out ---- */

void pool_leave(struct pool *p, uint64_t now)
{
	(void)now;
	p->leaving = true;
	pool_refuse_everybody(p, POOL_LEAVING_TEXT);
}
