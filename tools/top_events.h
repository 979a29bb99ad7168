/*
 * top_events: the last records of the flight recorder, kept here so that they can be looked through
 * while the ring goes on.
 */
#ifndef SBXD_TOOLS_TOP_EVENTS_H
#define SBXD_TOOLS_TOP_EVENTS_H

#include <stddef.h>

#include "shm/segment.h"
#include "tools/top_line.h"

#define TOP_EVENTS SHM_RING_RECORDS

struct top_events {
	uint64_t next; /* of the table, to be read */
	uint64_t lost; /* overwritten before they were read */
	size_t count;  /* kept, at most TOP_EVENTS */
	size_t hidden; /* so many of the newest are as if they had not been yet */
	size_t end;    /* where the next one goes */
	struct shm_event kept[TOP_EVENTS];
};

/* For a table that nothing was read of yet. */
void top_events_reset(struct top_events *e);

/* Reads what has come since. Bounded, also while more comes. */
void top_events_read(struct top_events *e, const struct segment *seg);

/* How many there are, without those that are hidden. */
size_t top_events_count(const struct top_events *e);

/* The newest (0), the one before it (1) and so on; NULL when there are no more. */
const struct shm_event *top_events_back(const struct top_events *e, size_t n);

/*
 * How many a second there were of what some counters count, over the last seconds before `now`
 * (CLOCK_MONOTONIC ns), as far as the records tell; those of other counters are 0.
 */
void top_events_rates(const struct top_events *e, uint64_t now, double rate[COUNTERS]);

/* What a record was counted as, too; -1: it was not, or that cannot be told. */
int top_event_counter(const struct shm_event *ev);

/* A record as a line: time, what, box, from->to, reason. */
void top_event_line(const struct shm_event *ev, struct top_line *l);

#endif
