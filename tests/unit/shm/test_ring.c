/* Tests of shm/ring.c. */
#include "shm/ring.h"

#include <errno.h>

#include "tests/unit/shm/shm_testing.h"

static int setup(void **state)
{
	static struct table t;

	table_open(&t, 2);
	*state = &t;
	return 0;
}

static int teardown(void **state)
{
	table_close(*state);
	return 0;
}

static uint64_t append(struct segment *s, uint64_t n)
{
	struct shm_event ev = {.time_ns = n, .kind = EVENT_STATE, .slot = (uint32_t)n};

	(void)snprintf(ev.reason, sizeof(ev.reason), "event %llu", (unsigned long long)n);
	return ring_append(s, &ev);
}

static void test_an_empty_ring_has_no_record(void **state)
{
	struct table *t = *state;
	struct shm_event ev;

	assert_int_equal(ring_newest(&t->seg), 0);
	assert_int_equal(ring_read(&t->seg, 0, &ev), -ENOENT);
	assert_int_equal(ring_read(&t->seg, 1, &ev), -ENOENT);
	assert_int_equal(ring_read(&t->seg, UINT64_MAX, &ev), -ENOENT);
}

static void test_records_are_numbered_from_1_and_the_oldest_go(void **state)
{
	struct table *t = *state;
	struct shm_event ev;
	uint64_t records = t->seg.ring_records;

	for (uint64_t n = 1; n <= 2 * records + 5; n++) {
		uint64_t oldest = n > records ? n - records + 1 : 1;

		assert_int_equal(append(&t->seg, n), n);
		assert_int_equal(ring_newest(&t->seg), n);
		assert_int_equal(ring_read(&t->seg, n, &ev), 0);
		assert_int_equal(ev.seq, n);
		assert_int_equal(ev.time_ns, n);
		assert_int_equal(ring_read(&t->seg, oldest, &ev), 0);
		assert_int_equal(ev.time_ns, oldest);
		if (oldest > 1)
			assert_int_equal(ring_read(&t->seg, oldest - 1, &ev), -ESTALE);
		assert_int_equal(ring_read(&t->seg, n + 1, &ev), -ENOENT);
	}
	assert_string_equal(ev.reason, "event 4102"); /* what failed to be read left it alone */
}

static void test_a_record_in_the_making_is_not_read(void **state)
{
	struct table *t = *state;
	struct shm_event ev = {.time_ns = 1};
	struct shm_event untouched = ev;

	assert_int_equal(append(&t->seg, 1), 1);
	assert_int_equal(append(&t->seg, 2), 2);
	atomic_store(&t->seg.ring[1].seq, 0); /* its writer died over it */
	assert_int_not_equal(ring_read(&t->seg, 2, &ev), 0);
	assert_memory_equal(&ev, &untouched, sizeof(ev));
	assert_int_equal(ring_read(&t->seg, 1, &ev), 0);
}

static void test_hostile_numbers_stay_in_bounds(void **state)
{
	struct table *t = *state;
	static const uint64_t nexts[] = {0, 1, UINT64_MAX, UINT64_MAX - 1, 1ULL << 63};
	struct shm_event ev;

	for (size_t i = 0; i < sizeof(nexts) / sizeof(nexts[0]); i++) {
		atomic_store(&t->seg.header->ring_next, nexts[i]);
		assert_int_not_equal(ring_read(&t->seg, nexts[i] - 1, &ev), 0);
		assert_int_not_equal(append(&t->seg, 1), 0);
	}
}

/* ---- reading on ---- */

static void append_many(struct segment *s, uint64_t count)
{
	for (uint64_t n = 0; n < count; n++)
		(void)append(s, ring_newest(s) + 1);
}

static void test_reading_on_gives_each_record_once(void **state)
{
	struct table *t = *state;
	uint64_t records = t->seg.ring_records;
	struct shm_event ev;
	uint64_t next = 1;
	uint64_t lost = 0;

	assert_int_equal(ring_oldest(&t->seg), 1);
	assert_int_equal(ring_follow(&t->seg, &next, &ev, &lost), 0);
	assert_int_equal(next, 1);
	for (uint64_t n = 1; n <= 2 * records + 5; n++) {
		assert_int_equal(append(&t->seg, n), n);
		assert_int_equal(ring_follow(&t->seg, &next, &ev, &lost), 1);
		assert_int_equal(ev.seq, n);
		assert_int_equal(ring_follow(&t->seg, &next, &ev, &lost), 0);
	}
	assert_int_equal(lost, 0);
	assert_int_equal(ring_oldest(&t->seg), records + 6);
}

static void test_what_was_overwritten_is_counted(void **state)
{
	struct table *t = *state;
	uint64_t records = t->seg.ring_records;
	struct shm_event ev;
	uint64_t next = 3;
	uint64_t lost = 0;

	append_many(&t->seg, records + 10);
	assert_int_equal(ring_follow(&t->seg, &next, &ev, &lost), 1);
	assert_int_equal(ev.seq, 11);
	assert_int_equal(lost, 8);
	for (uint64_t n = 12; n <= records + 10; n++) {
		assert_int_equal(ring_follow(&t->seg, &next, &ev, &lost), 1);
		assert_int_equal(ev.seq, n);
	}
	assert_int_equal(ring_follow(&t->seg, &next, &ev, &lost), 0);
	assert_int_equal(lost, 8);
}

static void test_a_record_that_cannot_be_read_is_passed_over(void **state)
{
	struct table *t = *state;
	struct shm_event ev;
	uint64_t next = 1;
	uint64_t lost = 0;

	append_many(&t->seg, 3);
	atomic_store(&t->seg.ring[1].seq, 0);
	assert_int_equal(ring_follow(&t->seg, &next, &ev, &lost), 1);
	assert_int_equal(ring_follow(&t->seg, &next, &ev, &lost), 1);
	assert_int_equal(ev.seq, 3);
	assert_int_equal(lost, 1);
}

static void test_reading_on_ends_whatever_the_numbers_are(void **state)
{
	struct table *t = *state;
	static const uint64_t nexts[] = {0, 1, UINT64_MAX, UINT64_MAX - 1, 1ULL << 63};

	append_many(&t->seg, 10);
	for (size_t i = 0; i < sizeof(nexts) / sizeof(nexts[0]); i++) {
		struct shm_event ev;
		uint64_t next = 1;
		uint64_t lost = 0;

		atomic_store(&t->seg.header->ring_next, nexts[i]);
		assert_int_equal(ring_follow(&t->seg, &next, &ev, &lost), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_an_empty_ring_has_no_record, setup, teardown),
	    cmocka_unit_test_setup_teardown(
		test_records_are_numbered_from_1_and_the_oldest_go, setup, teardown),
	    cmocka_unit_test_setup_teardown(
		test_a_record_in_the_making_is_not_read, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_hostile_numbers_stay_in_bounds, setup, teardown),
	    cmocka_unit_test_setup_teardown(
		test_reading_on_gives_each_record_once, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_what_was_overwritten_is_counted, setup, teardown),
	    cmocka_unit_test_setup_teardown(
		test_a_record_that_cannot_be_read_is_passed_over, setup, teardown),
	    cmocka_unit_test_setup_teardown(
		test_reading_on_ends_whatever_the_numbers_are, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
