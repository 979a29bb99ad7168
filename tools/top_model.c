/* top_model: a snapshot of the table, and what follows from it. sbxtop; dying here disturbs nobody,
 * as the table is only read. */
#include "tools/top_model.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/clock.h"
#include "shm/scope_lock.h"

#define HUNG_AFTER (3 * NS_PER_S) /* it has missed three heartbeats */

static const char *const lock_names[] = {
    [LOCK_FREE] = "-",
    [LOCK_WORKER] = "worker",
    [LOCK_SBXD] = "sbxd",
    [LOCK_OTHER] = "other",
    [LOCK_DIED] = "died",
    [LOCK_BROKEN] = "broken",
};

_Static_assert(sizeof(lock_names) / sizeof(lock_names[0]) == LOCKS, "every holder has a name");

const char *top_lock_name(enum top_lock lock)
{
	return lock_names[lock];
}

static const char *const health_names[] = {
    [HEALTH_UNKNOWN] = "no table",
    [HEALTH_STARTING] = "starting",
    [HEALTH_SERVING] = "serving",
    [HEALTH_SHUTTING_DOWN] = "shutting down",
    [HEALTH_LEFT] = "gone",
    [HEALTH_HUNG] = "HUNG",
    [HEALTH_DEAD] = "DEAD",
};

_Static_assert(
    sizeof(health_names) / sizeof(health_names[0]) == HEALTHS, "every health has a name");
_Static_assert((int)HEALTH_LEFT - (int)HEALTH_STARTING == (int)SUPERVISOR_GONE,
    "healths follow the states of the supervisor");

const char *top_health_name(enum top_health health)
{
	return health_names[health];
}

struct top_model *top_model_create(void)
{
	return calloc(1, sizeof(struct top_model));
}

void top_model_free(struct top_model *m)
{
	if (!m)
		return;
	free(m->slots);
	free(m->boxes);
	free(m);
}

int top_model_reset(struct top_model *m, uint32_t slot_count)
{
	struct top_box *slots = calloc(slot_count, sizeof(*slots));
	const struct top_box **boxes = calloc(slot_count, sizeof(const struct top_box *));

	if (!slots || !boxes) {
		free(slots);
		free(boxes);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < slot_count; i++)
		slots[i].mark = READER_UNSEEN;
	free(m->slots);
	free(m->boxes);
	m->loaded = false;
	m->frozen = false;
	m->slots = slots;
	m->boxes = boxes;
	m->slot_count = slot_count;
	m->box_count = 0;
	m->rated_ns = 0;
	top_events_reset(&m->events);
	return 0;
}

/* ---- reading ---- */

static uint64_t since(uint64_t now, uint64_t then)
{
	return now > then ? now - then : 0;
}

static void read_header(struct top_model *m, const struct reader *r)
{
	const struct shm_header *h = r->seg.header;

	reader_summarize(r, &m->sum);
	for (int i = 0; i < HISTS; i++)
		reader_latency(r, (enum shm_hist_id)i, &m->latency[i]);
	m->started_ns = atomic_load(&h->started_ns);
	m->heartbeat_ns = atomic_load(&h->heartbeat_ns);
	m->boots_max = atomic_load_explicit(&h->boot_slots_max, memory_order_relaxed);
	m->owner_uid = h->owner_uid;
	memcpy(m->instance, h->instance, sizeof(h->instance));
}

static void read_boxes(struct top_model *m, const struct reader *r)
{
	m->unreadable = 0;
	for (uint32_t i = 0; i < m->slot_count; i++) {
		struct top_box *b = &m->slots[i];
		int rc = reader_refresh(r, i, &b->mark, &b->seen);

		if (rc == -EAGAIN)
			m->unreadable++;
		else
			b->there = rc == 0;
		if (rc == 0 && m->counts_conns)
			b->seen.conns = reader_conns(r, i);
	}
}

/* ---- what follows ---- */

static uint64_t idle_since(const struct reader_box *b, uint64_t now)
{
	const struct slot_sup *s = &b->sup;
	uint64_t at = s->state_ns > s->leased_ns ? s->state_ns : s->leased_ns;

	/* The worker's word counts as far as it can be true. */
	if (b->work.activity_ns > at && b->work.activity_ns <= now)
		at = b->work.activity_ns;
	return at;
}

