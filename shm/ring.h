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

const char *ring_kind_name(uint32_t kind);

#endif
