/* mcp_progress: how far a call is, told to a client that gave a token for it. sbx-mcp.
 *
 * Progress counts seconds: they grow also when a command is silent, so that a client that waits as
 * long as it hears something goes on waiting. What the call is at is the message. */
#include <stdarg.h>
#include <string.h>

#include "lib/clock.h"
#include "tools/mcp_call.h"

#define AT_LEAST (1 * NS_PER_S) /* it is told so often */
#define AT_MOST (200 * NS_PER_MS)

static void on_tick(struct loop *l, struct loop_timer *t);

static void set_tick(struct mcp_call *call, uint64_t at)
{
	if (loop_timer_set(call->m->loop, &call->tick, at, on_tick) == 0)
		return;
	json_decref(call->token); /* without memory it is told no more */
	call->token = NULL;
}

static void on_tick(struct loop *l, struct loop_timer *t)
{
	struct mcp_call *call = LOOP_OWNER(t, struct mcp_call, tick);
	struct mcp_message g;

	call->told = loop_now(l);
	mcp_message_begin(call->m, &g, NULL);
	json_put_string(&g.j, "method", "notifications/progress");
	json_object_begin(&g.j, "params");
	mcp_put_value(&g.j, "progressToken", call->token);
	json_put_double(&g.j, "progress", (double)(call->told - call->began) / (double)NS_PER_S);
	json_put_string(&g.j, "message", call->doing);
	json_object_end(&g.j);
	mcp_message_end(&g);
	set_tick(call, call->told + AT_LEAST);
}

void mcp_progress_begin(struct mcp_call *call)
{
	call->told = call->began;
	if (call->token)
		set_tick(call, call->began + AT_LEAST);
}

/* There is something new: it is told soon, but not too often. */
static void hurry(struct mcp_call *call)
{
	uint64_t at = call->told + AT_MOST;

	if (call->token && call->tick.pos != 0 && call->tick.at > at)
		set_tick(call, at);
}

void mcp_call_doing(struct mcp_call *call, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(call->doing, sizeof(call->doing), fmt, ap); /* a cut text is still a text */
	va_end(ap);
	hurry(call);
}

void mcp_call_doing_bytes(struct mcp_call *call, const uint8_t *bytes, size_t n)
{
	size_t from;
	size_t len = 0;

	while (n > 0 && (bytes[n - 1] == '\n' || bytes[n - 1] == '\r'))
		n--;
	for (from = n; from > 0 && n - from < sizeof(call->doing) - 1 && bytes[from - 1] != '\n';)
		from--;
	for (size_t i = from; i < n; i++)
		call->doing[len++] = bytes[i] < ' ' ? ' ' : (char)bytes[i];
	if (len == 0)
		return;
	call->doing[len] = '\0';
	hurry(call);
}
