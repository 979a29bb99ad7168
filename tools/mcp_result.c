/* mcp_result: what is answered to a call of a tool. sbx-mcp; holds no state. */
#include <stdio.h>

#include "tools/mcp_call.h"

static void put_text(struct json_out *j, const struct buf *text)
{
	json_object_begin(j, NULL);
	json_put_string(j, "type", "text");
	json_put_bytes(j, "text", buf_head(text), text->len);
	json_object_end(j);
}

/* The model has to know that what it left in the box is gone. */
static void put_news(struct mcp *m, struct json_out *j)
{
	static const char news[] =
	    "Note: the sandbox was lost and this is a new one; files and processes of the former "
	    "are gone.";

	if (!m->box.is_new)
		return;
	m->box.is_new = false;
	json_object_begin(j, NULL);
	json_put_string(j, "type", "text");
	json_put_string(j, "text", news);
	json_object_end(j);
}

void mcp_result_say(struct mcp_call *call)
{
	struct mcp_message g;

	mcp_result_begin(call->m, &g, call->id, call->modern);
	json_array_begin(&g.j, "content");
	put_text(&g.j, &call->text);
	if (call->note.len > 0)
		put_text(&g.j, &call->note);
	put_news(call->m, &g.j);
	json_array_end(&g.j);
	if (call->data.len > 0)
		json_put_written(&g.j, "structuredContent", buf_head(&call->data), call->data.len);
	json_put_bool(&g.j, "isError", call->is_error);
	mcp_result_end(&g);
}

void mcp_result_fail(struct mcp_call *call, const struct err *err)
{
	struct mcp_message g;
	char text[sizeof(err->text) + 64];

	(void)snprintf(text, sizeof(text), "%s: %s", call->tool->name, err->text);
	mcp_result_begin(call->m, &g, call->id, call->modern);
	json_array_begin(&g.j, "content");
	json_object_begin(&g.j, NULL);
	json_put_string(&g.j, "type", "text");
	json_put_string(&g.j, "text", text);
	json_object_end(&g.j);
	json_array_end(&g.j);
	json_put_bool(&g.j, "isError", true);
	mcp_result_end(&g);
}
