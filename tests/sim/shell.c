/*
 * shell: sbxd around the pool: carries out actions and publishes, in the order in which
 * supervisor/perform.c does, and may crash before each effect.
 */
#include <string.h>

#include "tests/sim/sim.h"

bool sim_effect(struct sim *s)
{
	if (s->alive && s->crash_in > 0 && --s->crash_in == 0)
		sim_sbxd_dies(s, "in the middle of an event");
	return s->alive;
}

/* The box an action is about, if it still is that box. */
static const struct pool_box *action_box(const struct sim *s, const struct pool_action *a)
{
	const struct pool_box *b = pool_box_at(s->pool, a->slot);

	return b && b->generation == a->generation ? b : NULL;
}

bool sim_publish_changed(struct sim *s)
{
	const struct pool_box *b;

	while (s->alive && (b = pool_next_dirty(s->pool))) {
		if (sim_effect(s))
			sim_publish(s, b);
	}
	return s->alive;
}

static bool publish_now(struct sim *s, const struct pool_box *b)
{
	if (!sim_effect(s))
		return false;
	sim_publish(s, b);
	pool_published(s->pool, b);
	return true;
}

/* To a worker that we know and that knows us. */
static void tell(struct sim *s, const struct pool_action *a)
{
	uint32_t proc = s->workers[a->slot];

	if (proc != SIM_NOBODY && s->greeted[a->slot])
		sim_proc_send(s, &s->procs[proc], a->kind);
}

/* ---- starting ---- */

/* The table shows the box before it has a worker, and the worker before it is told to boot: one
 * that was not told leaves when its socket ends, one that was is found by the next sbxd. */
static void spawn_worker(struct sim *s, const struct pool_box *b)
{
	uint32_t slot = b->slot;
	struct sim_proc *p;

	SIM_CHECK(s, s->workers[slot] == SIM_NOBODY, "a slot has one worker");
	if (!sim_publish_changed(s) || !sim_effect(s))
		return;
	p = sim_proc_spawn(s, slot, b->generation);
	s->workers[slot] = sim_proc_number(s, p);
	s->greeted[slot] = true;
	p->takes_over = (b->flags & SLOT_FLAG_SAVED) != 0;
	if (b->token[0]) {
		p->touched = true;
		p->uid = b->uid;
		memcpy(p->identity, b->identity, sizeof(p->identity));
	}
	if (publish_now(s, b) && sim_effect(s))
		sim_proc_send(s, p, POOL_SPAWN);
}

/* on_image() of perform.c */
void sim_image_ready(struct sim *s, uint32_t slot, bool ok)
{
	const struct pool_box *b = pool_box_by_generation(s->pool, s->images[slot].generation);
	uint64_t gen;

	s->images[slot].pending = false;
	if (!b)
		return;
	gen = b->generation;
	sim_note(s, "image", slot, gen, 0, ok ? "ready" : "cannot be had");
	if (b->state == SLOT_BOOTING && ok) {
		pool_boot_begins(s->pool, s->now, slot, gen);
		spawn_worker(s, b);
		return;
	}
	if (b->state == SLOT_BOOTING)
		pool_boot_failed(s->pool, s->now, slot, gen, "no image");
	s->shadow[slot].excuse |= EXCUSE_WORKER;
	pool_worker_gone(s->pool, s->now, slot, gen, 0, "not started");
}

/* mend_saved() of perform.c, in vain. */
static void not_mended(struct sim *s, const struct pool_action *a)
{
	if (!s->alive)
		return;
	s->shadow[a->slot].excuse |= EXCUSE_WORKER;
	pool_boot_failed(s->pool, s->now, a->slot, a->generation, "its lock cannot be had");
	pool_worker_gone(s->pool, s->now, a->slot, a->generation, 0, "not started");
}

static void do_spawn(struct sim *s, const struct pool_action *a)
{
	const struct pool_box *b = action_box(s, a);

	if (!b)
		return;
	if ((b->flags & SLOT_FLAG_SAVED) && !sim_slot_recover(s, a->slot)) {
		not_mended(s, a);
		return;
	}
	s->images[a->slot] = (struct sim_pending){.pending = true, .generation = a->generation};
	if (s->quiet || !sim_chance(s, 20))
		sim_image_ready(s, a->slot, s->quiet || !sim_rarely(s, 10));
	else
		pool_boot_waits(s->pool, s->now, a->slot, a->generation);
}

/* ---- ending ---- */

static void do_tell(struct sim *s, const struct pool_action *a)
{
	const struct pool_box *b = action_box(s, a);

	SIM_CHECK(s, a->kind != POOL_CLOSE || !b || !(b->flags & SLOT_FLAG_SAVED),
	    "a worker whose box is to be saved is not told to close it");
	tell(s, a);
}

