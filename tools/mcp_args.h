/*
 * mcp_args: from the arguments of a tool to the path of a request. sbx-mcp.
 */
#ifndef SBXD_TOOLS_MCP_ARGS_H
#define SBXD_TOOLS_MCP_ARGS_H

#include "tools/mcp_call.h"

/*
 * Makes `given` (NULL: the workspace) an absolute path in the box, in call->key. What is wrong with
 * it otherwise is for the service to say. 0 or -errno with *err.
 */
int mcp_arg_path(struct mcp_call *call, const char *given, struct err *err);

/* A member that has to be there: 0, or -EINVAL with *err. */
int mcp_arg_needed(const void *value, const char *name, struct err *err);

/* A string that may have any character. *out and *n are the arguments'. 0 or -EINVAL with *err. */
int mcp_arg_text(
    struct mcp_call *call, const char *name, const char **out, size_t *n, struct err *err);

/* What follows the box in the path of a request. After the first failure everything is ignored. */
struct mcp_rest {
	struct buf b;
	int error;
};

/* endpoint, "?path=" and call->key. */
void mcp_rest_init(struct mcp_rest *r, const char *endpoint, const struct mcp_call *call);
void mcp_rest_text(struct mcp_rest *r, const char *key, const char *value); /* NULL: left out */
void mcp_rest_int(struct mcp_rest *r, const char *key, int64_t value);	    /* 0: left out */
void mcp_rest_flag(struct mcp_rest *r, const char *key, bool value);	    /* false: left out */

/* GETs, PUTs or whatever it says, and frees the rest. ask->rest is set here. */
int mcp_rest_ask(struct mcp_rest *r, struct mcp_call *call, struct mcp_ask *ask, struct err *err);

/* The result of a tool could not be written down. Returns -code. */
int mcp_no_room(int rc, struct err *err);

#endif
