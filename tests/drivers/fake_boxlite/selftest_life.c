/* selftest: runtimes and the life of boxes. */
#include "tests/drivers/fake_boxlite/selftest.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/clock.h"
#include "lib/proc.h"

static void test_a_home_has_one_runtime(void **state)
{
	struct runtime *rt = self_runtime();
	struct runtime *other = NULL;
	struct blx_error err = {0};

	(void)state;
	assert_int_equal(boxlite_runtime_new(self_home, NULL, 0, &other, &err), BLX_INTERNAL);
	assert_non_null(strstr(err.message, "lock"));
	boxlite_error_free(&err);
	assert_null(err.message);
	boxlite_runtime_free(rt);
	boxlite_runtime_free(self_runtime());
	assert_int_equal(boxlite_runtime_new("home", NULL, 0, &other, &err), BLX_INTERNAL);
	boxlite_error_free(&err);
	assert_int_equal(boxlite_runtime_new(self_home, NULL, 0, NULL, NULL), BLX_INVALID_ARGUMENT);
	assert_int_equal(
	    boxlite_runtime_new(self_home, NULL, 1, &other, NULL), BLX_INVALID_ARGUMENT);
	boxlite_runtime_free(NULL);
}

static void test_states(void **state)
{
	struct runtime *rt = self_runtime();
	struct told t = {0};
	struct told info;
	struct box *box;
	char *id;

	(void)state;
	assert_int_equal(
	    boxlite_create_box(rt, self_options("one", false), told_box, &t, NULL), BLX_OK);
	self_await(rt, &t);
	box = t.box;
	assert_int_equal(self_info(rt, "one", &info), BLX_OK);
	assert_string_equal(info.status, "configured");
	assert_int_equal(info.info.pid, 0);
	assert_int_equal(self_start(rt, box), BLX_OK);
	assert_int_equal(self_start(rt, box), BLX_OK);
	id = boxlite_box_id(box);
	id[6] = '\0'; /* its beginning is enough */
	assert_int_equal(self_info(rt, id, &info), BLX_OK);
	boxlite_free_string(id);
	assert_string_equal(info.status, "running");
	assert_string_equal(info.name, "one");
	assert_int_equal(kill(info.info.pid, 0), 0);
	assert_int_equal(self_remove(rt, "one", false), BLX_INVALID_STATE);
	assert_int_equal(self_stop(rt, box), BLX_OK);
	assert_int_equal(self_info(rt, "one", &info), BLX_OK);
	assert_string_equal(info.status, "stopped");
	assert_int_equal(self_remove(rt, "one", false), BLX_OK);
	assert_int_equal(self_remove(rt, "one", true), BLX_NOT_FOUND);
	assert_int_equal(self_start(rt, box), BLX_NOT_FOUND);
	boxlite_box_free(box);
	boxlite_runtime_free(rt);
}

static void test_names_are_one_boxs(void **state)
{
	struct runtime *rt = self_runtime();
	struct box *box = self_box(rt, "one", false);
	struct told t = {0};

	(void)state;
	assert_int_equal(
	    boxlite_create_box(rt, self_options("one", false), told_box, &t, NULL), BLX_OK);
	self_await(rt, &t);
	assert_int_equal(t.code, BLX_ALREADY_EXISTS);
	assert_null(t.box);
	t = (struct told){0};
	assert_int_equal(
	    boxlite_get_or_create_box(rt, self_options("one", false), told_made, &t, NULL), BLX_OK);
	self_await(rt, &t);
	assert_int_equal(t.code, BLX_OK);
	assert_false(t.made);
	boxlite_box_free(t.box);
	t = (struct told){0};
	assert_int_equal(boxlite_get(rt, "two", told_box, &t, NULL), BLX_OK);
	self_await(rt, &t);
	assert_int_equal(t.code, BLX_NOT_FOUND);
	t = (struct told){0};
	assert_int_equal(boxlite_list_info(rt, told_list, &t, NULL), BLX_OK);
	self_await(rt, &t);
	assert_int_equal(t.number, 1);
	boxlite_box_free(box);
	assert_int_equal(self_remove(rt, "one", true), BLX_OK);
	boxlite_runtime_free(rt);
}

