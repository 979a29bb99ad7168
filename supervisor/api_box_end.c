/* api_box_end: boxes that are given back, and boxes that are removed. Runs in sbxd; holds no state.
 */
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "lib/digest.h"
#include "lib/fault.h"
#include "supervisor/access.h"
#include "supervisor/api_box.h"
#include "supervisor/client.h"
#include "supervisor/routes.h"
#include "supervisor/sbxd.h"

void api_format_lease(uint64_t id, char out[API_LEASE_LEN])
{
	uint64_t big = htobe64(id); /* as a person reads it: the highest digits first */

	digest_hex((const uint8_t *)&big, sizeof(big), out);
}

int api_parse_lease(const char *text, uint64_t *id)
{
	uint64_t v = 0;

	if (strlen(text) != API_LEASE_LEN - 1 ||
	    strspn(text, "0123456789abcdef") != API_LEASE_LEN - 1)
		return -EINVAL;
	for (const char *p = text; *p; p++)
		v = v << 4 | (uint64_t)(*p <= '9' ? *p - '0' : *p - 'a' + 10);
	*id = v;
	return v ? 0 : -EINVAL; /* 0 stands for all leases, which nobody may name */
}

void api_delete_box(struct sbxd *s, struct client *c, const struct route_call *call)
{
	const struct pool_box *b;
	struct err err = {0};
	bool force = false;
	int rc;

	if (http_query_flag(call->head->query, "force", &force, &err) < 0) {
		client_reply_error(c, API_INVALID_ARGUMENT, err.text);
		return;
	}
	b = api_find_box(s, c, call->match->id);
	if (!b)
		return;
	rc = pool_remove(s->pool, loop_now(s->loop), b->uid, b->token, force, client_req(c));
	if (rc == 0)
		client_wait(c);
	else if (rc == -EBUSY)
		client_reply_error(
		    c, API_INVALID_STATE, "the box is in use; force=true removes it all the same");
	else if (rc == -EALREADY)
		client_reply_error(c, API_INVALID_STATE, "the box is being removed already");
	else
		client_reply_error(c, API_NOT_FOUND, "box not found");
}

static const char *const release_status[] = {
    [POOL_RELEASE_RUNNING] = "running",
    [POOL_RELEASE_WARM] = "warm",
    [POOL_RELEASE_CLOSED] = "closed",
};

static void reply_released(struct client *c, enum pool_release_result result)
{
	struct json_out j;
	struct buf out;

	buf_init(&out, 256);
	json_out_init(&j, &out);
	json_object_begin(&j, NULL);
	json_put_string(&j, "status", release_status[result]);
	json_object_end(&j);
	client_reply_out(c, 200, &j);
	buf_free(&out);
}

/* A box that is gone has no name any more, only its id. */
static void release(struct sbxd *s, struct client *c, const char *id, uint64_t lease)
{
	const struct pool_box *b = access_find_box(s, c, id);
	enum pool_release_result result = POOL_RELEASE_NOT_FOUND;
	struct box_name name;

	if (b)
		result = pool_release(s->pool, loop_now(s->loop), b->uid, b->token, lease);
	else if (access_box_name(c, id, &name) == 0)
		result = pool_release(s->pool, loop_now(s->loop), name.uid, name.text, lease);
	if (result == POOL_RELEASE_NOT_FOUND) {
		api_no_box(c, id);
		return;
	}

	publish_count(s, COUNTER_RELEASES);
	publish_changed(s); /* what the client is told must be true for our successor too */
	FAULT_POINT("sbxd.release.published");
	reply_released(c, result);
}

void api_release(struct sbxd *s, struct client *c, const struct route_call *call)
{
	struct err err = {0};
	json_t *body = json_parse_object(call->body, call->body_len, &err);
	const char *lease_text = NULL;
	const struct json_field fields[] = {
	    {.name = "lease_id", .type = JSON_FIELD_STRING, .out = &lease_text},
	};
	uint64_t lease = 0;

	if (!body)
		client_reply_error(c, API_MALFORMED, err.text);
	else if (json_take(body, fields, 1, &err) < 0)
		client_reply_error(c, API_INVALID_ARGUMENT, err.text);
	else if (lease_text && api_parse_lease(lease_text, &lease) < 0)
		client_reply_error(
		    c, API_INVALID_ARGUMENT, "lease_id: 16 lowercase hex digits are expected");
	else
		release(s, c, call->match->id, lease);
	json_decref(body);
}
