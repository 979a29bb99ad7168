/* Where things are: defaults for root and users, instances, what is too long. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/paths.h"

static char *const no_env[] = {NULL};
static char *const xdg_env[] = {"XDG_RUNTIME_DIR=/run/user/7", "XDG_STATE_HOME=/x/state",
    "XDG_CONFIG_HOME=/x/config", "HOME=/home/u", NULL};
static char *const home_env[] = {"HOME=/home/u", NULL};
static char *const relative_env[] = {
    "XDG_RUNTIME_DIR=run", "XDG_STATE_HOME=", "HOME=/home/u", NULL};

static const struct {
	const char *what;
	struct paths_query query;
	struct paths expected;
} cases[] = {
    {"root", {.uid = 0, .env = xdg_env},
	{"/run/sbxd", "/var/lib/sbxd", "/etc/sbxd.yaml", "/run/sbxd/sbxd.sock", "/sbxd-0-default",
	    false}},
    {"root, instance", {.uid = 0, .instance = "a-1"},
	{"/run/sbxd-a-1", "/var/lib/sbxd-a-1", "/etc/sbxd.yaml", "/run/sbxd-a-1/sbxd.sock",
	    "/sbxd-0-a-1", false}},
    {"user with XDG", {.uid = 7, .env = xdg_env},
	{"/run/user/7/sbxd", "/x/state/sbxd", "/x/config/sbxd.yaml", "/run/user/7/sbxd/sbxd.sock",
	    "/sbxd-7-default", false}},
    {"user with HOME", {.uid = 7, .env = home_env},
	{"/tmp/sbxd-7", "/home/u/.local/state/sbxd", "/home/u/.config/sbxd.yaml",
	    "/tmp/sbxd-7/sbxd.sock", "/sbxd-7-default", true}},
    {"relative XDG is ignored", {.uid = 7, .env = relative_env},
	{"/tmp/sbxd-7", "/home/u/.local/state/sbxd", "/home/u/.config/sbxd.yaml",
	    "/tmp/sbxd-7/sbxd.sock", "/sbxd-7-default", true}},
    {"user with nothing", {.uid = 7, .env = no_env, .home = "/h", .instance = "x"},
	{"/tmp/sbxd-7-x", "/h/.local/state/sbxd-x", "/h/.config/sbxd.yaml",
	    "/tmp/sbxd-7-x/sbxd.sock", "/sbxd-7-x", true}},
    {"given", {.uid = 0, .runtime_dir = "/r/", .state_dir = "/s//"},
	{"/r", "/s", "/etc/sbxd.yaml", "/r/sbxd.sock", "/sbxd-0-default", false}},
    {"given root directory", {.uid = 0, .runtime_dir = "/", .state_dir = "/"},
	{"/", "/", "/etc/sbxd.yaml", "//sbxd.sock", "/sbxd-0-default", false}},
};

static void test_defaults(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct paths *e = &cases[i].expected;
		struct paths p;
		struct err err = {0};

		if (paths_resolve(&cases[i].query, &p, &err) != 0)
			fail_msg("%s: %s", cases[i].what, err.text);
		assert_string_equal(p.runtime_dir, e->runtime_dir);
		assert_string_equal(p.state_dir, e->state_dir);
		assert_string_equal(p.config_file, e->config_file);
		assert_string_equal(p.socket, e->socket);
		assert_string_equal(p.shm_name, e->shm_name);
		assert_int_equal(p.shared_tmp, e->shared_tmp);
	}
}

static void test_relative_directories_become_absolute(void **state)
{
	const struct paths_query q = {.runtime_dir = "r/x", .state_dir = "./s"};
	char cwd[256];
	char expected[300];
	struct paths p;

	(void)state;
	assert_non_null(getcwd(cwd, sizeof(cwd)));
	assert_int_equal(paths_resolve(&q, &p, NULL), 0);
	snprintf(expected, sizeof(expected), "%s/r/x", cwd);
	assert_string_equal(p.runtime_dir, expected);
	snprintf(expected, sizeof(expected), "%s/./s", cwd);
	assert_string_equal(p.state_dir, expected);
}

static void test_no_home_is_an_error(void **state)
{
	const struct paths_query q = {.uid = 7, .env = no_env};
	struct paths p;
	struct err err;

	(void)state;
	assert_int_equal(paths_resolve(&q, &p, &err), -EINVAL);
	assert_non_null(strstr(err.text, "HOME"));
}

static void test_a_socket_path_must_fit(void **state)
{
	char dir[120];
	struct paths_query q = {.runtime_dir = dir};
	struct paths p;
	struct err err;

	(void)state;
	memset(dir, 'd', sizeof(dir));
	dir[0] = '/';
	dir[PATHS_SOCKET_LEN - 1 - strlen("/sbxd.sock")] = '\0';
	assert_int_equal(paths_resolve(&q, &p, &err), 0);
	dir[PATHS_SOCKET_LEN - 1 - strlen("/sbxd.sock")] = 'd';
	dir[PATHS_SOCKET_LEN - strlen("/sbxd.sock")] = '\0';
	assert_int_equal(paths_resolve(&q, &p, &err), -ENAMETOOLONG);
}

static void test_instance_names(void **state)
{
	static const char *const good[] = {
	    "a", "0", "default", "a-", "0123456789012345678901234567890"};
	static const char *const bad[] = {
	    "", "-a", "A", "a_b", "a.b", "a/b", "..", "a b", "01234567890123456789012345678901"};

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		assert_true(paths_instance_valid(good[i]));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		const struct paths_query q = {.instance = bad[i]};
		struct paths p;
		struct err err;

		assert_false(paths_instance_valid(bad[i]));
		assert_int_equal(paths_resolve(&q, &p, &err), -EINVAL);
		assert_non_null(strstr(err.text, "instance"));
	}
}

static void test_shm_name_must_fit(void **state)
{
	char name[16];

	(void)state;
	assert_int_equal(paths_shm_name(name, sizeof(name), 1, "12345678"), -ENAMETOOLONG);
	assert_int_equal(paths_shm_name(name, sizeof(name), 1, "1234567"), 0);
	assert_string_equal(name, "/sbxd-1-1234567");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_defaults),
	    cmocka_unit_test(test_relative_directories_become_absolute),
	    cmocka_unit_test(test_no_home_is_an_error),
	    cmocka_unit_test(test_a_socket_path_must_fit),
	    cmocka_unit_test(test_instance_names),
	    cmocka_unit_test(test_shm_name_must_fit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
