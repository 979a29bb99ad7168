/* api_box: boxes over HTTP: list, inspect, remove, release. Runs in sbxd; holds no state. */
#include "supervisor/api_box.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/clock.h"
#include "lib/digest.h"
#include "lib/fault.h"
#include "shm/slot.h"
#include "supervisor/access.h"
#include "supervisor/client.h"
#include "supervisor/routes.h"
#include "supervisor/sbxd.h"

#define BOX_JSON_MAX 16384U
#define LIST_JSON_MAX (48U * 1024U * 1024U)

/* BoxLite's status for each of our states. */
static const char *const box_status[SLOT_STATES] = {
    [SLOT_FREE] = "stopped",
    [SLOT_RESERVED] = "configured",
    [SLOT_BOOTING] = "configured",
    [SLOT_STOCK] = "running",
    [SLOT_ACTIVE] = "running",
    [SLOT_CHECKING] = "running",
    [SLOT_WARM] = "running",
    [SLOT_CLOSING] = "stopping",
    [SLOT_QUARANTINED] = "failed",
};

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

static void put_time(struct json_out *j, const char *key, uint64_t wall_ms)
{
	char text[CLOCK_RFC3339_LEN];

	clock_format_rfc3339(wall_ms, text);
	json_put_string(j, key, text);
}

void api_put_box(
    struct json_out *j, const struct sbxd *s, const struct client *c, const struct pool_box *b)
{
	const struct slot_sup *part = &s->parts[b->slot];
	uint64_t now = loop_now(s->loop);
	char id[64];

	access_box_id(c, b, id, sizeof(id));
	json_put_string(j, "box_id", id);
	json_put_null(j, "name");
	json_put_string(j, "status", box_status[b->state]);
	json_put_string(j, "state", slot_state_name(b->state));
	put_time(j, "created_at", part->created_wall_ms);
	put_time(j, "updated_at", part->updated_wall_ms);
	if (part->worker_pid)
		json_put_int(j, "pid", part->worker_pid);
	else
		json_put_null(j, "pid");
	json_put_string(j, "image", b->spec.image);
	json_put_uint(j, "cpus", b->spec.cpus_milli ? (b->spec.cpus_milli + 999) / 1000 : 1);
	json_put_uint(j, "memory_mib", b->spec.memory_mib);
	json_put_uint(j, "disk_mib", b->spec.disk_mib);
	json_put_string(j, "driver", s->driver);
	json_put_string(j, "isolation", s->isolation);
	json_put_uint(j, "owner_uid", b->uid);
	json_put_string(j, "user_id", b->flags & SLOT_FLAG_NO_USER ? NULL : b->user);
	json_put_string(j, "thread_id", b->flags & SLOT_FLAG_ANONYMOUS ? NULL : b->thread);
	json_put_uint(j, "leases", b->lease_count);
	json_put_uint(j, "waiters", b->waiters);
	json_put_uint(j, "generation", b->generation);
	json_put_double(j, "age_seconds", (double)(now - b->created) / (double)NS_PER_S);
	json_put_double(j, "state_seconds", (double)(now - b->state_since) / (double)NS_PER_S);
	json_put_string(j, "last_error", *b->last_error ? b->last_error : NULL);
}

static void put_usage(struct json_out *j, const struct sbxd *s, const struct pool_box *b)
{
	const struct shm_page *page = &s->seg.slots[b->slot].page;
	struct slot_work work;

	if (slot_read_work(page, &work) < 0 || work.generation != b->generation)
		return; /* the worker has not reported yet */
	json_put_uint(j, "in_flight", atomic_load_explicit(&page->in_flight, memory_order_relaxed));
	json_put_uint(j, "commands_total", work.exec_total);
	json_put_uint(j, "bytes_in", work.bytes_in);
	json_put_uint(j, "bytes_out", work.bytes_out);
	json_put_uint(j, "memory_bytes", work.memory_bytes);
	json_put_uint(j, "cpu_ns", work.cpu_ns);
	json_put_int(j, "box_pid", work.box_pid);
}

