/*
 * fault: named places where a test can make a process die, stop or fail.
 *
 * Compiled in only with -DSBX_FAULTS (the test build); in the product FAULT_POINT() is nothing. The
 * environment variable SBX_FAULT arms points: "name=action[,name=action...]", action one of kill
 * SIGKILL to this process hang        sleep until killed fail        FAULT_FAILS() is true With a
 * "@FILE" suffix the action fires only if FILE exists, and removes it first: once per file.
 */
#ifndef SBXD_LIB_FAULT_H
#define SBXD_LIB_FAULT_H

#include <stdbool.h>

#ifdef SBX_FAULTS
/* Performs what is armed for `name`; true when the caller shall fail here. */
bool fault_hit(const char *name);
#define FAULT_POINT(name) ((void)fault_hit(name))
#define FAULT_FAILS(name) fault_hit(name)
#else
#define FAULT_POINT(name) ((void)0)
#define FAULT_FAILS(name) false
#endif

#endif
