/* Tests of drivers/driver_site.c: options found by their key, and their way to a worker. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "drivers/driver.h"
#include "lib/fd.h"

static const char block[] = "qemu.accel=tcg\0boxlite.url=http://h/?a=b\0boxlite.u=2\0";
static const struct driver_options options = {.data = block, .len = sizeof(block) - 1};

static void test_an_option_is_found_by_its_whole_key(void **state)
{
	static const struct driver_options none;

	(void)state;
	assert_string_equal(driver_option(&options, "boxlite.url"), "http://h/?a=b");
	assert_string_equal(driver_option(&options, "boxlite.u"), "2");
	assert_string_equal(driver_option(&options, "qemu.accel"), "tcg");
	assert_null(driver_option(&options, "boxlite"));
	assert_null(driver_option(&options, "url"));
	assert_null(driver_option(&options, "boxlite.url2"));
	assert_null(driver_option(&none, "qemu.accel"));
}

static void test_a_worker_gets_its_section_and_what_was_found(void **state)
{
	static const char found[] = "boxlite.version=1\0";
	const struct driver_options more = {.data = found, .len = sizeof(found) - 1};
	FD_SCOPED int fd = memfd_create("prepared", MFD_CLOEXEC);
	const struct driver_site site = {.prepared = fd, .options = options};
	struct driver_options got = {0};
	struct err err = {0};

	(void)state;
	for (int i = 0; i < 2; i++) { /* the second replaces the first */
		assert_int_equal(driver_options_save(&site, "boxlite.", &more, &err), 0);
		assert_int_equal(driver_options_load(fd, &got, &err), 0);
		assert_null(driver_option(&got, "qemu.accel"));
		assert_string_equal(driver_option(&got, "boxlite.url"), "http://h/?a=b");
		assert_string_equal(driver_option(&got, "boxlite.version"), "1");
		driver_options_free(&got);
		assert_null(got.data);
	}
	assert_int_equal(driver_options_save(&site, "none.", NULL, &err), 0);
	assert_int_equal(driver_options_load(fd, &got, &err), 0);
	assert_int_equal(got.len, 0);
	driver_options_free(&got);
}

static void test_what_is_not_whole_is_refused(void **state)
{
	FD_SCOPED int fd = memfd_create("prepared", MFD_CLOEXEC);
	struct driver_options got = {0};
	struct err err = {0};

	(void)state;
	assert_int_equal(write(fd, "a=b", 3), 3);
	assert_int_equal(driver_options_load(fd, &got, &err), -EINVAL);
	assert_null(got.data);
	assert_int_equal(driver_options_load(-1, &got, &err), -EBADF);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_an_option_is_found_by_its_whole_key),
	    cmocka_unit_test(test_a_worker_gets_its_section_and_what_was_found),
	    cmocka_unit_test(test_what_is_not_whole_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
