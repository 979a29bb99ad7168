/*
 * pool_events: everything that can happen to a pool, each as a function that draws what it needs.
 * Part of pool_random.h.
 */
#ifndef SBXD_TESTS_UNIT_SUPERVISOR_POOL_EVENTS_H
#define SBXD_TESTS_UNIT_SUPERVISOR_POOL_EVENTS_H

#include "tests/unit/supervisor/pool_restarting.h"

#define SCOPES 10U
#define COOKIES 4U

struct run {
	struct rig rig;
	uint64_t random;
	struct identity ids[SCOPES / 2]; /* each for two uids */
	bool stopping;
	bool stock;	 /* is kept */
	bool succession; /* supervisors die, and others take over */
};

static inline uint64_t splitmix(struct run *x)
{
	uint64_t z = x->random += 0x9e3779b97f4a7c15U;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
	return z ^ (z >> 31);
}

/* 0 to n - 1 */
static inline uint32_t below(struct run *x, uint32_t n)
{
	return (uint32_t)((splitmix(x) >> 32) * n >> 32);
}

static inline bool chance(struct run *x, uint32_t percent)
{
	return below(x, 100) < percent;
}

struct scope {
	uid_t uid;
	const struct identity *id;
};

static inline struct scope any_scope(struct run *x)
{
	uint32_t n = below(x, SCOPES);

	return (struct scope){RIG_UID + (n & 1), &x->ids[n / 2]};
}

static inline uint32_t any_slot(struct run *x)
{
	return below(x, x->rig.rules.slots);
}

/* ---- clients ---- */

static inline void do_acquire(struct run *x)
{
	struct rig *r = &x->rig;
	struct scope s = any_scope(x);
	struct pool_request q = {
	    .req = ++r->last_req,
	    .uid = s.uid,
	    .id = *s.id,
	    .user = (const char[]){(char)('u' + s.id->token[0] % 3), 0},
	    .lease_id = 5000 + r->last_req,
	};

	if (chance(x, 3))
		q.id.digest[0] ^= 1;
	if (chance(x, 10))
		q.spec.digest[0] = 1;
	if (chance(x, 30))
		q.cookie = 1 + below(x, COOKIES);
	if (chance(x, 30))
		q.lease_ttl = 1 + below(x, 40) * NS_PER_S;
	if (chance(x, 30))
		q.wait_limit = 1 + below(x, 20) * NS_PER_S;
	pool_acquire(r->pool, r->now, &q);
}

/* ---- made boxes ---- */

static inline void do_make(struct run *x)
{
	struct rig *r = &x->rig;
	uint64_t drawn = splitmix(x);
	struct pool_request q = {
	    .want = POOL_WANT_MADE,
	    .req = ++r->last_req,
	    .uid = RIG_UID + below(x, 2),
	    .anonymous = true,
	    .no_user = true,
	    .name = chance(x, 70) ? (const char[]){(char)('a' + below(x, 3)), 0} : NULL,
	    .lease_id = 5000 + r->last_req,
	};

	(void)snprintf(q.id.token, sizeof(q.id.token), "%016" PRIx64, drawn);
	memcpy(q.id.digest, &drawn, sizeof(drawn));
	q.spec.digest[0] = (uint8_t)below(x, 2);
	pool_acquire(r->pool, r->now, &q);
}

/* One of them, whatever it is at; NULL without. */
static inline const struct pool_box *any_made(struct run *x)
{
	uint32_t first = any_slot(x);

	for (uint32_t i = 0; i < x->rig.rules.slots; i++) {
		const struct pool_box *b =
		    pool_box_at(x->rig.pool, (first + i) % x->rig.rules.slots);

		if (b->state != SLOT_FREE && b->state != SLOT_QUARANTINED && pool_is_made(b))
			return b;
	}
	return NULL;
}

