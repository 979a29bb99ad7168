/*
 * host_state: what boxes could leave behind on the host, counted.
 */
#ifndef SBXD_TESTS_DRIVERS_HOST_STATE_H
#define SBXD_TESTS_DRIVERS_HOST_STATE_H

#include "drivers/driver.h"

#define HOST_STATE_SLOTS 256U /* whose uids are looked for: more than any test uses */

struct host_state {
	int fds;      /* open in this process */
	int mounts;   /* in this process's mount namespace */
	int children; /* of this process */
	int box_uids; /* processes that have a box's uid */
	int cgroups;  /* that bear the instance's name */
	int files;    /* below the runtime directory */
};

/* Reaps what is dead, then counts. */
void host_state_take(const struct driver_site *site, struct host_state *out);

/* Waits until this process has no children, orphans of dead workers included. Never for long: a
 * child that does not end ends the test. */
void host_state_await_orphans(void);

/* Fails the running test when something has become more or less. */
void host_state_assert_same(const struct host_state *before, const struct host_state *after);

#endif
