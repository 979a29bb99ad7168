/*
 * top_model: what sbxtop knows: a snapshot of the table, and what follows from it and the one
 * before. Knows nothing of terminals.
 */
#ifndef SBXD_TOOLS_TOP_MODEL_H
#define SBXD_TOOLS_TOP_MODEL_H

#include <stdbool.h>
#include <stddef.h>

#include "shm/reader.h"
#include "tools/top_cpu.h"
#include "tools/top_events.h"

/* Who holds a box's scope lock. */
enum top_lock {
	LOCK_FREE,
	LOCK_WORKER, /* its worker */
	LOCK_SBXD,
	LOCK_OTHER,  /* a thread of neither */
	LOCK_DIED,   /* its holder died; sbxd will recover it */
	LOCK_BROKEN, /* for ever */
	LOCKS,
};

/* "worker" etc., "-" for LOCK_FREE. */
const char *top_lock_name(enum top_lock lock);

/* A slot: what was copied of it, and what follows. Times are spans, in ns. */
struct top_box {
	struct reader_box seen;
	struct reader_mark mark;
	bool there; /* else the slot is free */
	uint64_t age_ns;
	uint64_t state_age_ns; /* since it entered its state */
	uint64_t idle_ns;      /* since anybody had to do with it; 0 while a command runs */
	double cpu_percent;    /* of one cpu */
	enum top_lock lock;
	struct top_cpu cpu;
};

/* How the supervisor is. */
enum top_health {
	HEALTH_UNKNOWN,	 /* there was no table yet */
	HEALTH_STARTING, /* the first four as in enum shm_supervisor_state */
	HEALTH_SERVING,
	HEALTH_SHUTTING_DOWN,
	HEALTH_LEFT, /* gone on purpose, the boxes wait for the next one */
	HEALTH_HUNG, /* it runs, but has not moved for long */
	HEALTH_DEAD,
	HEALTHS,
};

/* "serving" etc. */
const char *top_health_name(enum top_health health);

struct top_model {
	bool loaded;	   /* something was read; else all of it is zero */
	bool frozen;	   /* it is of the past: rates are as the recorder tells */
	bool counts_conns; /* asked for by the caller: it doubles what a snapshot costs */
	uint64_t now;
	uint64_t wall_ms;
	struct reader_summary sum;
	struct reader_latency latency[HISTS];
	uint64_t started_ns;
	uint64_t heartbeat_ns;
	uint32_t boots_max;
	uint32_t owner_uid;
	char instance[33];
	enum top_health health;

	/* Per second, between this snapshot and the one before; at first from the recorder. */
	double rate[COUNTERS];
	uint64_t rated_ns; /* when the counters were last looked at, 0 never */
	uint64_t rated[COUNTERS];

	uint32_t slot_count;
	struct top_box *slots;
	const struct top_box **boxes; /* those that are there, by slot */
	size_t box_count;
	uint32_t unreadable; /* slots whose writer died in the middle: shown as they were before */
	double cpu_percent;  /* of all boxes */
	uint64_t memory_bytes;
	uint64_t in_flight;

	struct top_events events;
};

/* NULL without memory. */
struct top_model *top_model_create(void);
void top_model_free(struct top_model *m);

/* From now on it is about another table, with so many slots: forgets all. 0 or -ENOMEM. */
int top_model_reset(struct top_model *m, uint32_t slot_count);

/*
 * Takes a new snapshot at `now` (CLOCK_MONOTONIC ns). Reads the mapping and nothing else: when that
 * is cut off under it (SIGBUS) and the caller leaves by longjmp, the snapshot before stays.
 */
void top_model_refresh(struct top_model *m, const struct reader *r, uint64_t now);

/* What follows from what was read, at that time: for another time than that of the snapshot. */
void top_model_derive(struct top_model *m, uint64_t now);

/* The little that tells whether a new snapshot is worth while. */
struct top_glance {
	int32_t pid;
	enum top_health health;
};
void top_model_glance(const struct reader *r, uint64_t now, struct top_glance *out);

/* Acquires that were not cold, of all, in per cent; of those counted so far, or now. -1: there were
 * none. */
double top_model_hits(const struct top_model *m);
double top_model_hits_now(const struct top_model *m);

/* Slots that are not free, as the supervisor counts them. */
uint32_t top_model_boxes(const struct top_model *m);

#endif
