/*
 * fault: named places where a test can make a process die, stop or fail.
 *
 * Compiled in only with -DSBX_FAULTS (the test build); in the product FAULT_POINT() is nothing. The
 * environment variable SBX_FAULT arms points: "[role/]name=action[,[role/]name=action...]", with
 * the actions
 *
 *   kill    SIGKILL to this process
 *   hang    sleep until killed
 *   fail    FAULT_FAILS() is true
 *   pass    nothing: for a test that wants to know whether anybody passes here
 *
 * An action of a role (sbxd, worker, janitor) is for the processes of that role only.
 *
 * "action@FILE+N" acts once each time byte N of FILE holds 1, and makes it 0 ("action@FILE": the
 * first byte; N is at most 4095). FILE must be there when the process passes its first point: it is
 * mapped then, since a confined process can open nothing.
 */
#ifndef SBXD_LIB_FAULT_H
#define SBXD_LIB_FAULT_H

#include <stdbool.h>

#ifdef SBX_FAULTS
/* Names what this process is; once, before its first point. `role` stays the caller's. */
void fault_role(const char *role);
/* Performs what is armed for `name`; true when the caller shall fail here. */
bool fault_hit(const char *name);
#define FAULT_ROLE(role) fault_role(role)
#define FAULT_POINT(name) ((void)fault_hit(name))
#define FAULT_FAILS(name) fault_hit(name)
/* By how much more than usual time what a slow host does may take: the number in SBX_TEST_SLOW, at
 * most 100. For bounds that an emulated host cannot keep. */
unsigned int fault_slow(void);
#define FAULT_SLOW() fault_slow()
#else
#define FAULT_ROLE(role) ((void)0)
#define FAULT_POINT(name) ((void)0)
#define FAULT_FAILS(name) false
#define FAULT_SLOW() 1U
#endif

#endif
