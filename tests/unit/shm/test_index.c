/* Tests of shm/index.c. */
#include "shm/index.h"

#include "tests/unit/shm/shm_testing.h"

#define SLOTS 40U

static int setup(void **state)
{
	static struct table t;

	table_open(&t, SLOTS);
	*state = &t;
	return 0;
}

static int teardown(void **state)
{
	table_close(*state);
	return 0;
}

static void insert(struct table *t, uint32_t slot, uint32_t n)
{
	t->parts[slot] = part_make(SLOT_ACTIVE, n);
	index_insert(&t->seg, t->parts, slot);
	slot_publish_sup(&t->seg.slots[slot], &t->parts[slot]);
}

/* In the order that index.h asks for. */
static void take_out(struct table *t, uint32_t slot)
{
	uint32_t changed = index_remove(&t->seg, t->parts, slot);

	if (changed != SHM_NONE)
		slot_publish_sup(&t->seg.slots[changed], &t->parts[changed]);
	t->parts[slot] = (struct slot_sup){.index_next = SHM_NONE};
	slot_publish_sup(&t->seg.slots[slot], &t->parts[slot]);
}

static uint32_t find(const struct table *t, uint32_t n)
{
	struct slot_sup part = part_make(SLOT_ACTIVE, n);

	return index_find(&t->seg, part.owner_uid, part.token);
}

/* The n-th number whose token falls into the same bucket as that of number 0. */
static uint32_t same_bucket(const struct table *t, uint32_t nth)
{
	struct slot_sup part = part_make(SLOT_ACTIVE, 0);
	uint32_t bucket = index_bucket(&t->seg, part.owner_uid, part.token);
	uint32_t n = 0;

	while (nth > 0) {
		part = part_make(SLOT_ACTIVE, ++n);
		if (index_bucket(&t->seg, part.owner_uid, part.token) == bucket)
			nth--;
	}
	return n;
}

static void test_an_empty_index_finds_nothing(void **state)
{
	struct table *t = *state;

	assert_int_equal(find(t, 0), SHM_NONE);
	assert_int_equal(index_find(&t->seg, 0, ""), SHM_NONE);
}

static void test_equal_tokens_of_two_owners_are_two_keys(void **state)
{
	struct table *t = *state;
	char token[SHM_TOKEN_LEN];

	insert(t, 3, 7);
	t->parts[4] = part_make(SLOT_ACTIVE, 7);
	t->parts[4].owner_uid = 2000;
	index_insert(&t->seg, t->parts, 4);
	memcpy(token, t->parts[3].token, sizeof(token));
	assert_int_equal(index_find(&t->seg, 1000, token), 3);
	assert_int_equal(index_find(&t->seg, 2000, token), 4);
	assert_int_equal(index_find(&t->seg, 3000, token), SHM_NONE);
}

/* From the head, the middle and the end of one chain. */
static void test_removing_from_a_chain(void **state)
{
	struct table *t = *state;

	for (uint32_t gone = 0; gone < 4; gone++) {
		index_clear(&t->seg);
		for (uint32_t i = 0; i < 4; i++)
			insert(t, i, same_bucket(t, i));
		take_out(t, gone);
		for (uint32_t i = 0; i < 4; i++)
			assert_int_equal(find(t, same_bucket(t, i)), i == gone ? SHM_NONE : i);
		take_out(t, gone); /* it is not there: nothing happens */
		for (uint32_t i = 0; i < 4; i++)
			assert_int_equal(find(t, same_bucket(t, i)), i == gone ? SHM_NONE : i);
	}
}

/* An insertion is complete for readers when it returns: nothing behind the new head is lost. */
static void test_insert_publishes_before_the_head(void **state)
{
	struct table *t = *state;

	insert(t, 0, same_bucket(t, 0));
	t->parts[1] = part_make(SLOT_RESERVED, same_bucket(t, 1));
	index_insert(&t->seg, t->parts, 1);
	assert_int_equal(find(t, same_bucket(t, 0)), 0);
	assert_int_equal(find(t, same_bucket(t, 1)), 1);
}

static void test_a_free_slot_is_not_found_whatever_it_still_holds(void **state)
{
	struct table *t = *state;

	insert(t, 2, 7);
	t->parts[2].state = SLOT_FREE;
	slot_publish_sup(&t->seg.slots[2], &t->parts[2]);
	assert_int_equal(find(t, 7), INDEX_UNSURE);
}

static void test_random_operations_against_a_model(void **state)
{
	struct table *t = *state;
	uint32_t model[SLOTS]; /* the number in each slot, or SHM_NONE */
	uint64_t seed = 5;

	for (uint32_t i = 0; i < SLOTS; i++)
		model[i] = SHM_NONE;
	for (int round = 0; round < 3000; round++) {
		uint32_t slot = (uint32_t)(random_next(&seed) % SLOTS);

		if (model[slot] == SHM_NONE) {
			model[slot] = (uint32_t)round;
			insert(t, slot, (uint32_t)round);
		} else {
			take_out(t, slot);
			assert_int_equal(find(t, model[slot]), SHM_NONE);
			model[slot] = SHM_NONE;
		}
		for (uint32_t i = 0; i < SLOTS; i++) {
			if (model[i] != SHM_NONE)
				assert_int_equal(find(t, model[i]), i);
		}
	}
}

static void test_a_loop_or_a_wild_link_ends(void **state)
{
	struct table *t = *state;
	uint32_t bucket;

	insert(t, 0, same_bucket(t, 0));
	insert(t, 1, same_bucket(t, 1));
	t->parts[0].index_next = 1; /* 1 -> 0 -> 1 */
	slot_publish_sup(&t->seg.slots[0], &t->parts[0]);
	assert_int_equal(find(t, same_bucket(t, 2)), INDEX_UNSURE);
	assert_int_equal(find(t, same_bucket(t, 0)), 0);
	assert_int_equal(index_remove(&t->seg, t->parts, 9), SHM_NONE);

	bucket = index_bucket(&t->seg, t->parts[0].owner_uid, t->parts[0].token);
	atomic_store(&t->seg.index[bucket], SLOTS);
	assert_int_equal(find(t, same_bucket(t, 0)), INDEX_UNSURE);
	atomic_store(&t->seg.index[bucket], SHM_NONE - 1);
	assert_int_equal(find(t, same_bucket(t, 0)), INDEX_UNSURE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_an_empty_index_finds_nothing, setup, teardown),
	    cmocka_unit_test_setup_teardown(
		test_equal_tokens_of_two_owners_are_two_keys, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_removing_from_a_chain, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_insert_publishes_before_the_head, setup, teardown),
	    cmocka_unit_test_setup_teardown(
		test_a_free_slot_is_not_found_whatever_it_still_holds, setup, teardown),
	    cmocka_unit_test_setup_teardown(
		test_random_operations_against_a_model, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_a_loop_or_a_wild_link_ends, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
