/* Tests of shm/reader.c. */
#include "shm/reader.h"

#include <errno.h>

#include "shm/hist.h"
#include "shm/scope_lock.h"
#include "tests/unit/shm/shm_testing.h"

#define SLOTS 4U

struct fixture {
	struct table t;
	struct reader r;
};

static int setup(void **state)
{
	static struct fixture f;

	table_open(&f.t, SLOTS);
	assert_int_equal(reader_open(&f.r, f.t.name, NULL), 0);
	*state = &f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	reader_close(&f->r);
	table_close(&f->t);
	return 0;
}

static void test_a_name_without_a_segment(void **state)
{
	struct reader r;
	struct err err = {0};

	(void)state;
	assert_int_equal(reader_open(&r, "/sbxd-unit-there-is-none", &err), -ENOENT);
	assert_int_equal(err.code, ENOENT);
}

static void test_summary(void **state)
{
	struct fixture *f = *state;
	struct shm_header *h = f->t.seg.header;
	struct reader_summary sum;

	atomic_store(&h->supervisor_state, SUPERVISOR_SERVING);
	atomic_store(&h->replicas, 3);
	atomic_store(&h->waiters, 2);
	atomic_store(&h->warm_count, 1);
	atomic_store(&h->counters[COUNTER_BOOTS], 17);
	atomic_store(&h->heartbeat_ns, UINT64_MAX); /* in the future: its age is 0 */
	atomic_store(&h->started_ns, 1);
	reader_summarize(&f->r, &sum);
	assert_int_equal(sum.pid, getpid());
	assert_true(sum.alive);
	assert_int_equal(sum.state, SUPERVISOR_SERVING);
	assert_int_equal(sum.generation, 1);
	assert_int_equal(sum.slots, SLOTS);
	assert_int_equal(sum.replicas, 3);
	assert_int_equal(sum.waiters, 2);
	assert_int_equal(sum.warm, 1);
	assert_int_equal(sum.state_count[SLOT_FREE], SLOTS);
	assert_int_equal(sum.counters[COUNTER_BOOTS], 17);
	assert_int_equal(sum.heartbeat_age_ns, 0);
	assert_true(sum.uptime_ns > 0);
}

static void create_and_leave(void *ctx)
{
	struct segment seg;

	if (segment_create(ctx, "unit", SLOTS, 2, &seg, NULL) < 0)
		_exit(1);
	slot_publish_sup(&seg.slots[1], &(struct slot_sup){.generation = 1, .state = SLOT_CLOSING});
}

static void test_a_dead_supervisor_is_seen_and_its_boxes_too(void **state)
{
	char name[64];
	struct reader r;
	struct reader_summary sum;
	struct reader_box box;

	(void)state;
	table_name(name);
	die_after(create_and_leave, name);
	assert_int_equal(reader_open(&r, name, NULL), 0);
	reader_summarize(&r, &sum);
	assert_false(sum.alive);
	assert_int_equal(reader_box(&r, 1, &box), 0);
	assert_int_equal(box.sup.state, SLOT_CLOSING);
	reader_close(&r);
	assert_int_equal(segment_unlink(name), 0);
}

static void test_a_box(void **state)
{
	struct fixture *f = *state;
	struct slot_sup sup = part_make(SLOT_ACTIVE, 1);
	struct slot_work work = {.generation = sup.generation, .exec_total = 4};
	struct shm_slot *slot = &f->t.seg.slots[2];
	struct reader_box box;

	slot_publish_sup(slot, &sup);
	slot_publish_work(&slot->page, &work);
	atomic_store(&slot->page.in_flight, 3);
	atomic_store(&slot->page.conns[0], CONN_WORD(5, CONN_IDLE));
	atomic_store(&slot->page.conns[255], CONN_WORD(6, CONN_RESPONDING));
	assert_int_equal(reader_box(&f->r, 2, &box), 0);
	assert_int_equal(box.slot, 2);
	assert_int_equal(box.in_flight, 3);
	assert_int_equal(box.conns, 2);
	assert_memory_equal(&box.sup, &sup, sizeof(sup));
	assert_memory_equal(&box.work, &work, sizeof(work));
}

static void test_slots_without_a_box(void **state)
{
	struct fixture *f = *state;
	struct reader_box box;
	struct reader_box untouched;

	memset(&box, 0x33, sizeof(box));
	untouched = box;
	assert_int_equal(reader_box(&f->r, 0, &box), -ENOENT);
	assert_int_equal(reader_box(&f->r, SLOTS, &box), -ERANGE);
	assert_int_equal(reader_box(&f->r, UINT32_MAX, &box), -ERANGE);
	atomic_fetch_add(&f->t.seg.slots[1].sup_seq, 1);
	assert_int_equal(reader_box(&f->r, 1, &box), -EAGAIN);
	assert_memory_equal(&box, &untouched, sizeof(box));
}

