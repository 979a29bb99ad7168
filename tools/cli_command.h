/*
 * cli_command: one command line as sbxctl run and exec take it, carried out in a box. sbxctl.
 */
#ifndef SBXD_TOOLS_CLI_COMMAND_H
#define SBXD_TOOLS_CLI_COMMAND_H

#include "tools/cli.h"

#define CLI_STDIN_MAX (32U * 1024U * 1024U)

struct cli_command_line {
	struct cli_list env; /* K=V */
	const char *dir;
	double timeout;
	bool read_stdin;
	bool tty;
	char **argv; /* NULL-terminated */
};

/* Their options, for cli_parse(). */
#define CLI_COMMAND_OPTIONS(line)                                 \
	{"env", 'e', CLI_OPTION_LIST, &(line)->env},              \
	    {"workdir", 'w', CLI_OPTION_TEXT, &(line)->dir},      \
	    {"timeout", 0, CLI_OPTION_SECONDS, &(line)->timeout}, \
	    {"stdin", 'i', CLI_OPTION_FLAG, &(line)->read_stdin}, \
	{                                                         \
		"tty", 0, CLI_OPTION_FLAG, &(line)->tty           \
	}

/* Checks what was given. CLI_OK, or CLI_USAGE after it has said what is wrong. */
int cli_command_check(const struct cli *cli, const struct cli_command_line *line);

/*
 * Writes the request's body, reading our stdin to its end if asked. CLI_OK, CLI_FAILED after it
 * has said why, or 128+N when a signal came.
 */
int cli_command_body(const struct cli *cli, const struct cli_command_line *line, struct buf *out);

/*
 * Runs it in the box: its output goes to our stdout and stderr as it comes, or with --json the
 * whole answer to stdout at its end. Returns our exit status.
 */
int cli_command_run(const struct cli *cli, const struct cli_command_line *line, const char *box,
    const struct buf *body);

#endif
