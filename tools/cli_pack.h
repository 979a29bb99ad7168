/*
 * cli_pack: a directory of the host as a tar archive, piece by piece as it is asked for. sbxctl.
 */
#ifndef SBXD_TOOLS_CLI_PACK_H
#define SBXD_TOOLS_CLI_PACK_H

#include <stdint.h>
#include <sys/types.h>

#include "lib/err.h"
#include "tools/cli_progress.h"

struct cli_pack;

/*
 * Opens the directory. Names in the archive are relative to it, which is ./ itself. *out is the
 * caller's to cli_pack_close(); progress outlives it. 0 or -errno with *err.
 */
int cli_pack_open(
    const char *path, struct cli_progress *progress, struct cli_pack **out, struct err *err);

/* Harmless on NULL. */
void cli_pack_close(struct cli_pack *p);

/*
 * The next bytes of the archive, as httpc_fill_fn with the pack as ctx. What cannot be read, or is
 * neither file nor directory nor link, is left out and said on standard error.
 */
ssize_t cli_pack_fill(void *ctx, uint8_t *out, size_t size, struct err *err);

/* How many names were left out. */
unsigned int cli_pack_skipped(const struct cli_pack *p);

#endif
