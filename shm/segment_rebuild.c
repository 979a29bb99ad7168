/*
 * segment_rebuild: derives everything that points at slots from the slots. sbxd, when it takes over
 * a segment. If we die here nothing is lost: the slots are the source, and the successor rebuilds
 * again.
 */
#include <stdlib.h>

#include "shm/index.h"
#include "shm/repair.h"
#include "shm/segment_impl.h"
#include "shm/slot.h"
#include "shm/warm.h"

/* Reads a part, torn by a dead writer or not. False when no correct supervisor can have left it. */
static bool part_recover(struct segment *s, uint32_t slot, struct slot_sup *part)
{
	if (slot_read_sup(&s->slots[slot], part) < 0)
		slot_salvage_sup(&s->slots[slot], part);
	/* What was being written there was not begun, or is over: no worker was ever told of it. */
	if (part->generation == 0 && part->state != SLOT_QUARANTINED)
		*part = (struct slot_sup){.state = SLOT_FREE};
	return repair_check_sup(part, s->slot_count) == 0 &&
	       part->generation < atomic_load(&s->header->next_generation);
}

static bool is_indexed(const struct slot_sup *part)
{
	return slot_state_counts(part->state) && part->token[0];
}

static int by_parking(const void *a, const void *b, void *ctx)
{
	const struct slot_sup *parts = ctx;
	uint32_t x = *(const uint32_t *)a;
	uint32_t y = *(const uint32_t *)b;

	if (parts[x].parked_ns != parts[y].parked_ns)
		return parts[x].parked_ns < parts[y].parked_ns ? -1 : 1;
	return x < y ? -1 : 1;
}

static void warm_rebuild(struct segment *s, struct slot_sup *parts, uint32_t *order, uint32_t count)
{
	uint32_t changed[WARM_CHANGED];

	qsort_r(order, count, sizeof(*order), by_parking, parts);
	for (uint32_t i = 0; i < count; i++) {
		warm_append(s, parts, order[i], changed);
		for (int j = 0; j < WARM_CHANGED; j++) {
			if (changed[j] != SHM_NONE)
				slot_publish_sup(&s->slots[changed[j]], &parts[changed[j]]);
		}
	}
}

void segment_rebuild(struct segment *s, struct slot_sup *parts, uint32_t *order)
{
	uint32_t states[SLOT_STATES] = {0};
	uint32_t warm = 0;

	warm_begin(s);
	index_clear(s);
	warm_clear(s);
	for (uint32_t i = 0; i < s->slot_count; i++) {
		bool sound = part_recover(s, i, &parts[i]);

		if (parts[i].state < SLOT_STATES)
			states[parts[i].state]++;
		if (!sound)
			continue;
		parts[i].index_next = SHM_NONE;
		parts[i].warm_prev = SHM_NONE;
		parts[i].warm_next = SHM_NONE;
		if (parts[i].state == SLOT_WARM)
			order[warm++] = i;
		if (is_indexed(&parts[i]))
			index_insert(s, parts, i); /* publishes */
		else
			slot_publish_sup(&s->slots[i], &parts[i]);
	}
	warm_rebuild(s, parts, order, warm);
	warm_end(s);
	for (uint32_t i = 0; i < SLOT_STATES; i++)
		atomic_store(&s->header->state_count[i], states[i]);
}
