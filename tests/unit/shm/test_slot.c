/* Tests of shm/slot.c. */
#include <errno.h>

#include "tests/unit/shm/shm_testing.h"

/* Written down apart from the table, as the design says it. */
static const struct {
	uint32_t from;
	uint32_t to;
} allowed[] = {
    {SLOT_FREE, SLOT_RESERVED},
    {SLOT_RESERVED, SLOT_BOOTING},
    {SLOT_RESERVED, SLOT_FREE},
    {SLOT_RESERVED, SLOT_CLOSING},
    {SLOT_RESERVED, SLOT_QUARANTINED},
    {SLOT_BOOTING, SLOT_ACTIVE},
    {SLOT_BOOTING, SLOT_STOCK},
    {SLOT_BOOTING, SLOT_WARM},
    {SLOT_BOOTING, SLOT_CLOSING},
    {SLOT_BOOTING, SLOT_QUARANTINED},
    {SLOT_STOCK, SLOT_CHECKING},
    {SLOT_STOCK, SLOT_ACTIVE},
    {SLOT_STOCK, SLOT_CLOSING},
    {SLOT_ACTIVE, SLOT_WARM},
    {SLOT_ACTIVE, SLOT_CLOSING},
    {SLOT_CHECKING, SLOT_ACTIVE},
    {SLOT_CHECKING, SLOT_WARM},
    {SLOT_CHECKING, SLOT_CLOSING},
    {SLOT_WARM, SLOT_CHECKING},
    {SLOT_WARM, SLOT_ACTIVE},
    {SLOT_WARM, SLOT_CLOSING},
    {SLOT_CLOSING, SLOT_FREE},
    {SLOT_CLOSING, SLOT_RESERVED},
    {SLOT_CLOSING, SLOT_QUARANTINED},
};

static bool is_listed(uint32_t from, uint32_t to)
{
	for (size_t i = 0; i < sizeof(allowed) / sizeof(allowed[0]); i++) {
		if (allowed[i].from == from && allowed[i].to == to)
			return true;
	}
	return false;
}

static void test_every_pair_of_states_is_as_designed(void **state)
{
	(void)state;
	for (uint32_t from = 0; from < SLOT_STATES + 40; from++) {
		for (uint32_t to = 0; to < SLOT_STATES + 40; to++) {
			if (slot_transition_allowed(from, to) != is_listed(from, to))
				fail_msg("%s -> %s", slot_state_name(from), slot_state_name(to));
		}
	}
	assert_false(slot_transition_allowed(UINT32_MAX, SLOT_FREE));
	assert_false(slot_transition_allowed(SLOT_FREE, UINT32_MAX));
}

/* A slot may end in quarantine, but from everywhere else there is a way back to free. */
static void test_every_state_but_quarantine_leads_back_to_free(void **state)
{
	(void)state;
	for (uint32_t start = 0; start < SLOT_STATES; start++) {
		unsigned int reached = 1U << start;

		for (int round = 0; round < SLOT_STATES; round++) {
			for (uint32_t from = 0; from < SLOT_STATES; from++) {
				for (uint32_t to = 0; to < SLOT_STATES; to++) {
					if ((reached & (1U << from)) &&
					    slot_transition_allowed(from, to))
						reached |= 1U << to;
				}
			}
		}
		assert_int_equal((reached & (1U << SLOT_FREE)) != 0, start != SLOT_QUARANTINED);
	}
}

static void test_states_that_count_against_replicas(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < SLOT_STATES + 3; i++)
		assert_int_equal(slot_state_counts(i), i == SLOT_RESERVED || i == SLOT_BOOTING ||
							   i == SLOT_STOCK || i == SLOT_ACTIVE ||
							   i == SLOT_CHECKING || i == SLOT_WARM);
}

static void test_a_fresh_slot_is_free_and_empty(void **state)
{
	struct shm_slot *slot = slot_make();
	struct slot_sup sup;
	struct slot_work work;
	static const struct slot_sup no_sup;
	static const struct slot_work no_work;

	(void)state;
	memset(slot, 0xa5, SHM_PAGE);
	assert_int_equal(slot_init(slot, 17), 0);
	assert_int_equal(slot->slot, 17);
	assert_int_equal(slot_read_sup(slot, &sup), 0);
	assert_memory_equal(&sup, &no_sup, sizeof(sup));
	assert_int_equal(slot_read_work(&slot->page, &work), 0);
	assert_memory_equal(&work, &no_work, sizeof(work));
	slot_unmap(slot);
}

