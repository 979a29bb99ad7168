/*
 * cli_place: files in boxes: how they are named on a command line, asked for and told. sbxctl.
 */
#ifndef SBXD_TOOLS_CLI_PLACE_H
#define SBXD_TOOLS_CLI_PLACE_H

#include "tools/cli.h"
#include "tools/cli_grid.h"

#define CLI_PLACE_DEFAULT "/mnt/user-data/workspace"
#define CLI_BOX_MAX 256

struct cli_place {
	char box[CLI_BOX_MAX];
	const char *path; /* absolute; NULL: none was given */
};

/*
 * Reads BOX:/PATH. A name of a box has no slash, so ":/" behind one is where the path begins; a
 * file of the host that has that in its name is written ./NAME. False: it is none.
 */
bool cli_place_read(const char *word, struct cli_place *out);

/*
 * Takes BOX or BOX:/PATH out of a command's arguments; *at moves past it. CLI_OK, or CLI_USAGE
 * after it has said what is wrong.
 */
int cli_place_take(const struct cli *cli, int argc, char **argv, int *at, struct cli_place *out);

/* Whether a path can be one in a box. CLI_OK or CLI_USAGE. */
int cli_place_check(const struct cli *cli, const char *path);

/* "/v1/boxes/BOX/WHAT?path=PATH". 0 or -errno. */
int cli_place_put(struct buf *out, const char *box, const char *what, const char *path);

/* "&KEY=TEXT", escaped. 0 or -errno. */
int cli_query_put(struct buf *out, const char *key, const char *text);

/*
 * Asks for a query that is put together, its result in rc; the path is freed. As cli_call(), whose
 * `what` is the place.
 */
int cli_place_call(const struct cli *cli, const char *method, struct buf *path, int rc,
    const struct cli_place *place, json_t **out);

/* A name out of an answer as exact bytes: of KEY, or of KEY_base64. The caller's, NUL-terminated;
 * NULL when there is none. */
char *cli_name_at(const json_t *o, const char *key);

/* Writes a name: as it is where there is no terminal, else without control characters. */
void cli_put_name(FILE *f, const struct cli_screen *s, enum cli_style style, const char *name);

/* Says what an answer does not have: that it was cut, and what could not be read. CLI_OK, or
 * CLI_FAILED when something could not. */
int cli_put_problems(const char *what, const json_t *answer);

#endif
