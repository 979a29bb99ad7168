/*
 * workers: what runs beside sbxd: one process per box, that holds its slot's scope lock in the
 * middle of a transition, dies, hangs, and outlives sbxd; and what the kernel does at its end.
 */
#include <string.h>

#include "lib/log.h"
#include "tests/sim/sim.h"

uint32_t sim_proc_number(const struct sim *s, const struct sim_proc *p)
{
	return (uint32_t)(p - s->procs);
}

/* The worker of a slot that may touch its page, or NULL. */
struct sim_proc *sim_proc_of(struct sim *s, uint32_t slot)
{
	for (uint32_t i = 0; i < SIM_PROCS; i++) {
		struct sim_proc *p = &s->procs[i];

		if (p->used && p->alive && p->told && p->slot == slot)
			return p;
	}
	return NULL;
}

struct sim_proc *sim_proc_spawn(struct sim *s, uint32_t slot, uint64_t generation)
{
	uint32_t i = 0;

	while (i < SIM_PROCS && s->procs[i].used)
		i++;
	INVARIANT(i < SIM_PROCS);
	s->procs[i] = (struct sim_proc){
	    .used = true,
	    .alive = true,
	    .slot = slot,
	    .generation = generation,
	    .serial = ++s->serials,
	    .link = s->epoch,
	};
	return &s->procs[i];
}

void sim_proc_send(struct sim *s, struct sim_proc *p, enum pool_action_kind order)
{
	if (!p->alive || p->link != s->epoch)
		return; /* there is nobody to send to, and the pidfd will say so */
	INVARIANT(p->order_count < SIM_MAIL);
	p->orders[p->order_count++] = order;
}

static void say(struct sim *s, struct sim_proc *p, enum sim_said what)
{
	if (p->link != s->epoch || !s->alive)
		return;
	INVARIANT(p->said_count < SIM_MAIL);
	p->said[p->said_count++] = what;
}

static bool take_order(struct sim_proc *p, enum pool_action_kind *order)
{
	if (p->order_count == 0)
		return false;
	*order = p->orders[0];
	p->order_count--;
	memmove(p->orders, p->orders + 1, p->order_count * sizeof(p->orders[0]));
	return true;
}

/* ---- the scope lock ---- */

static bool lock_is_free(const struct sim_page *page)
{
	return page->lock_owner == 0 && !page->owner_dead && !page->unrecoverable;
}

/* A worker takes it to change the slot. It never repairs: what it meets must be whole. */
static void lock_take(struct sim *s, struct sim_proc *p)
{
	struct sim_page *page = &s->pages[p->slot];

	SIM_CHECK(s, !page->owner_dead, "a worker never meets a lock whose owner died");
	SIM_CHECK(s, lock_is_free(page), "a worker's lock is its own");
	SIM_CHECK(s, !page->damaged, "a slot is repaired before it is used again");
	page->lock_owner = SIM_LOCK_PROC(sim_proc_number(s, p));
	page->damaged = true;
}

static void lock_leave(struct sim *s, struct sim_proc *p)
{
	struct sim_page *page = &s->pages[p->slot];

	page->damaged = false;
	page->lock_owner = 0;
}

/* What the kernel does with a robust mutex when its owner ends. */
void sim_lock_drop(struct sim *s, uint32_t slot, uint32_t who)
{
	struct sim_page *page = &s->pages[slot];

	if (page->lock_owner != who)
		return;
	page->lock_owner = 0;
	page->owner_dead = true;
	page->inconsistent = false;
}

/* perform_recover() of supervisor/perform_clean.c, step by step. False: it cannot be used again, or
 * sbxd crashed in between. */
bool sim_slot_recover(struct sim *s, uint32_t slot)
{
	struct sim_page *page = &s->pages[slot];
	bool fails = !s->quiet && sim_rarely(s, 3);

	SIM_CHECK(s, !sim_proc_of(s, slot), "a slot is recovered when no worker has it any more");
	SIM_CHECK(s, page->lock_owner == 0, "the lock of a slot without a worker is not held");
	if (page->unrecoverable)
		return false;
	page->inconsistent = page->owner_dead;
	page->owner_dead = false;
	page->lock_owner = SIM_LOCK_SBXD;
	page->damaged = true;
	if (!sim_effect(s))
		return false;
	if (!fails) {
		page->damaged = page->worn = false;
		page->in_flight = 0;
		page->activity = 0;
		if (!sim_effect(s))
			return false;
		page->inconsistent = false;
	}
	page->lock_owner = 0;
	page->unrecoverable = page->inconsistent;
	sim_note(s, "  recovered", slot, 0, 0, fails ? "in vain" : "");
	return !fails;
}

