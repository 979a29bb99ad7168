/* Tests of tools/top_model.c: a snapshot says what the table says. */
#include "tools/top_model.h"

#include <sched.h>

#include "shm/hist.h"
#include "tests/unit/tools/top_testing.h"

#define SLOTS 8U

static int setup(void **state)
{
	static struct stage s;

	stage_open(&s, SLOTS);
	*state = &s;
	return 0;
}

static int teardown(void **state)
{
	stage_close(*state);
	return 0;
}

static void test_numbers_of_the_header(void **state)
{
	struct stage *s = *state;
	struct shm_header *h = s->t.seg.header;

	atomic_store(&h->replicas, 3);
	atomic_store(&h->waiters, 2);
	atomic_store(&h->counters[COUNTER_BOOTS], 17);
	atomic_store(&h->state_count[SLOT_WARM], 5);
	atomic_store(&h->started_ns, NOW - 9 * NS_PER_S);
	hist_add(&h->hists[HIST_BOOT], 5000);
	assert_false(s->m->loaded);
	stage_look(s, NOW);
	assert_true(s->m->loaded);
	assert_int_equal(s->m->sum.replicas, 3);
	assert_int_equal(s->m->sum.waiters, 2);
	assert_int_equal(s->m->sum.counters[COUNTER_BOOTS], 17);
	assert_int_equal(s->m->sum.uptime_ns, 9 * NS_PER_S);
	assert_int_equal(s->m->boots_max, 4);
	assert_int_equal(s->m->latency[HIST_BOOT].count, 1);
	assert_int_equal(
	    s->m->latency[HIST_BOOT].p99_ns, hist_quantile(&h->hists[HIST_BOOT], 0.99));
	assert_int_equal(top_model_boxes(s->m), 5);
	assert_string_equal(s->m->instance, "unit");
}

static void test_boxes(void **state)
{
	struct stage *s = *state;
	const struct top_box *b;

	stage_put(s, 3, SLOT_WARM);
	stage_put(s, 5, SLOT_ACTIVE);
	s->t.parts[5].leased_ns = NOW - 2 * NS_PER_S;
	slot_publish_sup(&s->t.seg.slots[5], &s->t.parts[5]);
	stage_put_work(s, 3, &(struct slot_work){.memory_bytes = 100, .heartbeat_ns = NOW});
	stage_put_work(s, 5,
	    &(struct slot_work){.memory_bytes = 11,
		.heartbeat_ns = NOW,
		.cpu_ns = NS_PER_S,
		.activity_ns = NOW - NS_PER_S});
	stage_look(s, NOW);
	assert_int_equal(s->m->box_count, 2);
	b = s->m->boxes[0];
	assert_int_equal(b->seen.slot, 3);
	assert_int_equal(b->age_ns, 3 * NS_PER_S);
	assert_int_equal(b->idle_ns, 3 * NS_PER_S);
	b = s->m->boxes[1];
	assert_int_equal(b->seen.slot, 5);
	assert_int_equal(b->idle_ns, NS_PER_S);
	assert_true(b->cpu_percent > 19.9 && b->cpu_percent < 20.1);
	assert_int_equal(s->m->memory_bytes, 111);
	assert_true(s->m->cpu_percent > 19.9 && s->m->cpu_percent < 20.1);

	atomic_store(&s->t.seg.slots[5].page.in_flight, 2);
	stage_look(s, NOW + NS_PER_S);
	assert_int_equal(s->m->boxes[1]->idle_ns, 0);
	assert_int_equal(s->m->in_flight, 2);
	/* Its worker cannot have been active in the future. */
	atomic_store(&s->t.seg.slots[5].page.in_flight, 0);
	stage_put_work(s, 5, &(struct slot_work){.activity_ns = UINT64_MAX});
	stage_look(s, NOW + NS_PER_S);
	assert_int_equal(s->m->boxes[1]->idle_ns, 3 * NS_PER_S);
	slot_publish_sup(&s->t.seg.slots[3], &(struct slot_sup){.state = SLOT_FREE});
	stage_look(s, NOW + 2 * NS_PER_S);
	assert_int_equal(s->m->box_count, 1);
	assert_int_equal(s->m->boxes[0]->seen.slot, 5);
}

static void test_connections_when_they_are_asked_for(void **state)
{
	struct stage *s = *state;

	stage_put(s, 3, SLOT_WARM);
	atomic_store(&s->t.seg.slots[3].page.conns[4], CONN_WORD(1, CONN_IDLE));
	stage_look(s, NOW);
	assert_int_equal(s->m->boxes[0]->seen.conns, 0);
	s->m->counts_conns = true;
	stage_look(s, NOW);
	assert_int_equal(s->m->boxes[0]->seen.conns, 1);
}

