/*
 * proc: who a process is, proven.
 *
 * A pid alone is a guess: it may have been reused. A process is named by (pid, start time), or held
 * by a pidfd.
 */
#ifndef SBXD_LIB_PROC_H
#define SBXD_LIB_PROC_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Start time of pid in clock ticks since boot (field 22 of /proc/PID/stat). 0, -ESRCH when there is
 * none. */
int proc_start_time(pid_t pid, uint64_t *ticks);

/*
 * A pidfd for exactly the process that has this pid and start time. Returns the descriptor
 * (caller's), -ESRCH when that process is gone, -errno otherwise.
 */
int proc_open_exact(pid_t pid, uint64_t start_ticks);

/* Sends a signal through a pidfd. 0, -ESRCH, -errno. */
int proc_signal(int pidfd, int sig);

/* Waits at most timeout_ms for the process behind pidfd to have exited. 0, -ETIMEDOUT, -errno. */
int proc_wait_gone(int pidfd, int timeout_ms);

/*
 * Has SIGKILL ended our child behind pidfd, which holds the other end of the socket? Waits, for a
 * second at most, only if that end is closed: then the child is on its way out. It is not reaped.
 * Either may be -1: there was no child.
 */
bool proc_was_killed(int pidfd, int sock);

/*
 * Kills exactly that process and waits, until the monotonic deadline at most, for it to have
 * exited; the first process of a pid namespace takes all others with it, and is gone only after
 * them. 0 when it is gone, also when it was, -ETIMEDOUT, -errno.
 */
int proc_kill_exact(pid_t pid, uint64_t start_ticks, uint64_t deadline_ns);

#endif