/* Numbers of the slot's last box, or of a worker that died while it wrote, are nobody's. */
static void test_work_of_another_generation_or_unfinished_is_zero(void **state)
{
	struct fixture *f = *state;
	struct slot_sup sup = part_make(SLOT_ACTIVE, 1);
	struct slot_work work = {.generation = sup.generation + 1, .exec_total = 4};
	static const struct slot_work none;
	struct shm_slot *slot = &f->t.seg.slots[2];
	struct reader_box box;

	slot_publish_sup(slot, &sup);
	slot_publish_work(&slot->page, &work);
	assert_int_equal(reader_box(&f->r, 2, &box), 0);
	assert_memory_equal(&box.work, &none, sizeof(none));
	work.generation = sup.generation;
	slot_publish_work(&slot->page, &work);
	atomic_fetch_add(&slot->page.work_seq, 1);
	assert_int_equal(reader_box(&f->r, 2, &box), 0);
	assert_memory_equal(&box.work, &none, sizeof(none));
	assert_memory_equal(&box.sup, &sup, sizeof(sup));
}

static void test_texts_always_end(void **state)
{
	struct fixture *f = *state;
	struct slot_sup sup;
	struct slot_work work;
	struct reader_box box;

	memset(&sup, 'x', sizeof(sup));
	memset(&work, 'x', sizeof(work));
	slot_publish_sup(&f->t.seg.slots[2], &sup);
	slot_publish_work(&f->t.seg.slots[2].page, &work);
	assert_int_equal(reader_box(&f->r, 2, &box), 0);
	assert_int_equal(strlen(box.sup.token), sizeof(sup.token) - 1);
	assert_int_equal(strlen(box.sup.name), sizeof(sup.name) - 1);
	assert_int_equal(strlen(box.sup.driver), sizeof(sup.driver) - 1);
	assert_int_equal(strlen(box.sup.isolation), sizeof(sup.isolation) - 1);
	assert_int_equal(strlen(box.sup.image), sizeof(sup.image) - 1);
	assert_int_equal(strlen(box.sup.user), sizeof(sup.user) - 1);
	assert_int_equal(strlen(box.sup.thread), sizeof(sup.thread) - 1);
	assert_int_equal(strlen(box.sup.last_error), sizeof(sup.last_error) - 1);
	assert_int_equal(strlen(box.work.last_error), sizeof(work.last_error) - 1);
}

/* A copy is made again only of what has changed; it is always what one look would have seen. */
static void test_refreshing(void **state)
{
	struct fixture *f = *state;
	struct slot_sup sup = part_make(SLOT_ACTIVE, 1);
	struct slot_work work = {.generation = sup.generation, .exec_total = 4};
	struct shm_slot *slot = &f->t.seg.slots[2];
	struct reader_mark mark = READER_UNSEEN;
	struct reader_box box = {0};

	assert_int_equal(reader_refresh(&f->r, 2, &mark, &box), -ENOENT);
	assert_int_equal(reader_refresh(&f->r, SLOTS, &mark, &box), -ERANGE);
	slot_publish_sup(slot, &sup);
	slot_publish_work(&slot->page, &work);
	assert_int_equal(reader_refresh(&f->r, 2, &mark, &box), 0);
	assert_memory_equal(&box.sup, &sup, sizeof(sup));
	assert_memory_equal(&box.work, &work, sizeof(work));

	box.sup.leases = 99; /* would be put right if it were copied again */
	box.work.bytes_in = 99;
	atomic_store(&slot->page.in_flight, 3);
	assert_int_equal(reader_refresh(&f->r, 2, &mark, &box), 0);
	assert_int_equal(box.sup.leases, 99);
	assert_int_equal(box.work.bytes_in, 99);
	assert_int_equal(box.in_flight, 3);
	slot_publish_work(&slot->page, &work);
	assert_int_equal(reader_refresh(&f->r, 2, &mark, &box), 0);
	assert_int_equal(box.sup.leases, 99);
	assert_int_equal(box.work.bytes_in, 0);
	slot_publish_sup(slot, &sup);
	assert_int_equal(reader_refresh(&f->r, 2, &mark, &box), 0);
	assert_int_equal(box.sup.leases, 0);
}

/* The slot's next box: numbers of the one before are not its own, nor are its own ever passed over.
 */
static void test_refreshing_across_generations(void **state)
{
	struct fixture *f = *state;
	struct slot_sup sup = part_make(SLOT_ACTIVE, 1);
	struct slot_work work = {.generation = sup.generation + 1, .exec_total = 4};
	static const struct slot_work none;
	struct shm_slot *slot = &f->t.seg.slots[2];
	struct reader_mark mark = READER_UNSEEN;
	struct reader_box box = {0};

	slot_publish_sup(slot, &sup);
	slot_publish_work(&slot->page, &work);
	assert_int_equal(reader_refresh(&f->r, 2, &mark, &box), 0);
	assert_memory_equal(&box.work, &none, sizeof(none));
	sup.generation++;
	slot_publish_sup(slot, &sup);
	assert_int_equal(reader_refresh(&f->r, 2, &mark, &box), 0);
	assert_memory_equal(&box.work, &work, sizeof(work));
	sup.generation++;
	slot_publish_sup(slot, &sup);
	assert_int_equal(reader_refresh(&f->r, 2, &mark, &box), 0);
	assert_memory_equal(&box.work, &none, sizeof(none));
}

