/* Tests of sbxtop over tables that hold anything: whatever is in them is shown, or not, within its
 * bounds. Header constants stay: a table without them is not attached to. */
#include "tests/unit/tools/top_testing.h"
#include "tools/top_json.h"
#include "tools/top_replay.h"
#include "tools/top_rows.h"
#include "tools/top_summary.h"

#define SLOTS 16U
#define ROUNDS 300

static uint64_t seed;

/* Bytes here and there, or everywhere, of some kind. */
static void spoil(void *memory, size_t size)
{
	uint8_t *bytes = memory;
	uint64_t how = random_next(&seed) % 4;
	size_t n = how == 0 ? size : random_next(&seed) % 64;

	for (size_t i = 0; i < n; i++) {
		size_t at = how == 0 ? i : random_next(&seed) % size;

		bytes[at] = how == 1 ? 0xff : (uint8_t)random_next(&seed);
	}
}

/* What stands in the header from where its constants end. */
static void spoil_header(struct shm_header *h)
{
	size_t from = offsetof(struct shm_header, supervisor_pid);
	size_t lock = offsetof(struct shm_header, supervisor_lock);
	size_t list = offsetof(struct shm_header, list_seq);

	spoil((char *)h + from, lock - from); /* we hold the lock, and unlock it at the end */
	spoil((char *)h + list, sizeof(*h) - list);
}

static void spoil_slots(struct segment *seg)
{
	for (uint32_t i = 0; i < seg->slot_count; i++) {
		struct slot_sup *sup = &seg->slots[i].sup;

		spoil(sup, sizeof(*sup));
		spoil(&seg->slots[i].page, sizeof(seg->slots[i].page));
		/* Most of them readable, and of a state that there is. */
		atomic_store(&seg->slots[i].sup_seq, (uint32_t)random_next(&seed) & ~1U);
		atomic_store(&seg->slots[i].page.work_seq, (uint32_t)random_next(&seed) & ~1U);
		if (random_next(&seed) % 4)
			sup->state = (uint32_t)(random_next(&seed) % SLOT_STATES);
		if (random_next(&seed) % 2)
			seg->slots[i].page.work.generation = sup->generation;
	}
}

static void check_line(const struct top_line *l)
{
	assert_int_equal(strlen(l->text), l->len);
	assert_int_equal(top_text_columns(l->text), l->columns);
	for (size_t i = 0; i < l->len; i++)
		assert_true((unsigned char)l->text[i] >= 0x20 && l->text[i] != 0x7f);
	for (size_t i = 0; i < l->spans; i++)
		assert_true(l->span[i].from <= l->len && l->span[i].style < STYLES);
}

static void show_all(const struct top_model *m, const struct top_rows *rows)
{
	struct top_line lines[TOP_SUMMARY_LONG];
	struct top_layout layout;
	struct top_widths w;
	struct top_line line;
	json_t *json;

	top_summary_lines(m, &(struct top_notice){0}, TOP_SUMMARY_LONG, 80, lines);
	for (size_t i = 0; i < TOP_SUMMARY_LONG; i++)
		check_line(&lines[i]);
	for (layout.count = 0; layout.count < top_columns_count(); layout.count++)
		layout.column[layout.count] = (uint8_t)layout.count;
	top_layout_fit(&layout, 0, TOP_LINE_COLUMNS, &w);
	for (size_t i = 0; i < rows->count; i++) {
		top_layout_line(&layout, &w, rows->row[i], &line);
		check_line(&line);
	}
	for (size_t i = 0; i < 50 && top_events_back(&m->events, i); i++) {
		top_event_line(top_events_back(&m->events, i), &line);
		check_line(&line);
	}
	json = top_json(m, rows, "", 10);
	assert_non_null(json);
	json_decref(json);
}

static void test_any_content(void **state)
{
	struct stage s;
	struct top_rows rows;
	struct top_replay replay;

	(void)state;
	seed = 20261130;
	stage_open(&s, SLOTS);
	top_rows_init(&rows);
	s.m->counts_conns = true;
	for (int round = 0; round < ROUNDS; round++) {
		spoil_header(s.t.seg.header);
		spoil_slots(&s.t.seg);
		spoil(s.t.seg.ring, SHM_RING_RECORDS * sizeof(struct shm_event));
		top_model_refresh(s.m, &s.r, round % 2 ? NOW : random_next(&seed));
		top_rows_sort_by(&rows, round % (int)top_columns_count());
		assert_int_equal(top_rows_update(&rows, s.m), 0);
		assert_true(rows.count <= SLOTS);
		show_all(s.m, &rows);
		assert_int_equal(top_replay_begin(&replay, s.m), 0);
		top_replay_seek(&replay, s.m, random_next(&seed) % 200);
		assert_int_equal(top_rows_update(&rows, s.m), 0);
		show_all(s.m, &rows);
		top_replay_end(&replay);
		assert_int_equal(top_model_reset(s.m, SLOTS), 0);
		s.m->counts_conns = true;
	}
	top_rows_free(&rows);
	atomic_store(&s.t.seg.header->supervisor_pid, (int32_t)getpid());
	stage_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_any_content)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
