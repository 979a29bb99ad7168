/*
 * segment_impl: what the files of segment share among themselves. Nobody else includes this.
 */
#ifndef SBXD_SHM_SEGMENT_IMPL_H
#define SBXD_SHM_SEGMENT_IMPL_H

#include "shm/segment.h"

/* Where everything is in a segment with so many slots. The slot count decides all of it. */
struct segment_plan {
	uint32_t slot_count;
	uint32_t index_buckets;
	uint64_t index_off;
	uint64_t ring_off;
	uint64_t slots_off;
	uint64_t total_size;
};

/* slot_count: 1 to SHM_MAX_SLOTS. */
void segment_plan_layout(uint32_t slot_count, struct segment_plan *out);

/* Fills *out for a mapping at base. */
void segment_bind(
    struct segment *out, void *base, int fd, bool writable, const struct segment_plan *plan);

/* Stores this process as the supervisor, SUPERVISOR_STARTING, with generation `gen`. */
void segment_sign(struct segment *s, uint64_t start, uint64_t gen);

/* 0 when every constant and size in a private copy of a header is right for a file of `size` bytes,
 * and the plan of it; else -errno and what is wrong. */
int segment_check_header(
    const struct shm_header *h, uint64_t size, struct segment_plan *plan, struct err *why);

#endif
