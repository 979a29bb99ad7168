/*
 * made: clients that have boxes made, start, stop, use and remove them; what they were told of
 * their boxes, and that it stays true: also when sbxd crashes.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "supervisor/pool_int.h"
#include "tests/sim/sim.h"

#define MADE_SCOPE 4U /* of the first uid, and the next one of the other: those without a user */

bool sim_is_made(const struct sim_request *r)
{
	return r->want == POOL_WANT_MADE;
}

static bool is_order(const struct sim_request *r)
{
	return r->want == POOL_WANT_START || r->want == POOL_WANT_STOP;
}

static bool is_waiting(const struct sim *s, const struct sim_conn *c, enum pool_want want)
{
	return c->req && !s->requests[c->req].removal && s->requests[c->req].want == want;
}

/* ---- making ---- */

static void draw_box(struct sim *s, struct sim_request *r)
{
	uint64_t drawn = sim_draw(s);

	r->want = POOL_WANT_MADE;
	r->spec = sim_chance(s, 80) ? 0 : 1;
	(void)snprintf(r->id.token, sizeof(r->id.token), "%016llx", (unsigned long long)drawn);
	memcpy(r->id.digest, &drawn, sizeof(drawn));
	if (sim_chance(s, 70))
		r->name[0] = (char)('a' + sim_below(s, 3));
}

bool sim_client_make(struct sim *s)
{
	uint32_t scope = MADE_SCOPE + sim_below(s, 2);
	struct sim_conn *c = sim_idle_conn(s, s->scopes[scope].uid);
	struct pool_request q = {.want = POOL_WANT_MADE, .anonymous = true, .no_user = true};
	struct sim_request *r;

	if (!c)
		return false;
	r = sim_request_new(s, c, scope);
	draw_box(s, r);
	q.req = sim_request_number(s, r);
	q.uid = r->uid;
	q.id = r->id;
	q.name = r->name;
	q.spec.digest[0] = r->spec;
	q.lease_id = SIM_LEASE_OF(q.req);
	if (s->rules.acquire_timeout)
		r->deadline = s->now + s->rules.acquire_timeout;
	s->waiting++;
	sim_note(s, "make", SHM_NONE, 0, q.req, r->name);
	pool_acquire(s->pool, s->now, &q);
	sim_settle(s);
	return true;
}

/* ---- orders ---- */

/* Somebody's box: one that is leased, or one that is being made; NULL when there is none. */
static struct sim_request *any_box(struct sim *s)
{
	uint32_t first = sim_below(s, SIM_CONNS);
	bool waits = sim_chance(s, 20);

	for (uint32_t i = 0; waits && i < SIM_CONNS; i++) {
		const struct sim_conn *c = &s->conns[(first + i) % SIM_CONNS];

		if (is_waiting(s, c, POOL_WANT_MADE))
			return &s->requests[c->req];
	}
	if (s->lease_count == 0)
		return NULL;
	return &s->requests[s->leases[sim_below(s, s->lease_count)]];
}

static struct sim_request *any_made(struct sim *s)
{
	struct sim_request *r = any_box(s);

	for (uint32_t i = 0; i < s->lease_count && r && !sim_is_made(r); i++)
		r = &s->requests[s->leases[i]];
	return r && sim_is_made(r) ? r : NULL;
}

static void send_order(struct sim *s, struct sim_request *r, const struct sim_request *made)
{
	const struct pool_box *b = pool_box_find(s->pool, made->uid, made->id.token);
	uint64_t req = sim_request_number(s, r);
	uint64_t timeout = r->want == POOL_WANT_STOP ? sim_below(s, 40) * NS_PER_S : 0;
	int rc;

	if (r->want == POOL_WANT_STOP)
		r->deadline = s->now + timeout + 2 * POOL_STOP_SLACK;
	else if (s->rules.acquire_timeout)
		r->deadline = s->now + s->rules.acquire_timeout;
	s->waiting++;
	rc = pool_order(s->pool, s->now, made->uid, made->id.token, r->want, timeout, req);
	SIM_CHECK(s,
	    rc == (!b			   ? -ENOENT
		      : !sim_is_made(made) ? -EINVAL
					   : 0),
	    "what is made can be started and stopped, and nothing else");
	sim_note(s, r->want == POOL_WANT_STOP ? "stop" : "start", b ? b->slot : SHM_NONE,
	    b ? b->generation : 0, req, rc ? "refused" : "");
	if (rc)
		sim_request_answered(s, r, SIM_REFUSED);
	sim_settle(s);
}

