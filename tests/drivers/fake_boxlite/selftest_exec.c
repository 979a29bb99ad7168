/* selftest: commands and copies. */
#include "tests/drivers/fake_boxlite/selftest.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct runtime *rt;
static struct box *box;
static struct output o;

static int setup(void **state)
{
	(void)state;
	rt = self_runtime();
	box = self_box(rt, "exec", false);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	self_knobs("");
	boxlite_box_free(box);
	assert_int_equal(self_remove(rt, "exec", true), BLX_OK);
	boxlite_runtime_free(rt);
	return 0;
}

static void test_a_command(void **state)
{
	(void)state;
	assert_int_equal(self_shell(rt, box, "cat; echo no >&2; exit 7", "in\n", &o), 7);
	assert_string_equal(o.out, "in\n");
	assert_int_equal(o.err_len, 3);
	assert_int_equal(self_shell(rt, box, "kill -TERM $$", "", &o), -SIGTERM);
	assert_int_equal(
	    self_shell(rt, box, "id -u; hostname; set -- /proc/[0-9]*; echo $#", "", &o), 0);
	assert_string_equal(o.out, "0\nboxlite\n2\n");
}

static void test_its_surroundings(void **state)
{
	const char *env[] = {"A", "b c", "odd"};
	const char *args[] = {"-c", "echo \"$A\"; pwd; id -u"};
	struct blx_command cmd = {.command = "/bin/sh",
	    .args = args,
	    .argc = 2,
	    .env_pairs = env,
	    .env_count = 3,
	    .workdir = "/var",
	    .user = "nobody"};
	struct execution *x = self_exec(box, &cmd, &o);

	(void)state;
	self_await_exit(rt, &o);
	boxlite_execution_free(x);
	assert_string_equal(o.out, "b c\n/var\n65534\n");
}

static void test_what_cannot_be_run(void **state)
{
	struct blx_command cmd = {.command = "/no/such"};
	struct blx_error err = {0};
	struct execution *x = NULL;

	(void)state;
	assert_int_equal(boxlite_box_exec(box, &cmd, &x, &err), BLX_INTERNAL);
	assert_null(x);
	boxlite_error_free(&err);
	cmd.command = NULL;
	assert_int_equal(boxlite_box_exec(box, &cmd, &x, NULL), BLX_INVALID_ARGUMENT);
}

/* However it is cut, it is all there and in order. */
static void test_much_output(void **state)
{
	char line[32];
	size_t at = 0;

	(void)state;
	assert_int_equal(self_shell(rt, box, "seq 100000; seq 5 >&2", "", &o), 0);
	for (int i = 1; i <= 100000; i++) {
		(void)snprintf(line, sizeof(line), "%d\n", i);
		if (strncmp(o.out + at, line, strlen(line)) != 0)
			fail_msg("at %d: %.20s", i, o.out + at);
		at += strlen(line);
	}
	assert_int_equal(o.len, at);
	assert_true(o.chunks > 3);
	self_knobs("chunk=7,order=plain");
	assert_int_equal(self_shell(rt, box, "head -c 70 /dev/zero", "", &o), 0);
	assert_int_equal(o.len, 70);
	assert_true(o.chunks >= 10);
	self_knobs("");
}

