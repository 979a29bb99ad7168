/*
 * mcp_tools: the tools: one table. sbx-mcp.
 */
#ifndef SBXD_TOOLS_MCP_TOOLS_H
#define SBXD_TOOLS_MCP_TOOLS_H

#include "tools/mcp_call.h"

/* NULL when there is none of that name, or only with directories of the host. */
const struct mcp_tool *mcp_tool_find(const char *name, bool host);

/* The member "tools" with all that there are. */
void mcp_tools_put(struct json_out *j, bool host);

extern const struct mcp_handler mcp_run_command;
extern const struct mcp_handler mcp_read_file;
extern const struct mcp_handler mcp_write_file;
extern const struct mcp_handler mcp_edit_file;
extern const struct mcp_handler mcp_list_dir;
extern const struct mcp_handler mcp_glob;
extern const struct mcp_handler mcp_grep;
extern const struct mcp_handler mcp_upload;
extern const struct mcp_handler mcp_download;

#endif
