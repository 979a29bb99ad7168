/*
 * cli_complete: what could stand where the cursor is on a command line of sbxctl. For shells.
 */
#ifndef SBXD_TOOLS_CLI_COMPLETE_H
#define SBXD_TOOLS_CLI_COMPLETE_H

#include "tools/cli.h"

/* What is asked for: which word it is, and what has been typed of it. */
struct cli_asked {
	const struct cli_command *command; /* NULL: the name of one */
	bool second;			   /* the second word of `command` */
	bool option;			   /* the name of an option of it, or of all */
	bool value;			   /* the value of one, a word of this kind: */
	enum cli_word word;		   /* or else an argument of this kind */
	const char *prefix;		   /* the whole word so far */
	const char *typed;		   /* of it, what follows "--NAME=" */
	const char *box;		   /* the first argument before it; NULL: none */
};

/*
 * Reads the words after "sbxctl", of which the last is the one to be completed ("" when nothing of
 * it has been typed). False: nothing can be offered there.
 */
bool cli_complete_read(struct cli *cli, int argc, char *const *argv, struct cli_asked *out);

/* ---- cli_complete_box.c: what only the service knows ---- */

/* Prints boxes whose name begins so, each with `suffix` behind it. */
void cli_complete_boxes(const struct cli *cli, const char *typed, const char *suffix);

/* Prints names of images, or keys of templates, that begin so. */
void cli_complete_images(const struct cli *cli, const char *typed);
void cli_complete_templates(const struct cli *cli, const char *typed);

/* Prints paths of a box that begin so. */
void cli_complete_paths(const struct cli *cli, const char *box, const char *typed);

/* Prints BOX:/PATH for a word that begins so. */
void cli_complete_places(const struct cli *cli, const char *typed);

/* One candidate, if it begins with what was typed: "PREFIXvalue<TAB>help". */
void cli_complete_put(
    const char *prefix, size_t prefix_len, const char *typed, const char *value, const char *help);

#endif
