/*
 * child: the box's first process from its clone to the exec of sbx-guest.
 *
 * It runs in the worker's memory on a stack of its own, so it makes system calls and nothing else.
 * If it fails it leaves the step and the error number in *c and exits; the worker reads them. If
 * the worker dies it is killed by PR_SET_PDEATHSIG or ends at the end of `sync`.
 */
#ifndef SBXD_DRIVERS_NAMESPACE_CHILD_H
#define SBXD_DRIVERS_NAMESPACE_CHILD_H

#include <stdint.h>

#include "drivers/namespace/prepared.h"

/* What the child was doing when it failed. */
enum child_step {
	STEP_NONE,
	STEP_DEATHSIG,
	STEP_LIMITS,
	STEP_LOOPBACK,
	STEP_HOSTNAME,
	STEP_PRIVATE,
	STEP_WAIT,
	STEP_IDS,
	STEP_SCRATCH,
	STEP_LAYERS,
	STEP_OVERLAY,
	STEP_USR,
	STEP_BINDS,
	STEP_DEVICES,
	STEP_PTS,
	STEP_PROC,
	STEP_MASKS,
	STEP_PIVOT,
	STEP_CGROUP,
	STEP_DESCRIPTORS,
	STEP_CAPABILITIES,
	STEP_SECCOMP,
	STEP_EXEC,
	STEPS,
};

/* "mount the root overlay", for messages. */
const char *child_step_name(uint32_t step);

/*
 * Large files lie in larger pages than small ones, which makes writing one twice as fast: but never
 * in more than they say that they need.
 */
#define CHILD_SCRATCH_HUGE "huge=within_size,"

/* Written by start() before the clone, read by the child; step and error the other way. */
struct child {
	const struct ns_prepared *prep;
	uint32_t flags; /* CHILD_* */
	uint32_t pids_max;
	int sync;      /* the child's end of the socket pair to start(): one byte each to go on */
	int sync_peer; /* start()'s end, closed in the child */
	int stream;    /* the child's end of the guest's stream; >= 10 */
	int guest;     /* sbx-guest; >= 10 */
	int helper;    /* sbx-files; >= 10, or -1 */
	int lower[NS_LOWERS]; /* detached clones of prep->lower, or -1: take the path */
	const char *hostname;
	char scratch[96];	/* mount options of the scratch tmpfs, CHILD_SCRATCH_HUGE first */
	volatile uint32_t step; /* enum child_step */
	volatile int32_t error; /* errno value, 0 none */
};

#define CHILD_PRIVILEGED 1U    /* a whole range of ids is mapped */
#define CHILD_TRIAL 2U	       /* probe(): stop before the exec, exit status 0 */
#define CHILD_LAYER_FOREIGN 4U /* our layer's owner is unknown in the box */

/* Entry of the cloned process. Returns its exit status; does not return when all went well. */
long child_main(void *arg);

/* rootfs.c: builds the box's root and makes it "/". 0 or -errno, with c->step set. */
long child_build_root(struct child *c);

#endif