/* What a writer that died in the middle left is passed over, for what was there before. */
static void test_unreadable_slots(void **state)
{
	struct stage *s = *state;

	stage_put(s, 3, SLOT_WARM);
	stage_look(s, NOW);
	atomic_fetch_add(&s->t.seg.slots[3].sup_seq, 1);
	atomic_fetch_add(&s->t.seg.slots[4].sup_seq, 1);
	stage_look(s, NOW);
	assert_int_equal(s->m->unreadable, 2);
	assert_int_equal(s->m->box_count, 1);
	assert_string_equal(s->m->boxes[0]->seen.sup.user, "user-3");
	atomic_fetch_add(&s->t.seg.slots[3].sup_seq, 1);
	stage_look(s, NOW);
	assert_int_equal(s->m->unreadable, 1);
}

static void test_health(void **state)
{
	struct stage *s = *state;
	struct shm_header *h = s->t.seg.header;
	struct top_glance g;

	stage_look(s, NOW);
	assert_int_equal(s->m->health, HEALTH_SERVING);
	top_model_refresh(s->m, &s->r, NOW + 4 * NS_PER_S);
	assert_int_equal(s->m->health, HEALTH_HUNG);
	top_model_glance(&s->r, NOW + 4 * NS_PER_S, &g);
	assert_int_equal(g.health, HEALTH_HUNG);
	assert_int_equal(g.pid, getpid());
	atomic_store(&h->supervisor_state, SUPERVISOR_STARTING);
	stage_look(s, NOW);
	assert_int_equal(s->m->health, HEALTH_STARTING);
	atomic_store(&h->supervisor_state, SUPERVISOR_SHUTTING_DOWN);
	stage_look(s, NOW);
	assert_int_equal(s->m->health, HEALTH_SHUTTING_DOWN);
	atomic_store(&h->supervisor_state, SUPERVISOR_GONE);
	stage_look(s, NOW);
	assert_int_equal(s->m->health, HEALTH_LEFT);
	atomic_store(&h->supervisor_state, 77); /* nobody writes that */
	stage_look(s, NOW);
	assert_int_equal(s->m->health, HEALTH_DEAD);
	/* The pid is another process by now. */
	atomic_store(&h->supervisor_state, SUPERVISOR_SERVING);
	atomic_fetch_add(&h->supervisor_start, 1);
	stage_look(s, NOW);
	assert_int_equal(s->m->health, HEALTH_DEAD);
	atomic_fetch_sub(&h->supervisor_start, 1);
	for (int i = 0; i < HEALTHS; i++)
		assert_true(strlen(top_health_name((enum top_health)i)) > 2);
}

static void test_rates(void **state)
{
	struct stage *s = *state;
	struct shm_header *h = s->t.seg.header;

	atomic_store(&h->counters[COUNTER_ACQUIRE_WARM], 1000);
	stage_look(s, NOW);
	assert_true(s->m->rate[COUNTER_ACQUIRE_WARM] == 0); /* the recorder knows of none */
	assert_true(top_model_hits(s->m) == 100);
	assert_true(top_model_hits_now(s->m) == -1);
	atomic_store(&h->counters[COUNTER_ACQUIRE_WARM], 1006);
	atomic_store(&h->counters[COUNTER_ACQUIRE_COLD], 2);
	stage_look(s, NOW + 2 * NS_PER_S);
	assert_true(s->m->rate[COUNTER_ACQUIRE_WARM] == 3);
	assert_true(s->m->rate[COUNTER_ACQUIRE_COLD] == 1);
	assert_true(top_model_hits_now(s->m) == 75);
	/* Two looks at once leave the rates as they are; a counter that fell is none. */
	stage_look(s, NOW + 2 * NS_PER_S);
	assert_true(s->m->rate[COUNTER_ACQUIRE_WARM] == 3);
	atomic_store(&h->counters[COUNTER_ACQUIRE_WARM], 5);
	stage_look(s, NOW + 3 * NS_PER_S);
	assert_true(s->m->rate[COUNTER_ACQUIRE_WARM] == 0);
	assert_int_equal(top_model_reset(s->m, SLOTS), 0);
	stage_look(s, NOW + 4 * NS_PER_S);
	assert_true(s->m->rate[COUNTER_ACQUIRE_COLD] == 0);
}

static void test_the_first_rates_are_of_the_recorder(void **state)
{
	struct stage *s = *state;
	struct shm_event ev = {.kind = EVENT_LEASE, .slot = 1, .reason = "cold"};

	for (uint64_t i = 1; i <= 10; i++) {
		ev.time_ns = NOW - i * NS_PER_S + 1;
		stage_event(s, &ev);
	}
	for (uint32_t i = 0; i < s->t.seg.ring_records; i++) { /* in order, and to the full */
		ev.time_ns = NOW - 10 * NS_PER_S + i * (10 * NS_PER_S / s->t.seg.ring_records);
		stage_event(s, &ev);
	}
	stage_look(s, NOW);
	assert_true(s->m->rate[COUNTER_ACQUIRE_COLD] > 0.99 * s->t.seg.ring_records / 10);
	assert_true(s->m->rate[COUNTER_ACQUIRE_COLD] < 1.01 * s->t.seg.ring_records / 10);
	assert_true(s->m->rate[COUNTER_ACQUIRE_WARM] == 0);
}

