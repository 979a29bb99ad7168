/*
 * top_cpu: how much of a cpu a box uses now, from what its worker reports once a second while
 * something happens in it.
 */
#ifndef SBXD_TOOLS_TOP_CPU_H
#define SBXD_TOOLS_TOP_CPU_H

#include <stddef.h>
#include <stdint.h>

#include "shm/reader.h"

#define TOP_CPU_POINTS 8

/* Zero: nothing is known yet. */
struct top_cpu {
	uint64_t generation; /* of the box that this is about */
	size_t count;
	struct {
		uint64_t at_ns;
		uint64_t cpu_ns;
	} points[TOP_CPU_POINTS]; /* oldest first */
};

/*
 * Takes in what the box shows at `now` (CLOCK_MONOTONIC ns) and returns its share of a cpu in per
 * cent: over the last seconds; over its whole life while there is no more to go by; 0 when its
 * worker has nothing to report. Never negative, whatever the worker wrote.
 */
double top_cpu_update(struct top_cpu *c, const struct reader_box *b, uint64_t now);

#endif