/* Neither is both, and one that goes with its process leaves no record. */
static void test_automatic_removal(void **state)
{
	struct runtime *rt = self_runtime();
	struct options *o = self_options("one", true);
	struct told t = {0};

	(void)state;
	boxlite_options_set_auto_remove(o, 1);
	assert_int_equal(boxlite_create_box(rt, o, told_box, &t, NULL), BLX_OK);
	self_await(rt, &t);
	assert_int_equal(t.code, BLX_CONFIG);
	o = self_options("one", false);
	boxlite_options_set_auto_remove(o, 1);
	t = (struct told){0};
	assert_int_equal(boxlite_create_box(rt, o, told_box, &t, NULL), BLX_OK);
	self_await(rt, &t);
	assert_int_equal(self_start(rt, t.box), BLX_OK);
	assert_int_equal(self_stop(rt, t.box), BLX_OK);
	boxlite_box_free(t.box);
	assert_int_equal(self_info(rt, "one", &t), BLX_NOT_FOUND);
	boxlite_runtime_free(rt);
}

/* Starts a box and dies. The box's pid comes back through the pipe. */
static pid_t start_and_die(bool detach, uint64_t *start)
{
	struct told t;
	struct runtime *rt;
	int fds[2];
	int status;
	pid_t child;
	pid_t pid = 0;

	assert_int_equal(pipe(fds), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		rt = self_runtime();
		(void)self_box(rt, "orphan", detach);
		(void)self_info(rt, "orphan", &t);
		(void)proc_start_time(t.info.pid, start);
		(void)!write(fds[1], &t.info.pid, sizeof(t.info.pid));
		(void)!write(fds[1], start, sizeof(*start));
		(void)raise(SIGKILL);
	}
	(void)close(fds[1]);
	assert_int_equal(read(fds[0], &pid, sizeof(pid)), sizeof(pid));
	assert_int_equal(read(fds[0], start, sizeof(*start)), sizeof(*start));
	(void)close(fds[0]);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	return pid;
}

static void assert_gone(pid_t pid, uint64_t start)
{
	int fd = proc_open_exact(pid, start);

	if (fd < 0)
		return;
	assert_int_equal(proc_wait_gone(fd, 60000), 0);
	(void)close(fd);
}

static void test_a_box_dies_with_its_process(void **state)
{
	uint64_t start = 0;
	pid_t pid = start_and_die(false, &start);
	struct runtime *rt;
	struct told t;

	(void)state;
	assert_gone(pid, start);
	rt = self_runtime();
	assert_int_equal(self_info(rt, "orphan", &t), BLX_OK);
	assert_string_equal(t.status, "stopped");
	assert_int_equal(self_remove(rt, "orphan", false), BLX_OK);
	boxlite_runtime_free(rt);
}

static void test_a_detached_box_does_not(void **state)
{
	static struct output o;
	uint64_t start = 0;
	pid_t pid = start_and_die(true, &start);
	struct runtime *rt = self_runtime();
	struct told t;

	(void)state;
	assert_int_equal(self_info(rt, "orphan", &t), BLX_OK);
	assert_string_equal(t.status, "running");
	assert_int_equal(t.info.pid, pid);
	t = (struct told){0};
	assert_int_equal(boxlite_get(rt, "orphan", told_box, &t, NULL), BLX_OK);
	self_await(rt, &t);
	assert_int_equal(self_shell(rt, t.box, "echo alive", "", &o), 0);
	assert_string_equal(o.out, "alive\n");
	boxlite_box_free(t.box);
	assert_int_equal(self_remove(rt, "orphan", true), BLX_OK);
	assert_gone(pid, start);
	boxlite_runtime_free(rt);
}

static void test_a_killed_box_is_stopped(void **state)
{
	struct runtime *rt = self_runtime();
	struct box *box = self_box(rt, "one", false);
	struct told t;
	uint64_t start = 0;

	(void)state;
	assert_int_equal(self_info(rt, "one", &t), BLX_OK);
	assert_int_equal(proc_start_time(t.info.pid, &start), 0);
	assert_int_equal(kill(t.info.pid, SIGKILL), 0);
	assert_gone(t.info.pid, start);
	assert_int_equal(self_info(rt, "one", &t), BLX_OK);
	assert_string_equal(t.status, "stopped");
	boxlite_box_free(box);
	assert_int_equal(self_remove(rt, "one", false), BLX_OK);
	boxlite_runtime_free(rt);
}

static void *drain_for_ever(void *rt)
{
	return (void *)(intptr_t)boxlite_runtime_drain(rt, -1, NULL);
}

