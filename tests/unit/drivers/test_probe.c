/* Tests of drivers/namespace/probe.c: a host that cannot run boxes is told why. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "drivers/namespace/namespace.h"
#include "lib/fd.h"

static char dir[] = "/tmp/sbxd-test-probe-XXXXXX";
static struct driver_site site = {
    .instance = "probe", .runtime_dir = dir, .state_dir = dir, .prepared = -1};

static int setup(void **state)
{
	(void)state;
	return mkdtemp(dir) ? 0 : -1;
}

/* Also shows that a probe leaves nothing. */
static int teardown(void **state)
{
	(void)state;
	return rmdir(dir);
}

static void test_root_needs_uids(void **state)
{
	struct driver_facts facts = {.isolation = "untouched"};
	struct err err = {0};

	(void)state;
	if (geteuid() != 0)
		skip();
	assert_int_equal(namespace_probe(&site, &facts, &err), -EINVAL);
	assert_non_null(strstr(err.text, "uid_base"));
	assert_string_equal(facts.isolation, "untouched");
}

/* In a user namespace of its own: the setting ends with it. */
static int child_without_namespaces(struct err *err)
{
	char map[32];
	struct driver_facts facts = {0};

	(void)snprintf(map, sizeof(map), "0 %u 1", geteuid());
	if (unshare(CLONE_NEWUSER) < 0 ||
	    fd_write_file_at(AT_FDCWD, "/proc/self/uid_map", map) < 0 ||
	    fd_write_file_at(AT_FDCWD, "/proc/sys/user/max_user_namespaces", "0") < 0)
		return 77;
	site.uid_base = 1000000;
	return namespace_probe(&site, &facts, err) == -EPERM ? 0 : 1;
}

static void test_says_which_switch(void **state)
{
	struct err err = {0};
	int status = 0;
	pid_t pid = fork();

	(void)state;
	assert_true(pid >= 0);
	if (pid == 0) {
		status = child_without_namespaces(&err);
		if (status == 0 && !strstr(err.text, "sysctl -w user.max_user_namespaces"))
			status = 2;
		_exit(status);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WEXITSTATUS(status) == 77)
		skip(); /* no user namespaces for tests here */
	assert_int_equal(status, 0);
}

static void test_bad_runtime_dir(void **state)
{
	struct driver_site s = site;
	struct driver_facts facts;
	struct err err = {0};

	(void)state;
	s.runtime_dir = "/proc/no-such-directory";
	s.uid_base = geteuid() == 0 ? 1000000 : 0;
	assert_true(namespace_probe(&s, &facts, &err) < 0);
	assert_non_null(strstr(err.text, s.runtime_dir));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_root_needs_uids),
	    cmocka_unit_test(test_says_which_switch),
	    cmocka_unit_test(test_bad_runtime_dir),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
