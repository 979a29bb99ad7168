/* mcp_args: from the arguments of a tool to the path of a request. sbx-mcp; holds no state. */
#include "tools/mcp_args.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define REST_MAX 12288U

int mcp_arg_path(struct mcp_call *call, const char *given, struct err *err)
{
	while (given && strncmp(given, "./", 2) == 0)
		given += 2 + strspn(given + 2, "/");
	if (!given || *given == '\0' || strcmp(given, ".") == 0)
		call->key = strdup(MCP_WORKSPACE);
	else if (*given == '/')
		call->key = strdup(given);
	else if (asprintf(&call->key, "%s/%s", MCP_WORKSPACE, given) < 0)
		call->key = NULL;
	return call->key ? 0 : err_sys(err, ENOMEM, "path");
}

int mcp_arg_needed(const void *value, const char *name, struct err *err)
{
	return value ? 0 : err_set(err, EINVAL, "\"%s\" is missing", name);
}

int mcp_arg_text(
    struct mcp_call *call, const char *name, const char **out, size_t *n, struct err *err)
{
	const json_t *v = json_object_get(call->args, name);

	if (!v || json_is_null(v))
		return mcp_arg_needed(NULL, name, err);
	if (!json_is_string(v))
		return err_set(err, EINVAL, "\"%s\" must be a string", name);
	*out = json_string_value(v);
	*n = json_string_length(v);
	return 0;
}

void mcp_rest_init(struct mcp_rest *r, const char *endpoint, const struct mcp_call *call)
{
	*r = (struct mcp_rest){.error = 0};
	buf_init(&r->b, REST_MAX);
	r->error = buf_puts(&r->b, endpoint);
	mcp_rest_text(r, "?path=", call->key);
}

void mcp_rest_text(struct mcp_rest *r, const char *key, const char *value)
{
	if (!r->error && value)
		r->error = buf_puts(&r->b, key);
	if (!r->error && value)
		r->error = http_put_escaped(&r->b, value, true);
}

void mcp_rest_int(struct mcp_rest *r, const char *key, int64_t value)
{
	if (!r->error && value)
		r->error = buf_printf(&r->b, "%s%lld", key, (long long)value);
}

void mcp_rest_flag(struct mcp_rest *r, const char *key, bool value)
{
	mcp_rest_int(r, key, value);
}

int mcp_rest_ask(struct mcp_rest *r, struct mcp_call *call, struct mcp_ask *ask, struct err *err)
{
	int rc;

	ask->rest = &r->b;
	if (r->error)
		rc = err_sys(err, -r->error, "the path or pattern");
	else
		rc = mcp_call_ask(call, ask, err);
	buf_free(&r->b);
	return rc;
}

int mcp_no_room(int rc, struct err *err)
{
	return err_sys(err, -rc, "the result");
}
