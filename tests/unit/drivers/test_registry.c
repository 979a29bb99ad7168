/* Tests of drivers/registry.c, and of what every driver must have. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "drivers/driver.h"

static void test_find_by_name(void **state)
{
	(void)state;
	assert_non_null(driver_find("namespace"));
	assert_string_equal(driver_find("namespace")->name, "namespace");
	assert_non_null(driver_find("boxlite"));
	assert_null(driver_find("auto"));
	assert_null(driver_find(""));
}

static void test_every_driver_is_whole(void **state)
{
	const struct driver *d;
	unsigned int n = 0;

	(void)state;
	for (; (d = driver_at(n)); n++) {
		assert_ptr_equal(driver_find(d->name), d);
		assert_true(d->takes && d->adopt);
		assert_true(d->probe && d->prepare && d->list && d->cleanup && d->finish);
		assert_true(d->start && d->watch_fd && d->kill && d->stats && d->free);
		/* Both or none: what is paused must be resumed. */
		assert_int_equal(!d->pause, !d->resume);
	}
	assert_true(n > 0);
	assert_null(driver_at(n + 1));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_find_by_name),
	    cmocka_unit_test(test_every_driver_is_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