static void test_locks(void **state)
{
	struct stage *s = *state;
	pthread_mutex_t *lock = &s->t.seg.slots[3].page.scope_lock;

	stage_put(s, 3, SLOT_CHECKING);
	stage_look(s, NOW);
	assert_int_equal(s->m->boxes[0]->lock, LOCK_FREE);
	assert_int_equal(pthread_mutex_lock(lock), 0);
	stage_look(s, NOW);
	assert_int_equal(s->m->boxes[0]->lock, LOCK_SBXD); /* that is us */
	s->t.parts[3].worker_pid = (int32_t)getpid();
	slot_publish_sup(&s->t.seg.slots[3], &s->t.parts[3]);
	stage_look(s, NOW);
	assert_int_equal(s->m->boxes[0]->lock, LOCK_WORKER);
	s->t.parts[3].worker_pid = 1;
	slot_publish_sup(&s->t.seg.slots[3], &s->t.parts[3]);
	atomic_store(&s->t.seg.header->supervisor_pid, 1);
	stage_look(s, NOW);
	assert_int_equal(s->m->boxes[0]->lock, LOCK_OTHER);
	atomic_store(&s->t.seg.header->supervisor_pid, (int32_t)getpid());
	assert_int_equal(pthread_mutex_unlock(lock), 0);
	assert_string_equal(top_lock_name(LOCK_FREE), "-");
	assert_string_equal(top_lock_name(LOCK_BROKEN), "broken");
}

/* ---- a writer that is always there ---- */

/* Every field of a box says the same number; its generation is that of the slot's next box now and
 * then. */
static void write_boxes(void *ctx)
{
	struct stage *s = ctx;

	for (uint32_t n = 1;; n++) {
		struct slot_sup sup = {.generation = n / 3 + 1,
		    .state = SLOT_ACTIVE,
		    .leases = n,
		    .waiters = n,
		    .memory_mib = n,
		    .acquires = n};
		struct slot_work work = {.generation = sup.generation,
		    .exec_total = n,
		    .bytes_in = n,
		    .bytes_out = n,
		    .memory_bytes = n};

		(void)snprintf(sup.token, sizeof(sup.token), "%u", n);
		(void)snprintf(sup.thread, sizeof(sup.thread), "%u", n);
		(void)snprintf(sup.last_error, sizeof(sup.last_error), "%u", n);
		slot_publish_sup(&s->t.seg.slots[n % SLOTS], &sup);
		slot_publish_work(&s->t.seg.slots[n % SLOTS].page, &work);
	}
}

static void check_whole(const struct reader_box *b)
{
	uint32_t n = b->sup.leases;
	char text[16];

	(void)snprintf(text, sizeof(text), "%u", n);
	assert_string_equal(b->sup.token, text);
	assert_string_equal(b->sup.thread, text);
	assert_string_equal(b->sup.last_error, text);
	assert_int_equal(b->sup.waiters, n);
	assert_int_equal(b->sup.memory_mib, n);
	assert_int_equal(b->sup.acquires, n);
	assert_int_equal(b->sup.generation, n / 3 + 1);
	assert_int_equal(b->work.exec_total, b->work.bytes_in);
	assert_int_equal(b->work.exec_total, b->work.bytes_out);
	assert_int_equal(b->work.exec_total, b->work.memory_bytes);
	if (b->work.generation)
		assert_int_equal(b->work.generation, b->sup.generation);
}

static void test_no_row_is_ever_torn(void **state)
{
	struct stage *s = *state;
	size_t seen = 0;
	pid_t writer = fork();

	assert_true(writer >= 0);
	if (writer == 0)
		write_boxes(s);
	for (uint64_t i = 0; i < 3000 || seen < 3000; i++) {
		stage_look(s, NOW + i);
		for (size_t b = 0; b < s->m->box_count; b++)
			check_whole(&s->m->boxes[b]->seen);
		seen += s->m->box_count;
		if (s->m->box_count == 0)
			(void)sched_yield(); /* it has not begun */
	}
	assert_int_equal(kill(writer, SIGKILL), 0);
	assert_int_equal(waitpid(writer, NULL, 0), writer);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    WITH(test_numbers_of_the_header),
	    WITH(test_boxes),
	    WITH(test_connections_when_they_are_asked_for),
	    WITH(test_unreadable_slots),
	    WITH(test_health),
	    WITH(test_rates),
	    WITH(test_the_first_rates_are_of_the_recorder),
	    WITH(test_locks),
	    WITH(test_no_row_is_ever_torn),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