bool sim_client_order(struct sim *s)
{
	struct sim_request *made = sim_chance(s, 95) ? any_made(s) : any_box(s);
	struct sim_conn *c = made ? sim_idle_conn(s, made->uid) : NULL;
	struct sim_request *r;

	if (!c)
		return false;
	r = sim_request_new(s, c, made->scope);
	r->want = sim_chance(s, 50) ? POOL_WANT_START : POOL_WANT_STOP;
	r->id = made->id;
	r->about = sim_request_number(s, made);
	send_order(s, r, made);
	return true;
}

void sim_obeyed(struct sim *s, const struct pool_action *a)
{
	struct sim_request *r = &s->requests[a->req];
	struct sim_request *made = &s->requests[r->about];
	uint32_t rest = r->want == POOL_WANT_STOP ? SLOT_FLAG_STOPPED : 0;

	SIM_CHECK(s, a->req > 0 && a->req <= s->last_req && is_order(r),
	    "who is obeyed has given an order");
	SIM_CHECK(s, r->answer == SIM_WAITING, "a request is answered once");
	SIM_CHECK(s, made->slot == a->slot && made->generation == a->generation,
	    "an order is about its own box");
	SIM_CHECK(s, s->shadow[a->slot].state == SLOT_ACTIVE && s->shadow[a->slot].rest == rest,
	    "an order was obeyed when it is said to be");
	if (rest)
		SIM_CHECK(s, s->pages[a->slot].in_flight == 0, "nothing runs in a stopped box");
	sim_request_answered(s, r, SIM_OBEYED);
	made->rest = rest;
	made->unsure = false;
}

void sim_order_lost(struct sim *s, const struct sim_request *r)
{
	if (is_order(r))
		s->requests[r->about].unsure = true;
}

void sim_stopped(struct sim *s, struct sim_proc *p, bool ok)
{
	struct sim_shadow *v = &s->shadow[p->slot];

	SIM_CHECK(s, v->state != SLOT_ACTIVE || v->rest == SLOT_FLAG_STOPPING,
	    "a worker stops what it is told to");
	if (v->state == SLOT_ACTIVE) {
		v->rest = ok ? SLOT_FLAG_STOPPED : 0;
		v->stop_due = CLOCK_NEVER;
		v->stop_failed = !ok;
	}
	pool_stopped(s->pool, s->now, p->slot, p->generation, ok, ok ? "" : "one cannot be ended");
}

/* ---- use ---- */

/* Its connection is handed to the box's worker. */
bool sim_client_use(struct sim *s)
{
	struct sim_request *r = any_made(s);
	const struct pool_box *b = r ? pool_box_find(s->pool, r->uid, r->id.token) : NULL;
	struct sim_shadow *v;

	if (!b || r->lease != SIM_HELD || b->state != SLOT_ACTIVE || b->adopting)
		return false;
	v = &s->shadow[b->slot];
	sim_note(s, "use", b->slot, b->generation, 0, "");
	if (!pool_use(s->pool, b->slot, b->generation)) {
		SIM_CHECK(s, v->rest == SLOT_FLAG_STOPPING, "a box can be used, unless it stops");
		return true;
	}
	SIM_CHECK(s, v->rest != SLOT_FLAG_STOPPING, "what is being stopped is not used");
	r->unsure = true;
	sim_settle(s);
	if (!s->alive)
		return true;
	r->rest = 0;
	r->unsure = false;
	s->pages[v - s->shadow].in_flight = 1;
	s->pages[v - s->shadow].activity = s->now;
	return true;
}

/* ---- removal ---- */

static bool may_go(const struct sim *s, const struct pool_box *b)
{
	return b->state >= SLOT_CLOSING ||
	       (b->state == SLOT_ACTIVE &&
		   (s->shadow[b->slot].rest & (SLOT_FLAG_FRESH | SLOT_FLAG_STOPPED)));
}

bool sim_client_unmake(struct sim *s)
{
	struct sim_request *made = any_made(s);
	struct sim_conn *c = made ? sim_idle_conn(s, made->uid) : NULL;
	bool force = sim_chance(s, 50);
	const struct pool_box *b;
	struct sim_request *r;
	int rc;

	if (!c)
		return false;
	r = sim_request_new(s, c, made->scope);
	r->removal = true;
	b = pool_box_find(s->pool, made->uid, made->id.token);
	if (b && (force || may_go(s, b)))
		s->shadow[b->slot].excuse |= EXCUSE_CLIENT;
	rc = pool_remove(
	    s->pool, s->now, made->uid, made->id.token, force, sim_request_number(s, r));
	SIM_CHECK(s, (rc == -ENOENT) == !b, "what is there can be removed, and nothing else");
	SIM_CHECK(s, !b || (rc == -EBUSY) == (!force && !may_go(s, b)),
	    "a box that runs is not removed without force");
	sim_note(s, "unmake", b ? b->slot : SHM_NONE, b ? b->generation : 0,
	    sim_request_number(s, r), rc ? "refused" : "");
	if (rc)
		sim_request_answered(s, r, SIM_REFUSED);
	sim_settle(s);
	SIM_CHECK(s, !s->alive || rc || made->answer != SIM_WAITING,
	    "who waits for a made box is told of its removal");
	return true;
}

