/*
 * cli_attach: one command line as an execution to which we are attached: our standard input, output
 * and error are its own, and with a terminal ours is its far end. sbxctl run and exec with -i.
 */
#ifndef SBXD_TOOLS_CLI_ATTACH_H
#define SBXD_TOOLS_CLI_ATTACH_H

#include "tools/cli_command.h"
#include "tools/cli_terminal.h"

#define CLI_EXECUTION_ID 96

struct cli_execution {
	char path[512];	     /* "/v1/boxes/BOX/executions/ID" */
	uint64_t generation; /* of that box; 0: not known */
};

/* Runs it in the box to its end. Returns our exit status. */
int cli_attach_run(
    const struct cli *cli, const struct cli_command_line *line, const struct cli_box *box);

/* ---- cli_attach_start.c ---- */

/*
 * Starts the execution and attaches to it. CLI_OK: *sock and what has been read from it already are
 * the caller's; else it has said what is wrong and there is no execution.
 */
int cli_attach_start(const struct cli *cli, const struct cli_command_line *line,
    const struct cli_box *box, struct cli_execution *out, int *sock, struct buf *rest);

/* Attaches to it again. CLI_OK as above; CLI_FAILED after it has said why. */
int cli_attach_again(
    const struct cli *cli, const struct cli_execution *e, int *sock, struct buf *rest);

/* Kills it, with all that it has started; that there is none any more is fine. */
void cli_attach_kill(const struct cli *cli, const struct cli_execution *e);

/* ---- cli_attach_guard.c ---- */

/*
 * A process that waits for our death. When we die without saying so, it sets the terminal back and
 * kills the execution. -1: none.
 */
struct cli_guard {
	int pipe; /* owned */
	pid_t pid;
};

/* 0 or -errno. */
int cli_guard_start(struct cli_guard *g, const struct cli *cli, const struct cli_execution *e,
    const struct cli_terminal *t);

/* All is well: it ends, and does nothing. */
void cli_guard_end(struct cli_guard *g);

#endif
