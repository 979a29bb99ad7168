/*
 * schedule: what happens next: everything that can happen in the world of sim.h, drawn by weight;
 * and how a seed is brought to its end, in which everybody behaves well and nothing may be left.
 */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "tests/sim/sim.h"

#define LONG_ENOUGH (600 * NS_PER_S) /* for every deadline there is, one after the other */

/* ---- rules and temper ---- */

static void draw_spec(struct sim *s, struct pool_spec *spec)
{
	*spec = (struct pool_spec){.image = "host"};
	spec->digest[0] = sim_chance(s, 80) ? 0 : 1;
}

static struct pool_rules draw_rules(struct sim *s, uint32_t slots)
{
	struct pool_rules r = {
	    .slots = slots,
	    .replicas = 1 + sim_below(s, SIM_SLOTS),
	    .policy = (enum replica_policy)sim_below(s, REPLICA_BURST + 1),
	    .burst_limit = sim_below(s, 3),
	    .max_boots = 1 + sim_below(s, 3),
	    .acquire_timeout = sim_chance(s, 30) ? 0 : (5 + sim_below(s, 60)) * NS_PER_S,
	    .idle_timeout = sim_chance(s, 30) ? 0 : (1 + sim_below(s, 600)) * NS_PER_S,
	    .active_idle_timeout = sim_chance(s, 70) ? 0 : (1 + sim_below(s, 100)) * NS_PER_S,
	    .check_skip = sim_chance(s, 50) ? 0 : sim_below(s, 60) * NS_PER_S,
	    .check_timeout = 5 * NS_PER_S,
	    .boot_timeout = 30 * NS_PER_S,
	    .close_grace = 2 * NS_PER_S,
	    .prewarm = sim_chance(s, 50) ? 0 : sim_below(s, 4),
	};

	draw_spec(s, &r.stock);
	return r;
}

static uint32_t one_of(struct sim *s, const uint32_t values[4])
{
	return values[sim_below(s, 4)];
}

static void draw_temper(struct sim *s)
{
	s->temper = (struct sim_temper){
	    .crash_permille = one_of(s, (const uint32_t[]){0, 5, 20, 60}),
	    .bad = one_of(s, (const uint32_t[]){0, 2, 10, 40}),
	    .fragile = one_of(s, (const uint32_t[]){0, 0, 0, 70}),
	    .death = one_of(s, (const uint32_t[]){0, 5, 20, 60}),
	    .hang = one_of(s, (const uint32_t[]){0, 0, 5, 20}),
	    .spread = one_of(s, (const uint32_t[]){1, 3, SIM_SCOPES, SIM_SCOPES}),
	    .lazy = one_of(s, (const uint32_t[]){0, 0, 10, 50}),
	};
}

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
static bool heed(struct sim *s, struct sim_proc *p)
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

static bool do_worker(struct sim *s)
{
	struct sim_proc *p = any_proc(s);

	return p && p->alive && sim_proc_step(s, p);
}

static bool do_hear(struct sim *s)
{
	struct sim_proc *p = any_proc(s);

	return p && heed(s, p);
}

static bool do_fate(struct sim *s)
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

static bool answer_image(struct sim *s, uint32_t slot, bool ok)
{
	if (!s->images[slot].pending)
		return false;
	sim_image_ready(s, slot, ok);
	sim_settle(s);
	return true;
}

static bool answer_clean(struct sim *s, uint32_t slot, bool ok)
{
	if (!s->cleans[slot].pending || s->cleans[slot].stuck)
		return false;
	sim_cleaned(s, slot, ok);
	sim_settle(s);
	return true;
}

static bool do_janitor(struct sim *s)
{
	uint32_t slot = sim_below(s, s->rules.slots);

	return answer_image(s, slot, !sim_chance(s, s->temper.bad)) ||
	       answer_clean(s, slot, !sim_rarely(s, s->temper.bad));
}

static bool do_work(struct sim *s)
{
	uint32_t slot = sim_below(s, s->rules.slots);
	struct sim_proc *p = sim_proc_of(s, slot);

	if (!p || p->state != PROC_UP)
		return false;
	s->pages[slot].in_flight = s->pages[slot].in_flight ? 0 : 1;
	s->pages[slot].activity = s->now;
	sim_note(s, "work", slot, p->generation, 0, s->pages[slot].in_flight ? "begins" : "ends");
	return true;
}

