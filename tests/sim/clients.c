/*
 * clients: connections of several users that acquire, wait, give up, release, remove and vanish;
 * and what they know of their answers and leases, which the pool must agree with.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/log.h"
#include "tests/sim/sim.h"

/* ---- requests and leases ---- */

static struct sim_request *new_request(struct sim *s, struct sim_conn *c, uint32_t scope)
{
	struct sim_request *r;

	INVARIANT(s->last_req + 1 < SIM_REQS);
	r = &s->requests[++s->last_req];
	*r = (struct sim_request){
	    .answer = SIM_WAITING,
	    .conn = (uint32_t)(c - s->conns),
	    .scope = scope,
	    .uid = s->scopes[scope].uid,
	    .id = s->scopes[scope].id,
	    .since = s->now,
	    .deadline = CLOCK_NEVER,
	};
	c->req = s->last_req;
	return r;
}

static uint64_t number_of(const struct sim *s, const struct sim_request *r)
{
	return (uint64_t)(r - s->requests);
}

static void answered(struct sim *s, struct sim_request *r, enum sim_answer answer)
{
	if (!r->removal) {
		s->departed[r->scope] |= answer != SIM_GRANTED;
		if (--s->waiting == 0)
			memset(s->departed, 0, sizeof(s->departed));
	}
	r->answer = answer;
	s->conns[r->conn].req = 0;
}

/* Its lease has ended in the pool, or is about to. */
void sim_lease_doubt(struct sim *s, struct sim_request *r)
{
	if (r->lease != SIM_HELD)
		return;
	r->lease = SIM_IN_DOUBT;
	s->held--;
}

static void hold(struct sim *s, struct sim_request *r)
{
	if (r->lease == SIM_NO_LEASE)
		s->leases[s->lease_count++] = number_of(s, r);
	if (r->lease != SIM_HELD)
		s->held++;
	r->lease = SIM_HELD;
}

/* All is published. */
void sim_doubts_end(struct sim *s)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < s->lease_count; i++) {
		struct sim_request *r = &s->requests[s->leases[i]];

		if (r->lease == SIM_IN_DOUBT)
			r->lease = SIM_ENDED;
		else
			s->leases[kept++] = s->leases[i];
	}
	s->lease_count = kept;
}

void sim_leases_of_box_end(struct sim *s, uint32_t slot, uint64_t generation)
{
	for (uint32_t i = 0; i < s->lease_count; i++) {
		struct sim_request *r = &s->requests[s->leases[i]];

		if (r->slot == slot && r->generation == generation)
			sim_lease_doubt(s, r);
	}
}

/* A lease that the restored pool has, is one that a client holds, one whose end was not published,
 * or one whose grant was published and never answered. */
static void find_again(struct sim *s, const struct pool_box *b, const struct pool_lease *l)
{
	uint64_t req = l->id - SIM_LEASE_OF(0);
	struct sim_request *r = &s->requests[req];

	SIM_CHECK(s, req > 0 && req <= s->last_req, "a restored lease was given once");
	SIM_CHECK(s, r->lease != SIM_ENDED, "a lease that has ended does not come back");
	SIM_CHECK(s, r->lease != SIM_NO_LEASE || r->answer == SIM_CUT,
	    "a lease that nobody knows of is that of a request that was cut off");
	if (r->lease == SIM_NO_LEASE) {
		r->slot = b->slot;
		r->generation = b->generation;
		r->expires = l->expires;
	}
	hold(s, r);
}

void sim_leases_after_restart(struct sim *s)
{
	for (uint32_t i = 0; i < s->rules.slots; i++) {
		const struct pool_box *b = pool_box_at(s->pool, i);
		const struct pool_lease *l;

		TAILQ_FOREACH (l, &b->leases, link)
			find_again(s, b, l);
	}
	sim_doubts_end(s);
	for (uint32_t i = 0; i < s->lease_count; i++) {
		struct sim_request *r = &s->requests[s->leases[i]];
		const struct pool_box *b = pool_box_at(s->pool, r->slot);

		if (b->generation == r->generation && b->lease_count)
			continue; /* check.c looks for each of them */
		SIM_CHECK(s, s->workers[r->slot] == SIM_NOBODY,
		    "a box whose worker lives keeps its leases when sbxd crashes");
		sim_lease_doubt(s, r);
	}
}

