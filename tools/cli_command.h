/*
 * cli_command: one command line as sbxctl run and exec take it, carried out in a box. sbxctl.
 */
#ifndef SBXD_TOOLS_CLI_COMMAND_H
#define SBXD_TOOLS_CLI_COMMAND_H

#include <stddef.h>
#include <stdint.h>

#include "tools/cli.h"

#define CLI_STDIN_MAX (32U * 1024U * 1024U)

/* A box, and which of those that have had its id. */
struct cli_box {
	const char *id;
	uint64_t generation; /* of the one that we have a lease of; 0: whichever has the id now */
};

struct cli_command_line {
	struct cli_list env; /* K=V */
	const char *dir;
	double timeout;
	bool read_stdin;
	bool tty;
	char **argv; /* NULL-terminated */
};

/* Their options, where `type` has the line as its member `line`. */
#define CLI_LINE_AT(type, member) offsetof(type, line) + offsetof(struct cli_command_line, member)
#define CLI_COMMAND_OPTIONS(type)                                                              \
	{"env", 'e', CLI_OPTION_LIST, CLI_LINE_AT(type, env), "K=V",                           \
	    "a variable of the command; may be given again", CLI_WORD_OTHER},                  \
	    {"workdir", 'w', CLI_OPTION_TEXT, CLI_LINE_AT(type, dir), "DIR",                   \
		"the directory in which it begins", CLI_WORD_OTHER},                           \
	    {"timeout", 0, CLI_OPTION_SECONDS, CLI_LINE_AT(type, timeout), "S",                \
		"seconds after which it is killed, with all that it started", CLI_WORD_OTHER}, \
	    {"stdin", 'i', CLI_OPTION_FLAG, CLI_LINE_AT(type, read_stdin), NULL,               \
		"give it our standard input as it comes; with --tty our terminal",             \
		CLI_WORD_OTHER},                                                               \
	{                                                                                      \
		"tty", 0, CLI_OPTION_FLAG, CLI_LINE_AT(type, tty), NULL, "give it a terminal", \
		    CLI_WORD_OTHER                                                             \
	}

/* Checks what was given. CLI_OK, or CLI_USAGE after it has said what is wrong. */
int cli_command_check(const struct cli *cli, const struct cli_command_line *line);

/* Whether it is run by cli_attach_run(): our stdin goes to it as it comes. */
bool cli_command_attaches(const struct cli *cli, const struct cli_command_line *line);

/* Writes the variables as members of an object that is open. */
struct json_out;
void cli_command_put_env(struct json_out *j, const struct cli_list *env);

/*
 * Writes the request's body, reading our stdin to its end if asked, or nothing if it attaches.
 * CLI_OK, CLI_FAILED after it has said why, or 128+N when a signal came.
 */
int cli_command_body(const struct cli *cli, const struct cli_command_line *line, struct buf *out);

/*
 * Runs it in the box: its output goes to our stdout and stderr as it comes, or with --json the
 * whole answer to stdout at its end. Returns our exit status.
 */
int cli_command_run(const struct cli *cli, const struct cli_command_line *line,
    const struct cli_box *box, const struct buf *body);

#endif
