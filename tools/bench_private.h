/*
 * bench_private: an sbxd of our own, and its end, whatever becomes of us.
 *
 * sbxbench ends its daemons itself. If it cannot, because it was killed or interrupted, the keeper
 * does: a process that was told of each daemon before it was started.
 */
#ifndef SBXD_TOOLS_BENCH_PRIVATE_H
#define SBXD_TOOLS_BENCH_PRIVATE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define BENCH_DIR 64
#define BENCH_PRIVATES 8 /* at a time */

/* A directory of ours, and the daemon that has its files there. */
struct bench_private {
	uint32_t serial; /* of all of this process, from 1 */
	int32_t pid;	 /* 0: none runs */
	char dir[BENCH_DIR];
	char instance[32]; /* "": the directory only */
};

/* ---- bench_daemon.c ---- */

/* A new directory, of which the keeper knows, and a name for the daemon that is to live there, if
 * one is. Ends the program on failure. */
void bench_private_make(struct bench_private *p, bool daemon);

/* ---- bench_end.c ---- */

/*
 * Becomes the daemon: in a child, before which nothing else happened. Its log is DIR/log. Dies with
 * whoever made it if `tied`. Does not return.
 */
void bench_private_exec(const struct bench_private *p, bool tied) __attribute__((noreturn));

/*
 * Ends it and all of its boxes, and removes its directory. One that hangs is killed. The boxes of
 * one that was killed are taken over by a successor, which is ended in order. pidfd is the
 * daemon's, -1 when it is known to be gone; stays the caller's. 0, or -errno after it has said on
 * stderr what may be left.
 */
int bench_private_end(const struct bench_private *p, int pidfd);

/* Does a service answer there, within seconds? */
bool bench_serves(const char *socket);

/* A descriptor for that process, or -errno. */
int bench_pidfd(pid_t pid);

/* ---- bench_keeper.c ---- */

/* Starts the keeper, at most once. From then on SIGINT, SIGTERM and SIGHUP end this process, unless
 * it blocks them, after the keeper has ended the daemons. 0 or -errno. */
int keeper_start(void);

/* What is true of p.serial from now on. Async-signal-safe; also from a forked child. */
void keeper_note(const struct bench_private *p);

/* All that is of this serial is gone, or about to go by our own hand. */
void keeper_forget(uint32_t serial);

#endif