void sim_unmake(struct sim *s, struct sim_request *r)
{
	s->shadow[r->slot].excuse |= EXCUSE_CLIENT;
	sim_note(s, "unmake", r->slot, r->generation, 0, "");
	SIM_CHECK(s, pool_remove(s->pool, s->now, r->uid, r->id.token, true, 0) == 0,
	    "a made box can be removed");
	sim_settle(s);
}

/* ---- what must hold ---- */

static bool has_name(const struct pool_box *b, uid_t uid, const char *name)
{
	return b->scope && b->state < SLOT_CLOSING && b->uid == uid && !strcmp(b->name, name);
}

static void check_name(struct sim *s, const struct pool_box *b)
{
	SIM_CHECK(
	    s, pool_box_named(s->pool, b->uid, b->name) == b, "a made box is found by its name");
	for (uint32_t i = b->slot + 1; i < s->rules.slots; i++)
		SIM_CHECK(s, !has_name(pool_box_at(s->pool, i), b->uid, b->name),
		    "a name is that of one box");
}

void sim_check_made(struct sim *s, const struct pool_box *b)
{
	const struct sim_shadow *v = &s->shadow[b->slot];
	uint32_t flags = (v->made ? SLOT_FLAG_MADE : 0) | v->rest;

	if (b->state == SLOT_FREE || b->state >= SLOT_CLOSING)
		return;
	SIM_CHECK(s, (b->flags & (SLOT_FLAG_MADE | SLOT_FLAGS_REST)) == flags,
	    "a made box is at what was done with it");
	SIM_CHECK(s,
	    ((b->flags ^ s->table[b->slot].part.flags) & (SLOT_FLAG_MADE | SLOT_FLAGS_REST)) == 0,
	    "the table shows what a made box is at");
	SIM_CHECK(s, !v->made || b->lease_count <= 1, "a made box is its creator's alone");
	if (b->name[0])
		check_name(s, b);
	if (v->made && b->state == SLOT_ACTIVE && v->rest == SLOT_FLAG_STOPPING && !b->adopting)
		SIM_CHECK(s,
		    b->deadline >= pool_deadline(s->pool) && b->deadline != CLOCK_NEVER &&
			b->deadline <= v->stop_due,
		    "a stop ends within its bound");
}

static bool has_orders(const struct sim *s, uint64_t about)
{
	for (uint32_t i = 0; i < SIM_CONNS; i++) {
		const struct sim_request *r = &s->requests[s->conns[i].req];

		if (s->conns[i].req && is_order(r) && r->about == about)
			return true;
	}
	return false;
}

void sim_check_promise(struct sim *s)
{
	for (uint32_t i = 0; i < s->lease_count; i++) {
		const struct sim_request *r = &s->requests[s->leases[i]];

		if (!sim_is_made(r) || r->lease != SIM_HELD || r->unsure ||
		    has_orders(s, s->leases[i]))
			continue;
		SIM_CHECK(s,
		    s->shadow[r->slot].generation == r->generation &&
			s->shadow[r->slot].rest == r->rest,
		    "a made box is at what its creator was told");
	}
}

/* ---- refusals ---- */

static bool is_taken(struct sim *s, const struct sim_request *r)
{
	for (uint32_t i = 0; i < SIM_CONNS; i++) {
		const struct sim_request *o = &s->requests[s->conns[i].req];

		if (is_waiting(s, &s->conns[i], POOL_WANT_MADE) && o != r && o->uid == r->uid &&
		    !strcmp(o->name, r->name))
			return true;
	}
	for (uint32_t i = 0; i < s->rules.slots; i++) {
		if (has_name(pool_box_at(s->pool, i), r->uid, r->name))
			return true;
	}
	return false;
}

bool sim_may_refuse_made(struct sim *s, const struct sim_request *r, enum api_error error)
{
	const struct pool_box *b = pool_box_find(s->pool, r->uid, r->id.token);
	bool is_closing = b && b->state >= SLOT_CLOSING;

	switch (error) {
	case API_ALREADY_EXISTS:
		return sim_is_made(r) && r->name[0] && is_taken(s, r);
	case API_BOX_DIED:
		return is_order(r) ? !b || is_closing
				   : sim_is_made(r) && is_closing &&
					 (s->shadow[b->slot].excuse & EXCUSE_CLIENT);
	case API_NOT_FOUND:
		return is_order(r) && !b;
	case API_TIMEOUT:
		return r->want == POOL_WANT_STOP && b && s->shadow[b->slot].stop_failed;
	default:
		return false;
	}
}
