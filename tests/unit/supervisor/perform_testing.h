/*
 * perform_testing: a stage on which boxes live: a real table and a real janitor link, and workers
 * that are records only: what sbxd tells them is written down, and they end when a test says so.
 * For one test program.
 */
#ifndef SBXD_TESTS_UNIT_SUPERVISOR_PERFORM_TESTING_H
#define SBXD_TESTS_UNIT_SUPERVISOR_PERFORM_TESTING_H

#include <sys/wait.h>

#include "shm/index.h"
#include "shm/ring.h"
#include "shm/scope_lock.h"
#include "shm/slot.h"
#include "shm/warm.h"
#include "tests/unit/shm/shm_testing.h"
#include "tests/unit/supervisor/fake_workers.h"
#include "tests/unit/supervisor/janitor_testing.h"

#define OWNER 1000U

static const struct pool_rules perform_rules = {
    .slots = 3,
    .replicas = 3,
    .max_boots = 3,
    .check_skip = 3600 * NS_PER_S,
    .check_timeout = 60 * NS_PER_S,
    .boot_timeout = 60 * NS_PER_S,
    .close_grace = 60 * NS_PER_S,
};

/* ---- the life of a box ---- */

static const struct pool_box *box_of(const struct sbxd *s, const char *thread)
{
	struct identity id;

	assert_int_equal(identity_scope("u", thread, &id), 0);
	return pool_box_find(s->pool, OWNER, id.token);
}

/* Nobody waits for the answer: the lease is given back at once, and the box is warm. */
static inline void ask(struct sbxd *s, const char *thread, const char *image)
{
	struct pool_request q = {
	    .req = 0xffffffffU, .uid = OWNER, .user = "u", .thread = thread, .lease_id = 9};

	assert_int_equal(identity_scope("u", thread, &q.id), 0);
	(void)snprintf(q.spec.image, sizeof(q.spec.image), "%s", image);
	pool_acquire(s->pool, loop_now(s->loop), &q);
	sbxd_settle(s);
}

static inline uint32_t warm_box(struct sbxd *s, const char *thread)
{
	const struct pool_box *b;

	ask(s, thread, "good");
	b = box_of(s, thread);
	assert_non_null(b);
	stage_until(s, s->workers[b->slot]);
	assert_true(s->workers[b->slot]->prepared >= 0);
	pool_booted(s->pool, loop_now(s->loop), b->slot, b->generation);
	sbxd_settle(s);
	assert_int_equal(b->state, SLOT_WARM);
	return b->slot;
}

/* As on_worker_exit() does. */
static inline void end_worker(struct sbxd *s, uint32_t slot)
{
	uint64_t gen = pool_box_at(s->pool, slot)->generation;

	pool_worker_gone(
	    s->pool, loop_now(s->loop), slot, gen, SIGKILL, "killed by signal 9 (Killed)");
	free(s->workers[slot]);
	s->workers[slot] = NULL;
	sbxd_settle(s);
}

/* What a worker leaves in its page. */
static inline void use_page(struct sbxd *s, uint32_t slot)
{
	struct shm_page *page = &s->seg.slots[slot].page;
	const struct slot_work work = {
	    .generation = pool_box_at(s->pool, slot)->generation,
	    .box_pid = 4711,
	    .box_start = 4712,
	    .exec_total = 3,
	};

	slot_publish_work(page, &work);
	atomic_store(&page->in_flight, 2);
	atomic_store(&page->conns[5], CONN_WORD(99, CONN_REQUEST));
}

static inline bool page_is_used(const struct sbxd *s, uint32_t slot)
{
	const struct shm_page *page = &s->seg.slots[slot].page;

	return atomic_load(&page->in_flight) && atomic_load(&page->conns[5]) && page->work.box_pid;
}

static inline bool page_is_clear(const struct sbxd *s, uint32_t slot)
{
	const struct shm_page *page = &s->seg.slots[slot].page;
	struct slot_work work;

	return slot_read_work(page, &work) == 0 && work.generation == 0 && work.box_pid == 0 &&
	       !atomic_load(&page->in_flight) && !atomic_load(&page->conns[5]);
}

static inline int repair_nothing(struct shm_page *page, void *ctx)
{
	(void)page;
	(void)ctx;
	return -EINVAL;
}

static inline void lock_it(void *page)
{
	if (scope_lock_try(page, repair_nothing, NULL) != SCOPE_LOCKED)
		_exit(99);
}

static inline void assert_valid(const struct sbxd *s)
{
	struct err finding;

	if (segment_validate(&s->seg, &finding, 1) > 0)
		fail_msg("%s", finding.text);
}

static inline int cleanups(const struct sbxd *s, uint32_t slot, int pid, unsigned int start)
{
	char line[200];

	(void)snprintf(line, sizeof(line), "cleanup %s %d %u", s->parts[slot].name, pid, start);
	return orders_like(s->state_dir, line);
}

static inline uint64_t counted(const struct sbxd *s, enum shm_counter counter)
{
	return atomic_load(&s->seg.header->counters[counter]);
}

/* The number of the first event of that kind (and, for EVENT_STATE, to that state), 0 for none. */
static inline uint64_t event_at(
    const struct sbxd *s, uint32_t kind, uint32_t to, struct shm_event *ev)
{
	for (uint64_t seq = 1; seq <= ring_newest(&s->seg); seq++) {
		assert_int_equal(ring_read(&s->seg, seq, ev), 0);
		if (ev->kind == kind && (kind != EVENT_STATE || ev->to == to))
			return seq;
	}
	return 0;
}

static inline int setup(void **state)
{
	*state = stage_with_janitor(&perform_rules);
	return 0;
}

static inline int teardown(void **state)
{
	struct sbxd *s = *state;

	workers_forget_all(s);
	stage_with_janitor_close(s);
	return 0;
}

#endif
