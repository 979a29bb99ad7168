/*
 * image_job: how many orders about images and templates may wait. There is no program that would
 * carry them out, and the loop does not run: all that are ordered stay.
 */
#include <errno.h>

#include "tests/unit/supervisor/sbxd_testing.h"

#define ENOUGH 1000

static const struct pool_rules rules = {.slots = 1, .replicas = 1, .max_boots = 1};

static void on_done(struct sbxd *s, uint64_t ctx, const struct ctl_done *done, const json_t *result)
{
	(void)s;
	(void)ctx;
	(void)done;
	(void)result;
	fail_msg("it is told from the loop, which does not run");
}

static int setup(void **state)
{
	*state = stage_open(&rules);
	return 0;
}

static int teardown(void **state)
{
	stage_close(*state);
	return 0;
}

static int build_one(struct sbxd *s)
{
	const struct pool_spec spec = {.image = "some:image"};
	const struct image_build build = {.spec = &spec, .prepared = -1, .hold = -1};

	return image_job_build(s, &build, &(struct image_hook){.done = on_done});
}

static int list_images(struct sbxd *s)
{
	return image_job_order(s, CTL_IMAGE_LIST, "", &(struct image_hook){.done = on_done});
}

/* How many are taken before one is refused. */
static int count_taken(struct sbxd *s, int (*order)(struct sbxd *s))
{
	int n = 0;
	int rc = 0;

	while (n < ENOUGH && (rc = order(s)) == 0)
		n++;
	assert_int_equal(rc, -EAGAIN);
	return n;
}

static void test_no_more_than_so_many_wait(void **state)
{
	assert_int_equal(count_taken(*state, list_images), 64);
	assert_int_equal(build_one(*state), -EAGAIN);
}

/* Each takes minutes: who orders many must not keep everybody's images from being pulled. */
static void test_templates_leave_places_for_the_others(void **state)
{
	assert_int_equal(count_taken(*state, build_one), 16);
	assert_int_equal(count_taken(*state, list_images), 64 - 16);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_no_more_than_so_many_wait, setup, teardown),
	    cmocka_unit_test_setup_teardown(
		test_templates_leave_places_for_the_others, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