static enum top_lock lock_of(const struct top_model *m, const struct reader_box *b)
{
	switch (b->lock_holder) {
	case SCOPE_HOLDER_NONE:
		return LOCK_FREE;
	case SCOPE_HOLDER_DIED:
		return LOCK_DIED;
	case SCOPE_HOLDER_BROKEN:
		return LOCK_BROKEN;
	default: /* a thread */
		break;
	}
	if (b->lock_holder == b->sup.worker_pid)
		return LOCK_WORKER;
	return b->lock_holder == m->sum.pid ? LOCK_SBXD : LOCK_OTHER;
}

static void derive_box(const struct top_model *m, struct top_box *b)
{
	const struct reader_box *seen = &b->seen;

	b->age_ns = since(m->now, seen->sup.created_ns);
	b->state_age_ns = since(m->now, seen->sup.state_ns);
	b->idle_ns = seen->in_flight ? 0 : since(m->now, idle_since(seen, m->now));
	b->cpu_percent = top_cpu_update(&b->cpu, seen, m->now);
	b->lock = lock_of(m, seen);
}

static void derive_boxes(struct top_model *m)
{
	m->box_count = 0;
	m->cpu_percent = 0;
	m->memory_bytes = 0;
	m->in_flight = 0;
	for (uint32_t i = 0; i < m->slot_count; i++) {
		struct top_box *b = &m->slots[i];

		if (!b->there)
			continue;
		derive_box(m, b);
		m->boxes[m->box_count++] = b;
		m->cpu_percent += b->cpu_percent;
		m->memory_bytes += b->seen.work.memory_bytes;
		m->in_flight += b->seen.in_flight;
	}
}

static void derive_rates(struct top_model *m)
{
	uint64_t span = since(m->now, m->rated_ns);

	if (m->rated_ns == 0 || m->frozen) {
		top_events_rates(&m->events, m->now, m->rate);
	} else if (span == 0) {
		return;
	} else {
		for (int i = 0; i < COUNTERS; i++)
			m->rate[i] = (double)since(m->sum.counters[i], m->rated[i]) *
				     (double)NS_PER_S / (double)span;
	}
	m->rated_ns = m->now;
	memcpy(m->rated, m->sum.counters, sizeof(m->rated));
}

static enum top_health health_of(const struct reader_summary *sum)
{
	if (sum->state == SUPERVISOR_GONE)
		return HEALTH_LEFT;
	if (!sum->alive || sum->state > SUPERVISOR_GONE)
		return HEALTH_DEAD;
	if (sum->heartbeat_age_ns > HUNG_AFTER)
		return HEALTH_HUNG;
	return (enum top_health)(HEALTH_STARTING + sum->state);
}

void top_model_derive(struct top_model *m, uint64_t now)
{
	m->now = now;
	m->sum.uptime_ns = since(now, m->started_ns);
	m->sum.heartbeat_age_ns = since(now, m->heartbeat_ns);
	m->health = health_of(&m->sum);
	derive_boxes(m);
	derive_rates(m);
}

void top_model_refresh(struct top_model *m, const struct reader *r, uint64_t now)
{
	read_header(m, r);
	read_boxes(m, r);
	top_events_read(&m->events, &r->seg);
	m->wall_ms = clock_wall_ms();
	top_model_derive(m, now);
	m->loaded = true;
}

void top_model_glance(const struct reader *r, uint64_t now, struct top_glance *out)
{
	struct reader_summary sum;

	reader_summarize(r, &sum);
	sum.heartbeat_age_ns = since(now, atomic_load(&r->seg.header->heartbeat_ns));
	*out = (struct top_glance){.pid = sum.pid, .health = health_of(&sum)};
}

/* ---- figures ---- */

static double share_of_hits(double hits, double cold)
{
	return hits + cold > 0 ? 100.0 * hits / (hits + cold) : -1;
}

double top_model_hits(const struct top_model *m)
{
	const uint64_t *c = m->sum.counters;

	return share_of_hits((double)c[COUNTER_ACQUIRE_ACTIVE] + (double)c[COUNTER_ACQUIRE_WARM] +
				 (double)c[COUNTER_ACQUIRE_PREWARMED],
	    (double)c[COUNTER_ACQUIRE_COLD]);
}

double top_model_hits_now(const struct top_model *m)
{
	const double *r = m->rate;

	return share_of_hits(
	    r[COUNTER_ACQUIRE_ACTIVE] + r[COUNTER_ACQUIRE_WARM] + r[COUNTER_ACQUIRE_PREWARMED],
	    r[COUNTER_ACQUIRE_COLD]);
}

uint32_t top_model_boxes(const struct top_model *m)
{
	uint32_t n = 0;

	for (int i = 0; i < SLOT_STATES; i++)
		n += i == SLOT_FREE ? 0 : m->sum.state_count[i];
	return n;
}
