/*
 * pool_save: a box whose worker died, but whose machine did not. Runs in sbxd; a successor finds
 * SLOT_FLAG_SAVED in the table and begins anew.
 *
 * Where the driver's machines outlive their workers, a worker's end is not the box's: the box goes
 * through closing, as any does whose worker is gone, and from there back to reserved instead of
 * being cleaned. Like a new one it then waits for a boot permit and boots: a new worker takes over
 * the machine, ends what the dead one had running in it, and the box is warm, with its files. When
 * that fails it is closed, and those who wait get a new box.
 *
 * It keeps its slot, its scope and the name of its machine, but gets a new generation: what is
 * still on its way about the dead worker is stale by that, and so is a client that thinks it has a
 * lease, or processes, in it.
 */
#include <bsd/string.h>

#include "supervisor/pool_int.h"

/* Between two leases. What ends each worker that comes near it is not kept for ever. */
#define SAVES_MAX 2U

bool pool_is_saved(const struct pool_box *b)
{
	return (b->flags & SLOT_FLAG_SAVED) != 0;
}

/* Is it worth it? One that was never anybody's has nothing to lose, and a made box has settings
 * that only its first worker was told. */
static bool is_worth_it(const struct pool *p, const struct pool_box *b)
{
	if (p->shutting_down || !(b->flags & SLOT_FLAG_OUTLIVES) || pool_is_made(b))
		return false;
	return b->token[0] && b->saves < SAVES_MAX;
}

bool pool_may_save(const struct pool *p, const struct pool_box *b)
{
	bool was_up = b->state == SLOT_ACTIVE || b->state == SLOT_CHECKING || b->state == SLOT_WARM;

	return is_worth_it(p, b) && (was_up || pool_is_saved(b));
}

/* It closes, and was to be saved when its worker is gone. Its place may be another's by now. */
bool pool_is_still_saved(const struct pool *p, const struct pool_box *b)
{
	return pool_is_saved(b) && is_worth_it(p, b) && pool_room_is_there(p);
}

/* Its worker told the supervisor before us that the box has died, and whether it is there all the
 * same may have been told to nobody: whoever takes it over will see. */
void pool_save_unheard(const struct pool *p, struct pool_box *b)
{
	if (b->state == SLOT_CLOSING && (b->flags & SLOT_FLAG_FAILED) && is_worth_it(p, b))
		b->flags |= SLOT_FLAG_SAVED;
}

/* A lease that nobody has heard of yet went with the worker; and its grant names a generation that
 * will be no box's, so that nobody would answer who waits for it. */
static void take_grants_back(struct pool *p, const struct pool_box *b)
{
	struct pool_action *a;

	TAILQ_FOREACH (a, &p->actions, link) {
		if (a->kind != POOL_GRANT || a->slot != b->slot || a->generation != b->generation)
			continue;
		a->kind = POOL_REFUSE;
		a->error = API_WORKER_CRASHED;
		(void)strlcpy(a->text, "the box's worker ended, and another takes the box over",
		    sizeof(a->text));
	}
}

void pool_save(struct pool *p, uint64_t now, struct pool_box *b)
{
	b->saves++;
	b->killed = false;
	take_grants_back(p, b);
	pool_rename_box(p, b);
	b->flags = (b->flags & ~SLOT_FLAG_FAILED) | SLOT_FLAG_SAVED;
	pool_move(p, now, b, SLOT_RESERVED, "its machine outlived its worker");
}

void pool_kill_and_save(struct pool *p, uint64_t now, struct pool_box *b, const char *why)
{
	bool save = pool_may_save(p, b);

	pool_kill_box(p, now, b, why);
	if (save)
		b->flags |= SLOT_FLAG_SAVED;
}

/* A new worker has it. */
void pool_saved(struct pool *p, uint64_t now, struct pool_box *b)
{
	b->flags = (b->flags & ~SLOT_FLAG_SAVED) | SLOT_FLAG_ADOPTED;
	pool_record(p, EVENT_ADOPT, b, 0, "a new worker has taken it over");
	pool_park(p, now, b, false, "taken over from a dead worker");
	if (b->scope)
		pool_scope_advance(p, now, b->scope);
}

/* It could not be had: who waits for it waits on, for a new one. */
void pool_not_saved(struct pool *p, uint64_t now, struct pool_box *b, const char *text)
{
	pool_record(p, EVENT_ERROR, b, 0, text);
	pool_close_box(p, now, b, "it could not be taken over");
}

void pool_box_left(struct pool *p, uint32_t slot, uint64_t gen)
{
	struct pool_box *b = pool_box_current(p, slot, gen);

	if (!b || b->state != SLOT_CLOSING || !b->has_worker || !(b->flags & SLOT_FLAG_FAILED) ||
	    !is_worth_it(p, b))
		return;
	b->flags |= SLOT_FLAG_SAVED;
	pool_touch(p, b);
}

void pool_outlives(struct pool *p, uint32_t slot, uint64_t gen, bool outlives)
{
	struct pool_box *b = pool_box_current(p, slot, gen);
	uint32_t flag = outlives ? SLOT_FLAG_OUTLIVES : 0;

	if (!b)
		return;
	b->flags = (b->flags & ~SLOT_FLAG_OUTLIVES) | flag;
	pool_touch(p, b);
}
