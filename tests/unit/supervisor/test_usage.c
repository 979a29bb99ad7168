/* usage: totals that only grow, and numbers of workers that lie. */
#include "shm/slot.h"
#include "supervisor/usage.h"
#include "tests/unit/supervisor/sbxd_testing.h"

static const struct pool_rules rules = {.slots = 3, .replicas = 3, .max_boots = 1};

static int setup(void **state)
{
	*state = stage_open(&rules);
	return 0;
}

static int teardown(void **state)
{
	struct sbxd *s = *state;

	for (uint32_t i = 0; i < rules.slots; i++)
		s->workers[i] = NULL;
	stage_close(s);
	return 0;
}

/* A worker of that slot that has said so. Its record is nothing but there. */
static void report(struct sbxd *s, uint32_t slot, uint64_t gen, uint64_t n)
{
	const struct slot_work work = {
	    .generation = gen,
	    .exec_total = n,
	    .exec_failed = n / 2,
	    .bytes_in = 10 * n,
	    .bytes_out = 100 * n,
	};

	slot_publish_work(&s->seg.slots[slot].page, &work);
	s->workers[slot] = (struct worker *)(void *)s;
}

static void assert_total(const struct sbxd *s, uint64_t n)
{
	struct usage u;

	usage_total(s, &u);
	assert_int_equal(u.commands, n);
	assert_int_equal(u.bytes_in, 10 * n);
	assert_int_equal(u.bytes_out, 100 * n);
}

static void test_totals_survive_their_boxes(void **state)
{
	struct sbxd *s = *state;

	assert_total(s, 0);
	report(s, 0, 0, 4); /* the pool of the stage has boxes of generation 0 */
	report(s, 2, 0, 6);
	assert_total(s, 10);
	usage_retire(s, 0, 0);
	s->workers[0] = NULL;
	assert_total(s, 10);
	report(s, 0, 0, 1); /* the next box of the slot */
	assert_total(s, 11);
}

static void test_another_box_does_not_count(void **state)
{
	struct sbxd *s = *state;
	struct pool_box b = {.slot = 1, .generation = 7};
	struct slot_work work;

	report(s, 1, 7, 5);
	assert_total(s, 0); /* by the pool it is another one */
	assert_true(usage_of_box(s, &b, &work));
	assert_int_equal(work.exec_total, 5);
	b.generation = 8;
	work.exec_total = 77;
	assert_false(usage_of_box(s, &b, &work));
	assert_int_equal(work.exec_total, 77);
	usage_retire(s, 1, 8);
	assert_total(s, 0);
}

static void test_a_lie_is_bounded(void **state)
{
	struct sbxd *s = *state;
	struct usage u;

	report(s, 0, 0, UINT64_MAX / 2);
	report(s, 1, 0, 3);
	usage_total(s, &u);
	assert_int_equal(u.commands, (1ULL << 48) + 3);
	usage_retire(s, 0, 0);
	s->workers[0] = NULL;
	usage_total(s, &u);
	assert_int_equal(u.commands, (1ULL << 48) + 3);
}

static void test_cpu(void **state)
{
	const struct pool_box b = {.created = 100 * NS_PER_S, .spec.cpus_milli = 2000};
	struct cpu_sample last = {0};
	struct slot_work work = {.heartbeat_ns = 110 * NS_PER_S, .cpu_ns = 10 * NS_PER_S};

	(void)state;
	/* Since it was made: ten seconds of twenty. */
	assert_true(usage_cpu_percent(&last, &b, &work, 110 * NS_PER_S) == 50);
	assert_true(usage_cpu_percent(&last, &b, &work, 111 * NS_PER_S) == 50); /* nothing new */
	work.heartbeat_ns = 112 * NS_PER_S;
	work.cpu_ns = 11 * NS_PER_S;
	assert_true(usage_cpu_percent(&last, &b, &work, 112 * NS_PER_S) == 25); /* since then */
	assert_true(usage_cpu_percent(&last, &b, &work, 120 * NS_PER_S) == 0);	/* it rests */
	work.heartbeat_ns = 121 * NS_PER_S;
	work.cpu_ns = UINT64_MAX;
	assert_true(usage_cpu_percent(&last, &b, &work, 121 * NS_PER_S) == 100);
	work.heartbeat_ns = 122 * NS_PER_S;
	work.cpu_ns = 5; /* less than before */
	assert_true(usage_cpu_percent(&last, &b, &work, 130 * NS_PER_S) == 0);
	work.heartbeat_ns = UINT64_MAX;
	assert_true(usage_cpu_percent(&last, &b, &work, 131 * NS_PER_S) == 0);
}

#define staged(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    staged(test_totals_survive_their_boxes),
	    staged(test_another_box_does_not_count),
	    staged(test_a_lie_is_bounded),
	    cmocka_unit_test(test_cpu),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
