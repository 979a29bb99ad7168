/*
 * index: finds the slot of (owner uid, token) in the shared table. Written by sbxd; read by
 * anybody.
 *
 * Chained: index[bucket] holds the first slot, sup.index_next the next. sbxd passes its private
 * parts (the mirror) and publishes what changed; these functions touch only the bucket heads in
 * shared memory.
 */
#ifndef SBXD_SHM_INDEX_H
#define SBXD_SHM_INDEX_H

#include "shm/segment.h"

uint32_t index_bucket(const struct segment *s, uint32_t owner_uid, const char *token);

/* Empties every chain: a new segment, or before a successor puts back what it adopts. */
void index_clear(struct segment *s);

/*
 * Puts `slot` (whose mirror part has owner_uid and token set) at the head of its chain. parts: one
 * per slot. Publishes parts[slot] before the head, so that no reader loses the chain behind it.
 */
void index_insert(struct segment *s, struct slot_sup *parts, uint32_t slot);

/*
 * Takes `slot` out of its chain. Returns the slot whose part changed (its predecessor in the chain,
 * to be published before `slot` itself is), or SHM_NONE when only the bucket head changed or it was
 * not there. parts[slot].index_next stays as it was: a reader that stands on it must find on.
 */
uint32_t index_remove(struct segment *s, struct slot_sup *parts, uint32_t slot);

/* No answer: the chain is broken, or was in the middle of a change whenever it was looked at. */
#define INDEX_UNSURE (SHM_NONE - 1U)

/*
 * For readers: the slot published under (owner uid, token), SHM_NONE when there is none, or
 * INDEX_UNSURE. Bounded on any content.
 */
uint32_t index_find(const struct segment *s, uint32_t owner_uid, const char *token);

#endif
