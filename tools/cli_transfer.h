/*
 * cli_transfer: bytes into and out of boxes, as they come. sbxctl.
 */
#ifndef SBXD_TOOLS_CLI_TRANSFER_H
#define SBXD_TOOLS_CLI_TRANSFER_H

#include "tools/cli.h"
#include "tools/cli_place.h"
#include "tools/cli_progress.h"

/* One file or tree on its way: a connection, and who is told how far it is. */
struct cli_transfer {
	const struct cli *cli;
	const char *what; /* for messages */
	struct httpc *c;  /* owned */
	struct cli_progress progress;
};

/* CLI_OK; CLI_FAILED after it has said why. `what` is the caller's and outlives it. */
int cli_transfer_open(struct cli_transfer *t, const struct cli *cli, const char *what);
void cli_transfer_close(struct cli_transfer *t);

/* What is at a path of a box, links followed. */
struct cli_stat {
	bool found;
	bool directory;
	bool regular;
	unsigned int mode; /* lower nine bits */
	uint64_t size;
};

/* Asks for it; that there is nothing is no failure. CLI_OK, or CLI_FAILED after it has said why. */
int cli_transfer_stat(struct cli_transfer *t, const struct cli_place *place, struct cli_stat *out);

/*
 * Begins GET `path`. CLI_OK: its body is to be read by cli_transfer_read() to its end; CLI_FAILED
 * after it has said why; or 128+N when a signal came.
 */
int cli_transfer_get(struct cli_transfer *t, const char *path, const char *accept);

/* The next bytes of it, valid until the next call. As httpc_read(). */
int cli_transfer_read(struct cli_transfer *t, const uint8_t **bytes, size_t *n, struct err *err);

/* PUTs a body of `len` bytes or HTTPC_ANY_LENGTH that `fill` gives. CLI_OK; CLI_FAILED after it has
 * said why; or 128+N. */
int cli_transfer_put(struct cli_transfer *t, const char *path, const char *type,
    httpc_fill_fn *fill, void *ctx, uint64_t len);

/* Says why it did not work, unless a signal ended it. CLI_FAILED or 128+N. */
int cli_transfer_fail(struct cli_transfer *t, const struct err *err);

#endif
