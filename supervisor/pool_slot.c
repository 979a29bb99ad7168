/* pool_slot: the slots, those that are free and what stands in the others. Runs in sbxd. */
#include "lib/log.h"
#include "supervisor/pool_int.h"

struct pool_box *pool_box_current(struct pool *p, uint32_t slot, uint64_t gen)
{
	struct pool_box *b = slot < p->rules.slots ? &p->boxes[slot] : NULL;

	if (!b || b->state == SLOT_FREE || b->generation != gen)
		return NULL;
	return b;
}

/* Gives b its generation. */
void pool_name_box(struct pool *p, struct pool_box *b, uint64_t generation)
{
	b->generation = generation;
	LIST_INSERT_HEAD(&p->generations[generation & p->hash_mask], b, generation_link);
}

/* Gives it another one, which is new; its machine keeps its name. */
void pool_rename_box(struct pool *p, struct pool_box *b)
{
	LIST_REMOVE(b, generation_link);
	pool_name_box(p, b, ++p->generation);
}

/* A free slot with a new generation, still in state free; NULL when there is none. */
struct pool_box *pool_slot_take(struct pool *p)
{
	struct pool_box *b;

	if (p->free_count == 0)
		return NULL;
	b = &p->boxes[p->free_slots[--p->free_count]];
	pool_name_box(p, b, ++p->generation);
	b->machine = b->generation;
	return b;
}

/* Makes a box's slot free; its scope has let go of it. */
void pool_slot_give(struct pool *p, uint64_t now, struct pool_box *b)
{
	uint32_t slot = b->slot;

	INVARIANT(TAILQ_EMPTY(&b->leases) && !b->scope);
	pool_move(p, now, b, SLOT_FREE, "cleaned");
	TAILQ_REMOVE(&p->dirty, b, dirty_link); /* pool_move() put it there */
	LIST_REMOVE(b, generation_link);
	pool_unexpect(p, &b->due);
	*b = (struct pool_box){.slot = slot, .state = SLOT_FREE, .deadline = CLOCK_NEVER};
	TAILQ_INIT(&b->leases);
	pool_touch(p, b);
	p->free_slots[p->free_count++] = slot;
	pool_stock_want(p, now);
}

const struct pool_box *pool_box_at(const struct pool *p, uint32_t slot)
{
	return slot < p->rules.slots ? &p->boxes[slot] : NULL;
}

const struct pool_box *pool_box_by_generation(const struct pool *p, uint64_t generation)
{
	struct pool_box *b;

	LIST_FOREACH (b, &p->generations[generation & p->hash_mask], generation_link) {
		if (b->generation == generation)
			break;
	}
	return b;
}
