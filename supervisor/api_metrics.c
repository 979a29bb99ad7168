/* api_metrics: GET /v1/metrics and /v1/boxes/{id}/metrics, as BoxLite's runtimes have them. Runs in
 * sbxd; holds no state. */
#include "lib/clock.h"
#include "supervisor/api_box.h"
#include "supervisor/client.h"
#include "supervisor/routes.h"
#include "supervisor/sbxd.h"
#include "supervisor/usage.h"
#include "supervisor/worker_link.h"
#include "wire/json.h"

#define METRICS_JSON_MAX 8192U

/* Those that a worker was started for, which is what COUNTER_BOOTS counts. */
static uint64_t count_booting(const struct sbxd *s)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < s->seg.slot_count; i++)
		n += s->workers[i] && pool_box_at(s->pool, i)->state == SLOT_BOOTING;
	return n;
}

/*
 * Clients know how many boxes run by what is left when those that failed and stopped are taken from
 * those that were made: so the three fit together, and one that boots is not made yet.
 */
static void put_runtime(struct json_out *j, const struct sbxd *s)
{
	uint64_t running = pool_count(s->pool, SLOT_STOCK) + pool_count(s->pool, SLOT_ACTIVE) +
			   pool_count(s->pool, SLOT_CHECKING) + pool_count(s->pool, SLOT_WARM);
	uint64_t created = publish_counter(s, COUNTER_BOOTS) - count_booting(s);
	uint64_t failed = publish_counter(s, COUNTER_BOOT_FAILURES);
	struct usage usage;

	usage_total(s, &usage);
	json_put_uint(j, "boxes_created_total", created);
	json_put_uint(j, "boxes_failed_total", failed);
	json_put_uint(
	    j, "boxes_stopped_total", created > failed + running ? created - failed - running : 0);
	json_put_uint(j, "num_running_boxes", running);
	json_put_uint(j, "total_commands_executed", usage.commands);
	json_put_uint(j, "total_exec_errors", usage.command_failures);
}

void api_metrics(struct sbxd *s, struct client *c, const struct route_call *call)
{
	struct json_out j;
	struct buf out;

	(void)call;
	buf_init(&out, METRICS_JSON_MAX);
	json_out_init(&j, &out);
	json_object_begin(&j, NULL);
	put_runtime(&j, s);
	json_object_end(&j);
	client_reply_out(c, 200, &j);
	buf_free(&out);
}

static void put_nulls(struct json_out *j, const char *const *names, size_t count)
{
	for (size_t i = 0; i < count; i++)
		json_put_null(j, names[i]);
}

static void put_ms(struct json_out *j, const char *key, uint64_t ns)
{
	if (ns)
		json_put_uint(j, key, ns / NS_PER_MS);
	else
		json_put_null(j, key);
}

static void put_boot_timing(struct json_out *j, struct worker *w)
{
	static const char *const unknown[] = {"filesystem_setup_ms", "image_prepare_ms",
	    "guest_rootfs_ms", "box_config_ms", "box_spawn_ms", "container_init_ms"};

	json_object_begin(j, "boot_timing");
	put_ms(j, "total_create_ms", w ? worker_figures(w)->create_ns : 0);
	put_ms(j, "guest_boot_ms", w ? worker_figures(w)->boot_ns : 0);
	put_nulls(j, unknown, sizeof(unknown) / sizeof(unknown[0]));
	json_object_end(j);
}

static void put_box(struct json_out *j, const struct sbxd *s, const struct pool_box *b)
{
	static const char *const unknown[] = {"network_bytes_sent", "network_bytes_received",
	    "network_tcp_connections", "network_tcp_errors"};
	struct worker *w = s->workers[b->slot];
	struct slot_work work = {0};
	/* Every box has memory: without a number there is none to be had here. */
	bool known = usage_of_box(s, b, &work) && work.memory_bytes > 0;

	json_put_uint(j, "commands_executed_total", work.exec_total);
	json_put_uint(j, "exec_errors_total", work.exec_failed);
	json_put_uint(j, "bytes_sent_total", work.bytes_in);
	json_put_uint(j, "bytes_received_total", work.bytes_out);
	if (known && w) {
		json_put_double(j, "cpu_percent",
		    usage_cpu_percent(&worker_figures(w)->cpu, b, &work, loop_now(s->loop)));
		json_put_uint(j, "memory_bytes", work.memory_bytes);
	} else {
		put_nulls(j, (const char *const[]){"cpu_percent", "memory_bytes"}, 2);
	}
	put_nulls(j, unknown, sizeof(unknown) / sizeof(unknown[0]));
	put_boot_timing(j, w);
}

void api_box_metrics(struct sbxd *s, struct client *c, const struct route_call *call)
{
	const struct pool_box *b = api_find_box(s, c, call->match->id);
	struct json_out j;
	struct buf out;

	if (!b)
		return;
	buf_init(&out, METRICS_JSON_MAX);
	json_out_init(&j, &out);
	json_object_begin(&j, NULL);
	put_box(&j, s, b);
	json_object_end(&j);
	client_reply_out(c, 200, &j);
	buf_free(&out);
}
