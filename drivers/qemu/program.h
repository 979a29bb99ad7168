/*
 * program: running a program of the host to its end, within bounds. Janitor.
 */
#ifndef SBXD_DRIVERS_QEMU_PROGRAM_H
#define SBXD_DRIVERS_QEMU_PROGRAM_H

#include <stddef.h>
#include <stdint.h>

#include "drivers/driver.h"

/* Where programs are looked for. */
#define PROGRAM_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

/* Writes the path of the program of that name. 0 or -ENOENT. */
int program_find(const char *name, char *out, size_t size);

/*
 * Runs argv[0], a path, to its end with in and out as its standard input and output (-1:
 * /dev/null). Kills it at deadline_ns. 0 when it has exited with 0; -ETIMEDOUT; -EOWNERDEAD:
 * somebody has killed it; -EIO: it failed, and *err has the end of what it said; or -errno.
 */
int program_run(const char *const argv[], int in, int out, uint64_t deadline_ns, struct err *err);

#endif