/* ---- the life of a worker ---- */

void sim_proc_end(struct sim *s, struct sim_proc *p, const char *how)
{
	sim_note(s, "worker ends", p->slot, p->generation, 0, how);
	p->alive = false;
	p->hung = p->doomed = p->unkillable = false;
	p->order_count = 0;
	sim_lock_drop(s, p->slot, SIM_LOCK_PROC(sim_proc_number(s, p)));
	if (!s->alive || s->workers[p->slot] != sim_proc_number(s, p))
		p->used = false; /* nobody asks for its end */
}

/* Only for whom it was. There may be none: the worker before, or its sbxd, has not told. */
static void check_take_over(struct sim *s, const struct sim_proc *p)
{
	const struct sim_page *page = &s->pages[p->slot];

	SIM_CHECK(s,
	    !page->owned ||
		(p->uid == page->uid && !memcmp(p->identity, page->identity, sizeof(p->identity))),
	    "what is taken over stays whose it was");
}

static bool step_new(struct sim *s, struct sim_proc *p)
{
	enum pool_action_kind order;
	struct sim_page *page = &s->pages[p->slot];

	if (!take_order(p, &order)) {
		if (p->link == s->epoch && s->alive)
			return false;
		sim_proc_end(s, p, "was never told to boot");
		return true;
	}
	if (order != POOL_SPAWN) { /* closed before it began */
		sim_proc_end(s, p, "told to close before it began");
		return true;
	}
	SIM_CHECK(s, !sim_proc_of(s, p->slot), "a slot has one worker");
	SIM_CHECK(s, !page->worn, "a slot is repaired before another worker has it");
	if (p->takes_over)
		check_take_over(s, p);
	else
		SIM_CHECK(
		    s, !page->remains, "what a box left is cleaned up before its slot has another");
	SIM_CHECK(s, p->generation > s->spawned[p->slot], "a slot's generations only ever grow");
	s->spawned[p->slot] = p->generation;
	p->told = page->worn = page->remains = true;
	lock_take(s, p);
	p->state = PROC_BOOTING;
	sim_note(s, "worker boots", p->slot, p->generation, 0, "");
	return true;
}

static bool step_booting(struct sim *s, struct sim_proc *p)
{
	const struct sim_page *page = &s->pages[p->slot];
	bool ok = (s->quiet || !sim_chance(s, s->temper.bad)) && (!p->takes_over || page->machine);

	if (!s->quiet && sim_chance(s, s->temper.fragile)) {
		sim_proc_end(s, p, "crashes while it boots");
		return true;
	}
	lock_leave(s, p);
	p->state = ok ? PROC_UP : PROC_ENDING;
	p->outlives = ok && (p->takes_over || sim_chance(s, s->temper.outlives));
	s->pages[p->slot].machine = p->outlives;
	/* Whose box was killed meanwhile says so as if it had been up. */
	say(s, p, ok ? SAID_BOOTED : sim_chance(s, 30) ? SAID_DIED : SAID_FAILED);
	sim_note(s, "worker booted", p->slot, p->generation, 0, ok ? "" : "failed");
	return true;
}

static void greet(struct sim *s, struct sim_proc *p, bool up, bool closing)
{
	p->link = s->epoch;
	p->stop_asked = false;
	p->up_at_hello = up;
	p->closing_at_hello = closing;
	say(s, p, SAID_HELLO);
	sim_note(s, "worker says hello", p->slot, p->generation, 0,
	    closing ? "closing"
	    : up    ? "up"
		    : "not up");
	if (up)
		say(s, p, SAID_WHAT_IT_IS);
	if (p->died)
		say(s, p, SAID_DIED);
	if (p->left)
		say(s, p, SAID_LEFT);
}

