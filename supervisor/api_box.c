/* api_box: a box as it is shown over HTTP. Runs in sbxd; holds no state. */
#include "supervisor/api_box.h"

#include <stdio.h>
#include <string.h>

#include "lib/clock.h"
#include "shm/names.h"
#include "shm/slot.h"
#include "supervisor/access.h"
#include "supervisor/client.h"
#include "supervisor/routes.h"
#include "supervisor/sbxd.h"

static void put_time(struct json_out *j, const char *key, uint64_t wall_ms)
{
	char text[CLOCK_RFC3339_LEN];

	clock_format_rfc3339(wall_ms, text);
	json_put_string(j, key, text);
}

/* What BoxLite has and we have not: nothing happens to a box by itself. */
static void put_automation(struct json_out *j)
{
	json_object_begin(j, "labels");
	json_object_end(j);
	json_put_uint(j, "auto_pause", 0);
	json_put_uint(j, "auto_stop", 0);
	json_put_uint(j, "auto_delete", 0);
	json_put_bool(j, "auto_resume", true);
}

void api_put_box(struct json_out *j, const struct sbxd *s, uid_t viewer, const struct pool_box *b)
{
	const struct slot_sup *part = &s->parts[b->slot];
	enum shm_box_status status = shm_box_status(b->state, b->flags);
	uint64_t now = loop_now(s->loop);
	char id[64];

	access_box_id(viewer, b, id, sizeof(id));
	json_put_string(j, "box_id", id);
	json_put_string(j, "name", *b->name ? b->name : NULL);
	json_put_string(j, "status", shm_box_status_name(status));
	json_put_string(j, "state", slot_state_name(b->state));
	put_time(j, "created_at", part->created_wall_ms);
	put_time(j, "updated_at", part->updated_wall_ms);
	if (part->worker_pid && status != BOX_CONFIGURED && status != BOX_STOPPED)
		json_put_int(j, "pid", part->worker_pid);
	else
		json_put_null(j, "pid");
	json_put_string(j, "image", b->spec.image);
	json_put_uint(j, "cpus", b->spec.cpus_milli ? (b->spec.cpus_milli + 999) / 1000 : 1);
	json_put_uint(j, "memory_mib", b->spec.memory_mib);
	json_put_uint(j, "disk_mib", b->spec.disk_mib);
	put_automation(j);
	json_put_string(j, "driver", *part->driver ? part->driver : s->driver);
	json_put_string(j, "isolation", *part->isolation ? part->isolation : s->isolation);
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

void api_reply_box(const struct sbxd *s, struct client *c, const struct pool_box *b)
{
	struct json_out j;
	struct buf out;

	buf_init(&out, API_BOX_MAX);
	json_out_init(&j, &out);
	json_object_begin(&j, NULL);
	api_put_box(&j, s, client_uid(c), b);
	put_usage(&j, s, b);
	json_object_end(&j);
	client_reply_out(c, 200, &j);
	buf_free(&out);
}

void api_no_box(struct client *c, const char *id)
{
	char text[200];

	(void)snprintf(text, sizeof(text), "box not found: %s", id);
	client_reply_error(c, API_NOT_FOUND, text);
}

const struct pool_box *api_find_box(const struct sbxd *s, struct client *c, const char *id)
{
	const struct pool_box *b = access_find_box(s, c, id);

	if (!b)
		api_no_box(c, id);
	return b;
}

void api_get_box(struct sbxd *s, struct client *c, const struct route_call *call)
{
	const struct pool_box *b = api_find_box(s, c, call->match->id);

	if (!b)
		return;
	if (call->head->method == HTTP_HEAD)
		client_reply_empty(c, 204, NULL);
	else
		api_reply_box(s, c, b);
}
