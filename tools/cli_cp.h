/*
 * cli_cp: what the files of sbxctl cp share.
 */
#ifndef SBXD_TOOLS_CLI_CP_H
#define SBXD_TOOLS_CLI_CP_H

#include <limits.h>

#include "tools/cli.h"
#include "tools/cli_place.h"

#define CLI_COPY_PATH_MAX 16000U /* of a request */

struct cli_copy {
	const struct cli *cli;
	bool quiet;
};

/* From a file, a directory or standard input ("-") of the host into a box. The exit status. */
int cli_copy_in(const struct cli_copy *cp, const char *from, const struct cli_place *to);

/* From a box to a file, a directory or standard output ("-") of the host. The exit status. */
int cli_copy_out(const struct cli_copy *cp, const struct cli_place *from, const char *to);

/* A path as the service takes it: without the slash or "/." at its end that says how to copy. The
 * caller's; NULL without memory. */
char *cli_copy_plain(const char *path);

/*
 * What a source becomes in a directory that is there: its last component in it, or, of one that
 * ends in "/.", the directory itself. 0, -EINVAL (it ends in ".."), -ENAMETOOLONG.
 */
int cli_copy_target(const char *source, const char *folder, char out[PATH_MAX]);

#endif
