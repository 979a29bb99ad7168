/*
 * rundir: makes the directories of sbxd, and proves that they are its own.
 */
#ifndef SBXD_SUPERVISOR_RUNDIR_H
#define SBXD_SUPERVISOR_RUNDIR_H

#include <sys/types.h>

#include "lib/err.h"
#include "lib/paths.h"

/*
 * Makes the runtime directory (root: 0755, so that others reach the socket; a user: 0700), in it
 * that of the workers' sockets (0700), and the state directory (0700), with what is missing above
 * them. What exists must be a directory, owned by uid, writable by nobody else; a symlink at the
 * last component is refused. 0 or -errno with *err.
 */
int rundir_create(const struct paths *p, uid_t uid, struct err *err);

/* Removes what was made for workers, unless some live. */
void rundir_tidy(const struct paths *p);

#endif
