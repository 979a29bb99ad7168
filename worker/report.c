/* report: the worker's part of its slot page. sbx-worker. If we die here, sbxd mends the page. */
#include "worker/report.h"

#include <string.h>

#include "lib/clock.h"
#include "lib/log.h"
#include "shm/slot.h"

void report_init(struct report *r, struct loop *loop, struct shm_page *page, uint64_t generation)
{
	*r = (struct report){.loop = loop, .page = page, .work.generation = generation};
	atomic_store(&page->in_flight, 0);
	for (size_t i = 0; i < SHM_CONNS; i++)
		if (atomic_load_explicit(&page->conns[i], memory_order_relaxed))
			atomic_store(&page->conns[i], 0);
	report_publish(r);
}

void report_fini(struct report *r)
{
	loop_timer_clear(r->loop, &r->beat);
}

void report_publish(struct report *r)
{
	r->work.heartbeat_ns = clock_now_ns();
	slot_publish_work(r->page, &r->work);
}

void report_set_box(struct report *r, int32_t pid, uint64_t start)
{
	r->work.box_pid = pid;
	r->work.box_start = start;
	report_publish(r);
}

void report_set_error(struct report *r, const char *text)
{
	memset(r->work.last_error, 0, sizeof(r->work.last_error));
	strncpy(r->work.last_error, text, sizeof(r->work.last_error) - 1);
	report_publish(r);
}

static void report_on_beat(struct loop *loop, struct loop_timer *t);

static void report_next_beat(struct report *r)
{
	if (loop_timer_set(r->loop, &r->beat, loop_now(r->loop) + REPORT_BEAT_NS, report_on_beat) <
	    0)
		log_warn("no memory for a heartbeat");
}

static void report_on_beat(struct loop *loop, struct loop_timer *t)
{
	struct report *r = LOOP_OWNER(t, struct report, beat);
	bool more = r->changed || r->in_flight;

	(void)loop; /* the report knows its loop */
	r->changed = false;
	if (r->on_beat)
		r->on_beat(r, !more);
	report_publish(r);
	if (more)
		report_next_beat(r);
}

void report_touch(struct report *r)
{
	r->changed = true;
	if (r->beat.pos == 0)
		report_next_beat(r);
}

static void report_activity(struct report *r)
{
	r->work.activity_ns = clock_now_ns();
	report_publish(r);
	report_touch(r);
}

void report_begin(struct report *r)
{
	r->in_flight++;
	atomic_store(&r->page->in_flight, r->in_flight);
	report_activity(r);
}

void report_end(struct report *r)
{
	r->in_flight--;
	atomic_store(&r->page->in_flight, r->in_flight);
	report_activity(r);
}

void report_conn(struct report *r, unsigned int index, uint64_t cookie, unsigned int state)
{
	atomic_store_explicit(
	    &r->page->conns[index], state ? CONN_WORD(cookie, state) : 0, memory_order_release);
}
