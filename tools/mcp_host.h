/*
 * mcp_host: files of the host, below directories that are allowed and nowhere else. sbx-mcp.
 */
#ifndef SBXD_TOOLS_MCP_HOST_H
#define SBXD_TOOLS_MCP_HOST_H

#include "tools/mcp.h"

/* Opens a regular file to be read. A descriptor, the caller's, and its length; or -errno with *err.
 */
int mcp_host_open(const struct mcp *m, const char *path, uint64_t *len, struct err *err);

/* A file that is being made: it has no name until it is complete. */
struct mcp_host_file {
	int fd;		  /* -1: none */
	int dir_fd;	  /* where it is to be */
	const char *name; /* there; in the path that was given */
};

/* An overwrite is refused here, unless it is wanted. 0 or -errno with *err. */
int mcp_host_create(const struct mcp *m, const char *path, bool overwrite,
    struct mcp_host_file *out, struct err *err);

/* Gives it its name. 0 or -errno with *err. */
int mcp_host_finish(struct mcp_host_file *f, bool overwrite, struct err *err);

/* Harmless on one that was never made; what is not finished is gone. */
void mcp_host_drop(struct mcp_host_file *f);

#endif
