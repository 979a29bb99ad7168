/*
 * cli_unpack: a tar archive that comes out of a box becomes a directory of the host. sbxctl.
 *
 * What comes from a box is hostile: nothing outside of the directory is touched, no link is
 * followed, no device made, no owner or set-id bit taken over.
 */
#ifndef SBXD_TOOLS_CLI_UNPACK_H
#define SBXD_TOOLS_CLI_UNPACK_H

#include <stdint.h>
#include <sys/types.h>

#include "lib/err.h"

/* Gives the next bytes of the archive, valid until the next call: 1, 0 at the end, or -errno with
 * *err. */
typedef int cli_unpack_fn(void *ctx, const uint8_t **bytes, size_t *n, struct err *err);

/*
 * Unpacks into the directory behind dirfd, which stays the caller's. Files are there whole or not
 * at all; the first error ends it. 0 or -errno with *err.
 */
int cli_unpack(int dirfd, cli_unpack_fn *fn, void *ctx, struct err *err);

#endif
