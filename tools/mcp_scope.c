/* mcp_scope: whose box it is to be: what the command line says, or the client's first root, or a
 * box that is nobody else's. sbx-mcp.
 *
 * Revisions with a handshake have the server ask for roots; the later ones answer a call with the
 * request to send it again, roots and all. Roots name a scope here and give access to nothing. */
#include <stdlib.h>
#include <string.h>

#include "lib/clock.h"
#include "lib/log.h"
#include "tools/mcp.h"

#define ROOTS_ID "sbx-mcp-roots"
#define ANSWER_S 10

static void know(struct mcp *m, const char *thread)
{
	m->scope.thread = thread ? strdup(thread) : NULL;
	m->scope.known = true;
	m->scope.asked = false;
	loop_timer_clear(m->loop, &m->scope.timer);
}

/* The URI of the first root of a ListRootsResult; NULL: there is none. */
static const char *first_root(const json_t *result)
{
	const json_t *root = json_array_get(json_object_get(result, "roots"), 0);
	const json_t *uri = json_object_get(root, "uri");
	const char *text = json_string_value(uri);

	return text && *text && strlen(text) == json_string_length(uri) ? text : NULL;
}

static void on_late(struct loop *l, struct loop_timer *t)
{
	struct mcp *m = LOOP_OWNER(t, struct mcp, scope.timer);

	(void)l;
	log_warn("the client did not tell its roots within %d s", ANSWER_S);
	know(m, NULL);
	mcp_box_want(m);
}

static void ask_roots(struct mcp *m)
{
	struct mcp_message g;

	m->scope.asked = true;
	if (loop_timer_set(
		m->loop, &m->scope.timer, loop_now(m->loop) + ANSWER_S * NS_PER_S, on_late) < 0) {
		know(m, NULL);
		return;
	}
	mcp_message_begin(m, &g, NULL);
	json_put_string(&g.j, "id", ROOTS_ID);
	json_put_string(&g.j, "method", "roots/list");
	mcp_message_end(&g);
}

bool mcp_scope_known(struct mcp *m)
{
	if (!m->scope.known && m->o->thread)
		know(m, m->o->thread);
	else if (!m->scope.known && m->initialized && m->has_roots && !m->scope.asked)
		ask_roots(m);
	else if (!m->scope.known && !m->scope.asked)
		know(m, NULL);
	return m->scope.known;
}

void mcp_scope_take(struct mcp *m, const json_t *id, const json_t *result)
{
	const char *name = json_string_value(id);

	if (!m->scope.asked || !name || strcmp(name, ROOTS_ID) != 0)
		return; /* too late, or nothing that was asked */
	know(m, first_root(result));
	if (m->calls)
		mcp_box_want(m);
}

static void say_roots_needed(struct mcp *m, const json_t *id)
{
	struct mcp_message g;

	mcp_message_begin(m, &g, id);
	json_object_begin(&g.j, "result");
	json_put_string(&g.j, "resultType", "input_required");
	json_object_begin(&g.j, "inputRequests");
	json_object_begin(&g.j, "roots");
	json_put_string(&g.j, "method", "roots/list");
	json_object_end(&g.j);
	json_object_end(&g.j);
	mcp_result_end(&g);
}

bool mcp_scope_ask(struct mcp *m, const struct mcp_request *r)
{
	const json_t *responses = json_object_get(r->params, "inputResponses");

	if (m->scope.known || m->scope.asked || m->o->thread ||
	    !json_is_object(json_object_get(r->capabilities, "roots")))
		return false;
	if (json_is_object(responses)) {
		know(m, first_root(json_object_get(responses, "roots")));
		return false;
	}
	say_roots_needed(m, r->id);
	return true;
}

void mcp_scope_drop(struct mcp *m)
{
	loop_timer_clear(m->loop, &m->scope.timer);
	free(m->scope.thread);
	m->scope.thread = NULL;
}
