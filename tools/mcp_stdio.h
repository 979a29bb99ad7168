/*
 * mcp_stdio: the client at the other end of stdin and stdout: its lines, and ours. sbx-mcp.
 */
#ifndef SBXD_TOOLS_MCP_STDIO_H
#define SBXD_TOOLS_MCP_STDIO_H

#include "tools/mcp.h"

#define MCP_LINE_MAX (32U * 1024U * 1024U)

/* Bytes that become lines. */
struct mcp_lines {
	struct buf b;
	size_t looked; /* at the beginning of b, without finding a newline */
	bool skipping; /* the rest of a line that was too long */
};

void mcp_lines_init(struct mcp_lines *l, size_t max);
void mcp_lines_free(struct mcp_lines *l);

/*
 * The next line that is complete, without its newline, valid until the next call. 1; 0: there is
 * none; -EMSGSIZE: one that was longer than max, once for each.
 */
int mcp_lines_next(struct mcp_lines *l, const uint8_t **line, size_t *n);

/*
 * Serves the client on fds in and out, which stay the caller's, until in ends, out is closed, or
 * stop_fd is readable; then gives the box back, within a bound. 0, or -errno with *err when it
 * cannot begin.
 */
int mcp_serve(struct mcp *m, int in, int out, int stop_fd, struct err *err);

#endif