static inline void do_order(struct run *x)
{
	struct rig *r = &x->rig;
	const struct pool_box *b = any_made(x);
	uint64_t req;

	if (!b || !b->scope)
		return;
	req = ++r->last_req;
	RIG_CHECK(r, pool_order(r->pool, r->now, b->uid, b->token,
			 chance(x, 50) ? POOL_WANT_START : POOL_WANT_STOP, below(x, 15) * NS_PER_S,
			 req) == 0);
}

static inline void do_use(struct run *x)
{
	struct rig *r = &x->rig;
	const struct pool_box *b = any_made(x);
	bool stopping;

	if (!b || b->state != SLOT_ACTIVE)
		return;
	stopping = (b->flags & SLOT_FLAG_STOPPING) != 0;
	RIG_CHECK(r, pool_use(r->pool, b->slot, b->generation) == !stopping);
}

static inline void remove_made(struct run *x, bool force)
{
	struct rig *r = &x->rig;
	const struct pool_box *b = any_made(x);
	uint64_t req;

	if (!b || !b->scope)
		return;
	req = ++r->last_req;
	r->requests[req].outcome = GONE;
	r->requests[req].removal = pool_remove(r->pool, r->now, b->uid, b->token, force, req) == 0;
}

static inline void do_unmake(struct run *x)
{
	if (chance(x, 20))
		(void)pool_release(x->rig.pool, x->rig.now, RIG_UID, "", 0);
	remove_made(x, chance(x, 50));
}

static inline void do_leave(struct run *x)
{
	struct rig *r = &x->rig;
	uint32_t back = below(x, 8);

	if (r->last_req > back)
		rig_leave(r, r->last_req - back);
}

static inline const struct pool_waiter *waiter_of(const struct rig *r, uint64_t cookie)
{
	const struct pool_waiter *w;

	TAILQ_FOREACH (w, &r->pool->waiters, all_link) {
		if (w->r.cookie == cookie)
			break;
	}
	return w;
}

/* What waits on the connection is gone before it. */
static inline void do_conn_gone(struct run *x)
{
	struct rig *r = &x->rig;
	uint64_t cookie = below(x, COOKIES + 1);
	const struct pool_waiter *w;

	while (cookie && (w = waiter_of(r, cookie)))
		rig_leave(r, w->r.req);
	pool_conn_gone(r->pool, r->now, cookie);
}

static inline void do_release(struct run *x)
{
	struct scope s = any_scope(x);
	uint64_t lease = chance(x, 50) ? 0 : 5000 + x->rig.last_req - below(x, 10);

	(void)pool_release(x->rig.pool, x->rig.now, s.uid, s.id->token, lease);
}

static inline void do_remove(struct run *x)
{
	struct rig *r = &x->rig;
	struct scope s = any_scope(x);
	uint64_t req = ++r->last_req;

	r->requests[req].outcome = GONE;
	r->requests[req].removal =
	    pool_remove(r->pool, r->now, s.uid, s.id->token, chance(x, 50), req) == 0;
}

static inline void do_reset(struct run *x)
{
	(void)pool_reset(x->rig.pool, x->rig.now);
}

/* ---- workers ---- */

/* The worker that owes the n-th order, a hello, does not say it in time. */
static inline void do_miss_hello(struct run *x, uint32_t n)
{
	struct rig *r = &x->rig;
	struct rig_order o = r->orders[n];

	r->order_count--;
	memmove(&r->orders[n], &r->orders[n + 1], (r->order_count - n) * sizeof(o));
	pool_not_adopted(r->pool, r->now, o.slot, o.generation, "no hello");
}

static inline void do_answer(struct run *x)
{
	struct rig *r = &x->rig;
	uint32_t n;

	if (r->order_count == 0)
		return;
	n = below(x, r->order_count);
	if (r->orders[n].kind == RIG_HELLO && chance(x, 10)) {
		do_miss_hello(x, n);
		return;
	}
	r->sick = chance(x, 20);
	r->unclean = chance(x, 2);
	if (r->orders[n].kind == POOL_SPAWN && chance(x, 10))
		pool_boot_failed(
		    r->pool, r->now, r->orders[n].slot, r->orders[n].generation, "no image");
	else
		rig_answer_nth(r, n);
}

