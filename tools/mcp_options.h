/*
 * mcp_options: the command line of sbx-mcp, and its environment.
 */
#ifndef SBXD_TOOLS_MCP_OPTIONS_H
#define SBXD_TOOLS_MCP_OPTIONS_H

#include "tools/mcp.h"

enum mcp_options_result {
	MCP_OPTIONS_RUN,
	MCP_OPTIONS_HELP,
	MCP_OPTIONS_VERSION,
	MCP_OPTIONS_BAD, /* *err says what */
};

/* Fills *o; texts point into argv and env, the latter kept there. */
enum mcp_options_result mcp_options_read(
    struct mcp_options *o, int argc, char **argv, char *const *env, struct err *err);

const char *mcp_options_help(void);

#endif
