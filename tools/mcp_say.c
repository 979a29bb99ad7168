/* mcp_say: messages to the client, one JSON object a line. sbx-mcp; what is not yet written is lost
 * with it. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/log.h"
#include "tools/mcp.h"

#define MESSAGE_MAX (64U * 1024U * 1024U)

void mcp_put_value(struct json_out *j, const char *key, const json_t *value)
{
	char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);

	if (text)
		json_put_written(j, key, text, strlen(text));
	else if (!j->error)
		j->error = -ENOMEM;
	free(text);
}

void mcp_put_self(struct json_out *j, const char *key)
{
	json_object_begin(j, key);
	json_put_string(j, "name", "sbx-mcp");
	json_put_string(j, "title", "sbxd sandbox");
	json_put_string(j, "version", SBX_VERSION);
	json_object_end(j);
}

void mcp_message_begin(struct mcp *m, struct mcp_message *g, const json_t *id)
{
	g->m = m;
	buf_init(&g->b, MESSAGE_MAX);
	json_out_init(&g->j, &g->b);
	json_object_begin(&g->j, NULL);
	json_put_string(&g->j, "jsonrpc", "2.0");
	if (id)
		mcp_put_value(&g->j, "id", id);
}

void mcp_message_end(struct mcp_message *g)
{
	struct mcp *m = g->m;
	int rc;

	json_object_end(&g->j);
	rc = json_out_error(&g->j);
	if (rc == 0)
		rc = buf_puts(&g->b, "\n");
	if (rc == 0)
		rc = buf_append(&m->out, buf_head(&g->b), g->b.len);
	buf_free(&g->b);
	if (rc < 0) {
		log_error("a message could not be kept: %s", strerror(-rc));
		m->broken = true;
	}
	if (m->said)
		m->said(m);
}

void mcp_result_begin(struct mcp *m, struct mcp_message *g, const json_t *id, bool modern)
{
	mcp_message_begin(m, g, id);
	json_object_begin(&g->j, "result");
	if (!modern)
		return;
	json_put_string(&g->j, "resultType", "complete");
	json_object_begin(&g->j, "_meta");
	mcp_put_self(&g->j, "io.modelcontextprotocol/serverInfo");
	json_object_end(&g->j);
}

void mcp_result_end(struct mcp_message *g)
{
	json_object_end(&g->j);
	mcp_message_end(g);
}

void mcp_say_empty(struct mcp *m, const json_t *id, bool modern)
{
	struct mcp_message g;

	mcp_result_begin(m, &g, id, modern);
	mcp_result_end(&g);
}

static void error_begin(
    struct mcp *m, struct mcp_message *g, const json_t *id, enum mcp_error code, const char *text)
{
	mcp_message_begin(m, g, id);
	json_object_begin(&g->j, "error");
	json_put_int(&g->j, "code", code);
	json_put_string(&g->j, "message", text);
}

void mcp_say_error(struct mcp *m, const json_t *id, enum mcp_error code, const char *fmt, ...)
{
	struct mcp_message g;
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap); /* a cut text is still a text */
	va_end(ap);
	error_begin(m, &g, id, code, text);
	json_object_end(&g.j);
	mcp_message_end(&g);
}

void mcp_say_unsupported(struct mcp *m, const json_t *id, const char *asked)
{
	struct mcp_message g;

	error_begin(m, &g, id, MCP_UNSUPPORTED_VERSION, "Unsupported protocol version");
	json_object_begin(&g.j, "data");
	json_array_begin(&g.j, "supported");
	for (const struct mcp_version *v = mcp_versions; v->name; v++) {
		if (v->modern)
			json_put_string(&g.j, NULL, v->name);
	}
	json_array_end(&g.j);
	json_put_string(&g.j, "requested", asked);
	json_object_end(&g.j);
	json_object_end(&g.j);
	mcp_message_end(&g);
}
