/* api_pool: the pool as a whole over HTTP. Runs in sbxd; holds no state. */
#include <stdio.h>

#include "lib/clock.h"
#include "shm/hist.h"
#include "shm/names.h"
#include "shm/slot.h"
#include "supervisor/client.h"
#include "supervisor/routes.h"
#include "supervisor/sbxd.h"
#include "wire/json.h"

#define POOL_JSON_MAX (256U * 1024U)
#define POOL_QUEUE_SHOWN 100U

static void put_latency(struct json_out *j, const struct shm_header *h)
{
	json_object_begin(j, "latency");
	for (int i = 0; i < HISTS; i++) {
		json_object_begin(j, shm_hist_name((uint32_t)i));
		json_put_uint(
		    j, "count", atomic_load_explicit(&h->hists[i].count, memory_order_relaxed));
		json_put_uint(j, "p50_us", hist_quantile(&h->hists[i], 0.50) / NS_PER_US);
		json_put_uint(j, "p95_us", hist_quantile(&h->hists[i], 0.95) / NS_PER_US);
		json_put_uint(j, "p99_us", hist_quantile(&h->hists[i], 0.99) / NS_PER_US);
		json_object_end(j);
	}
	json_object_end(j);
}

static void put_states(struct json_out *j, const struct pool *p)
{
	uint32_t boxes = 0;

	json_object_begin(j, "states");
	for (uint32_t i = 0; i < SLOT_STATES; i++) {
		json_put_uint(j, slot_state_name(i), pool_count(p, (enum slot_state)i));
		boxes += i == SLOT_FREE ? 0 : pool_count(p, (enum slot_state)i);
	}
	json_object_end(j);
	json_put_uint(j, "active", pool_count(p, SLOT_ACTIVE));
	json_put_uint(j, "warm", pool_count(p, SLOT_WARM));
	json_put_uint(j, "booting", pool_count(p, SLOT_BOOTING));
	json_put_uint(j, "boxes", boxes);
	json_put_uint(j, "waiters", pool_waiters(p));
}

/* Who waits, as far as the client may know of it. */
struct queue_view {
	struct json_out *j;
	const struct client *c;
	uint64_t now;
	unsigned int left;
};

static bool put_waiting(void *ctx, const struct pool_waiting *w)
{
	struct queue_view *v = ctx;
	bool admin = client_is_admin(v->c);

	if (!admin && w->uid != client_uid(v->c))
		return true;
	json_object_begin(v->j, NULL);
	json_put_string(v->j, "box_id", w->token);
	if (admin)
		json_put_uint(v->j, "uid", w->uid);
	json_put_string(v->j, "user_id", w->user);
	json_put_string(v->j, "thread_id", w->thread);
	json_put_string(v->j, "waits_for", w->for_room ? "room" : "box");
	if (w->for_room)
		json_put_uint(v->j, "place", w->place);
	json_put_double(v->j, "waited_seconds", (double)(v->now - w->since) / (double)NS_PER_S);
	json_object_end(v->j);
	return --v->left > 0;
}

static void put_queue(struct json_out *j, struct sbxd *s, const struct client *c)
{
	struct queue_view v = {.j = j, .c = c, .now = loop_now(s->loop), .left = POOL_QUEUE_SHOWN};

	json_array_begin(j, "queue");
	pool_each_waiting(s->pool, put_waiting, &v);
	json_array_end(j);
}

static void put_pool(struct json_out *j, struct sbxd *s, const struct client *c)
{
	const struct shm_header *h = s->seg.header;
	uint64_t started = atomic_load_explicit(&h->started_ns, memory_order_relaxed);

	json_put_uint(j, "replicas", pool_rules(s->pool)->replicas);
	json_put_string(j, "replica_policy", config_policy_name(s->config.replica_policy));
	put_states(j, s->pool);
	put_queue(j, s, c);
	json_put_uint(j, "clients", clients_count(s->clients));
	json_put_string(j, "driver", s->driver);
	json_put_string(j, "isolation", s->isolation);
	json_object_begin(j, "counters");
	for (int i = 0; i < COUNTERS; i++)
		json_put_uint(j, shm_counter_name((uint32_t)i),
		    atomic_load_explicit(&h->counters[i], memory_order_relaxed));
	json_object_end(j);
	put_latency(j, h);
	json_object_begin(j, "supervisor");
	json_put_int(j, "pid", atomic_load_explicit(&h->supervisor_pid, memory_order_relaxed));
	json_put_uint(
	    j, "generation", atomic_load_explicit(&h->supervisor_gen, memory_order_relaxed));
	json_put_double(
	    j, "uptime_seconds", (double)(loop_now(s->loop) - started) / (double)NS_PER_S);
	json_put_string(j, "instance", s->instance);
	json_put_string(j, "version", SBX_VERSION);
	json_object_end(j);
}

void api_get_pool(struct sbxd *s, struct client *c, const struct route_call *call)
{
	struct json_out j;
	struct buf out;

	(void)call;
	buf_init(&out, POOL_JSON_MAX);
	json_out_init(&j, &out);
	json_object_begin(&j, NULL);
	put_pool(&j, s, c);
	json_object_end(&j);
	client_reply_out(c, 200, &j);
	buf_free(&out);
}

void api_reset_pool(struct sbxd *s, struct client *c, const struct route_call *call)
{
	struct json_out j;
	struct buf out;

	(void)call;
	if (!client_is_admin(c)) {
		client_reply_error(c, API_PERMISSION_DENIED,
		    "resetting the pool is for root, sbxd's own user and admin_group");
		return;
	}
	buf_init(&out, 256);
	json_out_init(&j, &out);
	json_object_begin(&j, NULL);
	json_put_uint(&j, "parked", pool_reset(s->pool, loop_now(s->loop)));
	publish_changed(s); /* what the client is told must be true for our successor too */
	json_object_end(&j);
	client_reply_out(c, 200, &j);
	buf_free(&out);
}

void api_shutdown(struct sbxd *s, struct client *c, const struct route_call *call)
{
	(void)call;
	if (!client_is_admin(c)) {
		client_reply_error(c, API_PERMISSION_DENIED,
		    "shutting down is for root, sbxd's own user and admin_group");
		return;
	}
	if (s->shutdown_req) {
		client_reply_empty(c, 202, NULL);
		return;
	}
	s->shutdown_req = client_req(c);
	client_wait(c);
	sbxd_shutdown(s, "asked by a client");
}
