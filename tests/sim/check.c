/* check: what must hold of the whole world after every event, and at the end. */
#include <string.h>

#include "supervisor/pool_int.h"
#include "tests/sim/sim.h"

/* ---- leases ---- */

static void check_lease(struct sim *s, const struct pool_box *b, const struct pool_lease *l)
{
	uint64_t req = l->id - SIM_LEASE_OF(0);
	const struct sim_request *r = &s->requests[req];

	SIM_CHECK(s, req > 0 && req <= s->last_req && r->lease == SIM_HELD,
	    "a box has the leases that clients hold, and no others");
	SIM_CHECK(s, r->slot == b->slot && r->generation == b->generation,
	    "a lease is of the box that it was given for");
	SIM_CHECK(s, l->expires == r->expires && l->cookie == r->cookie,
	    "a lease keeps its time limit and its tie");
	SIM_CHECK(s, l->expires >= pool_deadline(s->pool), "a lease's time limit is waited for");
	SIM_CHECK(
	    s, sim_table_shows(s, b->slot, b->generation, l->id), "the table shows every lease");
}

static uint32_t check_leases(struct sim *s, const struct pool_box *b)
{
	const struct pool_lease *l;
	uint32_t n = 0;

	TAILQ_FOREACH (l, &b->leases, link) {
		check_lease(s, b, l);
		n++;
	}
	SIM_CHECK(s, n == b->lease_count, "leases are counted");
	SIM_CHECK(
	    s, (b->state == SLOT_ACTIVE) == (n > 0), "a box is active as long as it has leases");
	return n;
}

/* ---- time ---- */

/* The longest wait in a state for one thing to happen. */
static uint64_t patience(const struct sim *s, const struct pool_box *b)
{
	switch (b->state) {
	case SLOT_BOOTING:
		return s->rules.boot_timeout + (s->images[b->slot].pending ? POOL_IMAGE_WAIT : 0);
	case SLOT_CHECKING:
		return s->rules.check_timeout;
	case SLOT_CLOSING:
		return POOL_CLEAN_WAIT;
	default:
		return CLOCK_NEVER;
	}
}

static void check_idle(struct sim *s, uint32_t slot, uint64_t since, uint64_t limit)
{
	uint64_t used = s->pages[slot].activity > since ? s->pages[slot].activity : since;
	uint64_t at = used + limit;

	if (limit == 0)
		return;
	if (at <= s->now) /* something runs in it, or did: it is looked at again and again */
		at = s->now + NS_PER_S;
	SIM_CHECK(s, pool_deadline(s->pool) <= at, "an idle box is not forgotten");
}

static void check_time(struct sim *s, const struct pool_box *b)
{
	uint64_t limit = patience(s, b);

	if (limit != CLOCK_NEVER) {
		SIM_CHECK(s, b->deadline >= pool_deadline(s->pool) && b->deadline != CLOCK_NEVER,
		    "a state that must end has a deadline");
		SIM_CHECK(s, b->deadline <= s->now + limit,
		    "a state that must end does so within its bound");
	}
	if (b->state == SLOT_WARM && b->waiters == 0)
		check_idle(s, b->slot, b->parked, s->rules.idle_timeout);
	if (b->state == SLOT_ACTIVE && !s->shadow[b->slot].made)
		check_idle(s, b->slot, b->leased, s->rules.active_idle_timeout);
}

/* ---- boxes ---- */

static void check_slot_at_rest(struct sim *s, uint32_t slot)
{
	const struct sim_page *page = &s->pages[slot];

	SIM_CHECK(s, !sim_proc_of(s, slot), "a free slot has no worker");
	SIM_CHECK(s, !page->remains, "a free slot is cleaned up");
	SIM_CHECK(s, !page->worn && !page->damaged, "a free slot is repaired");
	SIM_CHECK(s, page->lock_owner == 0 && !page->owner_dead && !page->unrecoverable,
	    "the lock of a free slot is free");
}

static void check_scope_of(struct sim *s, const struct pool_box *b)
{
	if (b->state == SLOT_FREE || b->state == SLOT_QUARANTINED)
		SIM_CHECK(s, !b->scope, "a slot without a box is nobody's");
	if (!b->scope)
		return;
	SIM_CHECK(s, pool_box_find(s->pool, b->uid, b->token) == b, "a scope has one box");
	for (uint32_t i = b->slot + 1; i < s->rules.slots; i++) {
		const struct pool_box *other = pool_box_at(s->pool, i);

		SIM_CHECK(s,
		    !other->scope || other->uid != b->uid || strcmp(other->token, b->token) != 0,
		    "a scope has one box");
	}
}