static inline void do_crash(struct run *x)
{
	uint32_t slot = any_slot(x);

	if (x->rig.slots[slot].worker)
		rig_worker_ends(&x->rig, slot, "killed by signal 9");
}

static inline void do_box_fail(struct run *x)
{
	struct rig *r = &x->rig;
	uint32_t slot = any_slot(x);

	pool_box_failed(
	    r->pool, r->now, slot, pool_box_at(r->pool, slot)->generation, "its stream broke");
}

/* What comes too late, from a worker of an earlier box or about a state that is over. */
static inline void do_noise(struct run *x)
{
	struct rig *r = &x->rig;
	uint32_t slot = any_slot(x);
	const struct pool_box *b = pool_box_at(r->pool, slot);
	uint64_t stale = chance(x, 50) ? b->generation - 1 : 1 + splitmix(x);
	uint64_t late = chance(x, 50) ? b->generation : stale;

	switch (below(x, 10)) {
	case 9:
		pool_stopped(r->pool, r->now, slot, b->flags & SLOT_FLAG_STOPPING ? stale : late,
		    chance(x, 50), "stale");
		return;
	case 7:
		pool_adopted(r->pool, r->now, slot, b->adopting ? stale : late, chance(x, 50),
		    chance(x, 50));
		return;
	case 8:
		pool_not_adopted(r->pool, r->now, slot, b->adopting ? stale : late, "stale");
		return;
	case 0:
		pool_booted(r->pool, r->now, slot, b->state == SLOT_BOOTING ? stale : late);
		return;
	case 1:
		pool_checked(
		    r->pool, r->now, slot, b->state == SLOT_CHECKING ? stale : late, true, "");
		return;
	case 2:
		pool_checked(r->pool, r->now, slot, stale, false, "stale");
		return;
	case 3:
		pool_boot_failed(r->pool, r->now, slot, stale, "stale");
		return;
	case 4:
		pool_box_failed(r->pool, r->now, slot, stale, "stale");
		return;
	case 5:
		pool_worker_gone(r->pool, r->now, slot, stale, 0, "stale");
		return;
	default:
		pool_cleaned(r->pool, r->now, slot, stale, chance(x, 50), "stale");
		return;
	}
}

static inline void do_work(struct run *x)
{
	struct rig *r = &x->rig;
	uint32_t slot = any_slot(x);

	r->in_flight[slot] = r->in_flight[slot] ? 0 : 1;
	r->activity[slot] = r->now;
}

/* ---- time, rules, the end ---- */

static inline void do_pass(struct run *x)
{
	static const uint32_t seconds[] = {0, 1, 1, 1, 4, 4, 40, 700};
	uint64_t longest = seconds[below(x, 8)] * NS_PER_S;

	rig_pass(&x->rig, below(x, 1000) * (longest / 1000));
}

/* The host was busy or asleep: one tick, late. */
static inline void do_sleep(struct run *x)
{
	x->rig.now += below(x, 100) * NS_PER_S;
	pool_tick(x->rig.pool, x->rig.now);
}

static inline struct pool_rules any_rules(struct run *x)
{
	return (struct pool_rules){
	    .slots = 1 + below(x, 6),
	    .replicas = 1 + below(x, 6),
	    .policy = (enum replica_policy)below(x, REPLICA_BURST + 1),
	    .burst_limit = below(x, 3),
	    .max_boots = 1 + below(x, 3),
	    .acquire_timeout = (chance(x, 50) ? 5 : 60) * NS_PER_S,
	    .idle_timeout = chance(x, 30) ? 0 : (1 + below(x, 600)) * NS_PER_S,
	    .active_idle_timeout = chance(x, 70) ? 0 : (1 + below(x, 100)) * NS_PER_S,
	    .check_skip = chance(x, 50) ? 0 : below(x, 60) * NS_PER_S,
	    .check_timeout = 5 * NS_PER_S,
	    .boot_timeout = 30 * NS_PER_S,
	    .close_grace = 2 * NS_PER_S,
	    .prewarm = x->stock ? below(x, 4) : 0,
	    .stock.digest[0] = x->stock ? (uint8_t)below(x, 2) : 0,
	};
}

