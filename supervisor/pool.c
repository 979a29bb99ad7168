/*
 * pool: the ground of the state machine: transitions, actions, records. Runs in sbxd; when
 * sbxd dies its successor rebuilds a pool from the shared table.
 */
#include "supervisor/pool.h"

#include <bsd/string.h>
#include <stdlib.h>
#include <string.h>

#include "lib/log.h"
#include "shm/slot.h"
#include "supervisor/pool_int.h"

static uint32_t hash_mask_for(uint32_t slots)
{
	uint32_t n = 64;

	while (n < 2 * slots)
		n *= 2;
	return n - 1;
}

struct pool *pool_create(
    const struct pool_rules *rules, const struct pool_gauge *gauge, uint64_t last_generation)
{
	struct pool *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->rules = *rules;
	p->gauge = *gauge;
	p->generation = last_generation;
	p->room_due.kind = DUE_ROOM;
	p->stock_due.kind = DUE_STOCK;
	p->hash_mask = hash_mask_for(rules->slots);
	p->boxes = calloc(rules->slots, sizeof(struct pool_box));
	p->free_slots = calloc(rules->slots, sizeof(uint32_t));
	p->scopes = calloc(p->hash_mask + 1UL, sizeof(struct pool_scope_list));
	p->names = calloc(p->hash_mask + 1UL, sizeof(struct pool_scope_list));
	p->tied = calloc(p->hash_mask + 1UL, sizeof(struct pool_tied));
	p->reqs = calloc(p->hash_mask + 1UL, sizeof(struct pool_waiter_list));
	p->users = calloc(p->hash_mask + 1UL, sizeof(struct pool_user_list));
	p->generations = calloc(p->hash_mask + 1UL, sizeof(struct pool_box_list));
	p->past = pool_past_create();
	TAILQ_INIT(&p->warm);
	TAILQ_INIT(&p->boot_queue);
	TAILQ_INIT(&p->stock);
	TAILQ_INIT(&p->waiters);
	TAILQ_INIT(&p->actions);
	TAILQ_INIT(&p->spare);
	TAILQ_INIT(&p->dirty);
	if (!p->boxes || !p->free_slots || !p->scopes || !p->names || !p->tied || !p->reqs ||
	    !p->users || !p->generations || !p->past) {
		pool_destroy(p);
		return NULL;
	}
	for (uint32_t i = 0; i < rules->slots; i++) {
		p->boxes[i].slot = i;
		TAILQ_INIT(&p->boxes[i].leases);
		p->free_slots[i] = rules->slots - 1 - i;
	}
	p->free_count = rules->slots;
	p->state_count[SLOT_FREE] = rules->slots;
	pool_stock_want(p, 0);
	return p;
}

void pool_destroy(struct pool *p)
{
	struct pool_action *a;
	struct pool_waiter *w;

	if (!p)
		return;
	while ((w = TAILQ_FIRST(&p->waiters)))
		pool_waiter_free(p, w);
	for (uint32_t i = 0; p->boxes && i < p->rules.slots; i++) {
		struct pool_lease *l;

		while ((l = TAILQ_FIRST(&p->boxes[i].leases)))
			pool_lease_free(l);
	}
	for (uint32_t i = 0; p->scopes && i <= p->hash_mask; i++) {
		struct pool_scope *s;

		while ((s = LIST_FIRST(&p->scopes[i]))) {
			LIST_REMOVE(s, hash_link);
			free(s);
		}
	}
	TAILQ_CONCAT(&p->actions, &p->spare, link);
	while ((a = TAILQ_FIRST(&p->actions))) {
		TAILQ_REMOVE(&p->actions, a, link);
		free(a);
	}
	free(p->past);
	free(p->heap);
	free(p->generations);
	free(p->users);
	free(p->reqs);
	free(p->tied);
	free(p->names);
	free(p->scopes);
	free(p->free_slots);
	free(p->boxes);
	free(p);
}

void pool_set_rules(struct pool *p, const struct pool_rules *rules, uint64_t now)
{
	uint32_t slots = p->rules.slots;

	p->rules = *rules;
	p->rules.slots = slots;
	pool_look_at_all(p, now);
	pool_boot_next(p, now);
	pool_room_freed(p, now);
	pool_stock_trim(p, now);
}

/* Out of memory in the middle of a decision cannot be answered; like a broken invariant it ends the
 * process. */
static void *must(void *block)
{
	INVARIANT(block != NULL);
	return block;
}

struct pool_action *pool_act(struct pool *p, enum pool_action_kind kind, const struct pool_box *b)
{
	struct pool_action *a = TAILQ_FIRST(&p->spare);

	if (a)
		TAILQ_REMOVE(&p->spare, a, link);
	else
		a = must(malloc(sizeof(*a)));
	*a = (struct pool_action){
	    .kind = kind,
	    .slot = b ? b->slot : SHM_NONE,
	    .generation = b ? b->generation : 0,
	    .uid = b ? b->uid : 0,
	};
	if (b)
		memcpy(a->token, b->token, sizeof(a->token));
	TAILQ_INSERT_TAIL(&p->actions, a, link);
	return a;
}

