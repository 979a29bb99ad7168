/*
 * segment: create, attach, validate and unlink the shared segment. sbxd creates; a worker maps one
 * page of it; tools attach read-only.
 */
#ifndef SBXD_SHM_SEGMENT_H
#define SBXD_SHM_SEGMENT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/err.h"
#include "shm/layout.h"

/* A mapping of the whole segment. The pointers stay valid until segment_close(). */
struct segment {
	int fd; /* owned; -1 for a read-only attachment (closed after mmap) */
	bool writable;
	size_t size;
	/* As checked when attached: what bounds every access, whatever the header says later. */
	uint32_t slot_count;
	uint32_t index_buckets;
	uint32_t ring_records;
	struct shm_header *header; /* read-only memory when not writable */
	_Atomic uint32_t *index;
	struct shm_event *ring;
	struct shm_slot *slots;
};

/* "/sbxd-UID-INSTANCE" into out. 0, -ENAMETOOLONG, or -EINVAL (empty, or a slash in it). */
int segment_name(char *out, size_t size, uid_t uid, const char *instance);

/*
 * Creates a new segment with slot_count free slots; fails with -EEXIST when the name is taken. The
 * caller becomes its supervisor: supervisor_lock is held by the calling thread, pid, start time and
 * generation 1 are stored, the magic last. boots: permits of boot_slots.
 */
int segment_create(const char *name, const char *instance, uint32_t slot_count, uint32_t boots,
    struct segment *out, struct err *err);

/* What segment_probe() found under a name. */
enum segment_verdict {
	SEGMENT_ABSENT,	  /* there is none */
	SEGMENT_LIVE,	  /* a running supervisor holds it, or is making it */
	SEGMENT_ORPHANED, /* valid, its supervisor is gone */
	SEGMENT_FOREIGN,  /* other magic, version, layout, size or owner, truncated, or never
			     finished */
};

/*
 * Looks, without changing or locking anything, at what stands under `name`. *why (may be NULL) says
 * what is wrong with a foreign one, or who is alive.
 */
enum segment_verdict segment_probe(const char *name, struct err *why);

/*
 * Attaches. Checks magic, version, layout hash and sizes; a read-only attachment works on live and
 * on orphaned segments alike. A writable one takes over supervisor_lock: -EBUSY when its holder
 * lives. Index, warm list and state counts are then rebuilt from the slots, before the lock of a
 * holder that died is made consistent. Pid, start time, the next generation and SUPERVISOR_STARTING
 * are stored.
 */
int segment_attach(const char *name, bool writable, struct segment *out, struct err *err);

/*
 * Maps, read-only, a file that holds a segment: a copy of one, which its own name no longer means.
 * Whose it is matters not: who names the file trusts it. Checked as above. 0 or -errno.
 */
int segment_attach_file(const char *path, struct segment *out, struct err *err);

/* True unless it is certain that no process with this pid and start time runs any more. */
bool segment_supervisor_alive(int32_t pid, uint64_t start);

/* Makes boot_slots anew with `boots` (at least 1) permits, all free. Only sbxd. 0 or -errno. */
int segment_reset_boots(struct segment *s, uint32_t boots);

/*
 * Derives index, warm list (ordered by parked_ns) and state counts from the slots' published parts,
 * and mends what a supervisor that died left half-written. Slots that repair_check_sup() refuses
 * or whose generation was never given are left as they are and stand in no list. Fills parts[] (as
 * published); `order` is scratch; both have slot_count entries.
 */
void segment_rebuild(struct segment *s, struct slot_sup *parts, uint32_t *order);

/*
 * Checks everything that the layout promises: header fields, index chains, warm list (order, links,
 * counts), slot parts, state counts, ring. Writes at most `max` findings and returns how many there
 * are. Bounded on any content. A live segment may be caught in the middle of a change, so what is
 * found there is looked for again a few times.
 */
size_t segment_validate(const struct segment *s, struct err *findings, size_t max);

/* True when the table shows any slot that is not free. */
bool segment_in_use(const struct segment *s);

/* Unmaps and closes; does not unlink. A writable one becomes SUPERVISOR_GONE and its
 * supervisor_lock is released. Harmless on one that is closed. */
void segment_close(struct segment *s);

/* Removes the name. 0 or -errno. */
int segment_unlink(const char *name);

/*
 * Maps, read-write, just the worker's page of one slot, from the segment's descriptor; NULL with
 * errno set (EINVAL when the segment has no such page). The caller closes the descriptor at once.
 * For workers.
 */
struct shm_page *segment_map_page(int fd, uint64_t slots_off, uint32_t slot);

/* The hash of every size and offset that readers and writers of the segment must agree on. */
uint64_t segment_layout_hash(void);

#endif
