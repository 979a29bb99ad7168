/*
 * table: the shared table, as far as a successor needs it: what publish.c writes of a box. It is
 * written whole or not at all: that half a part is never taken for one is tested with the table
 * itself.
 */
#include <string.h>

#include "tests/sim/sim.h"

static void fill_part(const struct pool_box *b, struct pool_restored *r)
{
	*r = (struct pool_restored){
	    .slot = b->slot,
	    .state = b->state,
	    .generation = b->generation,
	    .machine = b->machine,
	    .uid = b->uid,
	    .flags = b->flags,
	    .spec = b->spec,
	    .source = b->source,
	    .acquires = b->acquires,
	    .saves = b->saves,
	    .created = b->created,
	    .state_since = b->state_since,
	    .parked = b->parked,
	    .leased = b->leased,
	};
	memcpy(r->token, b->token, sizeof(r->token));
	memcpy(r->identity, b->identity, sizeof(r->identity));
	memcpy(r->user, b->user, sizeof(r->user));
	memcpy(r->thread, b->thread, sizeof(r->thread));
	memcpy(r->name, b->name, sizeof(r->name));
	memcpy(r->last_error, b->last_error, sizeof(r->last_error));
}

void sim_publish(struct sim *s, const struct pool_box *b)
{
	struct sim_published *t = &s->table[b->slot];
	uint32_t proc = s->workers[b->slot];
	const struct pool_lease *l;

	if (b->generation >= s->next_generation)
		s->next_generation = b->generation + 1;
	fill_part(b, &t->part);
	t->lease_count = 0;
	TAILQ_FOREACH (l, &b->leases, link)
		t->leases[t->lease_count++] =
		    (struct pool_lease_restored){l->id, l->cookie, l->expires, l->place};
	t->proc = proc;
	t->serial = proc == SIM_NOBODY ? 0 : s->procs[proc].serial;
	sim_note(s, "  published", b->slot, b->generation, 0, slot_state_name(b->state));
}

bool sim_table_shows(const struct sim *s, uint32_t slot, uint64_t generation, uint64_t lease)
{
	const struct sim_published *t = &s->table[slot];

	if (t->part.generation != generation || t->part.state != SLOT_ACTIVE)
		return false;
	for (uint32_t i = 0; i < t->lease_count; i++) {
		if (t->leases[i].id == lease)
			return true;
	}
	return false;
}

/* The worker whose pid the table shows, if it lives. */
struct sim_proc *sim_table_worker(struct sim *s, uint32_t slot)
{
	const struct sim_published *t = &s->table[slot];
	struct sim_proc *p = t->proc == SIM_NOBODY ? NULL : &s->procs[t->proc];

	return p && p->used && p->alive && p->serial == t->serial ? p : NULL;
}
