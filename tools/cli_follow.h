/* cli_follow: a request whose answer tells how far it is, one JSON object a line. sbxctl. */
#ifndef SBXD_TOOLS_CLI_FOLLOW_H
#define SBXD_TOOLS_CLI_FOLLOW_H

#include "tools/cli.h"

struct cli_follow {
	const char *command; /* "image pull" */
	const char *subject; /* what it is about */
	const char *path;    /* to be POSTed to */
	const struct buf *body;
};

/*
 * Asks, and shows how far it is. CLI_OK with *out, what came of it, the caller's to json_decref();
 * or CLI_FAILED after it has said why; or 128 and the number of a signal.
 */
int cli_follow(const struct cli *cli, const struct cli_follow *f, json_t **out);

#endif
