/* Tests of tools/top_events.c: records that are kept while the ring goes on. */
#include "tools/top_events.h"

#include "tests/unit/tools/top_testing.h"

static int setup(void **state)
{
	static struct stage s;

	stage_open(&s, 2);
	*state = &s;
	return 0;
}

static int teardown(void **state)
{
	stage_close(*state);
	return 0;
}

static void append(struct stage *s, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		stage_event(s, &(struct shm_event){.kind = EVENT_RELEASE});
}

static void test_reading_on(void **state)
{
	struct stage *s = *state;
	struct top_events *e = &s->m->events;

	top_events_read(e, &s->t.seg);
	assert_int_equal(top_events_count(e), 0);
	assert_null(top_events_back(e, 0));
	append(s, 3);
	top_events_read(e, &s->t.seg);
	append(s, 2);
	top_events_read(e, &s->t.seg);
	assert_int_equal(top_events_count(e), 5);
	for (size_t i = 0; i < 5; i++)
		assert_int_equal(top_events_back(e, i)->seq, 5 - i);
	assert_null(top_events_back(e, 5));
	assert_int_equal(e->lost, 0);
	/* A full ring and more: the last ones are here, and it is known how many are not. */
	append(s, TOP_EVENTS + 10);
	top_events_read(e, &s->t.seg);
	assert_int_equal(top_events_count(e), TOP_EVENTS);
	assert_int_equal(top_events_back(e, 0)->seq, TOP_EVENTS + 15);
	assert_int_equal(top_events_back(e, TOP_EVENTS - 1)->seq, 16);
	assert_int_equal(e->lost, 10);
}

/* What had been overwritten before we came is not lost to us. */
static void test_coming_late(void **state)
{
	struct stage *s = *state;
	struct top_events *e = &s->m->events;

	append(s, 2 * TOP_EVENTS);
	top_events_read(e, &s->t.seg);
	assert_int_equal(e->lost, 0);
	assert_int_equal(top_events_count(e), TOP_EVENTS);
	top_events_reset(e);
	assert_int_equal(top_events_count(e), 0);
}

static void test_hidden_ones(void **state)
{
	struct stage *s = *state;
	struct top_events *e = &s->m->events;

	append(s, 5);
	top_events_read(e, &s->t.seg);
	e->hidden = 3;
	assert_int_equal(top_events_count(e), 2);
	assert_int_equal(top_events_back(e, 0)->seq, 2);
	assert_null(top_events_back(e, 2));
	e->hidden = 9;
	assert_int_equal(top_events_count(e), 0);
	assert_null(top_events_back(e, 0));
}

static void test_what_is_counted(void **state)
{
	static const struct {
		struct shm_event ev;
		int counter;
	} cases[] = {
	    {{.kind = EVENT_LEASE, .reason = "active"}, COUNTER_ACQUIRE_ACTIVE},
	    {{.kind = EVENT_LEASE, .reason = "prewarmed"}, COUNTER_ACQUIRE_PREWARMED},
	    {{.kind = EVENT_LEASE, .reason = "otherwise"}, -1},
	    {{.kind = EVENT_STATE, .from = SLOT_RESERVED, .to = SLOT_BOOTING}, COUNTER_BOOTS},
	    {{.kind = EVENT_STATE, .from = SLOT_WARM, .to = SLOT_CHECKING}, COUNTER_CHECKS},
	    {{.kind = EVENT_STATE, .from = SLOT_CLOSING, .to = SLOT_FREE}, COUNTER_CLOSES},
	    {{.kind = EVENT_STATE, .from = SLOT_WARM, .to = SLOT_ACTIVE}, -1},
	    {{.kind = EVENT_WORKER_CRASH}, COUNTER_WORKER_CRASHES},
	    {{.kind = EVENT_RELEASE}, -1},
	    {{.kind = 999}, -1},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(top_event_counter(&cases[i].ev), cases[i].counter);
}

static void test_rates(void **state)
{
	struct stage *s = *state;
	struct top_events *e = &s->m->events;
	struct shm_event ev = {.kind = EVENT_LEASE, .reason = "warm"};
	double rate[COUNTERS];

	top_events_rates(e, NOW, rate);
	assert_true(rate[COUNTER_ACQUIRE_WARM] == 0);
	ev.time_ns = NOW - 60 * NS_PER_S; /* long ago */
	stage_event(s, &ev);
	for (uint64_t i = 0; i < 10; i++) {
		ev.time_ns = NOW - 4 * NS_PER_S + i;
		stage_event(s, &ev);
	}
	top_events_read(e, &s->t.seg);
	top_events_rates(e, NOW, rate);
	assert_true(rate[COUNTER_ACQUIRE_WARM] > 1.99 && rate[COUNTER_ACQUIRE_WARM] < 2.01);
	top_events_rates(e, NOW + 60 * NS_PER_S, rate);
	assert_true(rate[COUNTER_ACQUIRE_WARM] == 0);
	e->hidden = 5;
	top_events_rates(e, NOW, rate);
	assert_true(rate[COUNTER_ACQUIRE_WARM] > 0.99 && rate[COUNTER_ACQUIRE_WARM] < 1.01);
}

/* ---- lines ---- */

static void assert_line(const struct shm_event *ev, const char *expected)
{
	struct top_line l;

	top_event_line(ev, &l);
	assert_string_equal(l.text, expected);
}

static void test_lines(void **state)
{
	struct shm_event ev = {.kind = EVENT_STATE,
	    .wall_ms = 86400123,
	    .slot = 3,
	    .from = SLOT_WARM,
	    .to = SLOT_CHECKING,
	    .token = "0123456789abcdef",
	    .reason = "acquire",
	    .pid = 77};

	(void)state;
	assert_line(
	    &ev, "00:00:00.123 state            0123456789abcdef warm->checking acquire pid 77");
	ev = (struct shm_event){
	    .kind = EVENT_WORKER_CRASH, .slot = 3, .code = 9, .reason = "killed"};
	assert_line(&ev, "00:00:00.000 worker_crash                      killed (code 9) slot 3");
	/* What a damaged table holds. */
	memset(&ev, 0xff, sizeof(ev));
	ev.pid = 0;
	ev.code = 0;
	{
		struct top_line l;

		top_event_line(&ev, &l);
		assert_int_equal(strlen(l.text), l.len);
	}
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    WITH(test_reading_on),
	    WITH(test_coming_late),
	    WITH(test_hidden_ones),
	    WITH(test_rates),
	    cmocka_unit_test(test_what_is_counted),
	    cmocka_unit_test(test_lines),
	};

	(void)setenv("TZ", "UTC", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
