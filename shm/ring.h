/*
 * ring: the flight recorder. sbxd appends; anybody reads, also after sbxd has died.
 */
#ifndef SBXD_SHM_RING_H
#define SBXD_SHM_RING_H

#include "shm/segment.h"

/* Appends a copy of *ev (its seq is ignored) and returns its sequence number, from 1. */
uint64_t ring_append(struct segment *s, const struct shm_event *ev);

/* The sequence number of the newest record, 0 when there is none yet. */
uint64_t ring_newest(const struct segment *s);

/* Copies record `seq`. 0, -ENOENT (not yet written, or torn), -ESTALE (overwritten). */
int ring_read(const struct segment *s, uint64_t seq, struct shm_event *out);

/* The number of the oldest record that is still there; ring_newest() + 1 when there is none. */
uint64_t ring_oldest(const struct segment *s);

/*
 * Reads on: copies the record *next, or the first after it that is still there, and moves *next
 * behind it. 1: *out is set; 0: there is none yet. Adds to *lost what was overwritten before it was
 * read. Bounded on any content.
 */
int ring_follow(const struct segment *s, uint64_t *next, struct shm_event *out, uint64_t *lost);

const char *ring_kind_name(uint32_t kind);

#endif
