/*
 * host_program: the other programs of this build, run for their output. sbxctl.
 */
#ifndef SBXD_TOOLS_HOST_PROGRAM_H
#define SBXD_TOOLS_HOST_PROGRAM_H

#include <stdint.h>

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

#endif
