/* Tests of what the pool records: whose request brought it about. */
#include "tests/unit/supervisor/pool_testing.h"

/* The request that the last record of the event names; for EVENT_STATE, of that way into `to`. */
static uint64_t blamed(const struct rig *r, uint32_t event, uint32_t to)
{
	for (uint32_t i = r->log_count; i-- > 0;) {
		const struct pool_action *a = &r->log[i];

		if (a->kind == POOL_RECORD && a->event == event && a->to == to)
			return a->req;
	}
	fail_msg("no such record");
	return 0;
}

static void test_records_name_the_request_that_a_boot_was_for(void **state)
{
	struct rig *r = *state;
	uint64_t req;

	r->held = HOLD(POOL_SPAWN);
	req = rig_acquire(r, "t");
	rig_acquire(r, "t");
	assert_int_equal(blamed(r, EVENT_STATE, SLOT_RESERVED), req);
	assert_int_equal(blamed(r, EVENT_STATE, SLOT_BOOTING), req);
	rig_crash(r, 0);
	assert_int_equal(blamed(r, EVENT_WORKER_CRASH, 0), req);
	assert_int_equal(blamed(r, EVENT_STATE, SLOT_CLOSING), req);
	pool_boot_failed(r->pool, r->now, 0, rig_box(r, "t")->generation, "no image");
	rig_take_actions(r);
	assert_int_equal(blamed(r, EVENT_BOOT_FAILED, 0), req);
	assert_int_equal(r->log[r->log_count - 1].kind, POOL_REFUSE); /* while req is still known */
	rig_let_go(r);
	req = rig_acquire(r, "t");
	assert_int_equal(blamed(r, EVENT_STATE, SLOT_ACTIVE), req);
}

static void test_records_name_the_request_that_a_check_was_for(void **state)
{
	struct rig *r = *state;
	uint64_t req;

	rig_park(r, "t");
	assert_int_equal(blamed(r, EVENT_STATE, SLOT_WARM), 0);
	r->held = HOLD(POOL_CLEAN);
	r->sick = true;
	req = rig_acquire(r, "t");
	assert_int_equal(blamed(r, EVENT_STATE, SLOT_CHECKING), req);
	assert_int_equal(blamed(r, EVENT_CHECK_FAILED, 0), req);
	assert_int_equal(blamed(r, EVENT_STATE, SLOT_CLOSING), req);
	rig_let_go(r);
	assert_int_equal(blamed(r, EVENT_STATE, SLOT_FREE), 0);
	rig_crash(r, 0); /* in use: it was for nobody's request */
	assert_int_equal(blamed(r, EVENT_WORKER_CRASH, 0), 0);
}

static void test_records_name_the_request_that_made_others_go(void **state)
{
	struct rig *r = *state;
	uint64_t req;

	for (char name[] = "a"; name[0] <= 'c'; name[0]++)
		rig_park(r, name);
	req = rig_acquire(r, "d");
	assert_int_equal(blamed(r, EVENT_EVICT, 0), req);
	assert_int_equal(blamed(r, EVENT_STATE, SLOT_CLOSING), req);
	rig_remove(r, "d", true, &req);
	assert_int_equal(blamed(r, EVENT_STATE, SLOT_CLOSING), req);
	rig_pass(r, 600 * NS_PER_S);
	assert_int_equal(blamed(r, EVENT_EVICT, 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    rig_test(test_records_name_the_request_that_a_boot_was_for),
	    rig_test(test_records_name_the_request_that_a_check_was_for),
	    rig_test(test_records_name_the_request_that_made_others_go),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