/* As access_find_box(), but answers the client when it is NULL. */
static const struct pool_box *find_box(struct sbxd *s, struct client *c, const char *id)
{
	const struct pool_box *b = access_find_box(s, c, id);
	char text[200];

	if (b)
		return b;
	(void)snprintf(text, sizeof(text), "box not found: %s", id);
	client_reply_error(c, API_NOT_FOUND, text);
	return NULL;
}

void api_list_boxes(struct sbxd *s, struct client *c, const struct route_call *call)
{
	struct json_out j;
	struct buf out;

	(void)call;
	buf_init(&out, LIST_JSON_MAX);
	json_out_init(&j, &out);
	json_object_begin(&j, NULL);
	json_array_begin(&j, "boxes");
	for (uint32_t i = 0; i < pool_rules(s->pool)->slots; i++) {
		const struct pool_box *b = pool_box_at(s->pool, i);

		if (b->state == SLOT_FREE || (b->uid != client_uid(c) && !client_is_admin(c)))
			continue;
		json_object_begin(&j, NULL);
		api_put_box(&j, s, c, b);
		json_object_end(&j);
	}
	json_array_end(&j);
	json_object_end(&j);
	client_reply_out(c, 200, &j);
	buf_free(&out);
}

void api_get_box(struct sbxd *s, struct client *c, const struct route_call *call)
{
	const struct pool_box *b = find_box(s, c, call->match->id);
	struct json_out j;
	struct buf out;

	if (!b)
		return;
	if (call->head->method == HTTP_HEAD) {
		client_reply_empty(c, 204, NULL);
		return;
	}
	buf_init(&out, BOX_JSON_MAX);
	json_out_init(&j, &out);
	json_object_begin(&j, NULL);
	api_put_box(&j, s, c, b);
	put_usage(&j, s, b);
	json_object_end(&j);
	client_reply_out(c, 200, &j);
	buf_free(&out);
}

void api_delete_box(struct sbxd *s, struct client *c, const struct route_call *call)
{
	const struct pool_box *b;
	char force[8] = "";
	int rc = http_query_get(call->head->query, "force", force, sizeof(force));

	if (rc != -ENOENT &&
	    (rc < 0 || (strcmp(force, "true") != 0 && strcmp(force, "false") != 0))) {
		client_reply_error(c, API_INVALID_ARGUMENT, "force: true or false is expected");
		return;
	}
	b = find_box(s, c, call->match->id);
	if (!b)
		return;
	rc = pool_remove(
	    s->pool, loop_now(s->loop), b->uid, b->token, !strcmp(force, "true"), client_req(c));
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
    [POOL_RELEASE_NOT_FOUND] = "closed",
    [POOL_RELEASE_RUNNING] = "running",
    [POOL_RELEASE_WARM] = "warm",
    [POOL_RELEASE_CLOSED] = "closed",
};

void api_release(struct sbxd *s, struct client *c, const struct route_call *call)
{
	struct err err = {0};
	json_t *body = json_parse_object(call->body, call->body_len, &err);
	const char *lease_text = NULL;
	const struct json_field fields[] = {
	    {.name = "lease_id", .type = JSON_FIELD_STRING, .out = &lease_text},
	};
	const struct pool_box *b;
	enum pool_release_result result;
	uint64_t lease = 0;
	struct json_out j;
	struct buf out;

	if (!body) {
		client_reply_error(c, API_MALFORMED, err.text);
		return;
	}
	if (json_take(body, fields, 1, &err) < 0) {
		client_reply_error(c, API_INVALID_ARGUMENT, err.text);
	} else if (lease_text && api_parse_lease(lease_text, &lease) < 0) {
		client_reply_error(
		    c, API_INVALID_ARGUMENT, "lease_id: 16 lowercase hex digits are expected");
	} else if ((b = find_box(s, c, call->match->id))) {
		result = pool_release(s->pool, loop_now(s->loop), b->uid, b->token, lease);
		publish_count(s, COUNTER_RELEASES);
		publish_changed(s); /* what the client is told must be true for our successor too */
		FAULT_POINT("sbxd.release.published");
		buf_init(&out, 256);
		json_out_init(&j, &out);
		json_object_begin(&j, NULL);
		json_put_string(&j, "status", release_status[result]);
		json_object_end(&j);
		client_reply_out(c, 200, &j);
		buf_free(&out);
	}
	json_decref(body);
}