static uint32_t check_box(struct sim *s, const struct pool_box *b)
{
	const struct sim_shadow *v = &s->shadow[b->slot];

	SIM_CHECK(s, b->state == v->state, "every transition is recorded");
	SIM_CHECK(s, b->state == SLOT_FREE || b->generation == v->generation,
	    "a box is named by its generation");
	SIM_CHECK(s,
	    s->table[b->slot].part.state == b->state &&
		s->table[b->slot].part.generation == b->generation,
	    "every change is published");
	if (b->state == SLOT_FREE)
		check_slot_at_rest(s, b->slot);
	else if (b->state != SLOT_CLOSING && b->state != SLOT_RESERVED &&
		 b->state != SLOT_QUARANTINED)
		SIM_CHECK(s, b->has_worker, "a box that runs has a worker");
	check_scope_of(s, b);
	check_time(s, b);
	sim_check_made(s, b);
	return check_leases(s, b);
}

static void check_boxes(struct sim *s)
{
	uint32_t count[SLOT_STATES] = {0};
	uint32_t leases = 0;

	for (uint32_t i = 0; i < s->rules.slots; i++) {
		const struct pool_box *b = pool_box_at(s->pool, i);

		SIM_CHECK(s, b->state < SLOT_STATES, "a state is one of them");
		count[b->state]++;
		leases += check_box(s, b);
	}
	for (uint32_t i = 0; i < SLOT_STATES; i++)
		SIM_CHECK(
		    s, count[i] == pool_count(s->pool, (enum slot_state)i), "states are counted");
	SIM_CHECK(s, leases == s->held, "no lease is lost");
	SIM_CHECK(s,
	    count[SLOT_RESERVED] == 0 || s->leaving || count[SLOT_BOOTING] >= s->rules.max_boots,
	    "no boot permit lies idle");
}

/* ---- workers ---- */

/* A worker that has, or may have, somebody's box. One whose box was given up has not: its slot is
 * quarantined, because it could not be killed, or would be if sbxd had not crashed meanwhile. */
static bool has_box(const struct sim *s, const struct sim_proc *p)
{
	const struct pool_box *b = pool_box_at(s->pool, p->slot);

	return p->used && p->alive && p->told && p->touched && b->scope;
}

static bool is_same_scope(const struct sim_proc *p, const struct sim_proc *o)
{
	return o->uid == p->uid && !memcmp(o->identity, p->identity, sizeof(o->identity));
}

/* One box per scope, of those that live. */
static void check_workers(struct sim *s)
{
	for (uint32_t i = 0; i < SIM_PROCS; i++) {
		const struct sim_proc *p = &s->procs[i];

		if (!p->used || !p->alive || !p->told)
			continue;
		SIM_CHECK(s, s->workers[p->slot] == i, "a worker with a box is known to sbxd");
		if (!has_box(s, p))
			continue;
		for (uint32_t k = i + 1; k < SIM_PROCS; k++)
			SIM_CHECK(s, !has_box(s, &s->procs[k]) || !is_same_scope(p, &s->procs[k]),
			    "no two workers have a box of one scope");
	}
}

/* ---- waiters ---- */

struct queue_check {
	struct sim *s;
	uint32_t count;
	uint32_t place;		     /* in the queue for room */
	uint32_t places[SIM_SCOPES]; /* of each user so far: every scope has its own */
};

/* In rounds: nobody has three places before another who waits has one. (Who gave up a place keeps
 * those behind it where they are.) */
static void check_turn(struct queue_check *q, uint32_t user)
{
	if (q->places[user]++ > 0 || q->s->departed[user])
		return;
	for (uint32_t k = 0; k < SIM_SCOPES; k++)
		SIM_CHECK(q->s, k == user || q->places[k] <= 2,
		    "no user is served three times before another");
}

/* Who is served next waits only because replicas are reached, or no stock is what it wants. */
static void check_stock_for(struct sim *s, const struct sim_request *r)
{
	if (sim_counted(s) >= sim_cap(s) || sim_is_made(r))
		return;
	for (uint32_t i = 0; i < s->rules.slots; i++) {
		const struct pool_box *b = pool_box_at(s->pool, i);

		SIM_CHECK(s, b->state != SLOT_STOCK || b->adopting || b->spec.digest[0] != r->spec,
		    "nobody waits while stock can be had");
	}
}

