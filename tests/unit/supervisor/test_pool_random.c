/*
 * Random events at a small pool; after each, all of pool_checks.h and pool_inside.h must hold, and
 * in the end nobody may have been left waiting.
 */
#include "tests/unit/supervisor/pool_random.h"

#define SEEDS 2000U

static void test_random_events(void **state)
{
	struct run *x = *state;
	uint64_t first = run_from_environment("SBX_SEED", 1);
	uint64_t seeds = run_from_environment("SBX_SEEDS", SEEDS);

	for (uint64_t i = 0; i < seeds; i++) {
		run_begin(x, first + i);
		run_events(x);
		run_end(x);
	}
}

static int setup(void **state)
{
	struct run *x = calloc(1, sizeof(*x));

	assert_non_null(x);
	run_setup(x);
	x->stock = true;
	x->succession = true;
	*state = x;
	return 0;
}

static int teardown(void **state)
{
	struct run *x = *state;

	run_end(x); /* of a seed that failed */
	free(x);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_random_events, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
