/* Tests of the tables of names: every value of an enum has a name of its own, others have "?". */
#include "shm/names.h"
#include "shm/ring.h"
#include "tests/unit/shm/shm_testing.h"

static void check_names(const char *(*name)(uint32_t), uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		assert_non_null(name(i));
		assert_int_not_equal(name(i)[0], '\0');
		assert_string_not_equal(name(i), "?");
		for (uint32_t j = 0; j < i; j++)
			assert_string_not_equal(name(i), name(j));
	}
	assert_string_equal(name(count), "?");
	assert_string_equal(name(UINT32_MAX), "?");
}

static void test_every_value_has_its_own_name(void **state)
{
	(void)state;
	check_names(slot_state_name, SLOT_STATES);
	check_names(slot_source_name, SOURCES);
	check_names(ring_kind_name, EVENT_KINDS);
	check_names(shm_counter_name, COUNTERS);
	check_names(shm_hist_name, HISTS);
	check_names(shm_box_status_name, BOX_STATUSES);
}

/* Names that clients see in replies. */
static void test_names_of_the_interface(void **state)
{
	(void)state;
	assert_string_equal(slot_source_name(SOURCE_ACTIVE), "active");
	assert_string_equal(slot_source_name(SOURCE_WARM), "warm");
	assert_string_equal(slot_source_name(SOURCE_PREWARMED), "prewarmed");
	assert_string_equal(slot_source_name(SOURCE_COLD), "cold");
	assert_string_equal(slot_state_name(SLOT_QUARANTINED), "quarantined");
}

/* In the words of the BoxLite Box API. */
static void test_what_a_box_is_at(void **state)
{
	static const struct {
		uint32_t state;
		uint32_t flags;
		const char *status;
	} all[] = {
	    {SLOT_BOOTING, SLOT_FLAG_MADE | SLOT_FLAG_FRESH, "configured"},
	    {SLOT_ACTIVE, SLOT_FLAG_MADE | SLOT_FLAG_FRESH, "configured"},
	    {SLOT_ACTIVE, SLOT_FLAG_MADE, "running"},
	    {SLOT_ACTIVE, 0, "running"},
	    {SLOT_WARM, SLOT_FLAG_ADOPTED, "running"},
	    {SLOT_CHECKING, 0, "running"},
	    {SLOT_ACTIVE, SLOT_FLAG_MADE | SLOT_FLAG_STOPPING, "stopping"},
	    {SLOT_ACTIVE, SLOT_FLAG_MADE | SLOT_FLAG_STOPPED, "stopped"},
	    {SLOT_CLOSING, SLOT_FLAG_MADE | SLOT_FLAG_STOPPED, "stopping"},
	    {SLOT_QUARANTINED, 0, "failed"},
	    {SLOT_STATES, 0, "unknown"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		assert_string_equal(
		    shm_box_status_name(shm_box_status(all[i].state, all[i].flags)), all[i].status);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_every_value_has_its_own_name),
	    cmocka_unit_test(test_names_of_the_interface),
	    cmocka_unit_test(test_what_a_box_is_at),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
