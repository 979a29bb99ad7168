/* Tests of tools/top_summary.c: the lines above the list. */
#include "tools/top_summary.h"

#include "tests/unit/tools/top_testing.h"

#define SLOTS 8U

static const struct top_notice quiet;

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

static void assert_has(const struct top_line *l, const char *part)
{
	if (!strstr(l->text, part))
		fail_msg("\"%s\" has no \"%s\"", l->text, part);
}

static void fill(struct stage *s)
{
	struct shm_header *h = s->t.seg.header;

	atomic_store(&h->replicas, 20);
	atomic_store(&h->waiters, 4);
	atomic_store(&h->started_ns, NOW - 7500 * NS_PER_S);
	atomic_store(&h->state_count[SLOT_FREE], 1);
	atomic_store(&h->state_count[SLOT_ACTIVE], 3);
	atomic_store(&h->state_count[SLOT_WARM], 2);
	atomic_store(&h->state_count[SLOT_BOOTING], 1);
	atomic_store(&h->state_count[SLOT_QUARANTINED], 1);
	for (uint32_t i = 0; i < COUNTERS; i++)
		atomic_store(&h->counters[i], 100 + i);
	atomic_store(&h->hists[HIST_ACQUIRE_WARM].buckets[68], 9);
}

static void test_what_they_say(void **state)
{
	struct stage *s = *state;
	struct top_line lines[TOP_SUMMARY_LONG];
	char text[64];

	fill(s);
	stage_look(s, NOW);
	top_summary_lines(s->m, &quiet, TOP_SUMMARY_LONG, 80, lines);
	(void)snprintf(
	    text, sizeof(text), "sbxd unit serving  pid %d  generation 1  up 2h05m", (int)getpid());
	assert_has(&lines[0], text);
	assert_int_equal(lines[0].columns, 80); /* the clock ends it */
	assert_has(&lines[1], "] 7 of 20 replicas, 8 slots");
	assert_int_equal(lines[1].columns, 80);
	assert_string_equal(lines[2].text, "          3 active 2 warm 1 booting 1 quarantined");
	assert_has(&lines[3], "Hits 74.6%");
	assert_has(&lines[4], " active        0.0       100");
	assert_has(&lines[4], "Booting 1 of 4 failed 107");
	assert_has(&lines[5], " warm          0.0       101  327us  327us  327us");
	assert_has(&lines[5], "Waiters 4 failed 104");
	assert_has(&lines[6], "Crashes 113 recoveries 114");
	assert_has(&lines[7], " cold          0.0       103      -      -      -");
	assert_has(&lines[7], "Cpu 0.0% memory 0");
	assert_has(&lines[8], " boots         0.0       106");
	assert_has(&lines[8], "Evicted 110 idle 111");
	assert_has(&lines[9], "Checks failed 109");
	assert_has(&lines[10], " closes        0.0       112");
	assert_has(&lines[10], "Handed over 116 bad 118");
}

/* 80 columns are enough for what can be expected; more make the bar longer. */
static void test_widths(void **state)
{
	struct stage *s = *state;
	struct top_line lines[TOP_SUMMARY_LONG];

	fill(s);
	stage_look(s, NOW);
	for (int columns = 80; columns <= 300; columns += 20) {
		top_summary_lines(s->m, &quiet, TOP_SUMMARY_LONG, columns, lines);
		for (size_t i = 0; i < TOP_SUMMARY_LONG; i++)
			assert_true(lines[i].columns <= columns);
		assert_int_equal(lines[0].columns, columns);
		assert_int_equal(lines[1].columns, columns);
	}
	for (int columns = 1; columns < 80; columns++)
		top_summary_lines(s->m, &quiet, TOP_SUMMARY_SHORT, columns, lines);
}

/* The bar is to scale: so many of the replicas, in the colours of their states. */
static void test_the_bar(void **state)
{
	struct stage *s = *state;
	struct top_line lines[TOP_SUMMARY_SHORT];
	const struct top_line *l = &lines[1];
	size_t bars = 0;
	size_t room;

	fill(s);
	stage_look(s, NOW);
	top_summary_lines(s->m, &quiet, TOP_SUMMARY_SHORT, 80, lines);
	room = strcspn(strchr(l->text, '['), "]") - 1;
	for (const char *p = l->text; *p; p++)
		bars += *p == '|';
	assert_int_equal(bars, (7 * room + 19) / 20);
	assert_int_equal(l->span[2].style, STYLE_STATE + SLOT_ACTIVE);
	/* More boxes than replicas: it is full, and not more than that. */
	atomic_store(&s->t.seg.header->replicas, 2);
	stage_look(s, NOW);
	top_summary_lines(s->m, &quiet, TOP_SUMMARY_SHORT, 80, lines);
	assert_null(strstr(l->text, "| "));
}

static void test_what_is_wrong_is_said(void **state)
{
	struct stage *s = *state;
	struct top_line lines[TOP_SUMMARY_SHORT];
	struct top_notice n = {.table = "the table is gone", .mode = "PAUSED"};

	stage_look(s, NOW);
	top_model_refresh(s->m, &s->r, NOW + 5 * NS_PER_S);
	top_summary_lines(s->m, &quiet, TOP_SUMMARY_SHORT, 80, lines);
	assert_has(&lines[0], "HUNG");
	assert_has(&lines[0], "last heartbeat 5.0s ago");
	atomic_fetch_add(&s->t.seg.header->supervisor_start, 1);
	stage_look(s, NOW);
	top_summary_lines(s->m, &n, TOP_SUMMARY_SHORT, 100, lines);
	assert_has(&lines[0], "DEAD");
	assert_has(&lines[0], "PAUSED");
	assert_has(&lines[2], "the table is gone");
	atomic_fetch_sub(&s->t.seg.header->supervisor_start, 1);
	atomic_fetch_add(&s->t.seg.slots[1].sup_seq, 1);
	stage_look(s, NOW);
	top_summary_lines(s->m, &quiet, TOP_SUMMARY_SHORT, 80, lines);
	assert_has(&lines[2], "1 unreadable");
}

static void test_before_there_is_a_table(void **state)
{
	struct top_model *m = top_model_create();
	struct top_notice n = {.table = "waiting for sbxd"};
	struct top_line lines[TOP_SUMMARY_LONG];

	(void)state;
	assert_non_null(m);
	top_summary_lines(m, &n, TOP_SUMMARY_LONG, 80, lines);
	assert_string_equal(lines[0].text, "sbxd - no table");
	assert_string_equal(lines[2].text, "          waiting for sbxd");
	top_model_free(m);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    WITH(test_what_they_say),
	    WITH(test_widths),
	    WITH(test_the_bar),
	    WITH(test_what_is_wrong_is_said),
	    cmocka_unit_test(test_before_there_is_a_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
