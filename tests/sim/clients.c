/*
 * clients: connections of several users that acquire, wait, give up, release, remove and vanish.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tests/sim/sim.h"

/* ---- connections ---- */

/* `told`: sbxd lives and sees it. */
void sim_conn_dies(struct sim *s, struct sim_conn *c, bool told)
{
	uint64_t req = c->req;

	c->alive = false;
	if (req) {
		sim_order_lost(s, &s->requests[req]);
		sim_request_answered(s, &s->requests[req], told ? SIM_GONE : SIM_CUT);
	}
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
struct sim_conn *sim_idle_conn(struct sim *s, uid_t uid)
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
	uint64_t req = sim_request_number(s, r);
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
	struct sim_conn *c = sim_idle_conn(s, s->scopes[scope].uid);
	bool anonymous = sim_chance(s, 10);
	struct sim_request *r;

	if (!c)
		return false;
	r = sim_request_new(s, c, scope);
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
	struct sim_conn *c = sim_idle_conn(s, s->scopes[scope].uid);

	if (c)
		send_acquire(s, sim_request_new(s, c, scope), false);
	return c != NULL;
}

static void release(struct sim *s, const struct sim_request *r, uint64_t lease)
{
	uid_t uid = r->uid;
	struct identity id = r->id;

	for (uint32_t i = 0; i < s->lease_count; i++) {
		struct sim_request *other = &s->requests[s->leases[i]];

		if (!sim_is_made(other) && other->uid == uid &&
		    !strcmp(other->id.token, id.token) &&
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
		release(s, r, SIM_LEASE_OF(sim_request_number(s, r)));
	return true;
}

void sim_client_give_back(struct sim *s)
{
	struct sim_request *r = any_holder(s);

	if (r && sim_is_made(r))
		sim_unmake(s, r);
	else if (r)
		release(s, r, SIM_LEASE_OF(sim_request_number(s, r)));
}

bool sim_client_remove(struct sim *s)
{
	uint32_t scope = sim_below(s, s->temper.spread);
	struct sim_conn *c = sim_idle_conn(s, s->scopes[scope].uid);
	const struct pool_box *b;
	bool force = sim_chance(s, 50);
	struct sim_request *r;
	int rc;

	if (!c)
		return false;
	r = sim_request_new(s, c, scope);
	r->removal = true;
	b = pool_box_find(s->pool, r->uid, r->id.token);
	if (b && (force || b->lease_count == 0))
		s->shadow[b->slot].excuse |= EXCUSE_CLIENT;
	rc = pool_remove(s->pool, s->now, r->uid, r->id.token, force, sim_request_number(s, r));
	SIM_CHECK(s, (rc == -ENOENT) == !b, "what is there can be removed, and nothing else");
	sim_note(s, "remove", b ? b->slot : SHM_NONE, b ? b->generation : 0,
	    sim_request_number(s, r), rc ? "refused" : "");
	if (rc)
		sim_request_answered(s, r, SIM_REFUSED);
	sim_settle(s);
	return true;
}

bool sim_client_reset(struct sim *s)
{
	for (uint32_t i = 0; i < s->lease_count; i++) {
		if (!sim_is_made(&s->requests[s->leases[i]]))
			sim_lease_doubt(s, &s->requests[s->leases[i]]);
	}
	sim_note(s, "reset", SHM_NONE, 0, 0, "");
	s->is_reset = true;
	(void)pool_reset(s->pool, s->now);
	(void)sim_publish_changed(s); /* as with a release */
	sim_settle(s);
	return true;
}
