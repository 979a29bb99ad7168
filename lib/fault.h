/*
 * fault: named places where a test can make a process die, stop or fail.
 *
 * Compiled in only with -DSBX_FAULTS (the test build); in the product FAULT_POINT() is nothing. The
 * environment variable SBX_FAULT arms points: "name=action[,name=action...]", with the actions
 *
 *   kill    SIGKILL to this process
 *   hang    sleep until killed
 *   fail    FAULT_FAILS() is true
 *
 * "action@FILE" acts once each time FILE holds the byte 1, and makes it 0. FILE must be there when
 * the process passes its first point: it is mapped then, since a confined process can open nothing.
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
