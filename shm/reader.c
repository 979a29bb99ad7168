/*
 * reader: the read-only view for tools. Takes no lock and writes nothing, so dying here, like a
 * supervisor that hangs or is dead, disturbs nobody.
 */
#include "shm/reader.h"

#include <errno.h>
#include <sched.h>
#include <string.h>

#include "lib/clock.h"
#include "shm/hist.h"
#include "shm/scope_lock.h"
#include "shm/slot.h"

/* A tool may wait for a writer that was preempted in the middle; each try gives the cpu away. */
#define READER_TRIES 50

int reader_open(struct reader *r, const char *name, struct err *err)
{
	return segment_attach(name, false, &r->seg, err);
}

int reader_open_file(struct reader *r, const char *path, struct err *err)
{
	return segment_attach_file(path, &r->seg, err);
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
	    .start = atomic_load(&h->supervisor_start),
	    .state = atomic_load(&h->supervisor_state),
	    .generation = atomic_load(&h->supervisor_gen),
	    .uptime_ns = since(now, atomic_load(&h->started_ns)),
	    .heartbeat_age_ns = since(now, atomic_load(&h->heartbeat_ns)),
	    .slots = r->seg.slot_count,
	    .replicas = atomic_load(&h->replicas),
	    .waiters = atomic_load(&h->waiters),
	    .warm = atomic_load(&h->warm_count),
	};
	out->alive = segment_supervisor_alive(out->pid, out->start);
	for (size_t i = 0; i < SLOT_STATES; i++)
		out->state_count[i] = atomic_load(&h->state_count[i]);
	for (size_t i = 0; i < COUNTERS; i++)
		out->counters[i] = atomic_load(&h->counters[i]);
}

void reader_latency(const struct reader *r, enum shm_hist_id hist, struct reader_latency *out)
{
	const struct shm_hist *h = &r->seg.header->hists[hist];

	*out = (struct reader_latency){
	    .count = atomic_load_explicit(&h->count, memory_order_relaxed),
	    .p50_ns = hist_quantile(h, 0.50),
	    .p95_ns = hist_quantile(h, 0.95),
	    .p99_ns = hist_quantile(h, 0.99),
	};
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
static void end_sup_texts(struct slot_sup *sup)
{
	sup->token[sizeof(sup->token) - 1] = '\0';
	sup->name[sizeof(sup->name) - 1] = '\0';
	sup->driver[sizeof(sup->driver) - 1] = '\0';
	sup->isolation[sizeof(sup->isolation) - 1] = '\0';
	sup->image[sizeof(sup->image) - 1] = '\0';
	sup->user[sizeof(sup->user) - 1] = '\0';
	sup->thread[sizeof(sup->thread) - 1] = '\0';
	sup->box_name[sizeof(sup->box_name) - 1] = '\0';
	sup->last_error[sizeof(sup->last_error) - 1] = '\0';
}

/* Whether what was copied between two looks at its counter is of that very state. */
static uint32_t seq_copied(uint32_t before, const _Atomic uint32_t *seq)
{
	uint32_t after = atomic_load_explicit(seq, memory_order_acquire);

	return before == after && !(before & 1U) ? before : READER_UNSEEN.sup_seq;
}

static int refresh_sup(const struct shm_slot *s, struct reader_mark *mark, struct slot_sup *sup)
{
	uint32_t before = atomic_load_explicit(&s->sup_seq, memory_order_acquire);
	uint64_t generation = sup->generation;
	int rc;

	if (before == mark->sup_seq && !(before & 1U))
		return 0;
	rc = read_sup_patiently(s, sup);
	if (rc < 0)
		return rc;
	mark->sup_seq = seq_copied(before, &s->sup_seq);
	/* Numbers that were not this box's may be it now. */
	if (sup->generation != generation)
		mark->work_seq = READER_UNSEEN.work_seq;
	end_sup_texts(sup);
	return 0;
}

static void refresh_work(const struct shm_page *page, struct reader_mark *mark, uint64_t generation,
    struct slot_work *work)
{
	uint32_t before = atomic_load_explicit(&page->work_seq, memory_order_acquire);

	if (before == mark->work_seq && !(before & 1U))
		return;
	if (read_work_patiently(page, work) == 0) {
		mark->work_seq = seq_copied(before, &page->work_seq);
		work->last_error[sizeof(work->last_error) - 1] = '\0';
	}
	if (work->generation != generation)
		*work = (struct slot_work){0};
}

int reader_refresh(
    const struct reader *r, uint32_t slot, struct reader_mark *mark, struct reader_box *box)
{
	const struct shm_slot *s;
	int rc;

	if (slot >= r->seg.slot_count)
		return -ERANGE;
	s = &r->seg.slots[slot];
	rc = refresh_sup(s, mark, &box->sup);
	if (rc < 0)
		return rc;
	if (box->sup.state == SLOT_FREE)
		return -ENOENT;
	refresh_work(&s->page, mark, box->sup.generation, &box->work);
	box->slot = slot;
	box->in_flight = atomic_load_explicit(&s->page.in_flight, memory_order_relaxed);
	box->lock_holder = scope_lock_holder(&s->page);
	return 0;
}

uint32_t reader_conns(const struct reader *r, uint32_t slot)
{
	uint32_t n = 0;

	for (size_t i = 0; slot < r->seg.slot_count && i < SHM_CONNS; i++) {
		const _Atomic uint64_t *word = &r->seg.slots[slot].page.conns[i];

		n += CONN_STATE(atomic_load_explicit(word, memory_order_relaxed)) != CONN_FREE;
	}
	return n;
}

int reader_box(const struct reader *r, uint32_t slot, struct reader_box *out)
{
	struct reader_mark mark = READER_UNSEEN;
	struct reader_box box = {0};
	int rc = reader_refresh(r, slot, &mark, &box);

	if (rc < 0)
		return rc;
	box.conns = reader_conns(r, slot);
	*out = box;
	return 0;
}