static inline void do_rules(struct run *x)
{
	struct pool_rules rules = any_rules(x);

	rules.slots = x->rig.rules.slots;
	rules.max_boots = x->rig.rules.max_boots; /* boots under way would go beyond fewer */
	rig_use(&x->rig, &rules);
}

/* ---- successors ---- */

static inline bool lives(void *ctx, uint64_t cookie)
{
	(void)cookie;
	return chance(ctx, 50);
}

static inline void do_drop_tied(struct run *x)
{
	pool_drop_tied(x->rig.pool, x->rig.now, lives, x);
}

/* What goes on without a supervisor: boots come up, workers die. */
static inline void go_on(struct run *x, struct rig_shown *table)
{
	struct rig *r = &x->rig;

	for (uint32_t i = 0; i < r->rules.slots; i++) {
		if (r->slots[i].worker && chance(x, 50))
			r->slots[i].up = true;
		if (r->slots[i].worker && chance(x, 15)) {
			r->slots[i].worker = false;
			table[i].box.has_worker = false;
			rig_forgive(r, i);
		}
		if (chance(x, 5)) /* a release that was half done */
			table[i].box.lease_count = 0;
	}
	r->now += below(x, 10) * NS_PER_S;
}

/* It may have gone on purpose. The next one may have other rules. */
static inline void do_succeed(struct run *x)
{
	struct rig *r = &x->rig;
	struct pool_rules rules = any_rules(x);
	struct rig_shown *table;

	if (!x->succession)
		return;
	if (chance(x, 50)) {
		pool_leave(r->pool, r->now);
		rig_take_actions(r);
	}
	for (uint32_t n = below(x, 4); n > 0; n--) {
		do_answer(x);
		rig_take_actions(r);
	}
	table = rig_die(r);
	go_on(x, table);
	rules.slots = r->rules.slots;
	rules.max_boots = r->rules.max_boots;
	r->rules = rules;
	r->drained = 0;
	x->stopping = false;
	rig_succeed(r, table);
	free(table);
}

static inline void do_shutdown(struct run *x)
{
	if (!chance(x, 3))
		return;
	x->stopping = true;
	pool_shutdown(x->rig.pool, x->rig.now);
}

static const struct {
	uint32_t weight;
	void (*fn)(struct run *x);
	const char *name;
} events[] = {
    {20, do_acquire, "acquire"},
    {2, do_make, "make"},
    {3, do_order, "order"},
    {1, do_use, "use"},
    {1, do_unmake, "unmake"},
    {5, do_leave, "leave"},
    {3, do_conn_gone, "connection gone"},
    {13, do_release, "release"},
    {2, do_remove, "remove"},
    {1, do_reset, "reset"},
    {25, do_answer, "answer"},
    {2, do_crash, "crash"},
    {1, do_box_fail, "box failed"},
    {4, do_noise, "noise"},
    {4, do_work, "work"},
    {8, do_pass, "pass"},
    {1, do_sleep, "sleep"},
    {1, do_rules, "rules"},
    {1, do_drop_tied, "drop tied"},
    {1, do_succeed, "succeed"},
    {1, do_shutdown, "shutdown"},
};

static inline void step(struct run *x)
{
	uint32_t n = below(x, 100);
	uint32_t i = 0;

	while (n >= events[i].weight)
		n -= events[i++].weight;
	x->rig.doing = events[i].name;
	events[i].fn(x);
	rig_take_actions(&x->rig);
	rig_forget(&x->rig);
}

#endif
