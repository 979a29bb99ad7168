/* mcp_call: calls of tools from their request to their answer. sbx-mcp; when it dies, the service
 * sees their connections close and ends their commands. */
#include "tools/mcp_call.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_MAX (32U * 1024U * 1024U)
#define TRACEPARENT_LEN 55

/* ---- the list ---- */

struct mcp_call *mcp_call_find(struct mcp *m, const json_t *id)
{
	struct mcp_call *call = m->calls;

	while (call && !json_equal(call->id, id))
		call = call->next;
	return call;
}

static void free_call(struct mcp_call *call)
{
	if (call->tool && call->tool->handler->drop && call->state)
		call->tool->handler->drop(call);
	mcp_http_close(call->http);
	loop_timer_clear(call->m->loop, &call->tick);
	json_decref(call->id);
	json_decref(call->args);
	json_decref(call->token);
	free(call->traceparent);
	free(call->key);
	free(call->state);
	buf_free(&call->answer);
	buf_free(&call->text);
	buf_free(&call->note);
	buf_free(&call->data);
	free(call);
}

static void unlink_call(struct mcp_call *call)
{
	struct mcp_call **at = &call->m->calls;

	while (*at != call)
		at = &(*at)->next;
	*at = call->next;
	call->m->call_count--;
}

/* Nobody of its key is before it. */
static bool has_turn(const struct mcp_call *call)
{
	const struct mcp_call *other = call->m->calls;

	if (!call->tool->handler->in_turn)
		return true;
	for (; other != call; other = other->next) {
		if (other->tool && other->tool->handler->in_turn &&
		    strcmp(other->key, call->key) == 0)
			return false;
	}
	return true;
}

static void take_turn(struct mcp_call *call)
{
	struct mcp *m = call->m;

	call->stage = MCP_CALL_BOX;
	mcp_call_doing(call, "waiting for the sandbox");
	mcp_box_want(m); /* may end it */
}

/* Takes the call out, and lets go on who waited for it. */
static void remove_call(struct mcp_call *call)
{
	struct mcp *m = call->m;
	struct mcp_call *next;

	unlink_call(call);
	free_call(call);
	/* One that takes its turn may end at once and free others: the list is looked at anew. */
	while ((next = m->calls) != NULL) {
		while (next && !(next->stage == MCP_CALL_TURN && has_turn(next)))
			next = next->next;
		if (!next)
			return;
		take_turn(next);
	}
}

void mcp_call_cancel(struct mcp_call *call)
{
	remove_call(call);
}

void mcp_calls_drop(struct mcp *m, bool tell)
{
	while (m->calls) {
		struct mcp_call *call = m->calls;

		if (tell && call->stage == MCP_CALL_OPEN)
			mcp_say_empty(m, call->id, true);
		unlink_call(call);
		free_call(call);
	}
}

void mcp_call_fail(struct mcp_call *call, const struct err *err)
{
	mcp_result_fail(call, err);
	remove_call(call);
}

void mcp_call_complete(struct mcp_call *call)
{
	mcp_result_say(call);
	remove_call(call);
}

/* ---- from the request to the box ---- */

static char *copy_traceparent(const json_t *meta)
{
	const char *text = json_string_value(json_object_get(meta, "traceparent"));

	if (!text || strlen(text) != TRACEPARENT_LEN ||
	    strspn(text, "0123456789abcdef-") != TRACEPARENT_LEN)
		return NULL;
	return strdup(text);
}

static struct mcp_call *create_call(
    struct mcp *m, const struct mcp_request *r, const struct mcp_tool *tool, json_t *args)
{
	struct mcp_call *call = calloc(1, sizeof(*call));
	const json_t *token = json_object_get(r->meta, "progressToken");

	if (!call)
		return NULL;
	call->m = m;
	call->tool = tool;
	call->modern = r->modern;
	call->began = loop_now(m->loop);
	buf_init(&call->answer, MCP_ANSWER_MAX);
	buf_init(&call->text, TEXT_MAX);
	buf_init(&call->note, TEXT_MAX);
	buf_init(&call->data, TEXT_MAX);
	call->id = json_deep_copy(r->id);
	call->args = args ? json_incref(args) : json_object();
	call->state = tool ? calloc(1, tool->handler->state_size) : NULL;
	if (json_is_string(token) || json_is_integer(token))
		call->token = json_deep_copy(token);
	call->traceparent = copy_traceparent(r->meta);
	if (!call->id || !call->args || (tool && !call->state)) {
		free_call(call);
		return NULL;
	}
	return call;
}

static void append_call(struct mcp_call *call)
{
	struct mcp_call **at = &call->m->calls;

	while (*at)
		at = &(*at)->next;
	*at = call;
	call->m->call_count++;
}

bool mcp_call_begin(
    struct mcp *m, const struct mcp_request *r, const struct mcp_tool *tool, json_t *args)
{
	struct mcp_call *call;
	struct err err;

	if (m->call_count >= MCP_CALLS_MAX) {
		mcp_say_error(m, r->id, MCP_INTERNAL_ERROR,
		    "%d requests are under way; wait for one of them to end", MCP_CALLS_MAX);
		return false;
	}
	call = create_call(m, r, tool, args);
	if (!call) {
		mcp_say_error(m, r->id, MCP_INTERNAL_ERROR, "out of memory");
		return false;
	}
	append_call(call);
	if (!tool) {
		call->stage = MCP_CALL_OPEN;
		return true;
	}
	mcp_progress_begin(call);
	if (tool->handler->begin(call, &err) < 0)
		mcp_call_fail(call, &err);
	else if (has_turn(call))
		take_turn(call);
	else
		call->stage = MCP_CALL_TURN;
	return true;
}

static struct mcp_call *find_stage(struct mcp *m, enum mcp_call_stage stage)
{
	struct mcp_call *call = m->calls;

	while (call && call->stage != stage)
		call = call->next;
	return call;
}

void mcp_calls_go_on(struct mcp *m)
{
	struct mcp_call *call;
	struct err err;

	while (m->box.state == MCP_BOX_HELD && (call = find_stage(m, MCP_CALL_BOX)) != NULL) {
		call->stage = MCP_CALL_RUNS;
		mcp_call_doing(call, "%s", call->tool->title);
		if (call->tool->handler->ask(call, &err) < 0)
			mcp_call_fail(call, &err);
	}
}

void mcp_calls_fail(struct mcp *m, const struct err *err)
{
	struct mcp_call *call;

	/* Those that come by themselves while these end, wait for another try. */
	for (size_t n = m->call_count; n > 0 && (call = find_stage(m, MCP_CALL_BOX)); n--)
		mcp_call_fail(call, err);
}
