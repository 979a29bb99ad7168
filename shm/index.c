/*
 * index: finds the slot of (owner uid, token). sbxd writes, anybody reads. If sbxd dies between
 * two stores its successor derives all chains anew from the slots (segment_rebuild).
 */
#include "shm/index.h"

#include <sched.h>
#include <string.h>

#include "lib/hash.h"
#include "shm/slot.h"

/* A reader may wait for a writer that was preempted in the middle; each try gives the cpu away. */
#define INDEX_READ_TRIES 100

/* Tokens are already digests; the owner keeps equal tokens of two users apart. */
uint32_t index_bucket(const struct segment *s, uint32_t owner_uid, const char *token)
{
	uint64_t hash = hash64(HASH64_START, &owner_uid, sizeof(owner_uid));

	hash = hash64(hash, token, strnlen(token, SHM_TOKEN_LEN));
	return (uint32_t)(hash ^ (hash >> 32)) & (s->index_buckets - 1);
}

void index_clear(struct segment *s)
{
	for (uint32_t i = 0; i < s->index_buckets; i++)
		atomic_store_explicit(&s->index[i], SHM_NONE, memory_order_release);
}

void index_insert(struct segment *s, struct slot_sup *parts, uint32_t slot)
{
	struct slot_sup *part = &parts[slot];
	_Atomic uint32_t *head = &s->index[index_bucket(s, part->owner_uid, part->token)];

	part->index_next = atomic_load_explicit(head, memory_order_relaxed);
	slot_publish_sup(&s->slots[slot], part);
	atomic_store_explicit(head, slot, memory_order_release);
}

uint32_t index_remove(struct segment *s, struct slot_sup *parts, uint32_t slot)
{
	struct slot_sup *part = &parts[slot];
	_Atomic uint32_t *head = &s->index[index_bucket(s, part->owner_uid, part->token)];
	uint32_t at = atomic_load_explicit(head, memory_order_relaxed);

	if (at == slot) {
		atomic_store_explicit(head, part->index_next, memory_order_release);
		return SHM_NONE;
	}
	for (uint32_t steps = 0; at < s->slot_count && steps < s->slot_count; steps++) {
		if (parts[at].index_next == slot) {
			parts[at].index_next = part->index_next;
			return at;
		}
		at = parts[at].index_next;
	}
	return SHM_NONE;
}

/* True when *found is the answer; false when the chain changed under the walk. */
static bool index_walk(const struct segment *s, uint32_t bucket, uint32_t owner_uid,
    const char *token, uint32_t *found)
{
	uint32_t at = atomic_load_explicit(&s->index[bucket], memory_order_acquire);
	struct slot_sup part;

	*found = SHM_NONE;
	for (uint32_t steps = 0; at < s->slot_count && steps < s->slot_count; steps++) {
		if (slot_read_sup(&s->slots[at], &part) < 0)
			return false;
		/* The slot went to another chain, or nowhere: its next is not ours. */
		if (part.state == SLOT_FREE ||
		    index_bucket(s, part.owner_uid, part.token) != bucket)
			return false;
		if (part.owner_uid == owner_uid && !strncmp(part.token, token, SHM_TOKEN_LEN)) {
			*found = at;
			return true;
		}
		at = part.index_next;
	}
	return at == SHM_NONE; /* else a wild link, or a walk as long as no chain is */
}

uint32_t index_find(const struct segment *s, uint32_t owner_uid, const char *token)
{
	uint32_t bucket = index_bucket(s, owner_uid, token);
	uint32_t found = SHM_NONE;

	for (int i = 0; i < INDEX_READ_TRIES; i++) {
		if (index_walk(s, bucket, owner_uid, token, &found))
			return found;
		(void)sched_yield(); /* always succeeds on Linux */
	}
	return INDEX_UNSURE;
}