/* ---- answers ---- */

static struct sim_request *awaited(struct sim *s, const struct pool_action *a, bool removal)
{
	struct sim_request *r = &s->requests[a->req];

	SIM_CHECK(s, a->req > 0 && a->req <= s->last_req, "an answer is to a request");
	SIM_CHECK(s, r->removal == removal, "an answer is of the kind of its request");
	SIM_CHECK(s, removal || r->answer == SIM_WAITING, "a request is answered once");
	return r;
}

void sim_granted(struct sim *s, const struct pool_action *a)
{
	struct sim_request *r = awaited(s, a, false);

	SIM_CHECK(
	    s, a->lease_id == SIM_LEASE_OF(a->req), "the lease is the one that was asked for");
	SIM_CHECK(s, a->waited == s->now - r->since, "a grant tells how long it took");
	sim_shadow_granted(s, a, r);
	answered(s, r, SIM_GRANTED);
	r->slot = a->slot;
	r->generation = a->generation;
	r->expires = r->ttl ? s->now + r->ttl : CLOCK_NEVER;
	hold(s, r);
}

/* Whether the refusal can be true. */
static bool may_refuse(struct sim *s, const struct sim_request *r, enum api_error error)
{
	const struct pool_box *b = pool_box_find(s->pool, r->uid, r->id.token);

	switch (error) {
	case API_SHUTTING_DOWN:
		return s->shutting_down || s->leaving;
	case API_IDENTITY_COLLISION:
		for (uint32_t i = 0; i < SIM_CONNS; i++) {
			const struct sim_request *other = &s->requests[s->conns[i].req];

			if (s->conns[i].req && !other->removal && other->uid == r->uid &&
			    !strcmp(other->id.token, r->id.token) &&
			    memcmp(other->id.digest, r->id.digest, sizeof(r->id.digest)) != 0)
				return true;
		}
		return b && memcmp(b->identity, r->id.digest, sizeof(r->id.digest)) != 0;
	case API_SPEC_MISMATCH:
		return b && b->lease_count > 0 && b->spec.digest[0] != r->spec;
	case API_TIMEOUT:
		return s->now >= r->deadline;
	case API_CAPACITY:
		return s->now >= r->deadline || sim_counted(s) >= sim_cap(s) ||
		       sim_shadow_count(s, SLOT_FREE) == 0;
	case API_BOOT_FAILED:
		return b && b->state == SLOT_CLOSING;
	default:
		return false;
	}
}

void sim_refused(struct sim *s, const struct pool_action *a)
{
	struct sim_request *r = awaited(s, a, false);

	SIM_CHECK(s, a->text[0], "a refusal says why");
	SIM_CHECK(s, may_refuse(s, r, a->error), "a refusal has its reason");
	answered(s, r, SIM_REFUSED);
}

void sim_removed(struct sim *s, const struct pool_action *a)
{
	struct sim_request *r = awaited(s, a, true);

	SIM_CHECK(
	    s, r->answer == SIM_WAITING || r->answer == SIM_GONE, "a removal is answered once");
	if (r->answer == SIM_WAITING)
		answered(s, r, SIM_REMOVED);
}

/* ---- connections ---- */

/* `told`: sbxd lives and sees it. */
void sim_conn_dies(struct sim *s, struct sim_conn *c, bool told)
{
	uint64_t req = c->req;

	c->alive = false;
	if (req)
		answered(s, &s->requests[req], told ? SIM_GONE : SIM_CUT);
	if (!told)
		return;
	sim_note(s, "client vanishes", SHM_NONE, 0, req, "");
	for (uint32_t i = 0; i < s->lease_count; i++) {
		struct sim_request *r = &s->requests[s->leases[i]];

		if (r->cookie == c->cookie)
			sim_lease_doubt(s, r);
	}
	if (req && !s->requests[req].removal)
		pool_client_gone(s->pool, s->now, req);
	pool_conn_gone(s->pool, s->now, c->cookie);
	sim_settle(s);
}

