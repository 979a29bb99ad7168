/* Tests of drivers/namespace/site.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "drivers/namespace/site.h"
#include "lib/fd.h"

static char dir[] = "/tmp/sbxd-test-site-XXXXXX";
static struct driver_site site = {.instance = "a", .runtime_dir = dir, .state_dir = dir};

static int setup(void **state)
{
	(void)state;
	return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	return record_remove_tree(AT_FDCWD, dir);
}

static void test_only_own_names(void **state)
{
	static const char *const foreign[] = {
	    "", "sbxd-a", "sbxd-a-", "sbxd-a-1", "sbxd-a-1-", "sbxd-a--f", "sbxd-a-1-f-",
	    "sbxd-a-1-F", "sbxd-a-1-g", "sbxd-a-x-1", "sbxd-a-1/f", "sbxd-a-1-f/../y",
	    "sbxd-ab-1-f", "sbxd-b-1-f", "sbxd-a-b-1-f", /* of instance a-b */
	    "sbxd-a-1-1-f",				 /* of instance a-1 */
	    "sbxd-a-1-ab-1-f",				 /* of instance a-1-ab */
	};
	char longest[80];

	(void)state;
	assert_true(driver_owns_name(&site, "sbxd-a-0-1"));
	assert_true(driver_owns_name(&site, "sbxd-a-1023-18f00000000000ab"));
	for (size_t i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++) {
		if (driver_owns_name(&site, foreign[i]))
			fail_msg("%s", foreign[i]);
	}
	memset(longest, 'f', sizeof(longest));
	memcpy(longest, "sbxd-a-1-", 9);
	longest[DRIVER_NAME_LEN - 1] = '\0';
	assert_true(driver_owns_name(&site, longest));
	longest[DRIVER_NAME_LEN - 1] = 'f';
	longest[DRIVER_NAME_LEN] = '\0';
	assert_false(driver_owns_name(&site, longest));
}

static void test_records(void **state)
{
	struct record_names names = {0};
	struct err err = {0};
	FD_SCOPED int fd = site_dir_make(&site, &err);
	uint64_t start = 0;
	pid_t pid = 0;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(site_record_read(&site, "sbxd-a-1-1", &pid, &start), -ENOENT);
	assert_int_equal(site_record_write(&site, "sbxd-a-1-1", 77, 123456789012345ULL), 0);
	assert_int_equal(site_record_write(&site, "sbxd-a-1-1", 78, 1), -EEXIST);
	assert_int_equal(site_record_read(&site, "sbxd-a-1-1", &pid, &start), 0);
	assert_int_equal(pid, 77);
	assert_int_equal(start, 123456789012345ULL);
	assert_int_equal(site_record_write(&site, "sbxd-a-2-1", 1, 1), 0);
	assert_int_equal(record_names_add_dir(&names, &site, fd, "boxes"), 0);
	assert_int_equal(record_names_add_dir(&names, &site, fd, "boxes"), 0);
	assert_int_equal(record_names_add_dir(&names, &site, fd, "missing"), 0);
	assert_int_equal(names.count, 2);
	record_names_free(&names);
	assert_int_equal(site_record_remove(&site, "sbxd-a-1-1"), 0);
	assert_int_equal(site_record_remove(&site, "sbxd-a-1-1"), 0);
}

static void test_names_grow(void **state)
{
	struct record_names names = {0};
	char name[32];

	(void)state;
	for (int i = 0; i < 100; i++) {
		(void)snprintf(name, sizeof(name), "sbxd-a-%d", i);
		assert_int_equal(record_names_add(&names, name), 0);
		assert_int_equal(record_names_add(&names, name), 0);
	}
	assert_int_equal(names.count, 100);
	assert_string_equal(names.names[99], "sbxd-a-99");
	record_names_free(&names);
}

static void test_long_runtime_dir(void **state)
{
	struct driver_site far = site;
	char path[NS_PATH];
	char text[400];

	(void)state;
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	far.runtime_dir = text;
	assert_int_equal(site_dir_path(&far, path), -ENAMETOOLONG);
	assert_int_equal(site_dir_open(&far), -ENAMETOOLONG);
}

/* Whatever is in the descriptor, it is not used unless this build has written it. */
static void test_prepared_is_checked(void **state)
{
	struct driver_site s = site;
	struct err err = {0};
	struct ns_prepared *prep = calloc(1, sizeof(*prep));
	const struct ns_prepared *got;

	(void)state;
	assert_non_null(prep);
	s.prepared = -1;
	assert_null(site_prepared_map(&s, &err));
	s.prepared = memfd_create("prepared", MFD_CLOEXEC);
	assert_true(s.prepared >= 0);
	assert_null(site_prepared_map(&s, &err));
	assert_int_equal(err.code, EINVAL);
	assert_int_equal(pwrite(s.prepared, prep, sizeof(*prep), 0), sizeof(*prep));
	assert_null(site_prepared_map(&s, &err));
	prep->magic = NS_MAGIC;
	prep->size = sizeof(*prep);
	assert_int_equal(pwrite(s.prepared, prep, sizeof(*prep), 0), sizeof(*prep));
	got = site_prepared_map(&s, &err);
	assert_non_null(got);
	assert_int_equal(got->cgroup_count, 0);
	site_prepared_unmap(got);
	(void)close(s.prepared);
	free(prep);
}

static void test_remove_tree_does_not_follow_links(void **state)
{
	FD_SCOPED int top = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	(void)state;
	assert_int_equal(mkdirat(top, "keep", 0755), 0);
	assert_int_equal(mkdirat(top, "keep/me", 0755), 0);
	assert_int_equal(mkdirat(top, "drop", 0755), 0);
	assert_int_equal(mkdirat(top, "drop/sub", 0755), 0);
	assert_int_equal(symlinkat("../keep", top, "drop/link"), 0);
	assert_int_equal(record_remove_tree(top, "drop"), 0);
	assert_int_equal(faccessat(top, "drop", F_OK, 0), -1);
	assert_int_equal(faccessat(top, "keep/me", F_OK, 0), 0);
	assert_int_equal(record_remove_tree(top, "drop"), 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_only_own_names),
	    cmocka_unit_test(test_records),
	    cmocka_unit_test(test_names_grow),
	    cmocka_unit_test(test_long_runtime_dir),
	    cmocka_unit_test(test_prepared_is_checked),
	    cmocka_unit_test(test_remove_tree_does_not_follow_links),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