/* What is no UTF-8 does not come through; what is cut, only with hold. */
static void test_output_is_text(void **state)
{
	(void)state;
	self_knobs("chunk=1000");
	assert_int_equal(self_shell(rt, box, "printf 'a\\377b\\342\\202\\254'", "", &o), 0);
	assert_string_equal(o.out, "a\xef\xbf\xbd"
				   "b\xe2\x82\xac");
	self_knobs("chunk=1,text=hold");
	assert_int_equal(self_shell(rt, box, "printf '\\342\\202\\254\\342'", "", &o), 0);
	assert_string_equal(o.out, "\xe2\x82\xac\xef\xbf\xbd");
	self_knobs("chunk=1");
	assert_int_equal(self_shell(rt, box, "printf '\\342\\202\\254'", "", &o), 0);
	assert_string_equal(o.out, "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
	self_knobs("text=raw");
	assert_int_equal(self_shell(rt, box, "printf '\\377'", "", &o), 0);
	assert_string_equal(o.out, "\xff");
	self_knobs("");
}

static void test_signals_and_the_end(void **state)
{
	const char *args[] = {"-c", "trap 'echo hup' HUP; echo up; while :; do sleep 0.01; done"};
	struct blx_command cmd = {.command = "sh", .args = args, .argc = 2};
	struct execution *x = self_exec(box, &cmd, &o);
	struct told t = {0};
	struct told w = {0};

	(void)state;
	while (!o.len)
		(void)boxlite_runtime_drain(rt, 5, NULL);
	assert_int_equal(boxlite_execution_signal(x, 0, told_done, &t, NULL), BLX_INVALID_ARGUMENT);
	assert_int_equal(boxlite_execution_signal(x, SIGHUP, told_done, &t, NULL), BLX_OK);
	self_await(rt, &t);
	assert_int_equal(t.code, BLX_OK);
	while (!strstr(o.out, "hup"))
		(void)boxlite_runtime_drain(rt, 5, NULL);
	assert_int_equal(boxlite_execution_wait(x, told_exit_of_wait, &w, NULL), BLX_OK);
	t = (struct told){0};
	assert_int_equal(boxlite_execution_kill(x, told_done, &t, NULL), BLX_OK);
	self_await_exit(rt, &o);
	assert_int_equal(o.exit_code, -SIGKILL);
	self_await(rt, &w);
	assert_int_equal(w.number, -SIGKILL);
	self_await(rt, &t);
	assert_int_equal(boxlite_execution_stdin_close(x, NULL), BLX_OK);
	assert_int_equal(
	    boxlite_execution_stdin_write(x, (const uint8_t *)"x", 1, NULL), BLX_INVALID_STATE);
	boxlite_execution_free(x);
}

static void test_freed_while_it_runs(void **state)
{
	const char *args[] = {"1000"};
	struct blx_command cmd = {.command = "sleep", .args = args, .argc = 1};
	struct execution *x = self_exec(box, &cmd, &o);

	(void)state;
	boxlite_execution_free(x);
	self_await_exit(rt, &o);
	assert_int_equal(o.exit_code, -129);
	assert_int_equal(self_shell(rt, box, "pgrep sleep", "", &o), 1);
	cmd.timeout_secs = 0.2;
	x = self_exec(box, &cmd, &o);
	self_await_exit(rt, &o);
	assert_int_equal(o.exit_code, -SIGKILL);
	boxlite_execution_free(x);
}

static void test_a_terminal(void **state)
{
	const char *args[] = {"-c", "tty; read x; stty size; echo \"<$x>\""};
	struct blx_command cmd = {.command = "sh", .args = args, .argc = 2, .tty = 1};
	struct execution *x = self_exec(box, &cmd, &o);
	struct told t = {0};

	(void)state;
	assert_int_equal(
	    boxlite_execution_tty_resize(x, 0, 80, told_done, &t, NULL), BLX_INVALID_ARGUMENT);
	assert_int_equal(boxlite_execution_tty_resize(x, 33, 99, told_done, &t, NULL), BLX_OK);
	self_await(rt, &t);
	assert_int_equal(t.code, BLX_OK);
	assert_int_equal(
	    boxlite_execution_stdin_write(x, (const uint8_t *)"hi\n", 3, NULL), BLX_OK);
	self_await_exit(rt, &o);
	boxlite_execution_free(x);
	assert_non_null(strstr(o.out, "/dev/pts/0"));
	assert_non_null(strstr(o.out, "33 99"));
	assert_non_null(strstr(o.out, "<hi>"));
}

static void copy(bool into, const char *from, const char *to, enum blx_code code)
{
	struct told t = {0};

	assert_int_equal(
	    (into ? boxlite_copy_into : boxlite_copy_out)(box, from, to, told_done, &t, NULL),
	    BLX_OK);
	self_await(rt, &t);
	if (t.code != code)
		fail_msg("%s to %s: %d, %s", from, to, t.code, t.message);
}

static void test_copies(void **state)
{
	char dir[128];
	char file[160];
	struct stat st;

	(void)state;
	(void)snprintf(dir, sizeof(dir), "%s/tree", self_home);
	(void)snprintf(file, sizeof(file), "%s/tree/f", self_home);
	assert_int_equal(mkdir(dir, 0700), 0);
	assert_int_equal(close(open(file, O_CREAT | O_WRONLY | O_CLOEXEC, 0640)), 0);
	assert_int_equal(truncate(file, 100000), 0);
	copy(true, file, "/opt/deep/name", BLX_OK);
	copy(true, file, "/opt", BLX_OK);
	copy(true, dir, "/srv/", BLX_OK);
	assert_int_equal(
	    self_shell(rt, box, "stat -c '%s %a %u' /opt/deep/name /opt/f /srv/tree/f", "", &o), 0);
	assert_string_equal(o.out, "100000 640 0\n100000 640 0\n100000 640 0\n");
	copy(true, file, "/tmp/f", BLX_UNSUPPORTED);
	copy(true, "/no/such", "/opt/g", BLX_NOT_FOUND);
	/* A link in the box leads nowhere else. */
	assert_int_equal(self_shell(rt, box, "ln -s /home /opt/l; echo x > /home/y", "", &o), 0);
	copy(true, file, "/opt/l/z", BLX_OK);
	assert_int_equal(self_shell(rt, box, "test -f /home/z", "", &o), 0);
	(void)snprintf(file, sizeof(file), "%s/tree/out", self_home);
	copy(false, "/home/y", file, BLX_OK);
	assert_int_equal(stat(file, &st), 0);
	assert_int_equal(st.st_size, 2);
	copy(false, "/srv/tree", dir, BLX_OK);
	copy(false, "/no/such", dir, BLX_NOT_FOUND);
	(void)snprintf(file, sizeof(file), "%s/tree/f", self_home);
	self_knobs("copy=head");
	copy(true, file, "/opt/head", BLX_OK);
	self_knobs("");
	assert_int_equal(self_shell(rt, box, "stat -c %s /opt/head", "", &o), 0);
	assert_string_equal(o.out, "4096\n");
}

int selftest_exec(void)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_a_command),
	    cmocka_unit_test(test_its_surroundings),
	    cmocka_unit_test(test_what_cannot_be_run),
	    cmocka_unit_test(test_much_output),
	    cmocka_unit_test(test_output_is_text),
	    cmocka_unit_test(test_signals_and_the_end),
	    cmocka_unit_test(test_freed_while_it_runs),
	    cmocka_unit_test(test_a_terminal),
	    cmocka_unit_test(test_copies),
	};

	return cmocka_run_group_tests_name("fake boxlite: exec", tests, setup, teardown);
}
