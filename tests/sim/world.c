/* world: how the world of a seed begins: its rules, its temper, its users. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "tests/sim/sim.h"

static void draw_spec(struct sim *s, struct pool_spec *spec)
{
	*spec = (struct pool_spec){.image = "host"};
	spec->digest[0] = sim_chance(s, 80) ? 0 : 1;
}

struct pool_rules sim_draw_rules(struct sim *s, uint32_t slots)
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
	    .outlives = one_of(s, (const uint32_t[]){0, 0, 50, 100}),
	};
}

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

void sim_world_begin(struct sim *s, uint64_t seed)
{
	begin(s, seed);
	make_scopes(s);
	draw_temper(s);
	s->rules = sim_draw_rules(s, 1 + sim_below(s, SIM_SLOTS));
}
