/* Tests of tools/top_rows.c: which boxes are listed, in which order, and which one is selected. */
#include "tools/top_rows.h"

#include "tests/unit/tools/top_testing.h"

#define SLOTS 16U

struct fixture {
	struct stage s;
	struct top_rows rows;
};

static int setup(void **state)
{
	static struct fixture f;

	stage_open(&f.s, SLOTS);
	top_rows_init(&f.rows);
	*state = &f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	top_rows_free(&f->rows);
	stage_close(&f->s);
	return 0;
}

static void look(struct fixture *f)
{
	stage_look(&f->s, NOW);
	assert_int_equal(top_rows_update(&f->rows, f->s.m), 0);
}

/* The slots of the rows, as "1 2 3". */
static void assert_rows(const struct fixture *f, const char *expected)
{
	char text[128] = "";

	for (size_t i = 0; i < f->rows.count; i++)
		(void)snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%u",
		    i ? " " : "", f->rows.row[i]->seen.slot);
	assert_string_equal(text, expected);
}

static void set_leases(struct fixture *f, uint32_t slot, uint32_t leases)
{
	f->s.t.parts[slot].leases = leases;
	slot_publish_sup(&f->s.t.seg.slots[slot], &f->s.t.parts[slot]);
}

static void test_order(void **state)
{
	struct fixture *f = *state;

	for (uint32_t i = 1; i <= 5; i++)
		stage_put(&f->s, i, SLOT_ACTIVE);
	set_leases(f, 2, 7);
	set_leases(f, 4, 7);
	look(f);
	assert_rows(f, "1 2 3 4 5"); /* all alike: by their places */
	top_rows_sort_by(&f->rows, top_column_find("leases"));
	look(f);
	assert_rows(f, "2 4 1 3 5"); /* numbers: the largest first */
	f->rows.descending = false;
	look(f);
	assert_rows(f, "1 3 5 2 4");
	top_rows_sort_by(&f->rows, top_column_find("user"));
	look(f);
	assert_rows(f, "1 2 3 4 5"); /* texts: the smallest first */
	top_rows_sort_by(&f->rows, top_column_find("age"));
	look(f);
	assert_rows(f, "5 4 3 2 1");
}

static void test_filter(void **state)
{
	static const struct {
		const char *filter;
		const char *rows;
	} cases[] = {
	    {"", "1 2 3 12"},
	    {"|", "1 2 3 12"},
	    {"user-1", "1 12"},
	    {"USER-1", "1 12"},
	    {"user-2|thread-3", "2 3"},
	    {"warm", "2"},
	    {"state:warm", "2"},
	    {"state:active|user:-12", "1 12"},
	    {"user:thread", ""},
	    {"nothing", ""},
	    {"leases:7", "3"},
	    {"7", ""}, /* numbers only where they are asked for */
	    {"b\xc3\xb8"
	     "b",
		"3"},
	    {"nocolumn:x", ""},
	};
	struct fixture *f = *state;

	stage_put(&f->s, 1, SLOT_ACTIVE);
	stage_put(&f->s, 2, SLOT_WARM);
	stage_put(&f->s, 3, SLOT_CHECKING);
	stage_put(&f->s, 12, SLOT_CLOSING);
	(void)strcpy(f->s.t.parts[3].user, "b\xc3\xb8"
					   "b");
	set_leases(f, 3, 7);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		(void)strcpy(f->rows.filter, cases[i].filter);
		look(f);
		assert_rows(f, cases[i].rows);
	}
}

static uint32_t selected_slot(const struct fixture *f)
{
	const struct top_box *b = top_rows_selected(&f->rows);

	return b ? b->seen.slot : SHM_NONE;
}

static void test_the_selected_box_stays_selected(void **state)
{
	struct fixture *f = *state;

	assert_null(top_rows_selected(&f->rows));
	top_rows_move(&f->rows, 1);
	assert_null(top_rows_selected(&f->rows));
	for (uint32_t i = 1; i <= 5; i++)
		stage_put(&f->s, i, SLOT_ACTIVE);
	top_rows_sort_by(&f->rows, top_column_find("leases"));
	look(f);
	assert_int_equal(selected_slot(f), 1);
	/* Nothing is chosen yet: it is whichever stands first. */
	set_leases(f, 3, 9);
	look(f);
	assert_int_equal(selected_slot(f), 3);
	top_rows_move(&f->rows, 2);
	assert_int_equal(selected_slot(f), 2);
	set_leases(f, 2, 99); /* it moves to the front, and stays selected */
	look(f);
	assert_int_equal(f->rows.selected, 0);
	assert_int_equal(selected_slot(f), 2);
	set_leases(f, 5, 100);
	look(f);
	assert_int_equal(selected_slot(f), 2);
	/* Another box in its slot is another box: the one in its place follows. */
	f->s.t.parts[2].generation += 50;
	set_leases(f, 2, 0);
	look(f);
	assert_int_equal(f->rows.selected, 1);
	assert_int_equal(selected_slot(f), 3);
}

static void test_moving_has_ends(void **state)
{
	struct fixture *f = *state;

	for (uint32_t i = 1; i <= 5; i++)
		stage_put(&f->s, i, SLOT_ACTIVE);
	look(f);
	top_rows_move(&f->rows, -3);
	assert_int_equal(f->rows.selected, 0);
	top_rows_move(&f->rows, 100);
	assert_int_equal(f->rows.selected, 4);
	top_rows_move(&f->rows, -1);
	assert_int_equal(f->rows.selected, 3);
	top_rows_select(&f->rows, 50);
	assert_int_equal(f->rows.selected, 4);
	/* Most of them go: the last one that is left. */
	for (uint32_t i = 3; i <= 5; i++)
		slot_publish_sup(&f->s.t.seg.slots[i], &(struct slot_sup){.state = SLOT_FREE});
	look(f);
	assert_int_equal(f->rows.selected, 1);
	assert_int_equal(selected_slot(f), 2);
	(void)strcpy(f->rows.filter, "nothing");
	look(f);
	assert_null(top_rows_selected(&f->rows));
}

static void test_search(void **state)
{
	struct fixture *f = *state;

	assert_false(top_rows_find(&f->rows, "user", true));
	for (uint32_t i = 1; i <= 5; i++)
		stage_put(&f->s, i, i % 2 ? SLOT_ACTIVE : SLOT_WARM);
	look(f);
	assert_true(top_rows_find(&f->rows, "warm", true));
	assert_int_equal(selected_slot(f), 2);
	assert_true(top_rows_find(&f->rows, "warm", true));
	assert_int_equal(selected_slot(f), 2);
	assert_true(top_rows_find(&f->rows, "warm", false));
	assert_int_equal(selected_slot(f), 4);
	assert_true(top_rows_find(&f->rows, "warm", false)); /* from the top again */
	assert_int_equal(selected_slot(f), 2);
	assert_true(top_rows_find(&f->rows, "user-2", false)); /* it is the only one */
	assert_int_equal(selected_slot(f), 2);
	assert_false(top_rows_find(&f->rows, "closing", false));
	assert_int_equal(selected_slot(f), 2);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    WITH(test_order),
	    WITH(test_filter),
	    WITH(test_the_selected_box_stays_selected),
	    WITH(test_moving_has_ends),
	    WITH(test_search),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
