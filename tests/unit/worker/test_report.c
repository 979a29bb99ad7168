/* report: what a worker publishes in its slot page, and when. */
#include "tests/unit/worker/harness.h"

static void test_begin_and_end(void **state)
{
	struct harness *h = *state;
	struct slot_work work;
	uint64_t first;

	report_begin(&h->report);
	report_begin(&h->report);
	assert_int_equal(atomic_load(&h->page->in_flight), 2);
	assert_int_equal(slot_read_work(h->page, &work), 0);
	assert_int_equal(work.generation, 1);
	assert_int_not_equal(work.activity_ns, 0);
	first = work.activity_ns;
	report_end(&h->report);
	assert_int_equal(atomic_load(&h->page->in_flight), 1);
	report_end(&h->report);
	assert_int_equal(atomic_load(&h->page->in_flight), 0);
	assert_int_equal(slot_read_work(h->page, &work), 0);
	assert_true(work.activity_ns > first);
}

static void test_box_and_error(void **state)
{
	struct harness *h = *state;
	struct slot_work work;
	char longer[400];

	report_set_box(&h->report, 17, 1234);
	memset(longer, 'e', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	report_set_error(&h->report, longer);
	report_set_error(&h->report, "short");
	assert_int_equal(slot_read_work(h->page, &work), 0);
	assert_int_equal(work.box_pid, 17);
	assert_int_equal(work.box_start, 1234);
	assert_string_equal(work.last_error, "short");
	report_set_error(&h->report, longer);
	assert_int_equal(slot_read_work(h->page, &work), 0);
	assert_int_equal(strlen(work.last_error), SHM_ERROR_LEN - 1);
}

static void on_beat(struct report *r, bool last)
{
	r->work.cpu_ns++;
	if (last)
		r->work.memory_bytes++;
}

/* A second has passed. */
static void beat(struct harness *h)
{
	assert_int_not_equal(h->report.beat.pos, 0);
	assert_int_equal(loop_timer_set(h->s.loop, &h->report.beat, 1, h->report.beat.fn), 0);
	assert_int_equal(loop_step(h->s.loop, 0), 0);
}

static void test_heart_beats_only_while_something_happens(void **state)
{
	struct harness *h = *state;
	struct slot_work work;

	h->report.on_beat = on_beat;
	assert_int_equal(h->report.beat.pos, 0);
	report_begin(&h->report);
	beat(h);
	beat(h);
	assert_int_equal(h->report.work.memory_bytes, 0); /* something is in flight */
	report_end(&h->report);
	beat(h);
	assert_int_equal(h->report.work.memory_bytes, 0); /* something has changed */
	beat(h);
	assert_int_equal(h->report.work.memory_bytes, 1); /* the last one */
	assert_int_equal(h->report.beat.pos, 0);
	assert_int_equal(slot_read_work(h->page, &work), 0);
	assert_int_equal(work.cpu_ns, 4);
	report_touch(&h->report);
	assert_int_not_equal(h->report.beat.pos, 0);
}

static void test_words(void **state)
{
	struct harness *h = *state;
	uint64_t word;

	report_conn(&h->report, 200, 0x123456789abcdeULL, CONN_RESPONDING);
	word = atomic_load(&h->page->conns[200]);
	assert_int_equal(CONN_COOKIE(word), 0x123456789abcdeULL);
	assert_int_equal(CONN_STATE(word), CONN_RESPONDING);
	report_conn(&h->report, 200, 0x123456789abcdeULL, CONN_FREE);
	assert_int_equal(atomic_load(&h->page->conns[200]), 0);
}

/* A new worker begins with an empty page. */
static void test_init_clears(void **state)
{
	struct harness *h = *state;
	struct report next;

	report_conn(&h->report, 3, 5, CONN_IDLE);
	atomic_store(&h->page->in_flight, 9);
	report_init(&next, h->s.loop, h->page, 2);
	assert_int_equal(atomic_load(&h->page->conns[3]), 0);
	assert_int_equal(atomic_load(&h->page->in_flight), 0);
	assert_int_equal(next.work.generation, 2);
	report_fini(&next);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, h_setup, h_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_begin_and_end),
	    TEST(test_box_and_error),
	    TEST(test_heart_beats_only_while_something_happens),
	    TEST(test_words),
	    TEST(test_init_clears),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
