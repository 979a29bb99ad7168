/*
 * cli_session: what an attached client and the service say to each other. sbxctl, for cli_attach.c.
 */
#ifndef SBXD_TOOLS_CLI_SESSION_H
#define SBXD_TOOLS_CLI_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/buf.h"
#include "tools/cli_attach.h"

#define CLI_SESSION_BUFFER (512U * 1024U)
#define CLI_SESSION_HIGH (128U * 1024U) /* above that nothing is read into a buffer */
#define CLI_SESSION_OPEN 0

struct cli_session {
	const struct cli *cli;
	const char *box;
	bool tty;
	struct cli_execution execution;
	struct cli_terminal terminal;
	int sock;
	int window_fd;
	struct buf from; /* the service */
	struct buf to;
	struct buf out[2]; /* for our stdout and stderr */
	bool stdin_open;
	bool closed_out; /* nobody reads our stdout or stderr any more */
	bool lost;	 /* the connection ended without a Close */
	int close_code;	 /* CLI_SESSION_OPEN until one came */
	int status;	 /* -1 until the exit message came */
	uint64_t alive_ns;
	char error[200]; /* the last that the service said; "" none */
};

/* All of these: 0 or -errno; -EBADMSG with *err where there is one. */

/* Tells the service how large our terminal is, if it is to have one. */
int cli_session_tell_size(struct cli_session *a);

/* Takes some of our stdin, which is ready; tells its end. */
int cli_session_take_stdin(struct cli_session *a);

/* Reads some from the socket, which is ready. */
int cli_session_receive(struct cli_session *a, struct err *err);

/* Takes frames as long as there is room for what they say. */
int cli_session_take_frames(struct cli_session *a, struct err *err);

/* Sends what the socket takes. */
void cli_session_send(struct cli_session *a);

#endif
