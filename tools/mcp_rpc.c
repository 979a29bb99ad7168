/* mcp_rpc: what a line of the client's is: a request, a notification, an answer, or a mistake.
 * sbx-mcp; no line ends it. */
#include <string.h>

#include "lib/log.h"
#include "tools/mcp.h"

#define DEPTH_MAX 64
#define META "io.modelcontextprotocol/"

static bool is_id(const json_t *v)
{
	return json_is_string(v) || json_is_integer(v);
}

/* A modern request says all about itself. False after it was refused. */
static bool read_meta(struct mcp *m, struct mcp_request *r, const json_t *version)
{
	const json_t *capabilities = json_object_get(r->meta, META "clientCapabilities");
	const struct mcp_version *v;

	if (!json_is_string(version)) {
		mcp_say_error(m, r->id, MCP_INVALID_PARAMS,
		    "Invalid params: _meta." META "protocolVersion must be a string");
		return false;
	}
	v = mcp_version_find(json_string_value(version));
	if (!v || !v->modern) {
		mcp_say_unsupported(m, r->id, json_string_value(version));
		return false;
	}
	if (!json_is_object(capabilities)) {
		mcp_say_error(m, r->id, MCP_INVALID_PARAMS,
		    "Invalid params: _meta." META "clientCapabilities must be an object");
		return false;
	}
	r->modern = true;
	r->capabilities = capabilities;
	return true;
}

/* Before the handshake only these can be asked for without _meta. */
static bool precedes_handshake(const char *method)
{
	return strcmp(method, "initialize") == 0 || strcmp(method, "ping") == 0;
}

static void take_request(struct mcp *m, struct mcp_request *r, json_t *params)
{
	const json_t *version;

	if (params && !json_is_object(params)) {
		mcp_say_error(m, r->id, MCP_INVALID_PARAMS, "Invalid params: not an object");
		return;
	}
	r->params = params;
	r->meta = json_object_get(params, "_meta");
	if (r->meta && !json_is_object(r->meta)) {
		mcp_say_error(
		    m, r->id, MCP_INVALID_PARAMS, "Invalid params: _meta must be an object");
		return;
	}
	version = json_object_get(r->meta, META "protocolVersion");
	if (version) {
		if (!read_meta(m, r, version))
			return;
	} else if (!m->initialized && !precedes_handshake(r->method)) {
		mcp_say_error(m, r->id, MCP_INVALID_PARAMS,
		    "Invalid params: there was no initialize, and _meta has no " META
		    "protocolVersion");
		return;
	}
	mcp_do_request(m, r);
}

static void take_object(struct mcp *m, json_t *o)
{
	const json_t *version = json_object_get(o, "jsonrpc");
	const json_t *method = json_object_get(o, "method");
	const json_t *id = json_object_get(o, "id");
	struct mcp_request r = {.id = id};

	if (id && !is_id(id)) {
		mcp_say_error(m, NULL, MCP_INVALID_REQUEST,
		    "Invalid request: \"id\" must be a string or an integer");
		return;
	}
	if (!json_is_string(version) || strcmp(json_string_value(version), "2.0") != 0) {
		mcp_say_error(
		    m, id, MCP_INVALID_REQUEST, "Invalid request: \"jsonrpc\" must be \"2.0\"");
		return;
	}
	if (!method && id && (json_object_get(o, "result") || json_object_get(o, "error"))) {
		mcp_scope_take(m, id, json_object_get(o, "result"));
		return;
	}
	if (!json_is_string(method) ||
	    strlen(json_string_value(method)) != json_string_length(method)) {
		mcp_say_error(
		    m, id, MCP_INVALID_REQUEST, "Invalid request: \"method\" must be a string");
		return;
	}
	r.method = json_string_value(method);
	if (id)
		take_request(m, &r, json_object_get(o, "params"));
	else
		mcp_do_notification(m, r.method, json_object_get(o, "params"));
}

static bool is_blank(const uint8_t *line, size_t n)
{
	while (n > 0 && (line[n - 1] == ' ' || line[n - 1] == '\t' || line[n - 1] == '\r'))
		n--;
	return n == 0;
}

void mcp_take_line(struct mcp *m, const uint8_t *line, size_t n)
{
	json_error_t wrong;
	struct err err;
	json_t *o;

	if (is_blank(line, n))
		return;
	if (json_check_depth(line, n, DEPTH_MAX, &err) < 0) {
		mcp_say_error(m, NULL, MCP_PARSE_ERROR, "Parse error: %s", err.text);
		return;
	}
	o = json_loadb((const char *)line, n,
	    JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL | JSON_DECODE_ANY, &wrong);
	if (!o)
		mcp_say_error(m, NULL, MCP_PARSE_ERROR, "Parse error: column %d: %s", wrong.column,
		    wrong.text);
	else if (!json_is_object(o))
		mcp_say_error(m, NULL, MCP_INVALID_REQUEST,
		    "Invalid request: a message is one object%s",
		    json_is_array(o) ? "; there are no batches" : "");
	else
		take_object(m, o);
	json_decref(o);
}

void mcp_refuse_line(struct mcp *m, size_t max)
{
	log_warn("a line of more than %zu bytes was passed over", max);
	mcp_say_error(
	    m, NULL, MCP_INVALID_REQUEST, "Invalid request: a message of more than %zu bytes", max);
}
