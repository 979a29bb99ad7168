/* top_json: a snapshot as JSON. sbxtop; holds no state. */
#include "tools/top_json.h"

#include "lib/clock.h"
#include "shm/names.h"
#include "shm/slot.h"
#include "tools/cli_view.h"

static void put(json_t *o, const char *key, json_t *value)
{
	(void)json_object_set_new(o, key, value); /* o may be NULL, and value too */
}

static void put_uint(json_t *o, const char *key, uint64_t value)
{
	put(o, key, json_integer((json_int_t)value));
}

static void put_seconds(json_t *o, const char *key, uint64_t ns)
{
	put(o, key, json_real((double)ns / (double)NS_PER_S));
}

static json_t *states_json(const struct top_model *m)
{
	json_t *o = json_object();

	for (uint32_t i = 0; i < SLOT_STATES; i++)
		put_uint(o, slot_state_name(i), m->sum.state_count[i]);
	return o;
}

static json_t *counters_json(const struct top_model *m)
{
	json_t *o = json_object();

	for (uint32_t i = 0; i < COUNTERS; i++)
		put_uint(o, shm_counter_name(i), m->sum.counters[i]);
	return o;
}

static json_t *rates_json(const struct top_model *m)
{
	json_t *o = json_object();

	for (uint32_t i = 0; i < COUNTERS; i++)
		put(o, shm_counter_name(i), json_real(m->rate[i]));
	return o;
}

static json_t *latency_json(const struct top_model *m)
{
	json_t *all = json_object();

	for (uint32_t i = 0; i < HISTS; i++) {
		const struct reader_latency *l = &m->latency[i];
		json_t *o = json_object();

		put_uint(o, "count", l->count);
		put_uint(o, "p50_us", l->p50_ns / NS_PER_US);
		put_uint(o, "p95_us", l->p95_ns / NS_PER_US);
		put_uint(o, "p99_us", l->p99_ns / NS_PER_US);
		put(all, shm_hist_name(i), o);
	}
	return all;
}

static json_t *supervisor_json(const struct top_model *m)
{
	json_t *o = json_object();

	put(o, "instance", cli_text_json(m->instance));
	put(o, "pid", json_integer(m->sum.pid));
	put_uint(o, "generation", m->sum.generation);
	put_seconds(o, "uptime_seconds", m->sum.uptime_ns);
	put_seconds(o, "heartbeat_age_seconds", m->sum.heartbeat_age_ns);
	put(o, "alive", json_boolean(m->health != HEALTH_DEAD && m->health != HEALTH_LEFT));
	put(o, "health", json_string(top_health_name(m->health)));
	return o;
}

static json_t *pool_json(const struct top_model *m)
{
	json_t *o = json_object();

	put_uint(o, "replicas", m->sum.replicas);
	put(o, "states", states_json(m));
	put_uint(o, "active", m->sum.state_count[SLOT_ACTIVE]);
	put_uint(o, "warm", m->sum.state_count[SLOT_WARM]);
	put_uint(o, "booting", m->sum.state_count[SLOT_BOOTING]);
	put_uint(o, "boxes", top_model_boxes(m));
	put_uint(o, "waiters", m->sum.waiters);
	put_uint(o, "max_concurrent_boots", m->boots_max);
	put(o, "counters", counters_json(m));
	put(o, "latency", latency_json(m));
	put(o, "supervisor", supervisor_json(m));
	return o;
}

static json_t *box_json(const struct top_box *b, uint64_t now)
{
	json_t *o = cli_box_json(&b->seen, now);

	put(o, "cpu_percent", json_real(b->cpu_percent));
	put_seconds(o, "idle_seconds", b->idle_ns);
	put(o, "lock_holder", b->lock ? json_string(top_lock_name(b->lock)) : json_null());
	return o;
}

static json_t *boxes_json(const struct top_model *m, const struct top_rows *rows)
{
	json_t *all = json_array();

	for (size_t i = 0; i < rows->count; i++)
		(void)json_array_append_new(all, box_json(rows->row[i], m->now));
	return all;
}

static json_t *events_json(const struct top_model *m, size_t most)
{
	json_t *all = json_array();
	const struct shm_event *ev;

	for (size_t i = most; i-- > 0;) {
		ev = top_events_back(&m->events, i);
		if (ev)
			(void)json_array_append_new(all, cli_event_json(ev));
	}
	return all;
}

static json_t *totals_json(const struct top_model *m)
{
	double hits = top_model_hits(m);
	json_t *o = json_object();

	put(o, "cpu_percent", json_real(m->cpu_percent));
	put_uint(o, "memory_bytes", m->memory_bytes);
	put_uint(o, "in_flight", m->in_flight);
	put(o, "hit_percent", hits < 0 ? json_null() : json_real(hits));
	put_uint(o, "unreadable", m->unreadable);
	return o;
}

json_t *top_json(
    const struct top_model *m, const struct top_rows *rows, const char *trouble, size_t events)
{
	char time[CLOCK_RFC3339_LEN];
	json_t *o = json_object();

	clock_format_rfc3339(m->wall_ms, time);
	put(o, "time", json_string(time));
	put(o, "trouble", *trouble ? cli_text_json(trouble) : json_null());
	put(o, "pool", pool_json(m));
	put(o, "per_second", rates_json(m));
	put(o, "totals", totals_json(m));
	put(o, "boxes", boxes_json(m, rows));
	put(o, "events", events_json(m, events));
	return o;
}
