/* top_events: the last records of the flight recorder. sbxtop; holds no state but its caller's. */
#include "tools/top_events.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "lib/clock.h"
#include "shm/event.h"
#include "shm/ring.h"
#include "shm/slot.h"

#define RATE_WINDOW (5 * NS_PER_S)

void top_events_reset(struct top_events *e)
{
	e->next = 1;
	e->lost = 0;
	e->count = 0;
	e->hidden = 0;
	e->end = 0;
}

void top_events_read(struct top_events *e, const struct segment *seg)
{
	uint64_t lost = 0;
	bool first = e->next == 1 && e->count == 0;

	/* As many as the ring holds: a writer that is faster than we are does not keep us here. */
	for (size_t i = 0; i < TOP_EVENTS; i++) {
		if (!ring_follow(seg, &e->next, &e->kept[e->end], &lost))
			break;
		e->end = (e->end + 1) % TOP_EVENTS;
		if (e->count < TOP_EVENTS)
			e->count++;
	}
	if (!first) /* what was there before we came is not lost to us */
		e->lost += lost;
}

size_t top_events_count(const struct top_events *e)
{
	return e->count > e->hidden ? e->count - e->hidden : 0;
}

const struct shm_event *top_events_back(const struct top_events *e, size_t n)
{
	if (n >= top_events_count(e))
		return NULL;
	return &e->kept[(e->end + 2 * TOP_EVENTS - 1 - e->hidden - n) % TOP_EVENTS];
}

/* ---- rates ---- */

static int counter_of_lease(const struct shm_event *ev)
{
	for (int i = 0; i < SOURCES; i++) {
		if (strncmp(ev->reason, slot_source_name((uint32_t)i), sizeof(ev->reason)) == 0)
			return COUNTER_ACQUIRE_ACTIVE + i;
	}
	return -1;
}

static int counter_of_state(const struct shm_event *ev)
{
	if (ev->to == SLOT_BOOTING)
		return COUNTER_BOOTS;
	if (ev->to == SLOT_CHECKING)
		return COUNTER_CHECKS;
	return ev->from == SLOT_CLOSING ? COUNTER_CLOSES : -1;
}

/* Those that are one thing only; 0: others. */
static const uint8_t kind_counters[EVENT_KINDS] = {
    [EVENT_WORKER_CRASH] = COUNTER_WORKER_CRASHES,
    [EVENT_LOCK_RECOVERY] = COUNTER_LOCK_RECOVERIES,
    [EVENT_QUARANTINE] = COUNTER_QUARANTINES,
    [EVENT_CHECK_FAILED] = COUNTER_CHECK_FAILURES,
};

int top_event_counter(const struct shm_event *ev)
{
	if (ev->kind == EVENT_LEASE)
		return counter_of_lease(ev);
	if (ev->kind == EVENT_STATE)
		return counter_of_state(ev);
	return ev->kind < EVENT_KINDS && kind_counters[ev->kind] ? kind_counters[ev->kind] : -1;
}

void top_events_rates(const struct top_events *e, uint64_t now, double rate[COUNTERS])
{
	size_t count = top_events_count(e);
	const struct shm_event *oldest = count ? top_events_back(e, count - 1) : NULL;
	const struct shm_event *ev;
	uint64_t from = now > RATE_WINDOW ? now - RATE_WINDOW : 0;
	bool all = !oldest || oldest->seq == 1 || oldest->time_ns <= from;
	double seconds;

	/* A ring that turned around in less than that time tells of what it holds. */
	if (!all && oldest->time_ns < now)
		from = oldest->time_ns;
	seconds = (double)(now - from) / (double)NS_PER_S;
	memset(rate, 0, COUNTERS * sizeof(rate[0]));
	for (size_t i = 0; (ev = top_events_back(e, i)) && ev->time_ns >= from; i++) {
		int counter = top_event_counter(ev);

		if (counter >= 0 && ev->time_ns <= now && seconds > 0)
			rate[counter] += 1 / seconds;
	}
}

/* ---- lines ---- */

static const enum top_style kind_styles[EVENT_KINDS] = {
    [EVENT_SUPERVISOR_START] = STYLE_STRONG,
    [EVENT_SUPERVISOR_STOP] = STYLE_STRONG,
    [EVENT_EVICT] = STYLE_WARN,
    [EVENT_WORKER_CRASH] = STYLE_BAD,
    [EVENT_LOCK_RECOVERY] = STYLE_WARN,
    [EVENT_QUARANTINE] = STYLE_BAD,
    [EVENT_CHECK_FAILED] = STYLE_WARN,
    [EVENT_BOOT_FAILED] = STYLE_BAD,
    [EVENT_ERROR] = STYLE_BAD,
};

static void put_time(uint64_t wall_ms, struct top_line *l)
{
	time_t seconds = (time_t)(wall_ms / 1000);
	char text[16] = "??:??:??";
	struct tm tm;

	if (localtime_r(&seconds, &tm))
		(void)strftime(text, sizeof(text), "%H:%M:%S", &tm); /* it fits */
	top_line_put(l, STYLE_FAINT, "%s.%03u ", text, (unsigned int)(wall_ms % 1000));
}

void top_event_line(const struct shm_event *ev, struct top_line *l)
{
	enum top_style style = ev->kind < EVENT_KINDS ? kind_styles[ev->kind] : STYLE_PLAIN;
	struct event_view v;

	event_describe(ev, &v);
	top_line_clear(l);
	put_time(ev->wall_ms, l);
	top_line_left(l, style, ring_kind_name(ev->kind), 17);
	top_line_left(l, STYLE_PLAIN, v.box_id, 17);
	if (ev->kind == EVENT_STATE) {
		top_line_put(l, STYLE_PLAIN, "%s->", slot_state_name(ev->from));
		top_line_put(l, top_style_of_state(ev->to), "%s", slot_state_name(ev->to));
		top_line_put(l, STYLE_PLAIN, " ");
	}
	top_line_put(l, STYLE_PLAIN, "%s", v.reason);
	if (ev->code)
		top_line_put(l, STYLE_PLAIN, " (code %d)", ev->code);
	if (!ev->token[0] && ev->slot != SHM_NONE)
		top_line_put(l, STYLE_FAINT, " slot %u", ev->slot);
	if (ev->pid)
		top_line_put(l, STYLE_FAINT, " pid %d", ev->pid);
}
