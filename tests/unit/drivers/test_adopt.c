/*
 * Tests of drivers/namespace/adopt.c where the conformance suite does not get to: several
 * hierarchies, and none. Plain directories stand for cgroups.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "drivers/namespace/namespace.h"
#include "drivers/namespace/site.h"
#include "lib/fd.h"
#include "lib/proc.h"

#define BOX "sbxd-a-1-f"

static char dir[] = "/tmp/sbxd-test-adopt-XXXXXX";
static struct driver_site site = {.instance = "a", .runtime_dir = dir, .state_dir = dir};

static int setup(void **state)
{
	struct err err = {0};
	int fd;

	(void)state;
	(void)strcpy(strrchr(dir, '-'), "-XXXXXX");
	assert_non_null(mkdtemp(dir));
	fd = site_dir_make(&site, &err);
	assert_true(fd >= 0);
	(void)close(fd);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	return record_remove_tree(AT_FDCWD, dir);
}

static void put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	(void)close(fd);
}

/* A recorded parent in which the box has a cgroup with these processes; NULL: it has none. */
static void add_parent(const char *name, const char *procs)
{
	char parent[80];
	char path[160];

	(void)snprintf(parent, sizeof(parent), "%s/%s", dir, name);
	assert_int_equal(mkdir(parent, 0755), 0);
	(void)snprintf(path, sizeof(path), "%s/namespace-a/cgroups", dir);
	put(path, parent);
	put(path, "\n");
	if (!procs)
		return;
	(void)snprintf(path, sizeof(path), "%s/" BOX, parent);
	assert_int_equal(mkdir(path, 0755), 0);
	(void)strcat(path, "/cgroup.procs");
	put(path, procs);
}

static void assert_adopt(int code, const char *words)
{
	struct err err = {0};

	assert_int_equal(namespace_adopt(&site, BOX, &err), -code);
	assert_int_equal(err.code, code);
	if (words && !strstr(err.text, words))
		fail_msg("%s", err.text);
}

static void test_in_every_hierarchy(void **state)
{
	(void)state;
	add_parent("memory", "12\n14\n");
	add_parent("pids", "12\n");
	assert_adopt(0, NULL);
}

static void test_in_those_of_its_supervisor_only(void **state)
{
	(void)state;
	add_parent("of-another", NULL);
	add_parent("pids", "12\n");
	assert_adopt(0, NULL);
}

static void test_a_parent_that_is_gone(void **state)
{
	char path[80];

	(void)state;
	add_parent("gone", NULL);
	(void)snprintf(path, sizeof(path), "%s/gone", dir);
	assert_int_equal(rmdir(path), 0);
	assert_adopt(ESRCH, BOX);
	add_parent("pids", "12\n");
	assert_adopt(0, NULL);
}

static void test_one_without_a_process(void **state)
{
	(void)state;
	add_parent("memory", "12\n");
	add_parent("pids", "");
	assert_adopt(EUCLEAN, "/pids");
}

static void test_nothing_bears_the_name(void **state)
{
	(void)state;
	assert_adopt(ESRCH, BOX);
	add_parent("memory", NULL);
	assert_adopt(ESRCH, BOX);
}

/* Where a host gives no cgroups. */
static void test_a_record(void **state)
{
	uint64_t start = 0;
	pid_t pid = fork();

	(void)state;
	assert_true(pid >= 0);
	if (pid == 0) {
		(void)pause();
		_exit(0);
	}
	assert_int_equal(proc_start_time(pid, &start), 0);
	assert_int_equal(site_record_write(&site, BOX, pid, start), 0);
	assert_adopt(0, NULL);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitid(P_PID, (id_t)pid, NULL, WEXITED | WNOWAIT), 0);
	assert_adopt(EUCLEAN, "record"); /* it has exited, whether anybody reaps it or not */
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_adopt(EUCLEAN, "record");
	assert_int_equal(site_record_remove(&site, BOX), 0);
	assert_adopt(ESRCH, BOX);
}

/* The pid is somebody else's by now. */
static void test_a_record_of_another_start(void **state)
{
	(void)state;
	assert_int_equal(site_record_write(&site, BOX, getpid(), 1), 0);
	assert_adopt(EUCLEAN, "record");
}

static void test_a_record_that_is_no_record(void **state)
{
	char path[96];

	(void)state;
	(void)snprintf(path, sizeof(path), "%s/namespace-a/boxes/" BOX, dir);
	put(path, "nobody\n");
	assert_adopt(EBADMSG, BOX);
}

#define PLACE(t) cmocka_unit_test_setup_teardown(t, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
	    PLACE(test_in_every_hierarchy),
	    PLACE(test_in_those_of_its_supervisor_only),
	    PLACE(test_a_parent_that_is_gone),
	    PLACE(test_one_without_a_process),
	    PLACE(test_nothing_bears_the_name),
	    PLACE(test_a_record),
	    PLACE(test_a_record_of_another_start),
	    PLACE(test_a_record_that_is_no_record),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
