/* What is run for its output is bounded in time and in what it says, and root becomes whom it says.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <errno.h>
#include <sys/wait.h>

#include "lib/clock.h"
#include "tools/host_program.h"

#define NOBODY 65534
#define LONG_NS (60 * NS_PER_S)
#define SHORT_NS (200 * NS_PER_MS)
#define ROOM 4096U

static int tell_who(void *ctx, int fd)
{
	uid_t r;
	uid_t e;
	uid_t s;

	(void)ctx;
	if (host_program_become(NOBODY) < 0 || getresuid(&r, &e, &s) < 0)
		return -1;
	return dprintf(fd, "%u %u %u %d %d", r, e, s, getgroups(0, NULL), getsid(0) == getpid());
}

static int fail_it(void *ctx, int fd)
{
	(void)ctx;
	return dprintf(fd, "half") < 0 ? 0 : -1;
}

/* As who reads what is cut meanwhile. */
static int crash(void *ctx, int fd)
{
	(void)ctx;
	(void)fd;
	(void)signal(SIGBUS, SIG_DFL);
	return raise(SIGBUS);
}

/* As a user may do to it whose it is. */
static int stop(void *ctx, int fd)
{
	(void)ctx;
	(void)fd;
	return raise(SIGSTOP);
}

static int say_much(void *ctx, int fd)
{
	static const char much[64 * ROOM];

	(void)ctx;
	return write(fd, much, sizeof(much)) == (ssize_t)sizeof(much) ? 0 : -1;
}

static int call(host_program_fn *fn, uint64_t ns, struct buf *out)
{
	buf_init(out, ROOM);
	return host_program_call(fn, NULL, clock_now_ns() + ns, out);
}

static void assert_no_children(void)
{
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
}

static void test_another_user(void **state)
{
	struct buf out;

	(void)state;
	if (geteuid() != 0)
		skip();
	assert_int_equal(call(tell_who, LONG_NS, &out), 0);
	assert_int_equal(buf_terminate(&out), 0);
	assert_string_equal(buf_head(&out), "65534 65534 65534 0 1");
	buf_free(&out);
	assert_int_equal(geteuid(), 0);
	assert_no_children();
}

static void test_one_that_fails(void **state)
{
	struct buf out;

	(void)state;
	assert_int_equal(call(fail_it, LONG_NS, &out), -EIO);
	buf_free(&out);
	assert_int_equal(call(crash, LONG_NS, &out), -EIO);
	buf_free(&out);
	assert_no_children();
}

static void test_one_that_is_stopped_is_ended(void **state)
{
	struct buf out;

	(void)state;
	assert_int_equal(call(stop, SHORT_NS, &out), -ETIMEDOUT);
	buf_free(&out);
	assert_no_children();
}

static void test_one_that_says_too_much_ends(void **state)
{
	struct buf out;

	(void)state;
	assert_int_equal(call(say_much, LONG_NS, &out), 0);
	assert_int_equal(out.len, ROOM);
	buf_free(&out);
	assert_no_children();
}

static void test_programs(void **state)
{
	char sh[] = "/bin/sh";
	char c[] = "-c";
	char both[] = "echo out; echo err >&2; exit 7";
	char hangs[] = "exec sleep 1000";
	char *one[] = {sh, c, both, NULL};
	char *two[] = {sh, c, hangs, NULL};
	struct buf out;
	struct buf errors;

	(void)state;
	buf_init(&out, ROOM);
	buf_init(&errors, ROOM);
	assert_int_equal(host_program_run(one, clock_now_ns() + LONG_NS, &out, &errors), 7);
	assert_int_equal(out.len, 4);
	assert_memory_equal(buf_head(&out), "out\n", 4);
	assert_memory_equal(buf_head(&errors), "err\n", 4);
	assert_int_equal(
	    host_program_run(two, clock_now_ns() + SHORT_NS, &out, &errors), -ETIMEDOUT);
	buf_free(&out);
	buf_free(&errors);
	assert_no_children();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_another_user),
	    cmocka_unit_test(test_one_that_fails),
	    cmocka_unit_test(test_one_that_is_stopped_is_ended),
	    cmocka_unit_test(test_one_that_says_too_much_ends),
	    cmocka_unit_test(test_programs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
