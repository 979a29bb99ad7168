/*
 * warm: the list of warm boxes, oldest first. sbxd writes, anybody reads. If sbxd dies between
 * warm_begin() and warm_end() list_seq stays odd, readers get -EAGAIN, and the successor derives
 * the list anew from the slots (segment_rebuild).
 */
#include "shm/warm.h"

#include <errno.h>
#include <sched.h>

#include "lib/log.h"
#include "shm/slot.h"

/* As for the index: each try gives the cpu away. */
#define WARM_READ_TRIES 100

/* Header words are stored with release order for the reason given in words.h. */
static void list_store(_Atomic uint32_t *word, uint32_t value)
{
	atomic_store_explicit(word, value, memory_order_release);
}

void warm_begin(struct segment *s)
{
	_Atomic uint32_t *seq = &s->header->list_seq;

	atomic_store_explicit(
	    seq, atomic_load_explicit(seq, memory_order_relaxed) | 1U, memory_order_relaxed);
}

void warm_end(struct segment *s)
{
	slot_mend_seq(&s->header->list_seq);
}

void warm_clear(struct segment *s)
{
	list_store(&s->header->warm_head, SHM_NONE);
	list_store(&s->header->warm_tail, SHM_NONE);
	list_store(&s->header->warm_count, 0);
}

void warm_append(
    struct segment *s, struct slot_sup *parts, uint32_t slot, uint32_t changed[WARM_CHANGED])
{
	struct shm_header *h = s->header;
	uint32_t tail = atomic_load_explicit(&h->warm_tail, memory_order_relaxed);
	uint32_t count = atomic_load_explicit(&h->warm_count, memory_order_relaxed);

	INVARIANT(tail < s->slot_count || tail == SHM_NONE);
	parts[slot].warm_prev = tail;
	parts[slot].warm_next = SHM_NONE;
	if (tail == SHM_NONE)
		list_store(&h->warm_head, slot);
	else
		parts[tail].warm_next = slot;
	list_store(&h->warm_tail, slot);
	list_store(&h->warm_count, count + 1);
	changed[0] = slot;
	changed[1] = tail;
	changed[2] = SHM_NONE;
}

void warm_remove(
    struct segment *s, struct slot_sup *parts, uint32_t slot, uint32_t changed[WARM_CHANGED])
{
	struct shm_header *h = s->header;
	uint32_t prev = parts[slot].warm_prev;
	uint32_t next = parts[slot].warm_next;
	uint32_t count = atomic_load_explicit(&h->warm_count, memory_order_relaxed);
	uint32_t filled = 0;

	INVARIANT(count > 0);
	INVARIANT(prev < s->slot_count || prev == SHM_NONE);
	INVARIANT(next < s->slot_count || next == SHM_NONE);
	changed[filled++] = slot;
	if (prev == SHM_NONE) {
		list_store(&h->warm_head, next);
	} else {
		parts[prev].warm_next = next;
		changed[filled++] = prev;
	}
	if (next == SHM_NONE) {
		list_store(&h->warm_tail, prev);
	} else {
		parts[next].warm_prev = prev;
		changed[filled++] = next;
	}
	while (filled < WARM_CHANGED)
		changed[filled++] = SHM_NONE;
	list_store(&h->warm_count, count - 1);
	parts[slot].warm_prev = SHM_NONE;
	parts[slot].warm_next = SHM_NONE;
}

/* One walk; counts in *count. -EAGAIN when a part could not be read. */
static int warm_walk(const struct segment *s, uint32_t *out, size_t max, size_t *count)
{
	uint32_t at = atomic_load_explicit(&s->header->warm_head, memory_order_acquire);
	struct slot_sup part;

	for (*count = 0; at != SHM_NONE && *count < max; (*count)++) {
		if (at >= s->slot_count || *count >= s->slot_count)
			return -EINVAL;
		if (slot_read_sup(&s->slots[at], &part) < 0)
			return -EAGAIN;
		out[*count] = at;
		at = part.warm_next;
	}
	return 0;
}

int warm_list(const struct segment *s, uint32_t *out, size_t max)
{
	const _Atomic uint32_t *seq = &s->header->list_seq;
	size_t count = 0;

	for (int i = 0; i < WARM_READ_TRIES; i++) {
		uint32_t before = atomic_load_explicit(seq, memory_order_acquire);
		int rc = before & 1U ? -EAGAIN : warm_walk(s, out, max, &count);

		if (rc != -EAGAIN && atomic_load_explicit(seq, memory_order_relaxed) == before)
			return rc < 0 ? rc : (int)count;
		(void)sched_yield(); /* always succeeds on Linux */
	}
	return -EAGAIN;
}