/* An idle connection of that user, maybe a new one; NULL when all wait. */
static struct sim_conn *idle_conn(struct sim *s, uid_t uid)
{
	uint32_t first = sim_below(s, SIM_CONNS);

	for (uint32_t i = 0; i < SIM_CONNS; i++) {
		struct sim_conn *c = &s->conns[(first + i) % SIM_CONNS];

		if (!c->alive) {
			*c = (struct sim_conn){.alive = true, .uid = uid, .cookie = ++s->cookies};
			return c;
		}
		if (c->uid == uid && !c->req) {
			c->handed = false; /* its worker has handed it back */
			return c;
		}
	}
	return NULL;
}

static struct sim_conn *any_conn(struct sim *s, bool waits)
{
	uint32_t first = sim_below(s, SIM_CONNS);

	for (uint32_t i = 0; i < SIM_CONNS; i++) {
		struct sim_conn *c = &s->conns[(first + i) % SIM_CONNS];

		if (c->alive && (c->req != 0) == waits)
			return c;
	}
	return NULL;
}

bool sim_client_leave(struct sim *s)
{
	struct sim_conn *c = any_conn(s, true);

	if (c)
		sim_conn_dies(s, c, true);
	return c != NULL;
}

bool sim_client_close(struct sim *s)
{
	struct sim_conn *c = any_conn(s, false);

	if (c)
		sim_conn_dies(s, c, true);
	return c != NULL;
}

bool sim_client_hand_over(struct sim *s)
{
	struct sim_conn *c = any_conn(s, false);

	if (c)
		c->handed = true;
	return c != NULL;
}

/* ---- what they ask for ---- */

static void send_acquire(struct sim *s, struct sim_request *r, bool anonymous)
{
	const struct sim_scope *scope = &s->scopes[r->scope];
	uint64_t req = number_of(s, r);
	struct pool_request q = {
	    .req = req,
	    .cookie = r->cookie,
	    .uid = r->uid,
	    .anonymous = anonymous,
	    .no_user = !scope->user,
	    .id = r->id,
	    .user = scope->user,
	    .thread = anonymous ? NULL : scope->thread,
	    .lease_id = SIM_LEASE_OF(req),
	    .lease_ttl = r->ttl,
	};

	q.spec.digest[0] = r->spec;
	if (!s->quiet && sim_chance(s, 30))
		q.wait_limit = 1 + sim_below(s, 20) * NS_PER_S;
	if (q.wait_limit || s->rules.acquire_timeout)
		r->deadline = s->now + (q.wait_limit ? q.wait_limit : s->rules.acquire_timeout);
	s->waiting++;
	sim_note(s, "acquire", SHM_NONE, 0, req, r->id.token);
	pool_acquire(s->pool, s->now, &q);
	sim_settle(s);
}

bool sim_client_acquire(struct sim *s)
{
	uint32_t scope = sim_below(s, s->temper.spread);
	struct sim_conn *c = idle_conn(s, s->scopes[scope].uid);
	bool anonymous = sim_chance(s, 10);
	struct sim_request *r;

	if (!c)
		return false;
	r = new_request(s, c, scope);
	if (anonymous) {
		uint64_t drawn = sim_draw(s);

		(void)snprintf(
		    r->id.token, sizeof(r->id.token), "%016llx", (unsigned long long)drawn);
		memcpy(r->id.digest, &drawn, sizeof(drawn));
	} else if (sim_chance(s, 2)) {
		r->id.digest[0] ^= 0x80; /* another one with the same token */
	}
	r->spec = sim_chance(s, 90) ? 0 : 1;
	r->cookie = sim_chance(s, 30) ? c->cookie : 0;
	r->ttl = sim_chance(s, 30) ? 1 + sim_below(s, 60) * NS_PER_S : 0;
	send_acquire(s, r, anonymous);
	return true;
}

/* A plain acquire; false when no connection is idle. */
bool sim_client_ask(struct sim *s, uint32_t scope)
{
	struct sim_conn *c = idle_conn(s, s->scopes[scope].uid);

	if (c)
		send_acquire(s, new_request(s, c, scope), false);
	return c != NULL;
}