static void begin_closing(struct sim *s, struct sim_proc *p, const char *why)
{
	lock_take(s, p);
	p->state = PROC_CLOSING;
	sim_note(s, "worker closes", p->slot, p->generation, 0, why);
}

static bool step_alone(struct sim *s, struct sim_proc *p)
{
	if (!s->quiet && sim_rarely(s, 30)) {
		begin_closing(s, p, "alone too long");
		return true;
	}
	if (!s->alive)
		return false;
	greet(s, p, s->quiet || !sim_rarely(s, 20), false);
	return true;
}

/* What ran in the box has ended, or will not. */
static bool step_stopping(struct sim *s, struct sim_proc *p)
{
	bool ok = s->quiet || !sim_chance(s, s->temper.bad);

	p->stopping = false;
	if (ok)
		s->pages[p->slot].in_flight = 0;
	if (p->stop_asked)
		say(s, p, ok ? SAID_STOPPED : SAID_NOT_STOPPED);
	sim_note(s, "worker stopped it", p->slot, p->generation, 0, ok ? "" : "in vain");
	return true;
}

static bool step_up(struct sim *s, struct sim_proc *p)
{
	enum pool_action_kind order;

	if (p->stopping && (p->order_count == 0 || sim_chance(s, 50)))
		return step_stopping(s, p);
	if (!take_order(p, &order)) {
		if (p->link != s->epoch || !s->alive)
			return step_alone(s, p);
		if (s->quiet || !sim_rarely(s, 15))
			return false;
		say(s, p, SAID_DIED);
		p->died = true;
		if (!p->outlives || sim_chance(s, 50))
			s->pages[p->slot].machine = false;
		p->state = PROC_ENDING;
		sim_note(s, "box dies", p->slot, p->generation, 0, "");
		return true;
	}
	if (order == POOL_CLOSE) {
		begin_closing(s, p, "as told");
		return true;
	}
	if (order == POOL_STOP) {
		SIM_CHECK(s,
		    p->link != s->epoch || !s->alive ||
			s->shadow[p->slot].rest == SLOT_FLAG_STOPPING,
		    "a stop that is over is not carried out");
		p->stopping = p->stop_asked = true;
		return true;
	}
	lock_take(s, p);
	p->state = PROC_CHECKING;
	return true;
}

static bool step_checking(struct sim *s, struct sim_proc *p)
{
	bool ok = s->quiet || !sim_chance(s, s->temper.bad);

	lock_leave(s, p);
	p->state = PROC_UP;
	say(s, p, ok ? SAID_CHECKED : SAID_UNHEALTHY);
	sim_note(s, "worker checked", p->slot, p->generation, 0, ok ? "" : "unhealthy");
	return true;
}

static bool step_closing(struct sim *s, struct sim_proc *p)
{
	if (p->link != s->epoch && s->alive && sim_chance(s, 50)) {
		greet(s, p, false, true);
		return true;
	}
	lock_leave(s, p);
	sim_proc_end(s, p, "closed");
	return true;
}

static bool step_ending(struct sim *s, struct sim_proc *p)
{
	if (p->link != s->epoch && s->alive && p->died && sim_chance(s, 50)) {
		greet(s, p, false, true);
		return true;
	}
	if (p->died && !p->left && s->pages[p->slot].machine && (s->quiet || sim_chance(s, 80))) {
		p->left = true;
		say(s, p, SAID_LEFT);
		sim_note(s, "worker leaves its box", p->slot, p->generation, 0, "");
		return true;
	}
	sim_proc_end(s, p, "by itself");
	return true;
}

static bool (*const steps[])(struct sim *s, struct sim_proc *p) = {
    [PROC_NEW] = step_new,
    [PROC_BOOTING] = step_booting,
    [PROC_UP] = step_up,
    [PROC_CHECKING] = step_checking,
    [PROC_CLOSING] = step_closing,
    [PROC_ENDING] = step_ending,
};

/* What it does next by itself; false: it has nothing to do. */
bool sim_proc_step(struct sim *s, struct sim_proc *p)
{
	if (p->doomed && !p->unkillable && (s->quiet || sim_chance(s, 70))) {
		sim_proc_end(s, p, "killed");
		return true;
	}
	return !p->hung && steps[p->state](s, p);
}