/* What comes too late: about an earlier box, or a state that is over. */
static bool do_noise(struct sim *s)
{
	uint32_t slot = sim_below(s, s->rules.slots);
	const struct pool_box *b = pool_box_at(s->pool, slot);
	uint64_t stale = b->generation - 1 - sim_below(s, 3);
	uint64_t deadline = pool_deadline(s->pool);
	uint64_t now = s->now;

	switch (sim_below(s, 9)) {
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

static uint64_t next_due(const struct sim *s)
{
	uint64_t due = pool_deadline(s->pool);

	return s->hello_due < due ? s->hello_due : due;
}

static void on_time(struct sim *s)
{
	if (s->alive && s->now >= s->hello_due)
		sim_hello_overdue(s);
	if (s->alive && s->now >= pool_deadline(s->pool))
		sim_tick(s);
}

/* Timers come when they are due, and only then. */
static void pass(struct sim *s, uint64_t end)
{
	while (s->alive && next_due(s) <= end) {
		if (next_due(s) > s->now)
			s->now = next_due(s);
		on_time(s);
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
			(void)heed(s, p);
		if (s->alive)
			(void)do_janitor(s);
	}
}

static bool do_pass(struct sim *s)
{
	static const uint64_t longest[] = {0, 20, 100, 500, 1000, 3000, 30000, 700000};
	uint32_t n = sim_below(s, sim_chance(s, 90) ? 5 : 8);
	uint64_t end = s->now + sim_below(s, 1000) * (longest[n] * NS_PER_MS / 1000);

	if (longest[n] > 1000)
		bustle(s);
	if (s->alive && sim_chance(s, n > 4 ? 50 : 2) && next_due(s) != CLOCK_NEVER)
		end = next_due(s) > s->now ? next_due(s) : s->now;
	sim_note(s, "time passes", SHM_NONE, 0, 0, "");
	if (sim_chance(s, s->temper.lazy))
		s->now = end; /* the host was busy or asleep: one tick, late */
	pass(s, end);
	return true;
}

/* ---- the service ---- */

static bool do_rules(struct sim *s)
{
	struct pool_rules rules = draw_rules(s, s->rules.slots);

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

static const struct {
	uint32_t weight;
	bool (*fn)(struct sim *s);
	bool dead_too; /* happens without sbxd, too */
} events[] = {
    {24, do_worker, true},
    {22, do_hear, false},
    {18, sim_client_acquire, false},
    {12, sim_client_release, false},
    {3, sim_client_leave, false},
    {3, sim_client_close, false},
    {2, sim_client_hand_over, false},
    {2, sim_client_remove, false},
    {1, sim_client_reset, false},
    {10, do_janitor, false},
    {6, do_fate, true},
    {4, do_work, true},
    {3, do_noise, false},
    {12, do_pass, true},
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
		on_time(s);
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
			any |= heed(s, p);
	}
	for (uint32_t i = 0; i < s->rules.slots; i++)
		any = answer_image(s, i, true) || answer_clean(s, i, true) || any;
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
			SIM_CHECK(s, next_due(s) <= end,
			    "when everybody answers, nobody is left waiting");
			pass(s, next_due(s));
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
		pass(s, next_due(s) < end ? next_due(s) : end);
	}
	SIM_CHECK(s, s->waiting == 0, "when nothing answers, everybody is told");
	if (!s->shutting_down)
		shut_down(s);
	pass(s, s->now + LONG_ENOUGH);
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
	pass(s, s->now + LONG_ENOUGH); /* what is due by now has nothing left to do */
	sim_check_end(s);
	for (uint32_t i = 0; i < SIM_PROCS; i++)
		SIM_CHECK(
		    s, !s->procs[i].used || !s->procs[i].alive, "after shutdown no worker is left");
}

/* ---- a seed ---- */

/* Tokens are the same under both uids, which share all that is hashed by them. */
static void make_scopes(struct sim *s)
{
	static const char *const users[] = {"ann", "bob", NULL, "eve"};
	uint64_t token = 0;

	for (uint32_t i = 0; i < SIM_SCOPES; i++) {
		struct sim_scope *scope = &s->scopes[i];

		*scope = (struct sim_scope){
		    .uid = 1000 + 4096 * (i & 1), .user = users[i / 2], .thread = "t"};
		token = i % 2 ? token : sim_draw(s);
		(void)snprintf(
		    scope->id.token, sizeof(scope->id.token), "%016llx", (unsigned long long)token);
		scope->id.digest[0] = (uint8_t)(1 + i / 2);
	}
}

/* As it was before the first seed; what is large is cleared only as far as it was used. */
static void begin(struct sim *s, uint64_t seed)
{
	uint64_t steps = s->steps;
	uint64_t crashes = s->crashes;

	memset(s->requests, 0, (s->last_req + 1) * sizeof(s->requests[0]));
	memset(s, 0, offsetof(struct sim, table));
	for (uint32_t i = 0; i < SIM_SLOTS; i++) {
		s->table[i] = (struct sim_published){.proc = SIM_NOBODY};
		s->workers[i] = SIM_NOBODY;
		s->spawned[i] = 0;
	}
	memset(s->pages, 0, sizeof(s->pages));
	memset(s->procs, 0, sizeof(s->procs));
	memset(s->conns, 0, sizeof(s->conns));
	memset(s->shadow, 0, sizeof(s->shadow));
	s->serials = s->cookies = s->last_req = s->traced = 0;
	memset(s->departed, 0, sizeof(s->departed));
	s->waiting = s->held = s->lease_count = 0;
	s->is_reset = s->is_adoption = false;
	s->steps = steps;
	s->crashes = crashes;
	s->seed = s->random = seed;
	s->now = 1000 * NS_PER_S;
	s->next_generation = 42;
}

/* No slot can be used any more. */
static bool is_worn_out(const struct sim *s)
{
	return s->alive && pool_count(s->pool, SLOT_QUARANTINED) == s->rules.slots;
}

void sim_run_seed(struct sim *s, uint64_t seed, bool verbose)
{
	begin(s, seed);
	s->verbose = verbose;
	make_scopes(s);
	draw_temper(s);
	s->rules = draw_rules(s, 1 + sim_below(s, SIM_SLOTS));
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
