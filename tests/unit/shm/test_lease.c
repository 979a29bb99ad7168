/* Tests of shm/lease.c. */
#include "shm/lease.h"

#include "tests/unit/shm/shm_testing.h"

static void test_a_lease_reads_back(void **state)
{
	struct shm_slot *slot = slot_make();
	struct lease_copy l;

	(void)state;
	assert_false(lease_read(slot, 3, &l));
	lease_publish(slot, 3, 77, 5, 1000);
	assert_true(lease_read(slot, 3, &l));
	assert_int_equal(l.id, 77);
	assert_int_equal(l.cookie, 5);
	assert_int_equal(l.expires_ns, 1000);
	assert_false(lease_read(slot, 2, &l));
	assert_false(lease_read(slot, 4, &l));
	lease_clear(slot, 3);
	assert_false(lease_read(slot, 3, &l));
	lease_clear(slot, 3); /* twice is as once */
	slot_unmap(slot);
}

static void publish_and_die(void *ctx)
{
	(void)setenv("SBX_FAULT", "lease-publish=kill", 1);
	lease_publish(ctx, SHM_LEASES - 1, 9, 1, 2);
}

static void test_a_lease_that_was_half_written_is_none(void **state)
{
	struct shm_slot *slot = slot_make();
	struct lease_copy l;

	(void)state;
	lease_publish(slot, SHM_LEASES - 1, 8, 0, UINT64_MAX);
	die_after(publish_and_die, slot);
	assert_false(lease_read(slot, SHM_LEASES - 1, &l));
	lease_publish(slot, SHM_LEASES - 1, 9, 1, 2);
	assert_true(lease_read(slot, SHM_LEASES - 1, &l));
	assert_int_equal(l.id, 9);
	slot_unmap(slot);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_a_lease_reads_back),
	    cmocka_unit_test(test_a_lease_that_was_half_written_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
