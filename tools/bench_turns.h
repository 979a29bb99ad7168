/*
 * bench_turns: the turns of a plan, made by as many clients at once as it says, and their rows.
 */
#ifndef SBXD_TOOLS_BENCH_TURNS_H
#define SBXD_TOOLS_BENCH_TURNS_H

#include "tools/bench_plan.h"

struct bench_counts {
	uint32_t ok;
	uint32_t failed;
	uint32_t warm; /* of those that are ok */
	bool stopped;  /* not all turns were made: a signal, or the output failed */
};

/*
 * Makes the turns. A row is written to out_fd as soon as its turn is over; each turn has one, also
 * when the service is gone. socket: of the service; cancel_fd: as of httpc_connect(). 0, or -errno
 * with *err when the rows cannot be written or there is no memory.
 */
int bench_turns(const struct bench_plan *p, const char *socket, int cancel_fd, int out_fd,
    struct bench_counts *counts, struct err *err);

#endif
