/* Tests of drivers/namespace/filter.c: the program is loaded, and asked. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "drivers/namespace/filter.h"
#include "drivers/namespace/prepared.h"

static struct sock_filter program[NS_FILTER];
static uint32_t length;

static int build(void **state)
{
	(void)state;
	return filter_build(program, NS_FILTER, &length, NULL);
}

/* Loads the filter in a child and makes one system call there. Its errno, 0 none, or -signal. */
static int ask(long nr, long a, long b, long c)
{
	struct sock_fprog prog = {.len = (unsigned short)length, .filter = program};
	int status = 0;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
		    syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog) < 0)
			_exit(255);
		_exit(syscall(nr, a, b, c, 0, 0) < 0 ? errno : 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFSIGNALED(status))
		return -WTERMSIG(status);
	assert_int_not_equal(WEXITSTATUS(status), 255);
	return WEXITSTATUS(status);
}

static void test_is_short(void **state)
{
	(void)state;
	/* Loading costs time in proportion, for each box. */
	assert_in_range(length, 32, 200);
}

static void test_denies(void **state)
{
	static const long denied[] = {SYS_mount, SYS_umount2, SYS_setns, SYS_unshare, SYS_bpf,
	    SYS_keyctl, SYS_perf_event_open, SYS_userfaultfd, SYS_init_module, SYS_reboot,
	    SYS_open_by_handle_at, SYS_fsopen, SYS_io_uring_setup, SYS_settimeofday, SYS_acct};

	(void)state;
	for (size_t i = 0; i < sizeof(denied) / sizeof(denied[0]); i++)
		assert_int_equal(ask(denied[i], 0, 0, 0), EPERM);
}

static void test_allows_the_usual(void **state)
{
	static const long usual[] = {SYS_getpid, SYS_getuid, SYS_sched_yield, SYS_umask};

	(void)state;
	for (size_t i = 0; i < sizeof(usual) / sizeof(usual[0]); i++)
		assert_int_equal(ask(usual[i], 0, 0, 0), 0);
	assert_int_equal(ask(SYS_ptrace, 16, -1, 0), ESRCH); /* asked of the kernel */
}

static void test_clone_flags(void **state)
{
	(void)state;
	assert_int_equal(ask(SYS_clone3, 0, 0, 0), ENOSYS);
	assert_int_equal(ask(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0), EPERM);
	assert_int_equal(ask(SYS_clone, CLONE_NEWNS | CLONE_NEWPID | SIGCHLD, 0, 0), EPERM);
	/* The upper half of the argument means nothing to the kernel, so it must not help. */
	assert_int_equal(ask(SYS_clone, (long)(CLONE_NEWNET | (1ULL << 40)), 0, 0), EPERM);
	assert_int_equal(ask(SYS_clone, SIGCHLD, 0, 0), 0);
}

static void test_terminal_injection(void **state)
{
	(void)state;
	assert_int_equal(ask(SYS_ioctl, -1, TIOCSTI, 0), EPERM);
	assert_int_equal(ask(SYS_ioctl, -1, (long)(TIOCSTI | (1ULL << 33)), 0), EPERM);
	assert_int_equal(ask(SYS_ioctl, -1, TIOCLINUX, 0), EPERM);
	assert_int_equal(ask(SYS_ioctl, -1, TIOCGWINSZ, 0), EBADF);
}

static void test_too_small_a_buffer(void **state)
{
	struct sock_filter few[8];
	struct err err = {0};
	uint32_t n = 7;

	(void)state;
	assert_int_equal(filter_build(few, 8, &n, &err), -E2BIG);
	assert_int_equal(n, 7);
	assert_int_equal(err.code, E2BIG);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_is_short),
	    cmocka_unit_test(test_denies),
	    cmocka_unit_test(test_allows_the_usual),
	    cmocka_unit_test(test_clone_flags),
	    cmocka_unit_test(test_terminal_injection),
	    cmocka_unit_test(test_too_small_a_buffer),
	};

	return cmocka_run_group_tests(tests, build, NULL);
}
