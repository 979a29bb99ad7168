/*
 * ring: the flight recorder. sbxd appends; anybody reads, also after sbxd has died: a record is
 * there or it is not, as its seq is 0 while it is written and ring_next moves last.
 */
#include "shm/ring.h"

#include <errno.h>

#include "shm/words.h"

static const char *const kind_names[] = {
    [EVENT_NONE] = "none",
    [EVENT_SUPERVISOR_START] = "supervisor_start",
    [EVENT_SUPERVISOR_STOP] = "supervisor_stop",
    [EVENT_STATE] = "state",
    [EVENT_LEASE] = "lease",
    [EVENT_RELEASE] = "release",
    [EVENT_EVICT] = "evict",
    [EVENT_WORKER_CRASH] = "worker_crash",
    [EVENT_LOCK_RECOVERY] = "lock_recovery",
    [EVENT_QUARANTINE] = "quarantine",
    [EVENT_ADOPT] = "adopt",
    [EVENT_CHECK_FAILED] = "check_failed",
    [EVENT_BOOT_FAILED] = "boot_failed",
    [EVENT_ERROR] = "error",
    [EVENT_START] = "start",
    [EVENT_STOP] = "stop",
};

_Static_assert(
    sizeof(kind_names) / sizeof(kind_names[0]) == EVENT_KINDS, "every kind of event has a name");
_Static_assert(offsetof(struct shm_event, seq) == 0, "word 0 is the sequence number");

uint64_t ring_append(struct segment *s, const struct shm_event *ev)
{
	uint64_t seq = atomic_load_explicit(&s->header->ring_next, memory_order_relaxed);
	struct shm_event *rec;

	if (seq == 0) /* 0 marks a record in the making and is nobody's number */
		seq = 1;
	rec = &s->ring[(seq - 1) & (s->ring_records - 1)];
	atomic_store_explicit(&rec->seq, 0, memory_order_relaxed);
	words_store((_Atomic uint64_t *)(void *)rec, ev, 1, WORDS_OF(struct shm_event));
	atomic_store_explicit(&rec->seq, seq, memory_order_release);
	atomic_store_explicit(&s->header->ring_next, seq + 1, memory_order_release);
	return seq;
}

uint64_t ring_newest(const struct segment *s)
{
	uint64_t next = atomic_load_explicit(&s->header->ring_next, memory_order_acquire);

	return next ? next - 1 : 0;
}

uint64_t ring_oldest(const struct segment *s)
{
	uint64_t newest = ring_newest(s);

	return newest > s->ring_records ? newest - s->ring_records + 1 : 1;
}

int ring_read(const struct segment *s, uint64_t seq, struct shm_event *out)
{
	uint64_t copy[WORDS_OF(struct shm_event)];
	uint64_t newest = ring_newest(s);
	const struct shm_event *rec;
	uint64_t seen;

	if (seq == 0 || seq > newest)
		return -ENOENT;
	if (newest - seq >= s->ring_records)
		return -ESTALE;
	rec = &s->ring[(seq - 1) & (s->ring_records - 1)];
	seen = atomic_load_explicit(&rec->seq, memory_order_acquire);
	if (seen != seq) /* it had been written: its successor is in the making, or in place */
		return seen == 0 || seen > seq ? -ESTALE : -ENOENT;
	words_load(copy, (const _Atomic uint64_t *)(const void *)rec, WORDS_OF(struct shm_event));
	if (atomic_load_explicit(&rec->seq, memory_order_relaxed) != seq)
		return -ESTALE;
	copy[0] = seq;
	memcpy(out, copy, sizeof(*out));
	return 0;
}

int ring_follow(const struct segment *s, uint64_t *next, struct shm_event *out, uint64_t *lost)
{
	uint64_t newest = ring_newest(s);
	uint64_t oldest = ring_oldest(s);
	int rc = -ENOENT;

	if (*next < oldest) {
		*lost += oldest - *next;
		*next = oldest;
	}
	/* What is overwritten meanwhile is passed over one by one. */
	while (rc < 0 && *next <= newest) {
		rc = ring_read(s, *next, out);
		*lost += rc < 0;
		*next += 1;
	}
	return rc == 0;
}

const char *ring_kind_name(uint32_t kind)
{
	return kind < EVENT_KINDS ? kind_names[kind] : "?";
}