static void test_draining(void **state)
{
	struct runtime *rt = self_runtime();
	struct told t = {0};
	pthread_t thread;
	uint64_t begin;

	(void)state;
	assert_int_equal(boxlite_runtime_drain(rt, 0, NULL), 0);
	assert_int_equal(boxlite_runtime_drain(NULL, 0, NULL), -1);
	/* It stays for as long as it may, although something has come. */
	assert_int_equal(boxlite_list_info(rt, told_list, &t, NULL), BLX_OK);
	begin = clock_now_ns();
	assert_int_equal(boxlite_runtime_drain(rt, 300, NULL), 1);
	assert_true(clock_now_ns() - begin >= 300 * NS_PER_MS);
	assert_int_equal(t.count, 1);
	/* A thread that is in it comes back when the runtime is freed. */
	t = (struct told){0};
	assert_int_equal(pthread_create(&thread, NULL, drain_for_ever, rt), 0);
	assert_int_equal(boxlite_list_info(rt, told_list, &t, NULL), BLX_OK);
	while (__atomic_load_n(&t.count, __ATOMIC_ACQUIRE) == 0)
		(void)sched_yield();
	boxlite_runtime_free(rt);
	assert_int_equal(pthread_join(thread, NULL), 0);
}

static void test_a_server_is_met_as_it_wants(void **state)
{
	static const struct {
		const char *url, *key, *prefix;
		enum blx_code code;
	} servers[] = {
	    {NULL, "secret", "team", BLX_NOT_FOUND},
	    {"http://127.0.0.1:8100/", "secret", "team", BLX_NOT_FOUND},
	    {"http://127.0.0.1:9", "secret", "team", BLX_NETWORK},
	    {NULL, "wrong", "team", BLX_CONFIG},
	    {NULL, "secret", "other", BLX_CONFIG},
	};
	struct runtime *rt;
	struct told t;

	(void)state;
	for (size_t i = 0; i < sizeof(servers) / sizeof(servers[0]); i++) {
		rt = self_remote(servers[i].url, servers[i].key, servers[i].prefix);
		assert_int_equal(self_info(rt, "nobody", &t), servers[i].code);
		boxlite_runtime_free(rt);
	}
}

static void test_a_servers_boxes_are_everybodys(void **state)
{
	static struct output o;
	struct runtime *one = self_remote(NULL, "secret", "team");
	struct runtime *two = self_remote(NULL, "secret", "team");
	struct box *box = self_box(one, "far", false);
	struct told t = {0};

	(void)state;
	boxlite_box_free(box);
	boxlite_runtime_free(one);
	assert_int_equal(boxlite_get(two, "far", told_box, &t, NULL), BLX_OK);
	self_await(two, &t);
	assert_int_equal(self_shell(two, t.box, "echo far", "", &o), 0);
	assert_string_equal(o.out, "far\n");
	boxlite_box_free(t.box);
	assert_int_equal(self_remove(two, "far", true), BLX_OK);
	boxlite_runtime_free(two);
}

static void test_variants(void **state)
{
	static const struct {
		const char *name, *has, *lacks;
	} variants[] = {
	    {"standard", "boxlite_box_exec", NULL},
	    {"old", "boxlite_box_exec", NULL},
	    {"new", "boxlite_box_exec", NULL},
	    {"modest", "boxlite_box_exec", "boxlite_get_or_create_box"},
	    {"lacking", "boxlite_create_box", "boxlite_box_exec"},
	};
	const char *dir = getenv("FAKE_BOXLITE_DIR");
	char path[512];
	void *lib;

	(void)state;
	for (size_t i = 0; i < sizeof(variants) / sizeof(variants[0]); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s/libboxlite.so", dir, variants[i].name);
		lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
		if (!lib)
			fail_msg("%s", dlerror());
		assert_non_null(dlsym(lib, variants[i].has));
		assert_true(!variants[i].lacks || !dlsym(lib, variants[i].lacks));
		assert_null(dlsym(lib, "knob_turn"));
		(void)dlclose(lib);
	}
}

int selftest_life(void)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_a_home_has_one_runtime),
	    cmocka_unit_test(test_states),
	    cmocka_unit_test(test_names_are_one_boxs),
	    cmocka_unit_test(test_automatic_removal),
	    cmocka_unit_test(test_a_box_dies_with_its_process),
	    cmocka_unit_test(test_a_detached_box_does_not),
	    cmocka_unit_test(test_a_killed_box_is_stopped),
	    cmocka_unit_test(test_draining),
	    cmocka_unit_test(test_a_server_is_met_as_it_wants),
	    cmocka_unit_test(test_a_servers_boxes_are_everybodys),
	    cmocka_unit_test(test_variants),
	};

	return cmocka_run_group_tests_name("fake boxlite: life", tests, NULL, NULL);
}
