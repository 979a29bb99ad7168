/*
 * successor: the death of a supervisor, with all that is lost by it, and the beginning of the next
 * one, from the table and from the workers that lived on.
 */
#include "lib/log.h"
#include "tests/sim/sim.h"

void sim_sbxd_dies(struct sim *s, const char *how)
{
	sim_note(s, "SBXD DIES", SHM_NONE, 0, 0, how);
	pool_destroy(s->pool);
	s->pool = NULL;
	s->alive = false;
	s->crash_in = 0;
	s->crashes++;
	s->shutting_down = s->leaving = s->tied_pending = false;
	s->drained = 0;
	s->is_reset = s->is_adoption = false;
	for (uint32_t i = 0; i < SIM_SLOTS; i++) {
		sim_lock_drop(s, i, SIM_LOCK_SBXD);
		s->images[i].pending = s->cleans[i].pending = false;
		s->workers[i] = SIM_NOBODY;
		s->shadow[i].excuse = 0;
		s->shadow[i].proven = s->shadow[i].stop_failed = false;
	}
	for (uint32_t i = 0; i < SIM_PROCS; i++) {
		struct sim_proc *p = &s->procs[i];

		p->link = 0;
		p->said_count = 0;
		p->used = p->used && p->alive;
	}
	for (uint32_t i = 0; i < SIM_CONNS; i++) {
		struct sim_conn *c = &s->conns[i];

		if (c->alive && !c->handed)
			sim_conn_dies(s, c, false);
	}
}

static uint32_t gauge_in_flight(void *ctx, uint32_t slot)
{
	return ((const struct sim *)ctx)->pages[slot].in_flight;
}

static uint64_t gauge_activity(void *ctx, uint32_t slot)
{
	return ((const struct sim *)ctx)->pages[slot].activity;
}

static void restore_slot(struct sim *s, uint32_t slot)
{
	struct sim_published *t = &s->table[slot];
	struct sim_proc *p = sim_table_worker(s, slot);

	s->workers[slot] = p ? sim_proc_number(s, p) : SIM_NOBODY;
	s->greeted[slot] = false;
	sim_shadow_restart(s, slot, p != NULL);
	if (t->part.state == SLOT_FREE)
		return;
	t->part.has_worker = p != NULL;
	t->part.leases = t->leases;
	t->part.lease_count = t->lease_count;
	sim_note(s, "  found", slot, t->part.generation, 0, slot_state_name(t->part.state));
	pool_restore(s->pool, s->now, &t->part);
}

/* workers_give_up_silent() of supervisor/worker_adopt.c: those that cannot be called yet. */
static void give_up_silent(struct sim *s)
{
	for (uint32_t i = 0; i < s->rules.slots; i++) {
		const struct sim_proc *p = &s->procs[s->workers[i] % SIM_PROCS];

		if (s->workers[i] == SIM_NOBODY || p->state >= PROC_UP ||
		    (p->state == PROC_BOOTING && sim_chance(s, 50)))
			continue;
		pool_not_adopted(s->pool, s->now, i, p->generation, "half-made");
	}
}

void sim_sbxd_starts(struct sim *s)
{
	const struct pool_gauge gauge = {gauge_in_flight, gauge_activity, s};

	s->epoch++;
	s->alive = true;
	sim_note(s, "SBXD STARTS", SHM_NONE, s->epoch, 0, "");
	s->pool = pool_create(&s->rules, &gauge, s->next_generation - 1);
	INVARIANT(s->pool != NULL);
	for (uint32_t i = 0; i < s->rules.slots; i++)
		restore_slot(s, i);
	pool_restored_all(s->pool, s->now);
	give_up_silent(s);
	s->hello_due = s->now + SIM_HELLO_WAIT;
	s->tied_pending = true;
	s->is_adoption = true;
	sim_excuse(s, EXCUSE_RESTART);
	sim_leases_after_restart(s);
	sim_check_promise(s);
	sim_settle(s);
}

static bool conn_lives(void *ctx, uint64_t cookie)
{
	const struct sim *s = ctx;

	for (uint32_t i = 0; i < SIM_CONNS; i++) {
		if (s->conns[i].alive && s->conns[i].cookie == cookie)
			return true;
	}
	return false;
}

/* The successor knows by now which connections its workers still hold. */
void sim_drop_tied(struct sim *s)
{
	sim_note(s, "drop tied", SHM_NONE, 0, 0, "");
	s->tied_pending = false;
	for (uint32_t i = 0; i < s->lease_count; i++) {
		struct sim_request *r = &s->requests[s->leases[i]];

		if (r->cookie && !conn_lives(s, r->cookie))
			sim_lease_doubt(s, r);
	}
	pool_drop_tied(s->pool, s->now, conn_lives, s);
	sim_settle(s);
}

void sim_hello_overdue(struct sim *s)
{
	s->hello_due = CLOCK_NEVER;
	for (uint32_t i = 0; s->alive && i < s->rules.slots; i++) {
		struct sim_proc *p;

		if (s->workers[i] == SIM_NOBODY || s->greeted[i])
			continue;
		p = &s->procs[s->workers[i]];
		sim_note(s, "no hello", i, p->generation, 0, "");
		s->shadow[i].excuse |= EXCUSE_WORKER;
		pool_not_adopted(s->pool, s->now, i, p->generation, "it did not say hello");
		sim_settle(s);
	}
}