/* A successor goes on with a stop that was begun. */
static void do_stop(struct sim *s, const struct pool_action *a)
{
	if (sim_publish_changed(s) && sim_effect(s))
		tell(s, a);
}

static void do_kill(struct sim *s, const struct pool_action *a)
{
	uint32_t proc = s->workers[a->slot];

	if (proc == SIM_NOBODY)
		return;
	s->procs[proc].doomed = true;
	s->procs[proc].unkillable = !s->quiet && sim_rarely(s, 10);
}

/* on_cleaned() of perform_clean.c */
void sim_cleaned(struct sim *s, uint32_t slot, bool ok)
{
	uint64_t gen = s->cleans[slot].generation;

	s->cleans[slot].pending = false;
	sim_note(s, "janitor", slot, gen, 0, ok ? "all is clean" : "cannot clean up");
	if (ok)
		s->pages[slot].remains = s->pages[slot].machine = s->pages[slot].owned = false;
	ok = ok && sim_slot_recover(s, slot);
	if (s->alive)
		pool_cleaned(s->pool, s->now, slot, gen, ok, ok ? "" : "its mounts are busy");
}

static void clean_unborn(struct sim *s, const struct pool_action *a)
{
	s->cleans[a->slot].pending = false;
	pool_cleaned(s->pool, s->now, a->slot, a->generation, true, "");
}

static void do_clean(struct sim *s, const struct pool_action *a)
{
	SIM_CHECK(s, !s->cleans[a->slot].pending, "a slot is cleaned once");
	s->cleans[a->slot] = (struct sim_pending){
	    .pending = true,
	    .stuck = !s->quiet && sim_rarely(s, 5),
	    .generation = a->generation,
	};
	if (s->table[a->slot].part.machine != pool_box_at(s->pool, a->slot)->machine)
		clean_unborn(s, a); /* never published: never started */
}

/* ---- answers ---- */

static void do_grant(struct sim *s, const struct pool_action *a)
{
	const struct pool_box *b = action_box(s, a);

	SIM_CHECK(s, b, "a grant is about a box that is there");
	/* The table shows the lease before the client knows of it. */
	if (sim_publish_changed(s) && sim_effect(s))
		sim_granted(s, a);
}

static void do_refuse(struct sim *s, const struct pool_action *a)
{
	sim_refused(s, a);
}

static void do_removed(struct sim *s, const struct pool_action *a)
{
	if (sim_publish_changed(s)) /* as with a grant */
		sim_removed(s, a);
}

static void do_obeyed(struct sim *s, const struct pool_action *a)
{
	if (sim_publish_changed(s) && sim_effect(s)) /* as with a grant */
		sim_obeyed(s, a);
}

static void do_drained(struct sim *s, const struct pool_action *a)
{
	(void)a;
	s->drained++;
}

static void do_nothing(struct sim *s, const struct pool_action *a)
{
	(void)s;
	(void)a;
}

static const struct {
	const char *name;
	void (*fn)(struct sim *s, const struct pool_action *a);
} perform[] = {
    [POOL_SPAWN] = {"  spawn", do_spawn},
    [POOL_CHECK] = {"  check", do_tell},
    [POOL_PARK] = {"  park", do_nothing},
    [POOL_CLAIM] = {"  claim", do_nothing},
    [POOL_PROMOTE] = {"  promote", do_nothing},
    [POOL_CLOSE] = {"  close", do_tell},
    [POOL_KILL] = {"  kill", do_kill},
    [POOL_STOP] = {"  stop", do_stop},
    [POOL_CLEAN] = {"  clean", do_clean},
    [POOL_GRANT] = {"  grant", do_grant},
    [POOL_REFUSE] = {"  refuse", do_refuse},
    [POOL_REMOVED] = {"  removed", do_removed},
    [POOL_OBEYED] = {"  obeyed", do_obeyed},
    [POOL_RECORD] = {"  record", do_nothing},
    [POOL_DRAINED] = {"  drained", do_drained},
};

static void note_action(struct sim *s, const struct pool_action *a)
{
	if (a->kind == POOL_RECORD && a->event == EVENT_STATE)
		sim_note_transition(s, a);
	else
		sim_note(s, perform[a->kind].name, a->slot, a->generation, a->req, a->text);
}

/* Everything that an event brought about, as sbxd_settle() does it. */
void sim_settle(struct sim *s)
{
	struct pool_action a;

	if (!s->alive)
		return;
	s->steps++;
	while (s->alive && pool_next_action(s->pool, &a)) {
		SIM_CHECK(s, a.kind > POOL_NOTHING && a.kind <= POOL_DRAINED, "actions are known");
		if (!sim_effect(s))
			return;
		note_action(s, &a);
		sim_shadow_action(s, &a);
		perform[a.kind].fn(s, &a);
	}
	if (!sim_publish_changed(s))
		return;
	sim_doubts_end(s);
	sim_check(s);
	for (uint32_t i = 0; i < s->rules.slots; i++) {
		s->shadow[i].excuse = 0;
		s->shadow[i].proven = s->shadow[i].stop_failed = false;
	}
	s->is_reset = s->is_adoption = false;
}

