/* selftest: it does wrong what it is told to, and only that. */
#include "tests/drivers/fake_boxlite/selftest.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct runtime *rt;
static struct box *box;

static int setup(void **state)
{
	(void)state;
	rt = self_runtime();
	box = self_box(rt, "knobs", false);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	self_knobs("");
	boxlite_box_free(box);
	assert_int_equal(self_remove(rt, "knobs", true), BLX_OK);
	boxlite_runtime_free(rt);
	return 0;
}

static void test_every_code(void **state)
{
	static const char *const names[] = {"Internal", "NotFound", "AlreadyExists", "InvalidState",
	    "InvalidArgument", "Config", "Storage", "Image", "Network", "Execution", "Stopped",
	    "Engine", "Unsupported", "Database", "Portal", "Rpc", "RpcTransport", "Metadata",
	    "UnsupportedEngine", "ResourceExhausted", "SessionReaped"};
	struct told t = {0};
	char knobs[64];

	(void)state;
	assert_int_equal(sizeof(names) / sizeof(names[0]), BLX_CODES - 1);
	for (int i = 1; i < BLX_CODES; i++) {
		(void)snprintf(knobs, sizeof(knobs), "start:fail=%s", names[i - 1]);
		self_knobs(knobs);
		assert_int_equal(self_start(rt, box), i);
		(void)snprintf(knobs, sizeof(knobs), "stop:refuse=%s", names[i - 1]);
		self_knobs(knobs);
		assert_int_equal(boxlite_stop_box(box, told_done, &t, NULL), i);
	}
	assert_int_equal(t.count, 0);
}

static void test_when(void **state)
{
	char path[128];
	char knobs[160];
	FILE *f;

	(void)state;
	(void)snprintf(path, sizeof(path), "%s/once", self_home);
	f = fopen(path, "w");
	assert_non_null(f);
	assert_int_equal(fputs("1", f) >= 0 && fclose(f) == 0, 1);
	(void)snprintf(knobs, sizeof(knobs), "start:fail@%s", path);
	self_knobs(knobs);
	assert_int_equal(self_start(rt, box), BLX_INTERNAL);
	assert_int_equal(self_start(rt, box), BLX_OK);
	self_knobs("start:fail@1");
	assert_int_equal(self_start(rt, box), BLX_OK);
	self_knobs("start:fail@2+");
	assert_int_equal(self_start(rt, box), BLX_INTERNAL);
	self_knobs("stop:fail,version=0.9.9");
	assert_int_equal(self_start(rt, box), BLX_OK);
	assert_string_equal(boxlite_version(), "0.9.9");
}

static void test_silence(void **state)
{
	struct told t = {0};
	struct told u = {0};

	(void)state;
	self_knobs("list:stall");
	assert_int_equal(boxlite_list_info(rt, told_list, &t, NULL), BLX_OK);
	self_knobs("list:mute=Rpc");
	assert_int_equal(boxlite_list_info(rt, told_list, &u, NULL), BLX_OK);
	self_await(rt, &u);
	assert_int_equal(u.code, BLX_RPC);
	assert_string_equal(u.message, "");
	assert_int_equal(t.count, 0);
}

static void test_lies(void **state)
{
	struct blx_command cmd = {.command = "true"};
	struct execution *x = (void *)1;
	struct told t = {0};

	(void)state;
	self_knobs("stop:lie");
	assert_int_equal(self_stop(rt, box), BLX_OK);
	assert_int_equal(self_info(rt, "knobs", &t), BLX_OK);
	assert_string_equal(t.status, "running");
	self_knobs("exec:lie");
	assert_int_equal(boxlite_box_exec(box, &cmd, &x, NULL), BLX_OK);
	assert_null(x);
	self_knobs("list:lie,info:lie,get:lie,create:lie");
	t = (struct told){0};
	assert_int_equal(boxlite_list_info(rt, told_list, &t, NULL), BLX_OK);
	self_await(rt, &t);
	assert_int_equal(t.number, 5);
	assert_int_equal(self_info(rt, "knobs", &t), BLX_OK);
	assert_string_equal(t.name, "somebody-else");
	t = (struct told){0};
	assert_int_equal(boxlite_get(rt, "knobs", told_box, &t, NULL), BLX_OK);
	self_await(rt, &t);
	assert_int_equal(t.code, BLX_OK);
	assert_null(t.box);
	t = (struct told){0};
	assert_int_equal(
	    boxlite_create_box(rt, self_options("lie", false), told_box, &t, NULL), BLX_OK);
	self_await(rt, &t);
	assert_null(t.box);
}

static enum blx_code pull(const char *reference)
{
	struct images *images = NULL;
	struct told t = {0};

	assert_int_equal(boxlite_runtime_images(rt, &images, NULL), BLX_OK);
	assert_int_equal(boxlite_image_pull(images, reference, told_pulled, &t, NULL), BLX_OK);
	boxlite_image_free(images);
	self_await(rt, &t);
	assert_int_equal(t.number, t.code == BLX_OK ? 1 : -1);
	return t.code;
}

/* What has been pulled is there without the registry. */
static void test_images(void **state)
{
	(void)state;
	self_knobs("");
	assert_int_equal(pull("docker.io/python:3"), BLX_OK);
	assert_int_equal(pull("missing:1"), BLX_IMAGE);
	self_knobs("registry=none");
	assert_int_equal(pull("docker.io/python:3"), BLX_OK);
	assert_int_equal(pull("docker.io/python:4"), BLX_NETWORK);
	self_knobs("pull:fail=Rpc");
	assert_int_equal(pull("docker.io/python:3"), BLX_RPC);
}

/* In a process of its own. */
static void test_death(void **state)
{
	static const struct {
		const char *knobs;
		int status;
	} deaths[] = {{"list:abort", SIGABRT}, {"list:kill", SIGKILL}, {"list:exit", 3 << 8}};
	int status;
	pid_t pid;

	(void)state;
	for (size_t i = 0; i < sizeof(deaths) / sizeof(deaths[0]); i++) {
		self_knobs(deaths[i].knobs);
		pid = fork();
		assert_true(pid >= 0);
		if (pid == 0) {
			(void)signal(SIGABRT, SIG_DFL);
			(void)boxlite_list_info(rt, told_list, NULL, NULL);
			_exit(0);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status & ~0x80, deaths[i].status);
	}
}

int selftest_knobs(void)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_every_code),
	    cmocka_unit_test(test_when),
	    cmocka_unit_test(test_silence),
	    cmocka_unit_test(test_lies),
	    cmocka_unit_test(test_images),
	    cmocka_unit_test(test_death),
	};

	return cmocka_run_group_tests_name("fake boxlite: knobs", tests, setup, teardown);
}
