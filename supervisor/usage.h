/*
 * usage: what boxes have used, one by one and all together. The numbers of a box are its worker's
 * word: they are shown, and nothing is decided by them.
 */
#ifndef SBXD_SUPERVISOR_USAGE_H
#define SBXD_SUPERVISOR_USAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "shm/layout.h"

struct pool_box;
struct sbxd;
struct worker;

/* Of every box there has been in this table. */
struct usage {
	uint64_t commands;
	uint64_t command_failures;
	uint64_t bytes_in;
	uint64_t bytes_out;
};

/* The worker's part of the slot of box b. False: it has not reported yet. */
bool usage_of_box(const struct sbxd *s, const struct pool_box *b, struct slot_work *out);

/* The box of that generation is gone: what it used counts as past from now on. */
void usage_retire(struct sbxd *s, uint32_t slot, uint64_t gen);

void usage_total(const struct sbxd *s, struct usage *out);

/* What is remembered between two questions for cpu_percent(). All zero at first. */
struct cpu_sample {
	uint64_t read_ns; /* when the worker had read it */
	uint64_t cpu_ns;
	double percent;
};

/*
 * How much of the cpus that box b may use it used since the last question, or since it was made: 0
 * to 100. The worker reads it once a second, while something happens.
 */
double usage_cpu_percent(
    struct cpu_sample *last, const struct pool_box *b, const struct slot_work *work, uint64_t now);

#endif
