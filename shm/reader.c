/*
 * reader: the read-only view for tools. Takes no lock and writes nothing, so dying here, like a
 * supervisor that hangs or is dead, disturbs nobody.
 */
#include "shm/reader.h"

#include <errno.h>
#include <sched.h>
#include <string.h>

#include "lib/clock.h"
#include "shm/slot.h"

/* A tool may wait for a writer that was preempted in the middle; each try gives the cpu away. */
#define READER_TRIES 50

int reader_open(struct reader *r, const char *name, struct err *err)
{
	return segment_attach(name, false, &r->seg, err);
}

void reader_close(struct reader *r)
{
	segment_close(&r->seg);
}

static uint64_t since(uint64_t now, uint64_t then)
{
	return now > then ? now - then : 0;
}

void reader_summarize(const struct reader *r, struct reader_summary *out)
{
	const struct shm_header *h = r->seg.header;
	uint64_t now = clock_now_ns();

	*out = (struct reader_summary){
	    .pid = atomic_load(&h->supervisor_pid),
	    .state = atomic_load(&h->supervisor_state),
	    .generation = atomic_load(&h->supervisor_gen),
	    .uptime_ns = since(now, atomic_load(&h->started_ns)),
	    .heartbeat_age_ns = since(now, atomic_load(&h->heartbeat_ns)),
	    .slots = r->seg.slot_count,
	    .replicas = atomic_load(&h->replicas),
	    .waiters = atomic_load(&h->waiters),
	    .warm = atomic_load(&h->warm_count),
	};
	out->alive = segment_supervisor_alive(out->pid, atomic_load(&h->supervisor_start));
	for (size_t i = 0; i < SLOT_STATES; i++)
		out->state_count[i] = atomic_load(&h->state_count[i]);
	for (size_t i = 0; i < COUNTERS; i++)
		out->counters[i] = atomic_load(&h->counters[i]);
}

static int read_sup_patiently(const struct shm_slot *slot, struct slot_sup *out)
{
	int rc = slot_read_sup(slot, out);

	for (int i = 0; rc == -EAGAIN && i < READER_TRIES; i++) {
		(void)sched_yield(); /* always succeeds on Linux */
		rc = slot_read_sup(slot, out);
	}
	return rc;
}

static int read_work_patiently(const struct shm_page *page, struct slot_work *out)
{
	int rc = slot_read_work(page, out);

	for (int i = 0; rc == -EAGAIN && i < READER_TRIES; i++) {
		(void)sched_yield();
		rc = slot_read_work(page, out);
	}
	return rc;
}

/* What a worker wrote, or a bad table holds: a text that never ends must not reach a tool. */
static void end_texts(struct reader_box *box)
{
	struct slot_sup *sup = &box->sup;

	sup->token[sizeof(sup->token) - 1] = '\0';
	sup->name[sizeof(sup->name) - 1] = '\0';
	sup->driver[sizeof(sup->driver) - 1] = '\0';
	sup->isolation[sizeof(sup->isolation) - 1] = '\0';
	sup->image[sizeof(sup->image) - 1] = '\0';
	sup->user[sizeof(sup->user) - 1] = '\0';
	sup->thread[sizeof(sup->thread) - 1] = '\0';
	sup->box_name[sizeof(sup->box_name) - 1] = '\0';
	sup->last_error[sizeof(sup->last_error) - 1] = '\0';
	box->work.last_error[sizeof(box->work.last_error) - 1] = '\0';
}

int reader_box(const struct reader *r, uint32_t slot, struct reader_box *out)
{
	const struct shm_slot *s;
	struct reader_box box = {.slot = slot};
	int rc;

	if (slot >= r->seg.slot_count)
		return -ERANGE;
	s = &r->seg.slots[slot];
	rc = read_sup_patiently(s, &box.sup);
	if (rc < 0)
		return rc;
	if (box.sup.state == SLOT_FREE)
		return -ENOENT;
	if (read_work_patiently(&s->page, &box.work) < 0 ||
	    box.work.generation != box.sup.generation)
		box.work = (struct slot_work){0};
	box.in_flight = atomic_load(&s->page.in_flight);
	for (size_t i = 0; i < SHM_CONNS; i++) {
		if (CONN_STATE(atomic_load(&s->page.conns[i])) != CONN_FREE)
			box.conns++;
	}
	end_texts(&box);
	*out = box;
	return 0;
}
