/* Tests of drivers/namespace/cgroup.c on the hierarchies of this host; skipped where none is ours.
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

#include "drivers/namespace/cgroup.h"
#include "drivers/namespace/cgroup_find.h"
#include "lib/clock.h"
#include "lib/fd.h"

#define BOX "sbxd-test-cgroup-1"

static const struct driver_spec spec = {
    .name = BOX, .memory_mib = 64, .disk_mib = 16, .cpus_milli = 1500, .pids_max = 20};

/* One parent in the first hierarchy that has one of the wanted controllers. */
struct place {
	struct ns_prepared prep;
	struct cgroup_set set;
};

static struct place *place_make(uint32_t wanted)
{
	struct cgroup_hierarchy found[CGROUP_HIERARCHIES];
	int count = cgroup_find_all(found);
	struct place *p = calloc(1, sizeof(*p));

	assert_non_null(p);
	cgroup_set_init(&p->set);
	for (int i = 0; i < count; i++) {
		if (!(found[i].controllers & wanted) || !found[i].own[0])
			continue;
		(void)snprintf(p->prep.cgroups[0].parent, NS_PATH, "%.*s/sbxd-test-%d",
		    NS_PATH - 24, found[i].own, (int)getpid());
		if (mkdir(p->prep.cgroups[0].parent, 0755) < 0)
			continue;
		p->prep.cgroups[0].controllers = found[i].controllers;
		p->prep.cgroup_count = 1;
		return p;
	}
	free(p);
	return NULL;
}

static void place_free(struct place *p)
{
	cgroup_set_close(&p->set);
	/* Only an empty one can be removed: the box's is gone. */
	assert_int_equal(rmdir(p->prep.cgroups[0].parent), 0);
	free(p);
}

static uint64_t soon(void)
{
	return clock_now_ns() + 10 * NS_PER_S;
}

static void assert_file(const struct place *p, const char *file, const char *value)
{
	char path[NS_PATH + 96];
	char text[64];

	(void)snprintf(path, sizeof(path), "%s/" BOX "/%s", p->prep.cgroups[0].parent, file);
	assert_true(fd_read_file_at(AT_FDCWD, path, text, sizeof(text)) > 0);
	assert_string_equal(text, value);
}

static void check_limit(uint32_t controller, const char *file, const char *value)
{
	struct place *p = place_make(controller);
	struct err err = {0};

	if (!p)
		skip();
	if (cgroup_make(&p->prep, 0, &spec, &p->set, &err) < 0)
		fail_msg("%s", err.text);
	assert_file(p, file, value);
	assert_int_equal(cgroup_destroy(p->prep.cgroups[0].parent, BOX, soon()), 0);
	assert_int_equal(cgroup_destroy(p->prep.cgroups[0].parent, BOX, soon()), 0);
	place_free(p);
}

/* The scratch is memory too: 64 + 16 MiB. */
static void test_memory_limit(void **state)
{
	(void)state;
	check_limit(NS_CG_MEMORY, "memory.limit_in_bytes", "83886080\n");
}

static void test_pids_limit(void **state)
{
	(void)state;
	check_limit(NS_CG_PIDS, "pids.max", "20\n");
}

static void test_cpu_limit(void **state)
{
	(void)state;
	check_limit(NS_CG_CPU, "cpu.cfs_quota_us", "150000\n");
}

/* Too little for the kernel is the least it takes, not an error. */
static void test_tiny_cpu_limit(void **state)
{
	struct place *p = place_make(NS_CG_CPU);
	struct driver_spec tiny = spec;
	struct err err = {0};

	(void)state;
	if (!p)
		skip();
	tiny.cpus_milli = 1;
	tiny.memory_mib = 0;
	if (cgroup_make(&p->prep, 0, &tiny, &p->set, &err) < 0)
		fail_msg("%s", err.text);
	assert_file(p, "cpu.cfs_quota_us", "1000\n");
	assert_int_equal(cgroup_destroy(p->prep.cgroups[0].parent, BOX, soon()), 0);
	place_free(p);
}

static void check_destroy_kills(uint32_t controller)
{
	struct place *p = place_make(controller);
	struct err err = {0};
	int status = 0;
	pid_t pid;

	if (!p)
		skip();
	assert_int_equal(cgroup_make(&p->prep, 0, &spec, &p->set, &err), 0);
	pid = fork();
	assert_true(pid >= 0);
	while (pid == 0)
		(void)pause();
	assert_int_equal(cgroup_attach(&p->set, 0, pid), 0);
	assert_int_equal(cgroup_destroy(p->prep.cgroups[0].parent, BOX, soon()), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	place_free(p);
}

static void test_destroy_kills_v1(void **state)
{
	(void)state;
	check_destroy_kills(NS_CG_PIDS);
}

static void test_destroy_kills_v2(void **state)
{
	(void)state;
	check_destroy_kills(NS_CG_V2);
}

/* A name that is taken belongs to somebody: neither shared nor destroyed. */
static void test_taken_name(void **state)
{
	struct place *p = place_make(NS_CG_PIDS | NS_CG_V2);
	struct cgroup_set other;
	struct err err = {0};

	(void)state;
	if (!p)
		skip();
	cgroup_set_init(&other);
	assert_int_equal(cgroup_make(&p->prep, 0, &spec, &p->set, &err), 0);
	assert_int_equal(cgroup_make(&p->prep, 0, &spec, &other, &err), -EEXIST);
	assert_int_equal(other.dirs[0], -1);
	assert_int_equal(cgroup_destroy(p->prep.cgroups[0].parent, BOX, soon()), 0);
	place_free(p);
}

static void test_v2_stats(void **state)
{
	struct place *p = place_make(NS_CG_V2);
	struct driver_stats stats = {0};
	struct err err = {0};
	int status = 0;
	pid_t pid;

	(void)state;
	if (!p)
		skip();
	assert_int_equal(cgroup_make(&p->prep, 0, &spec, &p->set, &err), 0);
	cgroup_open_stats(&p->prep, &p->set);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		if (cgroup_attach(&p->set, 0, getpid()) < 0)
			_exit(1);
		for (volatile int i = 0; i < 50000000; i++)
			continue;
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	cgroup_read_stats(&p->set, &stats);
	assert_true(stats.cpu_ns > 0);
	assert_int_equal(cgroup_destroy(p->prep.cgroups[0].parent, BOX, soon()), 0);
	place_free(p);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_memory_limit),
	    cmocka_unit_test(test_pids_limit),
	    cmocka_unit_test(test_cpu_limit),
	    cmocka_unit_test(test_tiny_cpu_limit),
	    cmocka_unit_test(test_destroy_kills_v1),
	    cmocka_unit_test(test_destroy_kills_v2),
	    cmocka_unit_test(test_taken_name),
	    cmocka_unit_test(test_v2_stats),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