/* The timer. */
void sim_tick(struct sim *s)
{
	for (uint32_t i = 0; i < s->lease_count; i++) {
		struct sim_request *r = &s->requests[s->leases[i]];

		if (s->now >= r->expires)
			sim_lease_doubt(s, r);
	}
	pool_tick(s->pool, s->now);
	SIM_CHECK(s, pool_deadline(s->pool) > s->now, "a tick does all that is due");
	sim_settle(s);
}

/* ---- workers ---- */

static void on_hello(struct sim *s, struct sim_proc *p)
{
	const struct pool_box *b = pool_box_at(s->pool, p->slot);
	bool was_killed = b->killed;

	s->greeted[p->slot] = true;
	s->is_adoption = true;
	if (!p->up_at_hello)
		s->shadow[p->slot].excuse |= EXCUSE_WORKER;
	pool_adopted(s->pool, s->now, p->slot, p->generation, p->up_at_hello, p->closing_at_hello);
	if (!p->up_at_hello)
		SIM_CHECK(s, b->state >= SLOT_CLOSING,
		    "a box that its worker closes or has not made is not kept");
	if (p->closing_at_hello && b->state == SLOT_CLOSING)
		SIM_CHECK(s, b->killed == was_killed, "a worker that closes its box has its time");
}

/* One message from a worker. */
void sim_hear(struct sim *s, struct sim_proc *p)
{
	enum sim_said what = p->said[0];
	bool known = s->workers[p->slot] == sim_proc_number(s, p);

	p->said_count--;
	memmove(p->said, p->said + 1, p->said_count * sizeof(p->said[0]));
	SIM_CHECK(s, known, "a worker with a box is known to every supervisor");
	switch (what) {
	case SAID_BOOTED:
		pool_outlives(s->pool, p->slot, p->generation, p->outlives);
		pool_booted(s->pool, s->now, p->slot, p->generation);
		break;
	case SAID_FAILED:
		s->shadow[p->slot].excuse |= EXCUSE_WORKER;
		pool_boot_failed(s->pool, s->now, p->slot, p->generation, "no memory");
		break;
	case SAID_CHECKED:
		s->shadow[p->slot].proven = s->shadow[p->slot].state == SLOT_CHECKING;
		if (s->shadow[p->slot].proven)
			s->shadow[p->slot].adopted = false;
		pool_checked(s->pool, s->now, p->slot, p->generation, true, "");
		break;
	case SAID_UNHEALTHY:
		s->shadow[p->slot].excuse |= EXCUSE_WORKER;
		pool_checked(s->pool, s->now, p->slot, p->generation, false, "no pong");
		break;
	case SAID_STOPPED:
	case SAID_NOT_STOPPED:
		sim_stopped(s, p, what == SAID_STOPPED);
		break;
	case SAID_DIED:
		s->shadow[p->slot].excuse |= EXCUSE_WORKER;
		if (s->shadow[p->slot].state == SLOT_BOOTING && !p->takes_over)
			sim_boot_lost(s, p->slot);
		pool_box_failed(s->pool, s->now, p->slot, p->generation, "its stream broke");
		break;
	case SAID_LEFT:
		pool_box_left(s->pool, p->slot, p->generation);
		break;
	case SAID_HELLO:
		on_hello(s, p);
		break;
	case SAID_WHAT_IT_IS:
		pool_outlives(s->pool, p->slot, p->generation, p->outlives);
		break;
	}
	sim_settle(s);
}

/* Whatever supervisor heard it come up. */
static void check_known(struct sim *s, const struct sim_proc *p)
{
	const struct pool_box *b = pool_box_at(s->pool, p->slot);
	bool up = b->state == SLOT_STOCK || b->state == SLOT_ACTIVE || b->state == SLOT_CHECKING ||
		  b->state == SLOT_WARM;

	if (up && s->greeted[p->slot])
		SIM_CHECK(s, ((b->flags & SLOT_FLAG_OUTLIVES) != 0) == p->outlives,
		    "it is known which boxes outlive their workers");
}

/* The pidfd of a worker that ended, after all that it said was heard. */
void sim_reap(struct sim *s, struct sim_proc *p)
{
	check_known(s, p);
	p->used = false;
	s->workers[p->slot] = SIM_NOBODY;
	s->shadow[p->slot].excuse |= EXCUSE_WORKER;
	if (s->shadow[p->slot].state == SLOT_BOOTING && !p->takes_over)
		sim_boot_lost(s, p->slot);
	pool_worker_gone(s->pool, s->now, p->slot, p->generation, 9, "killed by signal 9");
	sim_settle(s);
}
