/*
 * schedule: what happens next, drawn by weight from all that can happen; and how a seed is brought
 * to its end, in which everybody behaves well, or nobody answers, and nothing may be left.
 */
#include <string.h>

#include "tests/sim/sim.h"

#define LONG_ENOUGH (3 * 3600 * NS_PER_S) /* for every deadline there is, one after the other */

/* ---- the service ---- */

static bool do_rules(struct sim *s)
{
	struct pool_rules rules = sim_draw_rules(s, s->rules.slots);

	sim_note(s, "reload", SHM_NONE, 0, 0, "");
	s->rules = rules;
	sim_excuse(s, EXCUSE_RULES);
	pool_set_rules(s->pool, &rules, s->now);
	sim_settle(s);
	return true;
}

static bool do_leave(struct sim *s)
{
	if (s->leaving || !sim_chance(s, 10))
		return false;
	sim_note(s, "leave", SHM_NONE, 0, 0, "");
	s->leaving = true;
	pool_leave(s->pool, s->now);
	sim_settle(s);
	return true;
}

static void shut_down(struct sim *s)
{
	sim_note(s, "shutdown", SHM_NONE, 0, 0, "");
	s->shutting_down = true;
	sim_excuse(s, EXCUSE_SHUTDOWN);
	for (uint32_t i = 0; i < s->lease_count; i++)
		sim_lease_doubt(s, &s->requests[s->leases[i]]);
	pool_shutdown(s->pool, s->now);
	sim_settle(s);
}

static bool do_shutdown(struct sim *s)
{
	if (s->shutting_down || !sim_chance(s, 3))
		return false;
	shut_down(s);
	return true;
}

static bool do_drop_tied(struct sim *s)
{
	if (!s->tied_pending)
		return false;
	sim_drop_tied(s);
	return true;
}

/* ---- events ---- */

static const struct {
	uint32_t weight;
	bool (*fn)(struct sim *s);
	bool dead_too; /* happens without sbxd, too */
} events[] = {
    {24, sim_act_worker, true},
    {22, sim_act_hear, false},
    {18, sim_client_acquire, false},
    {12, sim_client_release, false},
    {3, sim_client_leave, false},
    {3, sim_client_close, false},
    {2, sim_client_hand_over, false},
    {2, sim_client_remove, false},
    {3, sim_client_make, false},
    {4, sim_client_order, false},
    {2, sim_client_use, false},
    {2, sim_client_unmake, false},
    {1, sim_client_reset, false},
    {10, sim_act_janitor, false},
    {6, sim_act_fate, true},
    {4, sim_act_work, true},
    {3, sim_act_noise, false},
    {12, sim_act_pass, true},
    {1, do_rules, false},
    {1, do_leave, false},
    {1, do_shutdown, false},
    {1, do_drop_tied, false},
};

static uint32_t total_weight(void)
{
	uint32_t n = 0;

	for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++)
		n += events[i].weight;
	return n;
}

static bool happen(struct sim *s)
{
	uint32_t n = sim_below(s, total_weight());
	uint32_t i = 0;

	if (!s->alive && sim_chance(s, 20)) {
		sim_sbxd_starts(s);
		return true;
	}
	while (n >= events[i].weight)
		n -= events[i++].weight;
	return (s->alive || events[i].dead_too) && events[i].fn(s);
}

static void step(struct sim *s)
{
	bool crash = s->alive && sim_rarely(s, s->temper.crash_permille);

	s->crash_in = crash ? 1 + sim_below(s, 12) : 0;
	while (!happen(s))
		;
	if (s->alive && s->leaving && sim_chance(s, 10))
		sim_sbxd_dies(s, "it left");
	else if (s->alive && crash) /* less happened than was planned */
		sim_sbxd_dies(s, "between events");
	s->crash_in = 0;
	if (!sim_chance(s, s->temper.lazy))
		sim_on_time(s);
}

/* ---- the end ---- */

/* Whatever answers, does; true when anything happened. */
static bool everybody_answers(struct sim *s)
{
	bool any = false;

	for (uint32_t i = 0; i < SIM_PROCS; i++) {
		struct sim_proc *p = &s->procs[i];

		if (p->used && p->alive)
			any |= sim_proc_step(s, p);
		if (p->used)
			any |= sim_heed(s, p);
	}
	for (uint32_t i = 0; i < s->rules.slots; i++)
		any = sim_answer_image(s, i, true) || sim_answer_clean(s, i, true) || any;
	any |= do_drop_tied(s);
	if (s->now >= pool_deadline(s->pool)) {
		sim_tick(s);
		any = true;
	}
	return any;
}

