/* trace: what happened in a seed, kept for the last steps, in readable form. */
#include <bsd/string.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/sim.h"

static void print_entry(const struct sim_trace *t)
{
	char where[48] = "";
	char whose[32] = "";

	if (t->slot != SHM_NONE)
		(void)snprintf(
		    where, sizeof(where), "slot %" PRIu32 " gen %" PRIu64, t->slot, t->generation);
	if (t->req)
		(void)snprintf(whose, sizeof(whose), "req %" PRIu64, t->req);
	(void)printf("%5" PRIu32 " %12.6f  %-18s %-14s %-8s %s%s%s%s%s\n", t->step,
	    (double)t->now / 1e9, t->what, where, whose, t->from ? t->from : "",
	    t->from ? " -> " : "", t->from ? t->to : "", t->from ? ": " : "", t->text);
}

static struct sim_trace *note(struct sim *s, const char *what, uint32_t slot, uint64_t generation,
    uint64_t req, const char *text)
{
	struct sim_trace *t = &s->trace[s->traced++ % SIM_TRACE];

	t->from = NULL;
	t->step = s->step;
	t->slot = slot;
	t->now = s->now;
	t->generation = generation;
	t->req = req;
	t->what = what;
	(void)strlcpy(t->text, text, sizeof(t->text));
	return t;
}

void sim_note(struct sim *s, const char *what, uint32_t slot, uint64_t generation, uint64_t req,
    const char *text)
{
	const struct sim_trace *t = note(s, what, slot, generation, req, text);

	if (s->verbose)
		print_entry(t);
}

void sim_note_transition(struct sim *s, const struct pool_action *a)
{
	struct sim_trace *t = note(s, "  state", a->slot, a->generation, a->req, a->text);

	t->from = slot_state_name(a->from);
	t->to = slot_state_name(a->to);
	if (s->verbose)
		print_entry(t);
}

static void print_rules(const struct pool_rules *r)
{
	static const char *const policies[] = {
	    [REPLICA_SOFT] = "soft",
	    [REPLICA_REJECT] = "reject",
	    [REPLICA_WAIT] = "wait",
	    [REPLICA_BURST] = "burst",
	};

	(void)printf("slots %" PRIu32 ", replicas %" PRIu32 ", policy %s, burst_limit %" PRIu32
		     ", max_boots %" PRIu32 ", prewarm %" PRIu32 "\n",
	    r->slots, r->replicas, policies[r->policy], r->burst_limit, r->max_boots, r->prewarm);
}

void sim_print_end(const struct sim *s, const char *what)
{
	uint64_t first = s->traced > SIM_TRACE ? s->traced - SIM_TRACE : 0;

	if (!s->verbose) {
		for (uint64_t i = first; i < s->traced; i++)
			print_entry(&s->trace[i % SIM_TRACE]);
	}
	print_rules(&s->rules);
	(void)printf("violation: seed %" PRIu64 ", step %" PRIu32 ": %s\n", s->seed, s->step, what);
	(void)printf("again: make sim SEED=%" PRIu64 " V=1\n", s->seed);
	(void)fflush(stdout);
}

void sim_violation(struct sim *s, const char *file, int line, const char *rule, const char *cond)
{
	char what[512];

	(void)snprintf(what, sizeof(what), "%s (%s:%d: %s)", rule, file, line, cond);
	sim_print_end(s, what);
	exit(EXIT_FAILURE);
}
