/*
 * child: a process on its way to being QEMU. It is a copy of the worker and dies with it.
 */
#ifndef SBXD_DRIVERS_QEMU_CHILD_H
#define SBXD_DRIVERS_QEMU_CHILD_H

#include <stdbool.h>
#include <stdint.h>

#include "drivers/qemu/machine.h"

#define CHILD_FD_MIN 32 /* out of the way of QEMU's descriptors */

/* What the child sends when it cannot go on: as one message, before it exits. */
struct child_failure {
	int32_t code; /* errno value */
	char step[60];
};

struct child {
	const struct machine_spec *spec;
	char *const *argv;
	bool privileged; /* a whole range of ids is mapped */
	int sync; /* one byte each to go on; the listener goes the other way; >= CHILD_FD_MIN */
	int sync_peer;
	int fds[MACHINE_FDS]; /* what is to be at these descriptors; -1: nothing */
};

_Noreturn void qemu_child_main(const struct child *c);

/* child_root.c: builds a root of what QEMU needs of the host, and enters it. 0 or -1 with errno and
 * *step. */
int qemu_child_enter_root(const struct child *c, const char **step);

#endif
