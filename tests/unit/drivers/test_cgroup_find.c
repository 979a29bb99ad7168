/* Tests of drivers/namespace/cgroup_find.c: the shapes that hosts have. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "drivers/namespace/cgroup_find.h"

static struct cgroup_hierarchy found[CGROUP_HIERARCHIES];

static int parse(const char *mountinfo, const char *own)
{
	char text[4096];

	(void)snprintf(text, sizeof(text), "%s", mountinfo);
	memset(found, 0, sizeof(found));
	return cgroup_find_parse(text, own, found);
}

static void test_v1_with_an_empty_v2(void **state)
{
	(void)state;
	assert_int_equal(
	    parse("27 1 254:0 / / rw - ext4 /dev/vda rw\n"
		  "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw shared:9 - cgroup cgroup "
		  "rw,cpu,cpuacct\n"
		  "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
		  "38 31 0:35 / /sys/fs/cgroup/blkio rw,relatime - cgroup cgroup rw,blkio\n"
		  "40 31 0:37 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,name=systemd\n"
		  "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
		"9:name=systemd:/s\n4:memory:/a/b\n3:blkio:/\n2:cpu,cpuacct:/\n0::/u\n"),
	    3);
	assert_int_equal(found[0].controllers, NS_CG_CPU | NS_CG_CPUACCT);
	assert_string_equal(found[0].own, "/sys/fs/cgroup/cpu,cpuacct");
	assert_int_equal(found[1].controllers, NS_CG_MEMORY);
	assert_string_equal(found[1].top, "/sys/fs/cgroup/memory");
	assert_string_equal(found[1].own, "/sys/fs/cgroup/memory/a/b");
	assert_int_equal(found[2].controllers, NS_CG_V2);
	assert_string_equal(found[2].own, "/sys/fs/cgroup/unified/u");
}

static void test_v2_only(void **state)
{
	(void)state;
	assert_int_equal(
	    parse(
		"30 25 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n",
		"0::/system.slice/sbxd.service\n"),
	    1);
	assert_int_equal(found[0].controllers, NS_CG_V2);
	assert_string_equal(found[0].own, "/sys/fs/cgroup/system.slice/sbxd.service");
}

/* A container without a cgroup namespace sees a part of the hierarchy only. */
static void test_mount_of_a_part(void **state)
{
	static const char mounts[] =
	    "35 31 0:32 /docker/c1 /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n";

	(void)state;
	assert_int_equal(parse(mounts, "4:memory:/docker/c1/x\n"), 1);
	assert_string_equal(found[0].own, "/sys/fs/cgroup/memory/x");
	assert_int_equal(parse(mounts, "4:memory:/docker/c1\n"), 1);
	assert_string_equal(found[0].own, "/sys/fs/cgroup/memory");
	/* Elsewhere: there, but not for us. */
	assert_int_equal(parse(mounts, "4:memory:/docker/c12\n"), 1);
	assert_string_equal(found[0].own, "");
	assert_int_equal(parse(mounts, "4:memory:/../other\n"), 1);
	assert_string_equal(found[0].own, "");
}

static void test_nonsense(void **state)
{
	(void)state;
	assert_int_equal(parse("", ""), 0);
	assert_int_equal(parse("x\n- - -\n1 2 3\n\n", "::\n:\n0\n"), 0);
	assert_int_equal(parse("35 31 0:32 / /m rw - cgroup cgroup rw,memory\n", ""), 0);
}

static void test_this_host(void **state)
{
	(void)state;
	assert_true(cgroup_find_all(found) >= 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_v1_with_an_empty_v2),
	    cmocka_unit_test(test_v2_only),
	    cmocka_unit_test(test_mount_of_a_part),
	    cmocka_unit_test(test_nonsense),
	    cmocka_unit_test(test_this_host),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