bool pool_next_action(struct pool *p, struct pool_action *out)
{
	struct pool_action *a = TAILQ_FIRST(&p->actions);

	if (!a)
		return false;
	TAILQ_REMOVE(&p->actions, a, link);
	*out = *a;
	TAILQ_INSERT_HEAD(&p->spare, a, link);
	return true;
}

/* Names the request, or 0, that brings about what is recorded from now on. Returns the one before.
 */
uint64_t pool_blame(struct pool *p, uint64_t req)
{
	uint64_t before = p->cause;

	p->cause = req;
	return before;
}

/* The one that b is booted or checked for. */
uint64_t pool_blame_awaited(struct pool *p, const struct pool_box *b)
{
	bool is_awaited = b->scope && (b->state == SLOT_RESERVED || b->state == SLOT_BOOTING ||
					  b->state == SLOT_CHECKING);
	const struct pool_waiter *w = is_awaited ? TAILQ_FIRST(&b->scope->waiters) : NULL;

	return pool_blame(p, w ? w->r.req : 0);
}

void pool_record(
    struct pool *p, uint32_t event, const struct pool_box *b, int32_t code, const char *text)
{
	struct pool_action *a = pool_act(p, POOL_RECORD, b);

	a->event = event;
	a->code = code;
	a->req = p->cause;
	(void)strlcpy(a->text, text ? text : "", sizeof(a->text));
}

void pool_touch(struct pool *p, struct pool_box *b)
{
	if (b->dirty)
		return;
	b->dirty = true;
	TAILQ_INSERT_TAIL(&p->dirty, b, dirty_link);
}

void pool_published(struct pool *p, const struct pool_box *b)
{
	struct pool_box *own = &p->boxes[b->slot];

	if (own->dirty)
		TAILQ_REMOVE(&p->dirty, own, dirty_link);
	own->dirty = false;
}

const struct pool_box *pool_next_dirty(struct pool *p)
{
	struct pool_box *b = TAILQ_FIRST(&p->dirty);

	if (!b)
		return NULL;
	TAILQ_REMOVE(&p->dirty, b, dirty_link);
	b->dirty = false;
	return b;
}

/* Counts b in the state, and lists it as that asks. */
void pool_enter(struct pool *p, struct pool_box *b, uint32_t state)
{
	p->state_count[b->state]--;
	p->state_count[state]++;
	b->state = state;
	b->deadline = CLOCK_NEVER;
	if (b->scope && !pool_may_keep_name(b->scope))
		pool_scope_unname(b->scope);
	if (state == SLOT_CLOSING)
		pool_past_add(p, b->uid, b->token);
	if (state == SLOT_WARM)
		TAILQ_INSERT_TAIL(&p->warm, b, queue);
	if (state == SLOT_RESERVED)
		TAILQ_INSERT_TAIL(&p->boot_queue, b, queue);
	if (state == SLOT_BOOTING)
		p->booting++;
	if (pool_is_stock(b))
		TAILQ_INSERT_TAIL(&p->stock, b, queue);
	p->stock_boots += state == SLOT_BOOTING && pool_is_stock(b);
}

static void leave_state(struct pool *p, struct pool_box *b)
{
	if (b->state == SLOT_WARM)
		TAILQ_REMOVE(&p->warm, b, queue);
	if (b->state == SLOT_RESERVED)
		TAILQ_REMOVE(&p->boot_queue, b, queue);
	if (b->state == SLOT_BOOTING)
		p->booting--;
	if (pool_is_stock(b))
		TAILQ_REMOVE(&p->stock, b, queue);
	p->stock_boots -= b->state == SLOT_BOOTING && pool_is_stock(b);
}

void pool_move(
    struct pool *p, uint64_t now, struct pool_box *b, enum slot_state to, const char *why)
{
	struct pool_action *a;

	INVARIANT(slot_transition_allowed(b->state, to));
	leave_state(p, b);
	a = pool_act(p, POOL_RECORD, b);
	a->event = EVENT_STATE;
	a->from = b->state;
	a->to = to;
	a->req = p->cause;
	(void)strlcpy(a->text, why, sizeof(a->text));

	pool_enter(p, b, to);
	b->state_since = now;
	pool_touch(p, b);
}

/* An order to b's worker; one that cannot hear us yet is told when it can. */
void pool_tell(struct pool *p, enum pool_action_kind kind, const struct pool_box *b)
{
	if (!b->adopting)
		(void)pool_act(p, kind, b);
}

uint32_t pool_count(const struct pool *p, enum slot_state state)
{
	return p->state_count[state];
}

uint32_t pool_waiters(const struct pool *p)
{
	return p->waiter_count;
}

const struct pool_rules *pool_rules(const struct pool *p)
{
	return &p->rules;
}
