/* api_box_order: starting and stopping made boxes. Runs in sbxd; holds no state: a stop under way
 * is in the pool, and in the table. */
#include "supervisor/api_box_order.h"

#include "lib/clock.h"
#include "supervisor/api_box.h"
#include "supervisor/client.h"
#include "supervisor/routes.h"
#include "supervisor/sbxd.h"

#define STOP_SECONDS 30.0 /* BoxLite's default */
#define STOP_SECONDS_MAX 86400.0

/* A box that was acquired runs, or is about to, for as long as its scope has it. */
static void order_acquired(
    struct sbxd *s, struct client *c, const struct pool_box *b, enum pool_want want)
{
	if (want == POOL_WANT_STOP)
		client_reply_error(c, API_INVALID_STATE,
		    "the box was acquired, not made: it is released or removed, and not stopped");
	else if (b->state == SLOT_ACTIVE || b->state == SLOT_WARM || b->state == SLOT_CHECKING)
		api_reply_box(s, c, b);
	else
		client_reply_error(
		    c, API_INVALID_STATE, "the box is not there yet, or not any more");
}

static void order(struct sbxd *s, struct client *c, const struct route_call *call,
    enum pool_want want, double seconds)
{
	const struct pool_box *b = api_find_box(s, c, call->match->id);

	if (!b)
		return;
	if (pool_order(s->pool, loop_now(s->loop), b->uid, b->token, want,
		clock_seconds_to_ns(seconds), client_req(c)) == 0)
		client_wait(c);
	else
		order_acquired(s, c, b, want);
}

void api_start_box(struct sbxd *s, struct client *c, const struct route_call *call)
{
	order(s, c, call, POOL_WANT_START, 0);
}

void api_stop_box(struct sbxd *s, struct client *c, const struct route_call *call)
{
	double seconds = STOP_SECONDS;
	const struct json_field field = {.name = "timeout_seconds",
	    .type = JSON_FIELD_NUMBER,
	    .out = &seconds,
	    .min = 0,
	    .max = STOP_SECONDS_MAX};
	struct err err = {0};
	json_t *body = json_parse_object(call->body, call->body_len, &err);

	if (!body)
		client_reply_error(c, API_MALFORMED, err.text);
	else if (json_take(body, &field, 1, &err) < 0)
		client_reply_error(c, API_INVALID_ARGUMENT, err.text);
	else
		order(s, c, call, POOL_WANT_STOP, seconds);
	json_decref(body);
}

void api_obeyed(struct sbxd *s, const struct pool_action *a)
{
	struct client *c = client_by_req(s->clients, a->req);
	const struct pool_box *b = pool_box_at(s->pool, a->slot);

	if (!c)
		return;
	if (b && b->generation == a->generation)
		api_reply_box(s, c, b);
	else /* closed since */
		client_reply_error(c, API_BOX_DIED, "the box is no more");
}