static void test_what_is_published_is_read(void **state)
{
	struct shm_slot *slot = slot_make();
	struct slot_sup sup;
	struct slot_work work;
	struct slot_sup part = part_make(SLOT_ACTIVE, 5);
	struct slot_work wpart = {.generation = 6, .box_pid = 9, .last_error = "none"};

	(void)state;
	slot_publish_sup(slot, &part);
	slot_publish_work(&slot->page, &wpart);
	assert_int_equal(slot_read_sup(slot, &sup), 0);
	assert_memory_equal(&sup, &part, sizeof(sup));
	assert_int_equal(slot_read_work(&slot->page, &work), 0);
	assert_memory_equal(&work, &wpart, sizeof(work));

	part.leases = 3; /* the same box, one word changed */
	slot_publish_sup(slot, &part);
	assert_int_equal(slot_read_sup(slot, &sup), 0);
	assert_memory_equal(&sup, &part, sizeof(sup));
	slot_unmap(slot);
}

static void test_each_publishing_changes_the_counter_and_leaves_it_even(void **state)
{
	struct shm_slot *slot = slot_make();
	struct slot_sup part = part_make(SLOT_ACTIVE, 5);

	(void)state;
	atomic_store(&slot->sup_seq, UINT32_MAX - 3); /* it wraps */
	for (int i = 0; i < 4; i++) {
		uint32_t before = atomic_load(&slot->sup_seq);

		slot_publish_sup(slot, &part);
		assert_int_not_equal(atomic_load(&slot->sup_seq), before);
		assert_int_equal(atomic_load(&slot->sup_seq) & 1U, 0);
	}
	slot_unmap(slot);
}

static void test_an_odd_counter_is_not_read_and_leaves_out_untouched(void **state)
{
	struct shm_slot *slot = slot_make();
	struct slot_sup part = part_make(SLOT_ACTIVE, 5);
	struct slot_sup out;
	struct slot_sup untouched;

	(void)state;
	slot_publish_sup(slot, &part);
	atomic_fetch_add(&slot->sup_seq, 1);
	memset(&out, 0x5a, sizeof(out));
	untouched = out;
	assert_int_equal(slot_read_sup(slot, &out), -EAGAIN);
	assert_memory_equal(&out, &untouched, sizeof(out));
	slot_salvage_sup(slot, &out);
	assert_memory_equal(&out, &part, sizeof(out));

	slot_mend_seq(&slot->sup_seq);
	assert_int_equal(slot_read_sup(slot, &out), 0);
	slot_mend_seq(&slot->sup_seq); /* even already: nothing happens */
	assert_int_equal(slot_read_sup(slot, &out), 0);
	slot_unmap(slot);
}

static void publish_until_killed(void *ctx)
{
	struct slot_sup part = part_make(SLOT_ACTIVE, 8);

	part.last_error[0] = 'x'; /* a difference behind the place where it dies */
	(void)setenv("SBX_FAULT", "slot-publish=kill", 1);
	slot_publish_sup(ctx, &part);
}

static void test_a_writer_killed_in_the_middle_is_seen_and_overwritten(void **state)
{
	struct shm_slot *slot = slot_make();
	struct slot_sup old = part_make(SLOT_ACTIVE, 7);
	struct slot_sup out;

	(void)state;
	slot_publish_sup(slot, &old);
	die_after(publish_until_killed, slot);
	assert_int_equal(atomic_load(&slot->sup_seq) & 1U, 1);
	assert_int_equal(slot_read_sup(slot, &out), -EAGAIN);
	/* The words of two boxes are mixed, and no generation vouches for them. */
	slot_salvage_sup(slot, &out);
	assert_int_equal(out.generation, 0);

	slot_publish_sup(slot, &old);
	assert_int_equal(slot_read_sup(slot, &out), 0);
	assert_memory_equal(&out, &old, sizeof(out));
	slot_unmap(slot);
}

static void test_box_names(void **state)
{
	static const char *const good[] = {"a", "0", "Z9", "my-box", "a.b_c-d", "0123456789abcdef"};
	static const char *const bad[] = {
	    "", "-a", ".a", "_a", "a b", "a/b", "a:b", "\xc3\xa9", "a\n"};
	char name[SLOT_BOX_NAME_MAX + 2];

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		assert_true(slot_box_name_is_sound(good[i]));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(slot_box_name_is_sound(bad[i]));
	memset(name, 'x', sizeof(name));
	name[SLOT_BOX_NAME_MAX + 1] = '\0';
	assert_false(slot_box_name_is_sound(name));
	name[SLOT_BOX_NAME_MAX] = '\0';
	assert_true(slot_box_name_is_sound(name));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_box_names),
	    cmocka_unit_test(test_every_pair_of_states_is_as_designed),
	    cmocka_unit_test(test_every_state_but_quarantine_leads_back_to_free),
	    cmocka_unit_test(test_states_that_count_against_replicas),
	    cmocka_unit_test(test_a_fresh_slot_is_free_and_empty),
	    cmocka_unit_test(test_what_is_published_is_read),
	    cmocka_unit_test(test_each_publishing_changes_the_counter_and_leaves_it_even),
	    cmocka_unit_test(test_an_odd_counter_is_not_read_and_leaves_out_untouched),
	    cmocka_unit_test(test_a_writer_killed_in_the_middle_is_seen_and_overwritten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
