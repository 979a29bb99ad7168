/* Tests of tools/top_cpu.c: what a box uses of a cpu, from what its worker reports. */
#include "tools/top_cpu.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/clock.h"

#define S NS_PER_S

static struct reader_box box(uint64_t generation, uint64_t beat, uint64_t cpu)
{
	struct reader_box b = {0};

	b.sup.generation = generation;
	b.sup.created_ns = 10 * S;
	b.work.generation = generation;
	b.work.heartbeat_ns = beat;
	b.work.cpu_ns = cpu;
	return b;
}

static void assert_near(double value, double expected, double by)
{
	if (value < expected - by || value > expected + by)
		fail_msg("%f is not %f", value, expected);
}

static double feed(struct top_cpu *c, uint64_t beat, uint64_t cpu, uint64_t now)
{
	struct reader_box b = box(7, beat, cpu);

	return top_cpu_update(c, &b, now);
}

static void test_at_first_the_whole_life(void **state)
{
	struct top_cpu c = {0};

	(void)state;
	assert_near(feed(&c, 20 * S, 5 * S, 20 * S + 1), 50, 0.01);
	/* The same report again tells nothing new. */
	assert_near(feed(&c, 20 * S, 5 * S, 20 * S + S / 2), 50, 0.01);
}

/* The times of the reports count, not those of the snapshots. */
static void test_between_reports(void **state)
{
	struct top_cpu c = {0};
	double last = 0;

	(void)state;
	for (uint64_t i = 0; i < 10; i++)
		last = feed(&c, (20 + i) * S, i * S, (20 + i) * S + (i % 3) * (S / 4));
	assert_near(last, 100, 0.01);
	/* It stops: seconds later it shows, and before that it goes down. */
	last = feed(&c, 31 * S, 9 * S, 31 * S);
	assert_true(last < 90 && last > 0);
	for (uint64_t i = 32; i < 36; i++)
		last = feed(&c, i * S, 9 * S, i * S);
	assert_near(last, 0, 0.01);
}

static void test_a_worker_with_nothing_to_report(void **state)
{
	struct top_cpu c = {0};

	(void)state;
	(void)feed(&c, 20 * S, 1 * S, 20 * S);
	assert_true(feed(&c, 21 * S, 2 * S, 21 * S) > 0);
	assert_near(feed(&c, 21 * S, 2 * S, 24 * S), 0, 0);
	/* And when it has something again, the pause is not counted. */
	assert_near(feed(&c, 50 * S, 12 * S, 50 * S), 30, 0.01); /* of its 40 seconds */
	assert_near(feed(&c, 51 * S, 12 * S + S / 2, 51 * S), 50, 0.01);
}

/* Short commands: the reports are of any time, the cpu time in them is of the last whole second. */
static void test_many_short_commands(void **state)
{
	struct top_cpu c = {0};
	double low = 1000;
	double high = 0;

	(void)state;
	for (uint64_t ms = 20000; ms < 60000; ms += 700) {
		double p = feed(&c, ms * NS_PER_MS, ms / 1000 * S, ms * NS_PER_MS + 1);

		if (ms < 26000)
			continue;
		low = p < low ? p : low;
		high = p > high ? p : high;
	}
	assert_true(low > 70 && high < 135);
}

static void test_another_box_begins_anew(void **state)
{
	struct top_cpu c = {0};
	struct reader_box b = box(8, 22 * S, 6 * S);

	(void)state;
	(void)feed(&c, 20 * S, 1 * S, 20 * S);
	(void)feed(&c, 21 * S, 2 * S, 21 * S);
	assert_near(top_cpu_update(&c, &b, 22 * S), 50, 0.01);
	b.work = (struct slot_work){0};
	assert_near(top_cpu_update(&c, &b, 23 * S), 0, 0);
}

/* A worker may write what it likes. */
static void test_nonsense(void **state)
{
	uint64_t seed = 42;
	struct top_cpu c = {0};

	(void)state;
	for (uint64_t now = 20 * S; now < 4000 * S; now += S / 2) {
		struct reader_box b;
		double p;

		b = box(seed % 3 + 1, seed % 5 ? now - seed % (3 * S) : seed, seed >> (seed % 64));
		seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
		p = top_cpu_update(&c, &b, now);
		assert_true(p >= 0 && p < 1e300);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_at_first_the_whole_life),
	    cmocka_unit_test(test_between_reports),
	    cmocka_unit_test(test_a_worker_with_nothing_to_report),
	    cmocka_unit_test(test_many_short_commands),
	    cmocka_unit_test(test_another_box_begins_anew),
	    cmocka_unit_test(test_nonsense),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
