/*
 * cli_pack_links: which files of an archive have come before under another name. sbxctl.
 */
#ifndef SBXD_TOOLS_CLI_PACK_LINKS_H
#define SBXD_TOOLS_CLI_PACK_LINKS_H

#include <sys/stat.h>

/* Zero is the beginning. */
struct cli_pack_links {
	void *tree; /* of tsearch(3), owned */
};

void cli_pack_links_free(struct cli_pack_links *l);

/*
 * The name, valid as long as *l, under which this file has come before; "" when it has not: then it
 * has now, under `name`. NULL without memory.
 */
const char *cli_pack_links_find(struct cli_pack_links *l, const struct stat *st, const char *name);

#endif