static bool check_waiter(void *ctx, const struct pool_waiting *w)
{
	struct queue_check *q = ctx;
	struct sim *s = q->s;
	const struct sim_request *r = &s->requests[w->req];
	const struct pool_box *b = pool_box_find(s->pool, w->uid, w->token);

	SIM_CHECK(s, w->req > 0 && w->req <= s->last_req && !r->removal && r->answer == SIM_WAITING,
	    "who waits in the pool has no answer yet");
	SIM_CHECK(s,
	    w->uid == r->uid && !strcmp(w->token, r->id.token) && w->since == r->since &&
		w->deadline == r->deadline,
	    "who waits is who asked");
	SIM_CHECK(s, r->boots_lost < POOL_BOOT_TRIES, "boots are not tried for ever");
	SIM_CHECK(s, w->deadline >= pool_deadline(s->pool), "an answer comes within its bound");
	SIM_CHECK(s, !w->for_room || !b, "who has a box does not wait for room");
	SIM_CHECK(s, w->place == (w->for_room ? q->place + 1 : 0), "the queue is shown in order");
	SIM_CHECK(s, !w->for_room || r->want <= POOL_WANT_MADE, "an order needs no room");
	if (b && !b->adopting && !(s->shadow[b->slot].rest & SLOT_FLAG_STOPPING))
		SIM_CHECK(s, b->state != SLOT_ACTIVE && b->state != SLOT_WARM,
		    "nobody waits for a box that can be had");
	s->requests[w->req].place = w->place;
	if (w->place == 1)
		check_stock_for(s, r);
	if (w->for_room) {
		q->place++;
		check_turn(q, r->scope);
	}
	q->count++;
	return true;
}

static void check_waiters(struct sim *s)
{
	struct queue_check q = {.s = s};

	pool_each_waiting(s->pool, check_waiter, &q);
	SIM_CHECK(s, q.count == s->waiting && q.count == pool_waiters(s->pool),
	    "no waiting acquire is lost");
	if (q.count > 0)
		SIM_CHECK(s, !s->shutting_down && !s->leaving, "a service that ends keeps nobody");
	if (q.place == 0)
		return;
	SIM_CHECK(s, sim_counted(s) >= sim_cap(s) || sim_shadow_count(s, SLOT_FREE) == 0,
	    "nobody waits while there is room");
	if (sim_counted(s) < sim_cap(s) && sim_shadow_count(s, SLOT_CLOSING) == 0)
		for (uint32_t i = 0; i < s->rules.slots; i++)
			SIM_CHECK(s, !s->shadow[i].stock, "nobody waits while stock has a slot");
	if (sim_shadow_evictable(s))
		SIM_CHECK(s, pool_deadline(s->pool) <= s->now + POOL_ROOM_LOOK,
		    "room that no event tells of is looked for");
}

void sim_check(struct sim *s)
{
	check_boxes(s);
	check_workers(s);
	check_waiters(s);
	sim_check_promise(s);
}

/* A stale event had no effect. */
void sim_check_silence(struct sim *s, uint64_t deadline)
{
	struct pool_action a;

	SIM_CHECK(s, !pool_next_action(s->pool, &a), "a stale event brings about no action");
	SIM_CHECK(s, !pool_next_dirty(s->pool), "a stale event changes nothing");
	SIM_CHECK(s, pool_deadline(s->pool) == deadline, "a stale event moves no deadline");
}

/* After shutdown. */
void sim_check_end(struct sim *s)
{
	uint32_t rest = pool_count(s->pool, SLOT_FREE) + pool_count(s->pool, SLOT_QUARANTINED);

	SIM_CHECK(s, rest == s->rules.slots, "after shutdown every slot is free or quarantined");
	SIM_CHECK(s, s->drained == 1, "a shutdown is complete once");
	SIM_CHECK(s, s->held == 0 && s->lease_count == 0, "after shutdown nobody has a lease");
	SIM_CHECK(s, s->waiting == 0 && pool_waiters(s->pool) == 0, "after shutdown nobody waits");
	SIM_CHECK(s, pool_deadline(s->pool) == CLOCK_NEVER, "after shutdown nothing is due");
	for (uint64_t i = 1; i <= s->last_req; i++)
		SIM_CHECK(s, s->requests[i].answer != SIM_WAITING, "every request is answered");
}
