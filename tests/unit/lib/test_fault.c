/* Unit tests of lib/fault.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/fault.h"

static char file[64];

/* In `text` a * stands for the file. */
static void arm(const char *text)
{
	char spec[512] = "";

	for (const char *p = text; *p; p++) {
		size_t n = strlen(spec);

		(void)snprintf(
		    spec + n, sizeof(spec) - n, "%.*s", *p == '*' ? 64 : 1, *p == '*' ? file : p);
	}
	assert_int_equal(setenv("SBX_FAULT", spec, 1), 0);
}

static void set_byte(off_t at, char byte)
{
	int fd = open(file, O_RDWR);

	assert_int_equal(pwrite(fd, &byte, 1, at), 1);
	(void)close(fd);
}

static char get_byte(off_t at)
{
	char byte = 'x';
	int fd = open(file, O_RDONLY);

	assert_int_equal(pread(fd, &byte, 1, at), 1);
	(void)close(fd);
	return byte;
}

/* How a child ends that passes `name` as `role`: 0, 1 when it was told to fail, or its signal. */
static int pass_as(const char *role, const char *name)
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		if (role)
			fault_role(role);
		_exit(fault_hit(name) ? 1 : 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
}

static int make_file(void **state)
{
	int fd;

	(void)state;
	(void)snprintf(file, sizeof(file), "/tmp/sbxd-test-fault.XXXXXX");
	fd = mkstemp(file);
	return fd < 0 || write(fd, "0000", 4) != 4 || close(fd) < 0;
}

static int remove_file(void **state)
{
	(void)state;
	(void)unsetenv("SBX_FAULT");
	return unlink(file);
}

static void test_nothing_is_armed(void **state)
{
	(void)state;
	assert_int_equal(pass_as(NULL, "a"), 0);
	for (size_t i = 0; i < 6; i++) {
		static const char *const odd[] = {"", ",", "a", "=kill", "/=kill", "a/b"};

		arm(odd[i]);
		assert_int_equal(pass_as(NULL, "a"), 0);
	}
}

static void test_actions_are_for_their_name(void **state)
{
	(void)state;
	arm("a=kill,bb=fail,c=pass");
	assert_int_equal(pass_as(NULL, "a"), SIGKILL);
	assert_int_equal(pass_as(NULL, "bb"), 1);
	assert_int_equal(pass_as(NULL, "c"), 0);
	assert_int_equal(pass_as(NULL, "b"), 0);
	assert_int_equal(pass_as(NULL, "bbb"), 0);
}

static void test_the_variable_may_change(void **state)
{
	(void)state;
	arm("a=fail");
	assert_true(fault_hit("a"));
	arm("b=fail");
	assert_false(fault_hit("a"));
	assert_true(fault_hit("b"));
}

static void test_a_role_has_its_own(void **state)
{
	(void)state;
	arm("worker/a=kill,sbxd/a=fail");
	assert_int_equal(pass_as("worker", "a"), SIGKILL);
	assert_int_equal(pass_as("sbxd", "a"), 1);
	assert_int_equal(pass_as("janitor", "a"), 0);
	assert_int_equal(pass_as(NULL, "a"), 0);
	arm("a=fail");
	assert_int_equal(pass_as("janitor", "a"), 1);
}

static void test_once_and_only_when_the_byte_says_so(void **state)
{
	(void)state;
	arm("a=fail@*");
	assert_int_equal(pass_as(NULL, "a"), 0);
	set_byte(0, '1');
	assert_int_equal(pass_as(NULL, "b"), 0);
	assert_int_equal(pass_as(NULL, "a"), 1);
	assert_int_equal(get_byte(0), '0');
	assert_int_equal(pass_as(NULL, "a"), 0);
}

static void test_each_has_its_byte(void **state)
{
	(void)state;
	arm("worker/a=fail@*+1,a=pass@*+3");
	set_byte(1, '1');
	set_byte(3, '1');
	assert_int_equal(pass_as("sbxd", "a"), 0);
	assert_int_equal(get_byte(1), '1');
	assert_int_equal(get_byte(3), '0');
	assert_int_equal(pass_as("worker", "a"), 1);
	assert_int_equal(get_byte(1), '0');
}

static void test_armed_while_it_runs(void **state)
{
	(void)state;
	arm("a=fail@*+2");
	assert_false(fault_hit("a"));
	set_byte(2, '1');
	assert_true(fault_hit("a"));
	assert_false(fault_hit("a"));
}

static void test_without_its_file_it_never_acts(void **state)
{
	(void)state;
	arm("a=kill@/no/such/file,b=fail@*+4096");
	assert_int_equal(pass_as(NULL, "a"), 0);
	assert_int_equal(pass_as(NULL, "b"), 0);
}

static void test_how_slow_is_within_bounds(void **state)
{
	static const struct {
		const char *text;
		unsigned int factor;
	} said[] = {{"10", 10}, {"1", 1}, {"0", 1}, {"", 1}, {"slow", 1}, {"100000000000", 100}};

	(void)state;
	for (size_t i = 0; i < sizeof(said) / sizeof(said[0]); i++) {
		assert_int_equal(setenv("SBX_TEST_SLOW", said[i].text, 1), 0);
		assert_int_equal(FAULT_SLOW(), said[i].factor);
	}
	assert_int_equal(unsetenv("SBX_TEST_SLOW"), 0);
	assert_int_equal(FAULT_SLOW(), 1);
}

#define WITH_FILE(test) cmocka_unit_test_setup_teardown(test, make_file, remove_file)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    WITH_FILE(test_nothing_is_armed),
	    WITH_FILE(test_actions_are_for_their_name),
	    WITH_FILE(test_the_variable_may_change),
	    WITH_FILE(test_a_role_has_its_own),
	    WITH_FILE(test_once_and_only_when_the_byte_says_so),
	    WITH_FILE(test_each_has_its_byte),
	    WITH_FILE(test_armed_while_it_runs),
	    WITH_FILE(test_without_its_file_it_never_acts),
	    cmocka_unit_test(test_how_slow_is_within_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
