/* mcp_methods: the methods of the protocol, one table of requests and one of notifications.
 * sbx-mcp. */
#include <string.h>

#include "lib/log.h"
#include "tools/mcp.h"
#include "tools/mcp_call.h"
#include "tools/mcp_tools.h"

#define LIST_TTL_MS (24 * 3600 * 1000) /* the tools are those of this program */

static const char instructions[] =
    "A Linux sandbox of its own: commands, files and background processes stay from call to call. "
    "Relative paths start at " MCP_WORKSPACE ", where commands run. Calls may overlap.";

static void put_capabilities(struct json_out *j)
{
	json_object_begin(j, "capabilities");
	json_object_begin(j, "tools");
	json_object_end(j);
	json_object_end(j);
}

/* Cacheable, as far as revisions know that. */
static void put_cache(struct json_out *j, bool modern)
{
	if (!modern)
		return;
	json_put_int(j, "ttlMs", LIST_TTL_MS);
	json_put_string(j, "cacheScope", "private");
}

static void do_initialize(struct mcp *m, const struct mcp_request *r)
{
	const json_t *asked = json_object_get(r->params, "protocolVersion");
	const json_t *capabilities = json_object_get(r->params, "capabilities");
	const struct mcp_version *v;
	struct mcp_message g;

	if (!json_is_string(asked) || !json_is_object(capabilities)) {
		mcp_say_error(m, r->id, MCP_INVALID_PARAMS,
		    "Invalid params: protocolVersion must be a string and capabilities an object");
		return;
	}
	v = mcp_version_find(json_string_value(asked));
	m->initialized = true;
	m->has_roots = json_is_object(json_object_get(capabilities, "roots"));
	mcp_result_begin(m, &g, r->id, false);
	json_put_string(
	    &g.j, "protocolVersion", v && !v->modern ? v->name : mcp_version_handshake());
	put_capabilities(&g.j);
	mcp_put_self(&g.j, "serverInfo");
	json_put_string(&g.j, "instructions", instructions);
	mcp_result_end(&g);
}

static void do_discover(struct mcp *m, const struct mcp_request *r)
{
	struct mcp_message g;

	mcp_result_begin(m, &g, r->id, true);
	json_array_begin(&g.j, "supportedVersions");
	for (const struct mcp_version *v = mcp_versions; v->name; v++) {
		if (v->modern)
			json_put_string(&g.j, NULL, v->name);
	}
	json_array_end(&g.j);
	put_capabilities(&g.j);
	json_put_string(&g.j, "instructions", instructions);
	put_cache(&g.j, true);
	mcp_result_end(&g);
}

static void do_ping(struct mcp *m, const struct mcp_request *r)
{
	mcp_say_empty(m, r->id, false);
}

static void do_list(struct mcp *m, const struct mcp_request *r)
{
	const json_t *cursor = json_object_get(r->params, "cursor");
	struct mcp_message g;

	if (cursor && !json_is_null(cursor)) {
		mcp_say_error(m, r->id, MCP_INVALID_PARAMS,
		    "Invalid params: no such cursor; all tools are on the first page");
		return;
	}
	mcp_result_begin(m, &g, r->id, r->modern);
	mcp_tools_put(&g.j, m->o->host_dir_count > 0);
	put_cache(&g.j, r->modern);
	mcp_result_end(&g);
}

static void do_call(struct mcp *m, const struct mcp_request *r)
{
	const json_t *name = json_object_get(r->params, "name");
	json_t *args = json_object_get(r->params, "arguments");
	const struct mcp_tool *tool;

	if (!json_is_string(name) || (args && !json_is_object(args))) {
		mcp_say_error(m, r->id, MCP_INVALID_PARAMS,
		    "Invalid params: name must be a string and arguments an object");
		return;
	}
	tool = mcp_tool_find(json_string_value(name), m->o->host_dir_count > 0);
	if (!tool)
		mcp_say_error(
		    m, r->id, MCP_INVALID_PARAMS, "Unknown tool: %.100s", json_string_value(name));
	else if (!r->modern || !mcp_scope_ask(m, r))
		mcp_call_begin(m, r, tool, args);
}

/* The list of tools does not change: nothing will ever be told, but the stream is there. */
static void do_listen(struct mcp *m, const struct mcp_request *r)
{
	const json_t *filter = json_object_get(r->params, "notifications");
	struct mcp_message g;

	if (!json_is_object(filter)) {
		mcp_say_error(m, r->id, MCP_INVALID_PARAMS,
		    "Invalid params: notifications must be an object");
		return;
	}
	if (!mcp_call_begin(m, r, NULL, NULL))
		return;
	mcp_message_begin(m, &g, NULL);
	json_put_string(&g.j, "method", "notifications/subscriptions/acknowledged");
	json_object_begin(&g.j, "params");
	json_object_begin(&g.j, "_meta");
	mcp_put_value(&g.j, "io.modelcontextprotocol/subscriptionId", r->id);
	json_object_end(&g.j);
	json_object_begin(&g.j, "notifications");
	json_object_end(&g.j);
	json_object_end(&g.j);
	mcp_message_end(&g);
}

/* In which revisions there is a method. */
enum era {
	HANDSHAKE = 1,
	MODERN = 2,
	BOTH = HANDSHAKE | MODERN,
};

static const struct {
	const char *name;
	enum era era;
	void (*run)(struct mcp *m, const struct mcp_request *r);
} methods[] = {
    {"initialize", HANDSHAKE, do_initialize},
    {"ping", HANDSHAKE, do_ping},
    {"server/discover", MODERN, do_discover},
    {"subscriptions/listen", MODERN, do_listen},
    {"tools/call", BOTH, do_call},
    {"tools/list", BOTH, do_list},
};

void mcp_do_request(struct mcp *m, const struct mcp_request *r)
{
	const enum era era = r->modern ? MODERN : HANDSHAKE;

	if (mcp_call_find(m, r->id)) {
		mcp_say_error(m, NULL, MCP_INVALID_REQUEST,
		    "Invalid request: a request with this id is under way");
		return;
	}
	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
		if (strcmp(methods[i].name, r->method) == 0 && (methods[i].era & era)) {
			methods[i].run(m, r);
			return;
		}
	}
	mcp_say_error(m, r->id, MCP_METHOD_NOT_FOUND, "Method not found: %.100s", r->method);
}

static void on_initialized(struct mcp *m, const json_t *params)
{
	(void)params;
	if (m->initialized)
		(void)mcp_scope_known(m); /* asks for the roots, before they are needed */
}

static void on_cancelled(struct mcp *m, const json_t *params)
{
	struct mcp_call *call = mcp_call_find(m, json_object_get(params, "requestId"));

	if (call) /* else it has been answered, or never was: both are no mistake */
		mcp_call_cancel(call);
}

static const struct {
	const char *name;
	void (*run)(struct mcp *m, const json_t *params);
} notifications[] = {
    {"notifications/cancelled", on_cancelled},
    {"notifications/initialized", on_initialized},
};

void mcp_do_notification(struct mcp *m, const char *method, const json_t *params)
{
	for (size_t i = 0; i < sizeof(notifications) / sizeof(notifications[0]); i++) {
		if (strcmp(notifications[i].name, method) == 0)
			notifications[i].run(m, params);
	}
}
