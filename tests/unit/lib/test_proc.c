/* Unit tests of lib/proc.c: a process is named by pid and start time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/fd.h"
#include "lib/proc.h"

/* A child that waits to be killed. */
static pid_t child(void)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			(void)pause();
	}
	return pid;
}

static void test_start_time(void **state)
{
	char old_name[16];
	uint64_t again = 0;
	uint64_t mine = 0;
	uint64_t first = 0;

	(void)state;
	assert_int_equal(proc_start_time(getpid(), &mine), 0);
	assert_int_equal(proc_start_time(1, &first), 0);
	assert_true(mine >= first && mine > 0);
	/* A name that looks like fields must not move them. */
	assert_int_equal(prctl(PR_GET_NAME, old_name), 0);
	assert_int_equal(prctl(PR_SET_NAME, "a) S 1 (b) 2"), 0);
	assert_int_equal(proc_start_time(getpid(), &again), 0);
	assert_int_equal(prctl(PR_SET_NAME, old_name), 0);
	assert_true(again == mine);
	again = 99;
	assert_int_equal(proc_start_time(0x3ffffff, &again), -ESRCH);
	assert_true(again == 99);
}

static void test_exact(void **state)
{
	int before = fd_count_open();
	pid_t pid = child();
	uint64_t start = 0;
	int fd;

	(void)state;
	assert_int_equal(proc_start_time(pid, &start), 0);
	assert_int_equal(proc_open_exact(pid, start + 1), -ESRCH); /* another one had the pid */
	assert_int_equal(proc_open_exact(pid, start - 1), -ESRCH);
	fd = proc_open_exact(pid, start);
	assert_true(fd >= 0);
	assert_int_equal(proc_signal(fd, 0), 0);
	assert_int_equal(proc_wait_gone(fd, 0), -ETIMEDOUT);
	assert_int_equal(proc_signal(fd, SIGKILL), 0);
	assert_int_equal(proc_wait_gone(fd, 10000), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(proc_signal(fd, 0), -ESRCH);
	assert_int_equal(proc_wait_gone(fd, 0), 0);
	assert_int_equal(proc_open_exact(pid, start), -ESRCH);
	fd_close(&fd);
	assert_int_equal(fd_count_open(), before);
	assert_int_equal(proc_signal(-1, 0), -EBADF);
}

static void assert_was_killed(int sig, bool killed)
{
	int pair[2];
	pid_t pid;
	int fd;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		(void)close(pair[0]);
		(void)!read(pair[1], pair, 1);
		_exit(0);
	}
	(void)close(pair[1]);
	fd = (int)syscall(SYS_pidfd_open, pid, 0);
	assert_true(fd >= 0);
	assert_false(proc_was_killed(fd, pair[0]));
	assert_int_equal(sig ? kill(pid, sig) : shutdown(pair[0], SHUT_WR), 0);
	assert_int_equal(proc_wait_gone(fd, 10000), 0);
	assert_int_equal(proc_was_killed(fd, pair[0]), killed);
	assert_int_equal(proc_was_killed(fd, pair[0]), killed); /* it is still to be reaped */
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_false(proc_was_killed(fd, pair[0]));
	(void)close(fd);
	(void)close(pair[0]);
}

static void test_was_killed(void **state)
{
	(void)state;
	assert_was_killed(SIGKILL, true);
	assert_was_killed(SIGTERM, false);
	assert_was_killed(0, false);
	assert_false(proc_was_killed(-1, -1));
}

/* Its pid lives on as the id of its session: a process it is not. */
static void test_leader_whose_session_lives(void **state)
{
	uint64_t start = 0;
	int to_leader[2];
	int to_member[2];
	pid_t leader;
	char byte;

	(void)state;
	assert_int_equal(pipe(to_leader), 0);
	assert_int_equal(pipe(to_member), 0);
	leader = fork();
	assert_true(leader >= 0);
	if (leader == 0) {
		(void)close(to_member[1]);
		(void)setsid();
		if (fork() == 0) /* the member: until the test ends */
			_exit((int)read(to_member[0], &byte, 1));
		(void)!read(to_leader[0], &byte, 1);
		_exit(0);
	}
	assert_int_equal(proc_start_time(leader, &start), 0);
	assert_int_equal(write(to_leader[1], "", 1), 1);
	assert_int_equal(waitpid(leader, NULL, 0), leader);
	assert_int_equal(kill(-leader, 0), 0); /* the group is there */
	assert_int_equal(proc_open_exact(leader, start), -ESRCH);
	(void)close(to_member[1]);
	(void)close(to_member[0]);
	(void)close(to_leader[0]);
	(void)close(to_leader[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_start_time),
	    cmocka_unit_test(test_exact),
	    cmocka_unit_test(test_was_killed),
	    cmocka_unit_test(test_leader_whose_session_lives),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
