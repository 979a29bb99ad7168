/*
 * pool_queue: who waits, and in which order those who wait for room are served. Runs in sbxd;
 * waiting clients of a dead sbxd see their connection end.
 *
 * Room is given in rounds: in each, every user that waits gets one box, by arrival. A user is (uid,
 * user text). Its requests go into one round after the other, and nobody comes into a round that
 * has begun: so one with a thousand requests holds up nobody else by more than two of them, and no
 * stream of new users holds up a second request for ever.
 */
#include <bsd/string.h>
#include <bsd/sys/tree.h>
#include <stdlib.h>
#include <string.h>

#include "lib/log.h"
#include "supervisor/pool_int.h"

/* One user's part in the rounds. Exists while it has requests in the queue for room. */
struct pool_user {
	LIST_ENTRY(pool_user) hash_link;
	uid_t uid;
	char user[SHM_USER_LEN];
	struct pool_waiters queued; /* by round */
};

static int by_round(const struct pool_waiter *a, const struct pool_waiter *b)
{
	if (a->round != b->round)
		return a->round < b->round ? -1 : 1;
	return a->arrival < b->arrival ? -1 : a->arrival > b->arrival;
}

/* More than what is needed here comes out of these. */
#define SOME_UNUSED static __attribute__((unused))

RB_PROTOTYPE_INTERNAL(pool_room_queue, pool_waiter, room_link, by_round, SOME_UNUSED);
RB_GENERATE_INTERNAL(pool_room_queue, pool_waiter, room_link, by_round, SOME_UNUSED)

/* ---- users ---- */

static struct pool_user_list *user_bucket(const struct pool *p, uid_t uid, const char *user)
{
	return &p->users[pool_hash(uid, user) & p->hash_mask];
}

static struct pool_user *user_get(const struct pool *p, uid_t uid, const char *user)
{
	struct pool_user *u;

	LIST_FOREACH (u, user_bucket(p, uid, user), hash_link) {
		if (u->uid == uid && !strcmp(u->user, user))
			break;
	}
	return u;
}

static struct pool_user *user_make(struct pool *p, uid_t uid, const char *user)
{
	struct pool_user *u = calloc(1, sizeof(*u));

	INVARIANT(u != NULL);
	u->uid = uid;
	(void)strlcpy(u->user, user, sizeof(u->user));
	TAILQ_INIT(&u->queued);
	LIST_INSERT_HEAD(user_bucket(p, uid, user), u, hash_link);
	return u;
}

/* ---- the queue for room ---- */

void pool_room_queue(struct pool *p, struct pool_waiter *w)
{
	struct pool_user *u = user_get(p, w->r.uid, w->user);
	uint64_t last = p->round;

	if (w->turn)
		return;
	if (!u)
		u = user_make(p, w->r.uid, w->user);
	else
		last = TAILQ_LAST(&u->queued, pool_waiters)->round;
	w->turn = u;
	w->round = last + 1;
	TAILQ_INSERT_TAIL(&u->queued, w, user_link);
	(void)RB_INSERT(pool_room_queue, &p->room, w);
}

static void leave_queue(struct pool *p, struct pool_waiter *w)
{
	struct pool_user *u = w->turn;

	w->turn = NULL;
	(void)RB_REMOVE(pool_room_queue, &p->room, w);
	TAILQ_REMOVE(&u->queued, w, user_link);
	if (!TAILQ_EMPTY(&u->queued))
		return;
	LIST_REMOVE(u, hash_link);
	free(u);
}

void pool_room_served(struct pool *p, struct pool_waiter *w)
{
	if (!w->turn)
		return;
	p->round = w->round;
	leave_queue(p, w);
}

struct pool_waiter *pool_room_first(const struct pool *p)
{
	struct pool_waiter *w = RB_ROOT(&p->room);

	while (w && RB_LEFT(w, room_link))
		w = RB_LEFT(w, room_link);
	return w;
}

/* ---- everybody who waits ---- */

static struct pool_waiter_list *req_bucket(const struct pool *p, uint64_t req)
{
	return &p->reqs[(uint32_t)(req ^ req >> 32) & p->hash_mask];
}

static void count_waiters(struct pool *p, struct pool_scope *s)
{
	if (!s->box)
		return;
	s->box->waiters = s->waiter_count;
	pool_touch(p, s->box);
}

struct pool_waiter *pool_waiter_make(
    struct pool *p, uint64_t now, struct pool_scope *s, const struct pool_request *r)
{
	struct pool_waiter *w = calloc(1, sizeof(*w));
	uint64_t limit = r->wait_limit ? r->wait_limit : p->rules.acquire_timeout;

	if (!w)
		return NULL;
	w->r = *r;
	(void)strlcpy(w->user, r->user ? r->user : "", sizeof(w->user));
	(void)strlcpy(w->thread, r->thread ? r->thread : "", sizeof(w->thread));
	w->r.user = w->r.thread = w->r.name = NULL;
	w->scope = s;
	w->since = now;
	w->arrival = ++p->arrivals;
	w->deadline = limit ? now + limit : CLOCK_NEVER;
	w->due.kind = DUE_WAITER;
	pool_expect(p, &w->due, w->deadline);
	TAILQ_INSERT_TAIL(&s->waiters, w, link);
	TAILQ_INSERT_TAIL(&p->waiters, w, all_link);
	LIST_INSERT_HEAD(req_bucket(p, r->req), w, req_link);
	s->waiter_count++;
	p->waiter_count++;
	count_waiters(p, s);
	return w;
}

void pool_waiter_free(struct pool *p, struct pool_waiter *w)
{
	if (w->turn)
		leave_queue(p, w);
	pool_unexpect(p, &w->due);
	TAILQ_REMOVE(&w->scope->waiters, w, link);
	TAILQ_REMOVE(&p->waiters, w, all_link);
	LIST_REMOVE(w, req_link);
	w->scope->waiter_count--;
	p->waiter_count--;
	count_waiters(p, w->scope);
	if (!pool_may_keep_name(w->scope))
		pool_scope_unname(w->scope);
	free(w);
}

struct pool_waiter *pool_waiter_by_req(const struct pool *p, uint64_t req)
{
	struct pool_waiter *w;

	LIST_FOREACH (w, req_bucket(p, req), req_link) {
		if (w->r.req == req)
			break;
	}
	return w;
}

/* ---- shown ---- */

typedef bool waiting_fn(void *ctx, const struct pool_waiting *w);

static bool show(const struct pool_waiter *w, uint32_t place, waiting_fn *fn, void *ctx)
{
	const struct pool_waiting shown = {
	    .uid = w->r.uid,
	    .user = w->user,
	    .thread = w->thread,
	    .token = w->scope->token,
	    .req = w->r.req,
	    .since = w->since,
	    .deadline = w->deadline,
	    .for_room = place > 0,
	    .place = place,
	};

	return fn(ctx, &shown);
}

void pool_each_waiting(
    const struct pool *p, bool (*fn)(void *ctx, const struct pool_waiting *w), void *ctx)
{
	struct pool_waiter *w;
	uint32_t place = 0;

	for (w = pool_room_first(p); w; w = RB_NEXT(pool_room_queue, &p->room, w)) {
		if (!show(w, ++place, fn, ctx))
			return;
	}
	TAILQ_FOREACH (w, &p->waiters, all_link) {
		if (!w->turn && !show(w, 0, fn, ctx))
			return;
	}
}
