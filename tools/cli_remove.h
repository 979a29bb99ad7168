/* cli_remove: removing what the service keeps, images and templates: each name in turn, and what
 * that freed. */
#ifndef SBXD_TOOLS_CLI_REMOVE_H
#define SBXD_TOOLS_CLI_REMOVE_H

#include <jansson.h>

struct cli;

#define CLI_REMOVE_S 300 /* as long as the service takes at most */

struct cli_removal {
	const char *command; /* "image rm" */
	const char *path;    /* that a name is put behind, with its slash */
	const char *noun;    /* what a name is, in "the ... is too long" */
	const char *what;    /* that is removed: "image" */
};

/* Shows an answer of the service: what was removed, and how much that freed. */
void cli_put_removed(const struct cli *cli, const json_t *answer);

/* Removes what the arguments name, all of them whatever becomes of one. The exit status. */
int cli_remove(struct cli *cli, const struct cli_removal *r, int argc, char **argv);

#endif
