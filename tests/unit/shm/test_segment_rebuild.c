/* Tests of shm/segment_rebuild.c, through a takeover. */
#include "shm/index.h"
#include "shm/warm.h"
#include "tests/unit/shm/attach_testing.h"

/* Boxes as a supervisor has them, with nothing derived from them yet. */
static void publish_boxes(struct segment *s)
{
	static const uint32_t states[SLOTS] = {SLOT_ACTIVE, SLOT_WARM, SLOT_FREE, SLOT_WARM,
	    SLOT_CLOSING, SLOT_WARM, SLOT_STOCK, SLOT_QUARANTINED};

	atomic_store(&s->header->next_generation, SLOTS + 1);
	for (uint32_t i = 0; i < SLOTS; i++) {
		struct slot_sup part = part_make(states[i], i);

		part.parked_ns = 100 - i; /* the last one is the oldest */
		part.index_next = i;	  /* and nonsense in the links */
		part.warm_next = i;
		slot_publish_sup(&s->slots[i], &part);
	}
}

static void assert_rebuilt(const struct segment *s)
{
	uint32_t warm[SLOTS];
	struct err finding = {0};

	if (segment_validate(s, &finding, 1) != 0)
		fail_msg("%s", finding.text);
	assert_int_equal(warm_list(s, warm, SLOTS), 3);
	assert_int_equal(warm[0], 5);
	assert_int_equal(warm[1], 3);
	assert_int_equal(warm[2], 1);
	for (uint32_t i = 0; i < SLOTS; i++) {
		struct slot_sup part = part_make(SLOT_ACTIVE, i);
		bool found = i != 2 && i != 4 && i != 7;

		assert_int_equal(index_find(s, part.owner_uid, part.token), found ? i : SHM_NONE);
	}
	assert_int_equal(atomic_load(&s->header->state_count[SLOT_WARM]), 3);
}

/* Dies in the middle of everything at once. */
static void die_in_the_middle(void *ctx)
{
	struct segment seg;

	if (segment_create(ctx, "unit", SLOTS, 2, &seg, NULL) < 0)
		_exit(1);
	publish_boxes(&seg);
	warm_begin(&seg);
	atomic_store(&seg.header->warm_head, 77);
	atomic_store(&seg.header->warm_tail, 78);
	for (uint32_t i = 0; i < seg.index_buckets; i++)
		atomic_store(&seg.index[i], i);
	atomic_store(&seg.header->state_count[SLOT_WARM], 999);
	atomic_fetch_add(&seg.slots[3].sup_seq, 1);
}

static void test_everything_derived_is_rebuilt_after_kill9(void **state)
{
	struct segment seg;

	die_after(die_in_the_middle, *state);
	assert_int_equal(segment_attach(*state, true, &seg, NULL), 0);
	assert_rebuilt(&seg);
	segment_close(&seg);
}

static void die_taking_over(void *ctx)
{
	struct segment seg;

	(void)setenv("SBX_FAULT", "segment-takeover=kill", 1);
	(void)segment_attach(ctx, true, &seg, NULL);
	_exit(1);
}

static void test_a_successor_that_dies_is_followed_by_another(void **state)
{
	struct segment seg;

	die_after(die_in_the_middle, *state);
	die_after(die_taking_over, *state);
	assert_int_equal(segment_attach(*state, true, &seg, NULL), 0);
	assert_rebuilt(&seg);
	segment_close(&seg);
}

static void die_with_bad_slots(void *ctx)
{
	struct segment seg;
	struct slot_sup part;

	if (segment_create(ctx, "unit", SLOTS, 2, &seg, NULL) < 0)
		_exit(1);
	publish_boxes(&seg);
	part = part_make(SLOT_WARM, 1); /* a worker wrote over its own page: */
	part.generation = UINT64_MAX;	/* never given */
	slot_publish_sup(&seg.slots[1], &part);
	part = part_make(SLOT_WARM, 3);
	part.token[0] = '/'; /* impossible */
	slot_publish_sup(&seg.slots[3], &part);
}

static void test_bad_slots_stand_in_no_list(void **state)
{
	struct segment seg;
	struct slot_sup part;
	uint32_t warm[SLOTS];

	die_after(die_with_bad_slots, *state);
	assert_int_equal(segment_attach(*state, true, &seg, NULL), 0);
	assert_int_equal(warm_list(&seg, warm, SLOTS), 1);
	assert_int_equal(warm[0], 5);
	assert_int_equal(atomic_load(&seg.header->next_generation), SLOTS + 1);
	/* Left as they are: whoever cleans up needs to see them. */
	assert_int_equal(slot_read_sup(&seg.slots[1], &part), 0);
	assert_int_equal(part.generation, UINT64_MAX);
	assert_int_not_equal(segment_validate(&seg, NULL, 0), 0);
	segment_close(&seg);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    WITH(test_everything_derived_is_rebuilt_after_kill9),
	    WITH(test_a_successor_that_dies_is_followed_by_another),
	    WITH(test_bad_slots_stand_in_no_list),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
