/*
 * confine: gives up everything a worker does not need any more once its box runs, before it reads
 * the first guest byte. sbx-worker only.
 */
#ifndef SBXD_WORKER_CONFINE_H
#define SBXD_WORKER_CONFINE_H

#include <sys/types.h>

#include "lib/err.h"

/*
 * Own uid and gid (0: keep them), no groups, no capabilities, no new privileges, no core dumps, no
 * files (Landlock, where the kernel has it), and only the system calls of a process that moves
 * bytes between descriptors it already has. 0 or -errno.
 */
int confine_self(uid_t uid, struct err *err);

/* The system call filter alone. 0 or -errno. */
int confine_load_filter(void);

#endif
