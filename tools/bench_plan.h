/*
 * bench_plan: what `sbxbench run` is to do, and the result of each turn.
 *
 * A turn is what an agent does: acquire a box, run a command in it, release it. A scenario says
 * which boxes the turns are for, a workload which command.
 */
#ifndef SBXD_TOOLS_BENCH_PLAN_H
#define SBXD_TOOLS_BENCH_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/buf.h"
#include "lib/err.h"

#define BENCH_USER "bench-user"
#define BENCH_THREAD 32 /* bytes of a thread's name */

struct bench_plan;

struct bench_scenario {
	const char *name;
	const char *what;
	/* The thread whose box turn i is for. */
	void (*thread)(const struct bench_plan *p, uint32_t i, char out[BENCH_THREAD]);
	bool pairs; /* an iteration is two turns of one thread, between which its box times out */
	bool holds; /* a box is in use all the time, and must stay */
};

/* One command, and what it has to print. */
struct bench_step {
	const char *command; /* for a shell; $PAIR is i / 2 */
	const char *prints;
	bool pair; /* and behind that, $PAIR */
};

struct bench_workload {
	const char *name;
	const char *what;
	struct bench_step steps[2]; /* of even turns, of odd turns */
};

/* Of the turns before the measured ones. */
extern const struct bench_scenario bench_scenario_warmup;

/* NULL when there is none of that name. */
const struct bench_scenario *bench_scenario_find(const char *name);
const struct bench_workload *bench_workload_find(const char *name);

/* The i-th, for a list; NULL past the last. */
const struct bench_scenario *bench_scenario_at(unsigned int i);
const struct bench_workload *bench_workload_at(unsigned int i);

/* Texts are the caller's. */
struct bench_plan {
	const struct bench_scenario *scenario;
	const struct bench_workload *workload;
	uint32_t iterations;
	uint32_t concurrency;
	uint32_t warmup;
	uint32_t fault_after; /* the turn after which a box is killed */
	bool has_fault;
	bool no_warmpool;
	double timeout; /* of each request, s */
	const char *image;
	const char *driver;
	const char *socket; /* NULL: a private sbxd */
	const char *output; /* NULL: standard output */

	/* What the service is set to; what is not known of it is < 0. */
	double replicas;
	double idle_timeout;
	double skip_seconds;
	char provider[48];
};

/* Times are 0 for what was not reached. */
struct bench_row {
	uint32_t iteration;
	char thread[BENCH_THREAD];
	double acquire_ms;
	double run_ms;
	double release_ms;
	double total_ms;
	int warm_hit; /* -1: not known */
	bool success;
	char error[300];
};

/* Makes it a failure, keeping the first: "WHAT: TEXT". */
void bench_row_fail(struct bench_row *r, const char *what, const struct err *err);

/* Appends it as one line of JSON. 0, -ENOBUFS or -ENOMEM. */
int bench_row_put(const struct bench_plan *p, const struct bench_row *r, struct buf *out);

#endif