/* A writer that died in the middle: what was copied before is still right. */
static void test_refreshing_keeps_what_it_had(void **state)
{
	struct fixture *f = *state;
	struct slot_sup sup = part_make(SLOT_ACTIVE, 1);
	struct slot_work work = {.generation = sup.generation, .exec_total = 4};
	struct shm_slot *slot = &f->t.seg.slots[2];
	struct reader_mark mark = READER_UNSEEN;
	struct reader_box box = {0};

	slot_publish_sup(slot, &sup);
	slot_publish_work(&slot->page, &work);
	assert_int_equal(reader_refresh(&f->r, 2, &mark, &box), 0);
	atomic_fetch_add(&slot->page.work_seq, 1);
	assert_int_equal(reader_refresh(&f->r, 2, &mark, &box), 0);
	assert_memory_equal(&box.work, &work, sizeof(work));
	atomic_fetch_add(&slot->sup_seq, 1);
	assert_int_equal(reader_refresh(&f->r, 2, &mark, &box), -EAGAIN);
	assert_memory_equal(&box.sup, &sup, sizeof(sup));
}

static void test_latency(void **state)
{
	struct fixture *f = *state;
	struct shm_hist *h = &f->t.seg.header->hists[HIST_CHECK];
	struct reader_latency l;

	reader_latency(&f->r, HIST_CHECK, &l);
	assert_int_equal(l.count + l.p50_ns + l.p99_ns, 0);
	for (uint64_t i = 1; i <= 100; i++)
		hist_add(h, i * 1000);
	reader_latency(&f->r, HIST_CHECK, &l);
	assert_int_equal(l.count, 100);
	assert_int_equal(l.p50_ns, hist_quantile(h, 0.50));
	assert_int_equal(l.p95_ns, hist_quantile(h, 0.95));
	assert_int_equal(l.p99_ns, hist_quantile(h, 0.99));
	assert_true(l.p50_ns < l.p95_ns && l.p95_ns <= l.p99_ns);
}

static void test_connections_and_lock(void **state)
{
	struct fixture *f = *state;
	struct shm_slot *slot = &f->t.seg.slots[1];
	struct slot_sup sup = part_make(SLOT_CHECKING, 1);
	struct reader_box box;

	slot_publish_sup(slot, &sup);
	atomic_store(&slot->page.conns[9], CONN_WORD(5, CONN_REQUEST));
	assert_int_equal(reader_conns(&f->r, 1), 1);
	assert_int_equal(reader_conns(&f->r, 0), 0);
	assert_int_equal(reader_conns(&f->r, SLOTS), 0);
	assert_int_equal(reader_box(&f->r, 1, &box), 0);
	assert_int_equal(box.lock_holder, SCOPE_HOLDER_NONE);
	assert_int_equal(pthread_mutex_lock(&slot->page.scope_lock), 0);
	assert_int_equal(reader_box(&f->r, 1, &box), 0);
	assert_int_equal(box.lock_holder, getpid());
	assert_int_equal(pthread_mutex_unlock(&slot->page.scope_lock), 0);
}

/* A copy of a table, as it is taken for somebody to look at later, elsewhere. */
static void test_a_copied_file(void **state)
{
	struct fixture *f = *state;
	struct slot_sup sup = part_make(SLOT_ACTIVE, 1);
	char path[] = "/tmp/sbxd-unit-reader-XXXXXX";
	int fd = mkstemp(path);
	struct reader_box box;
	struct reader r;
	struct err err;

	assert_true(fd >= 0);
	slot_publish_sup(&f->t.seg.slots[2], &sup);
	assert_int_equal(reader_open_file(&r, path, &err), -EINVAL);
	assert_int_equal(write(fd, f->t.seg.header, f->t.seg.size), f->t.seg.size);
	assert_int_equal(reader_open_file(&r, path, &err), 0);
	assert_int_equal(reader_box(&r, 2, &box), 0);
	assert_memory_equal(&box.sup, &sup, sizeof(sup));
	reader_close(&r);
	assert_int_equal(ftruncate(fd, (off_t)f->t.seg.size - 1), 0);
	assert_int_equal(reader_open_file(&r, path, &err), -EINVAL);
	assert_non_null(strstr(err.text, path));
	assert_int_equal(close(fd), 0);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(reader_open_file(&r, path, &err), -ENOENT);
	assert_int_equal(reader_open_file(&r, "/dev/shm", &err), -EINVAL);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_a_name_without_a_segment),
	    cmocka_unit_test(test_a_dead_supervisor_is_seen_and_its_boxes_too),
	    WITH(test_summary),
	    WITH(test_a_box),
	    WITH(test_slots_without_a_box),
	    WITH(test_work_of_another_generation_or_unfinished_is_zero),
	    WITH(test_texts_always_end),
	    WITH(test_refreshing),
	    WITH(test_refreshing_across_generations),
	    WITH(test_refreshing_keeps_what_it_had),
	    WITH(test_latency),
	    WITH(test_connections_and_lock),
	    WITH(test_a_copied_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
