/*
 * ledger: requests and their leases as clients know them: asked, answered once, held, given back,
 * and in doubt while the end of a lease is not published. The pool must agree with it.
 */
#include <string.h>

#include "lib/log.h"
#include "tests/sim/sim.h"

/* ---- requests and leases ---- */

struct sim_request *sim_request_new(struct sim *s, struct sim_conn *c, uint32_t scope)
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

uint64_t sim_request_number(const struct sim *s, const struct sim_request *r)
{
	return (uint64_t)(r - s->requests);
}

void sim_request_answered(struct sim *s, struct sim_request *r, enum sim_answer answer)
{
	if (!r->removal) {
		s->departed[r->scope] |= r->want <= POOL_WANT_MADE && answer != SIM_GRANTED;
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
		s->leases[s->lease_count++] = sim_request_number(s, r);
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
		r->unsure = true;
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
	SIM_CHECK(s, r->removal == removal && r->want <= POOL_WANT_MADE,
	    "an answer is of the kind of its request");
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
	SIM_CHECK(s, !sim_is_made(r) || a->source == SOURCE_COLD, "a box is made for its creator");
	sim_request_answered(s, r, SIM_GRANTED);
	r->rest = SLOT_FLAG_FRESH;
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
		return s->now >= r->deadline || sim_may_refuse_made(s, r, error);
	case API_CAPACITY:
		return s->now >= r->deadline || sim_counted(s) >= sim_cap(s) ||
		       sim_shadow_count(s, SLOT_FREE) == 0;
	case API_BOOT_FAILED:
		return b && b->state == SLOT_CLOSING;
	default:
		return sim_may_refuse_made(s, r, error);
	}
}

void sim_refused(struct sim *s, const struct pool_action *a)
{
	struct sim_request *r = &s->requests[a->req];

	SIM_CHECK(s, a->req > 0 && a->req <= s->last_req, "an answer is to a request");
	SIM_CHECK(s, !r->removal && r->answer == SIM_WAITING, "a request is answered once");
	SIM_CHECK(s, a->text[0], "a refusal says why");
	sim_order_lost(s, r);
	SIM_CHECK(s, may_refuse(s, r, a->error), "a refusal has its reason");
	sim_request_answered(s, r, SIM_REFUSED);
}

void sim_removed(struct sim *s, const struct pool_action *a)
{
	struct sim_request *r = awaited(s, a, true);

	SIM_CHECK(
	    s, r->answer == SIM_WAITING || r->answer == SIM_GONE, "a removal is answered once");
	if (r->answer == SIM_WAITING)
		sim_request_answered(s, r, SIM_REMOVED);
}

/* ---- who waits ---- */

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
