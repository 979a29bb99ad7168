/*
 * spawn: starts a helper process without copying this one: clone with CLONE_VM and CLONE_VFORK,
 * then exec.
 */
#ifndef SBXD_SUPERVISOR_SPAWN_H
#define SBXD_SUPERVISOR_SPAWN_H

#include <stdint.h>
#include <sys/types.h>

/* Descriptors that the new process gets: fds[i] becomes number 3 + i; -1 leaves that number closed.
 */
#define SPAWN_FDS 6

struct spawned {
	pid_t pid;
	int pidfd;	/* caller's */
	uint64_t start; /* clock ticks since boot */
};

/*
 * Runs `path` with argv, stdin and stdout /dev/null, stderr ours, fds as above, nothing else open,
 * all signals at their default and none blocked. The environment holds only what tests and
 * sanitizers use (SBX_*, *SAN_OPTIONS), and how registries are reached (*_PROXY, SSL_CERT_*). 0
 * with *out filled, or -errno (also when exec failed).
 */
int spawn_process(
    const char *path, const char *const argv[], const int fds[SPAWN_FDS], struct spawned *out);

/* Collects the exit of a process whose pidfd polled readable. Its wait status, or -errno. */
int spawn_reap(int pidfd);

/* "killed by signal 9 (Killed)", "exited with status 1". */
void spawn_describe(int status, char *out, size_t size);

#endif