static void release(struct sim *s, const struct sim_request *r, uint64_t lease)
{
	uid_t uid = r->uid;
	struct identity id = r->id;

	for (uint32_t i = 0; i < s->lease_count; i++) {
		struct sim_request *other = &s->requests[s->leases[i]];

		if (other->uid == uid && !strcmp(other->id.token, id.token) &&
		    (!lease || lease == SIM_LEASE_OF(s->leases[i])))
			sim_lease_doubt(s, other);
	}
	sim_note(s, "release", SHM_NONE, 0, lease ? lease - SIM_LEASE_OF(0) : 0, id.token);
	(void)pool_release(s->pool, s->now, uid, id.token, lease);
	(void)sim_publish_changed(s); /* what the client is told must be true for a successor too */
	sim_settle(s);
}

/* One of those who hold a lease; NULL when nobody does. */
static struct sim_request *any_holder(struct sim *s)
{
	if (s->lease_count == 0)
		return NULL;
	return &s->requests[s->leases[sim_below(s, s->lease_count)]];
}

bool sim_client_release(struct sim *s)
{
	struct sim_request *r = any_holder(s);
	uint32_t kind = sim_below(s, 20);

	if (!r)
		return false;
	if (kind == 0)
		release(s, r, 0);
	else if (kind == 1)
		release(s, r, SIM_LEASE_OF(1 + sim_below(s, (uint32_t)s->last_req)));
	else
		release(s, r, SIM_LEASE_OF(number_of(s, r)));
	return true;
}

void sim_client_give_back(struct sim *s)
{
	struct sim_request *r = any_holder(s);

	if (r)
		release(s, r, SIM_LEASE_OF(number_of(s, r)));
}

bool sim_client_remove(struct sim *s)
{
	uint32_t scope = sim_below(s, s->temper.spread);
	struct sim_conn *c = idle_conn(s, s->scopes[scope].uid);
	const struct pool_box *b;
	bool force = sim_chance(s, 50);
	struct sim_request *r;
	int rc;

	if (!c)
		return false;
	r = new_request(s, c, scope);
	r->removal = true;
	b = pool_box_find(s->pool, r->uid, r->id.token);
	if (b && (force || b->lease_count == 0))
		s->shadow[b->slot].excuse |= EXCUSE_CLIENT;
	rc = pool_remove(s->pool, s->now, r->uid, r->id.token, force, number_of(s, r));
	SIM_CHECK(s, (rc == -ENOENT) == !b, "what is there can be removed, and nothing else");
	sim_note(s, "remove", b ? b->slot : SHM_NONE, b ? b->generation : 0, number_of(s, r),
	    rc ? "refused" : "");
	if (rc)
		answered(s, r, SIM_REFUSED);
	sim_settle(s);
	return true;
}

bool sim_client_reset(struct sim *s)
{
	for (uint32_t i = 0; i < s->lease_count; i++)
		sim_lease_doubt(s, &s->requests[s->leases[i]]);
	sim_note(s, "reset", SHM_NONE, 0, 0, "");
	s->is_reset = true;
	(void)pool_reset(s->pool, s->now);
	(void)sim_publish_changed(s); /* as with a release */
	sim_settle(s);
	return true;
}

/* Those who waited for the boot in that slot have lost one more. */
void sim_boot_lost(struct sim *s, uint32_t slot)
{
	const struct pool_box *b = pool_box_at(s->pool, slot);

	for (uint32_t i = 0; i < SIM_CONNS; i++) {
		struct sim_request *r = &s->requests[s->conns[i].req];

		if (s->conns[i].req && !r->removal && r->uid == b->uid &&
		    !strcmp(r->id.token, b->token))
			r->boots_lost++;
	}
}

/* Whether anybody waits for a box of that scope. */
bool sim_scope_is_wanted(const struct sim *s, uid_t uid, const char *token)
{
	for (uint32_t i = 0; i < SIM_CONNS; i++) {
		const struct sim_request *r = &s->requests[s->conns[i].req];

		if (s->conns[i].req && !r->removal && r->uid == uid && !strcmp(r->id.token, token))
			return true;
	}
	return false;
}
