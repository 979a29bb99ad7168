/* Tests of shm/warm.c. */
#include "shm/warm.h"

#include <errno.h>

#include "tests/unit/shm/shm_testing.h"

#define SLOTS 12U

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

static void publish_changed(struct table *t, const uint32_t changed[WARM_CHANGED])
{
	for (int i = 0; i < WARM_CHANGED; i++) {
		if (changed[i] != SHM_NONE)
			slot_publish_sup(&t->seg.slots[changed[i]], &t->parts[changed[i]]);
	}
}

static void park(struct table *t, uint32_t slot)
{
	uint32_t changed[WARM_CHANGED];

	warm_begin(&t->seg);
	t->parts[slot] = part_make(SLOT_WARM, slot);
	warm_append(&t->seg, t->parts, slot, changed);
	publish_changed(t, changed);
	warm_end(&t->seg);
}

static void unpark(struct table *t, uint32_t slot)
{
	uint32_t changed[WARM_CHANGED];

	warm_begin(&t->seg);
	t->parts[slot].state = SLOT_ACTIVE;
	warm_remove(&t->seg, t->parts, slot, changed);
	publish_changed(t, changed);
	warm_end(&t->seg);
}

static void assert_list(const struct table *t, const uint32_t *expected, uint32_t n)
{
	uint32_t got[SLOTS + 1];

	assert_int_equal(warm_list(&t->seg, got, SLOTS + 1), n);
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(got[i], expected[i]);
	assert_int_equal(atomic_load(&t->seg.header->warm_count), n);
	assert_int_equal(atomic_load(&t->seg.header->warm_head), n ? expected[0] : SHM_NONE);
	assert_int_equal(atomic_load(&t->seg.header->warm_tail), n ? expected[n - 1] : SHM_NONE);
}

static void test_random_operations_against_a_model(void **state)
{
	struct table *t = *state;
	uint32_t model[SLOTS] = {0};
	uint32_t n = 0;
	uint64_t seed = 3;

	assert_list(t, model, 0);
	for (int round = 0; round < 4000; round++) {
		uint32_t slot = (uint32_t)(random_next(&seed) % SLOTS);
		uint32_t at = 0;

		while (at < n && model[at] != slot)
			at++;
		if (at == n) {
			park(t, slot);
			model[n++] = slot;
		} else {
			unpark(t, slot);
			n--;
			memmove(model + at, model + at + 1, (n - at) * sizeof(model[0]));
		}
		assert_list(t, model, n);
	}
}

static void test_changed_names_every_part_that_changed(void **state)
{
	struct table *t = *state;
	struct slot_sup before[SLOTS];
	uint32_t changed[WARM_CHANGED];

	for (uint32_t i = 0; i < 5; i++)
		park(t, i);
	for (uint32_t gone = 0; gone < 5; gone++) {
		memcpy(before, t->parts, sizeof(before));
		warm_begin(&t->seg);
		warm_remove(&t->seg, t->parts, gone, changed);
		warm_end(&t->seg);
		for (uint32_t i = 0; i < SLOTS; i++) {
			bool named = i == changed[0] || i == changed[1] || i == changed[2];

			if (memcmp(&before[i], &t->parts[i], sizeof(before[i])) != 0)
				assert_true(named);
		}
	}
}

static void test_a_short_buffer_gets_the_oldest(void **state)
{
	struct table *t = *state;
	uint32_t got[2] = {99, 99};

	for (uint32_t i = 0; i < 5; i++)
		park(t, i);
	assert_int_equal(warm_list(&t->seg, got, 2), 2);
	assert_int_equal(got[0], 0);
	assert_int_equal(got[1], 1);
	assert_int_equal(warm_list(&t->seg, NULL, 0), 0);
}

static void test_a_change_that_is_under_way_is_not_read(void **state)
{
	struct table *t = *state;
	uint32_t got[SLOTS];

	park(t, 1);
	warm_begin(&t->seg);
	assert_int_equal(warm_list(&t->seg, got, SLOTS), -EAGAIN);
	warm_begin(&t->seg); /* a successor finds it odd and begins again */
	assert_int_equal(warm_list(&t->seg, got, SLOTS), -EAGAIN);
	warm_clear(&t->seg);
	warm_end(&t->seg);
	assert_int_equal(warm_list(&t->seg, got, SLOTS), 0);
}

static void test_a_loop_or_a_wild_link_is_no_list(void **state)
{
	struct table *t = *state;
	uint32_t got[SLOTS + 8];

	park(t, 0);
	park(t, 1);
	t->parts[1].warm_next = 0;
	slot_publish_sup(&t->seg.slots[1], &t->parts[1]);
	assert_int_equal(warm_list(&t->seg, got, SLOTS + 8), -EINVAL);
	t->parts[1].warm_next = SLOTS;
	slot_publish_sup(&t->seg.slots[1], &t->parts[1]);
	assert_int_equal(warm_list(&t->seg, got, SLOTS + 8), -EINVAL);
	atomic_store(&t->seg.header->warm_head, SHM_NONE - 1);
	assert_int_equal(warm_list(&t->seg, got, SLOTS + 8), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(
		test_random_operations_against_a_model, setup, teardown),
	    cmocka_unit_test_setup_teardown(
		test_changed_names_every_part_that_changed, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_a_short_buffer_gets_the_oldest, setup, teardown),
	    cmocka_unit_test_setup_teardown(
		test_a_change_that_is_under_way_is_not_read, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_a_loop_or_a_wild_link_is_no_list, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
