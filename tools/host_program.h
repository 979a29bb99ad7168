/*
 * host_program: the other programs of this build, and parts of this one in processes of their own,
 * run for their output. sbxctl.
 */
#ifndef SBXD_TOOLS_HOST_PROGRAM_H
#define SBXD_TOOLS_HOST_PROGRAM_H

#include <stdint.h>
#include <sys/types.h>

#include "lib/buf.h"
#include "lib/err.h"

/* "sbxd" or "sbx-worker", beside us or in ../libexec/sbxd. Its path in *out (of `size`). 0 or
 * -ENOENT with *err. */
int host_program_find(const char *name, char *out, size_t size, struct err *err);

/*
 * Runs argv (argv[0] is its path) with nothing on stdin, and collects what it writes, as far as the
 * bufs have room. It is killed at the deadline (CLOCK_MONOTONIC ns). Returns its exit status,
 * -ETIMEDOUT, -EINTR (a signal ended it) or -errno.
 */
int host_program_run(char *const argv[], uint64_t deadline, struct buf *out, struct buf *errors);

/*
 * Runs fn in a process of its own, and collects what it writes to fd, as far as *out has room. It
 * is killed at the deadline. 0, -EIO (fn failed, or a signal ended it), -ETIMEDOUT or -errno.
 */
typedef int host_program_fn(void *ctx, int fd);
int host_program_call(host_program_fn *fn, void *ctx, uint64_t deadline, struct buf *out);

/*
 * For such a process of root's: it is that user's from now on, without root's rights and terminal.
 * What that user does to it, and says through it, is that one's word. 0 or -errno.
 */
int host_program_become(uid_t uid);

#endif
