/* start: what start.c (the steps of a start) and start_setup.c (what it needs before) share. */
#ifndef SBXD_DRIVERS_NAMESPACE_START_H
#define SBXD_DRIVERS_NAMESPACE_START_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "drivers/namespace/box.h"
#include "drivers/namespace/child.h"

#define CHILD_STACK 12288U
#define CHILD_AREA ((sizeof(struct child) + 63U) & ~63UL) /* keeps the stack aligned */

/* All that a start holds until it succeeds or is undone. */
struct start {
	const struct driver_site *site;
	const struct driver_spec *spec;
	const struct ns_prepared *prep;
	struct driver_box *box;
	struct child *child; /* shared with the child until it execs */
	size_t region;	     /* bytes mapped at child; its stack is the end of it */
	int sync[2];	     /* our end, the child's */
	int stream[2];	     /* our end, the child's */
	int proc;	     /* /proc/PID of the child */
	uid_t base;	     /* first host id of the box, 0 when it has none of its own */
	bool trial;
	bool recorded;
	bool box_in_memory; /* it could not be killed: it may still use what is at child */
};

/* Makes what the child is given: its memory, the pairs of sockets, copies of descriptors, layers.
 * What was made is in s in any case. 0 or -errno with *err. */
int start_set_up(struct start *s, struct err *err);

#endif
