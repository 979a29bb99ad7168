/*
 * reader: the read-only view for tools. Takes no lock, writes nothing, never returns torn data, and
 * works when the supervisor hangs or is dead.
 */
#ifndef SBXD_SHM_READER_H
#define SBXD_SHM_READER_H

#include <stdbool.h>

#include "shm/segment.h"

struct reader {
	struct segment seg;
};

/* The supervisor and the totals, as one moment shows them. */
struct reader_summary {
	int32_t pid;
	uint64_t start; /* of that pid, clock ticks since boot */
	bool alive;	/* that pid with that start time runs */
	uint32_t state;
	uint64_t generation;
	uint64_t uptime_ns;
	uint64_t heartbeat_age_ns;
	uint32_t slots;
	uint32_t replicas;
	uint32_t waiters;
	uint32_t warm;
	uint32_t state_count[SLOT_STATES];
	uint64_t counters[COUNTERS];
};

/*
 * One box: both parts, each untorn, every text ending in NUL. `work` is zero when its generation is
 * not that of `sup`, or when its worker never finishes writing it.
 */
struct reader_box {
	uint32_t slot;
	uint32_t in_flight;
	uint32_t conns;
	int32_t lock_holder; /* scope_lock_holder() */
	struct slot_sup sup;
	struct slot_work work;
};

/* One histogram, as the service shows it too. */
struct reader_latency {
	uint64_t count;
	uint64_t p50_ns;
	uint64_t p95_ns;
	uint64_t p99_ns;
};

/* 0 or -errno. */
int reader_open(struct reader *r, const char *name, struct err *err);

/* The same for a file, such as a copy of a table that was left. */
int reader_open_file(struct reader *r, const char *path, struct err *err);
void reader_close(struct reader *r);

void reader_summarize(const struct reader *r, struct reader_summary *out);

void reader_latency(const struct reader *r, enum shm_hist_id hist, struct reader_latency *out);

/* Copies slot's box. 0, -ENOENT when it is free, -EAGAIN when it kept changing, -ERANGE. */
int reader_box(const struct reader *r, uint32_t slot, struct reader_box *out);

/* Of which state of a slot a copy was made. */
struct reader_mark {
	uint32_t sup_seq;
	uint32_t work_seq;
};

#define READER_UNSEEN ((struct reader_mark){1, 1}) /* an odd state is never copied */

/*
 * As reader_box(), for who looks again and again: a part that has not changed since it was copied
 * into *box, which *mark tells, is not copied again. `conns` is left alone: reader_conns() counts
 * them. On -EAGAIN *box has what it had before.
 */
int reader_refresh(
    const struct reader *r, uint32_t slot, struct reader_mark *mark, struct reader_box *box);

/* How many client connections slot's worker holds; 0 when out of range. */
uint32_t reader_conns(const struct reader *r, uint32_t slot);

#endif