static void settle_down(struct sim *s)
{
	while (everybody_answers(s))
		;
}

/* Who holds a lease gives it back, one after the other, so that who waits comes in turn. Time
 * passes only as far as the pool looks for room by itself. */
static void serve_everybody(struct sim *s)
{
	uint64_t end = s->now + NS_PER_S;

	do {
		settle_down(s);
		if (s->held > 0) {
			sim_client_give_back(s);
		} else if (s->waiting > 0) {
			SIM_CHECK(s, sim_next_due(s) <= end,
			    "when everybody answers, nobody is left waiting");
			sim_pass(s, sim_next_due(s));
		}
	} while (s->held > 0 || s->waiting > 0);
	settle_down(s);
}

/* No hang and no illness lasts. */
static void become_well(struct sim *s)
{
	s->quiet = true;
	for (uint32_t i = 0; i < SIM_PROCS; i++) {
		s->procs[i].hung = false;
		s->procs[i].unkillable = false;
	}
	for (uint32_t i = 0; i < SIM_SLOTS; i++) {
		s->cleans[i].stuck = false;
		s->pages[i].in_flight = 0;
	}
}

/* Whoever asks gets a box, if a slot can be used at all. */
static void ask_once_more(struct sim *s)
{
	bool usable = pool_count(s->pool, SLOT_QUARANTINED) < s->rules.slots;
	uint32_t scope = sim_below(s, SIM_SCOPES);
	const struct sim_scope *who = &s->scopes[scope];
	const struct pool_box *b = pool_box_find(s->pool, who->uid, who->id.token);

	if (b && memcmp(b->identity, who->id.digest, sizeof(b->identity)) != 0)
		return; /* another one with that token has one */
	if (!sim_client_ask(s, scope))
		return;
	settle_down(s);
	if (s->waiting > 0)
		serve_everybody(s);
	SIM_CHECK(s, s->requests[s->last_req].answer == (usable ? SIM_GRANTED : SIM_REFUSED),
	    "who asks when all is quiet gets a box");
}

/* No worker and no janitor ever does anything more: all must come to an end by its bound. */
static void finish_deaf(struct sim *s)
{
	uint64_t end = s->now + LONG_ENOUGH;

	while (s->now < end) {
		while (s->held > 0) /* a box that needs no check may be given, even now */
			sim_client_give_back(s);
		sim_pass(s, sim_next_due(s) < end ? sim_next_due(s) : end);
	}
	SIM_CHECK(s, s->waiting == 0, "when nothing answers, everybody is told");
	if (!s->shutting_down)
		shut_down(s);
	sim_pass(s, s->now + LONG_ENOUGH);
	sim_check_end(s);
}

static void finish(struct sim *s)
{
	bool deaf = sim_chance(s, 10);

	become_well(s);
	if (s->alive && s->leaving)
		sim_sbxd_dies(s, "it left");
	if (!s->alive)
		sim_sbxd_starts(s);
	if (deaf) {
		finish_deaf(s);
		return;
	}
	serve_everybody(s);
	if (!s->shutting_down) {
		ask_once_more(s);
		shut_down(s);
	}
	settle_down(s);
	sim_pass(s, s->now + LONG_ENOUGH); /* what is due by now has nothing left to do */
	sim_check_end(s);
	for (uint32_t i = 0; i < SIM_PROCS; i++)
		SIM_CHECK(
		    s, !s->procs[i].used || !s->procs[i].alive, "after shutdown no worker is left");
}

/* ---- a seed ---- */

/* No slot can be used any more. */
static bool is_worn_out(const struct sim *s)
{
	return s->alive && pool_count(s->pool, SLOT_QUARANTINED) == s->rules.slots;
}

void sim_run_seed(struct sim *s, uint64_t seed, bool verbose)
{
	sim_world_begin(s, seed);
	s->verbose = verbose;
	sim_sbxd_starts(s);
	while (s->step < SIM_STEPS && !s->drained && !is_worn_out(s)) {
		s->step++;
		step(s);
	}
	finish(s);
	pool_destroy(s->pool);
	s->pool = NULL;
	s->alive = false;
}
