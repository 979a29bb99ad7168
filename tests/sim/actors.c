/*
 * actors: what workers, the janitor, their fate, and time bring about in sbxd, each drawn at
 * random; and what comes too late.
 */
#include "tests/sim/sim.h"
/* ---- workers and the janitor ---- */

static struct sim_proc *any_proc(struct sim *s)
{
	uint32_t first = sim_below(s, SIM_PROCS);

	for (uint32_t i = 0; i < SIM_PROCS; i++) {
		struct sim_proc *p = &s->procs[(first + i) % SIM_PROCS];

		if (p->used)
			return p;
	}
	return NULL;
}

/* What it has said is heard, then its end. */
bool sim_heed(struct sim *s, struct sim_proc *p)
{
	if (!s->alive)
		return false;
	if (p->said_count > 0)
		sim_hear(s, p);
	else if (!p->alive && s->workers[p->slot] == sim_proc_number(s, p))
		sim_reap(s, p);
	else
		return false;
	return true;
}

bool sim_act_worker(struct sim *s)
{
	struct sim_proc *p = any_proc(s);

	return p && p->alive && sim_proc_step(s, p);
}

bool sim_act_hear(struct sim *s)
{
	struct sim_proc *p = any_proc(s);

	return p && sim_heed(s, p);
}

bool sim_act_fate(struct sim *s)
{
	struct sim_proc *p = any_proc(s);

	if (!p || !p->alive || p->unkillable)
		return false;
	if (sim_rarely(s, s->temper.death)) {
		sim_proc_end(s, p, "crashes");
		return true;
	}
	if (p->told && sim_rarely(s, s->temper.hang)) {
		sim_note(s, "worker hangs", p->slot, p->generation, 0, "");
		p->hung = true;
		return true;
	}
	return false;
}

bool sim_answer_image(struct sim *s, uint32_t slot, bool ok)
{
	if (!s->images[slot].pending)
		return false;
	sim_image_ready(s, slot, ok);
	sim_settle(s);
	return true;
}

bool sim_answer_clean(struct sim *s, uint32_t slot, bool ok)
{
	if (!s->cleans[slot].pending || s->cleans[slot].stuck)
		return false;
	sim_cleaned(s, slot, ok);
	sim_settle(s);
	return true;
}

bool sim_act_janitor(struct sim *s)
{
	uint32_t slot = sim_below(s, s->rules.slots);

	return sim_answer_image(s, slot, !sim_chance(s, s->temper.bad)) ||
	       sim_answer_clean(s, slot, !sim_rarely(s, s->temper.bad));
}

bool sim_act_work(struct sim *s)
{
	uint32_t slot = sim_below(s, s->rules.slots);
	struct sim_proc *p = sim_proc_of(s, slot);

	if (!p || p->state != PROC_UP)
		return false;
	if (s->shadow[slot].made && !s->pages[slot].in_flight)
		return false; /* it is used through sbxd, which starts it */
	s->pages[slot].in_flight = s->pages[slot].in_flight ? 0 : 1;
	s->pages[slot].activity = s->now;
	sim_note(s, "work", slot, p->generation, 0, s->pages[slot].in_flight ? "begins" : "ends");
	return true;
}

/* What comes too late: about an earlier box, or a state that is over. */
bool sim_act_noise(struct sim *s)
{
	uint32_t slot = sim_below(s, s->rules.slots);
	const struct pool_box *b = pool_box_at(s->pool, slot);
	uint64_t stale = b->generation - 1 - sim_below(s, 3);
	uint64_t deadline = pool_deadline(s->pool);
	uint64_t now = s->now;

	switch (sim_below(s, 10)) {
	case 8:
		pool_stopped(s->pool, now, slot,
		    b->flags & SLOT_FLAG_STOPPING ? stale : b->generation, sim_chance(s, 50),
		    "late");
		break;
	case 0:
		pool_booted(s->pool, now, slot, b->state == SLOT_BOOTING ? stale : b->generation);
		break;
	case 1:
		pool_checked(s->pool, now, slot, b->state == SLOT_CHECKING ? stale : b->generation,
		    sim_chance(s, 50), "late");
		break;
	case 2:
		pool_boot_failed(
		    s->pool, now, slot, b->state == SLOT_BOOTING ? stale : b->generation, "late");
		break;
	case 3:
		pool_box_failed(s->pool, now, slot, stale, "stale");
		break;
	case 4:
		pool_worker_gone(s->pool, now, slot, stale, 0, "stale");
		break;
	case 5:
		pool_cleaned(s->pool, now, slot, b->state == SLOT_CLOSING ? stale : b->generation,
		    sim_chance(s, 50), "late");
		break;
	case 6:
		pool_adopted(s->pool, now, slot, b->adopting ? stale : b->generation, true, false);
		break;
	case 7:
		pool_not_adopted(s->pool, now, slot, b->adopting ? stale : b->generation, "late");
		break;
	default:
		pool_client_gone(s->pool, now, s->last_req + 1);
		break;
	}
	sim_check_silence(s, deadline);
	return true;
}

/* ---- time ---- */

uint64_t sim_next_due(const struct sim *s)
{
	uint64_t due = pool_deadline(s->pool);

	return s->hello_due < due ? s->hello_due : due;
}

void sim_on_time(struct sim *s)
{
	if (s->alive && s->now >= s->hello_due)
		sim_hello_overdue(s);
	if (s->alive && s->now >= pool_deadline(s->pool))
		sim_tick(s);
}

/* Timers come when they are due, and only then. */
void sim_pass(struct sim *s, uint64_t end)
{
	while (s->alive && sim_next_due(s) <= end) {
		if (sim_next_due(s) > s->now)
			s->now = sim_next_due(s);
		sim_on_time(s);
	}
	if (s->now < end)
		s->now = end;
}

/* In a long time everything that can happen does, most often. */
static void bustle(struct sim *s)
{
	uint32_t rounds = sim_chance(s, 90) ? 3 * SIM_PROCS : 0;

	while (rounds-- > 0) {
		struct sim_proc *p = any_proc(s);

		if (p && p->alive)
			(void)sim_proc_step(s, p);
		if (p && p->used)
			(void)sim_heed(s, p);
		if (s->alive)
			(void)sim_act_janitor(s);
	}
}

bool sim_act_pass(struct sim *s)
{
	static const uint64_t longest[] = {0, 20, 100, 500, 1000, 3000, 30000, 700000};
	uint32_t n = sim_below(s, sim_chance(s, 90) ? 5 : 8);
	uint64_t end = s->now + sim_below(s, 1000) * (longest[n] * NS_PER_MS / 1000);

	if (longest[n] > 1000)
		bustle(s);
	if (s->alive && sim_chance(s, n > 4 ? 50 : 2) && sim_next_due(s) != CLOCK_NEVER)
		end = sim_next_due(s) > s->now ? sim_next_due(s) : s->now;
	sim_note(s, "time passes", SHM_NONE, 0, 0, "");
	if (sim_chance(s, s->temper.lazy))
		s->now = end; /* the host was busy or asleep: one tick, late */
	sim_pass(s, end);
	return true;
}
