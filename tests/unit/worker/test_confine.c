/* confine: what a worker can, and cannot, do once it has locked itself down. In a child each. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "worker/confine.h"

#define OTHER_UID 65533U

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define FILTERED false /* such a build has no system call filter */
#else
#define FILTERED true
#endif

/* Runs fn confined in a child: 0 when it was content, else the line that was not. */
static int confined(uid_t uid, int (*fn)(void))
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		struct err err = {0};

		_exit(confine_self(uid, &err) < 0 ? 255 : fn());
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* Lines are told apart well enough by their low bits. */
#define NEED(cond)                                   \
	do {                                         \
		if (!(cond))                         \
			return 1 + (__LINE__ % 250); \
	} while (0)

static int needs(void)
{
	struct epoll_event ev = {.events = EPOLLIN};
	char byte = 'x';
	void *p;

	NEED(getrandom(&byte, 1, 0) == 1);
	p = malloc(1 << 20);
	NEED(p);
	free(p);
	p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	NEED(p != MAP_FAILED);
	NEED(munmap(p, 4096) == 0);
	NEED(getpid() > 0);
	NEED(write(-1, &byte, 1) < 0 && errno == EBADF); /* the call itself is allowed */
	NEED(read(-1, &byte, 1) < 0 && errno == EBADF);
	NEED(epoll_ctl(-1, EPOLL_CTL_ADD, 0, &ev) < 0 && errno == EBADF);
	NEED(send(-1, &byte, 1, 0) < 0 && errno == EBADF);
	NEED(accept4(-1, NULL, NULL, SOCK_CLOEXEC) < 0 && errno == EBADF);
	NEED(syscall(SYS_pidfd_send_signal, -1, 0, NULL, 0) < 0 && errno == EBADF);
	return 0;
}

static void test_needs(void **state)
{
	(void)state;
	assert_int_equal(confined(0, needs), 0);
}

static int forbidden(void)
{
	NEED(open("/etc/passwd", O_RDONLY) < 0 && (errno == EPERM || errno == EACCES));
	if (!FILTERED)
		return 0;
	NEED(socket(AF_INET, SOCK_STREAM, 0) < 0 && errno == EPERM);
	NEED(connect(-1, NULL, 0) < 0 && errno == EPERM);
	NEED(listen(-1, 1) < 0 && errno == EPERM);
	NEED(syscall(SYS_execve, "/bin/true", NULL, NULL) < 0 && errno == EPERM);
	NEED(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) < 0 && errno == EPERM);
	NEED(syscall(SYS_pidfd_open, getpid(), 0) < 0 && errno == EPERM);
	NEED(syscall(SYS_ptrace, 0, 0, 0, 0) < 0 && errno == EPERM);
	NEED(syscall(SYS_setns, 0, 0) < 0 && errno == EPERM);
	NEED(syscall(SYS_unshare, 0) < 0 && errno == EPERM);
	NEED(prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) < 0 && errno == EPERM);
	NEED(syscall(0x40000000, 0, 0, 0) < 0 && errno == EPERM); /* x32: read by another number */
	NEED(syscall(100000) < 0 && errno == EPERM);
	NEED(mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) ==
		 MAP_FAILED &&
	     errno == EPERM);
	NEED(syscall(SYS_mprotect, &errno, 1, PROT_EXEC) < 0 && errno == EPERM);
	return 0;
}

static void test_forbidden(void **state)
{
	(void)state;
	assert_int_equal(confined(0, forbidden), 0);
}

static int other_identity(void)
{
	uid_t r = 0;
	uid_t e = 0;
	uid_t s = 0;

	/* The filter forbids asking; without it, ask. */
	if (FILTERED)
		return syscall(SYS_setuid, 0) < 0 && errno == EPERM ? 0 : 1;
	NEED(getresuid(&r, &e, &s) == 0 && r == OTHER_UID && e == OTHER_UID && s == OTHER_UID);
	NEED(getgroups(0, NULL) == 0);
	NEED(setuid(0) < 0);
	return 0;
}

static void test_other_identity(void **state)
{
	(void)state;
	if (getuid() != 0)
		skip();
	assert_int_equal(confined(OTHER_UID, other_identity), 0);
}

/* Without the right to, it says so instead of going on as it is. */
static void test_identity_refused(void **state)
{
	int status;
	pid_t pid;

	(void)state;
	if (getuid() != 0)
		skip();
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct err err = {0};

		if (setresuid(OTHER_UID, OTHER_UID, OTHER_UID) < 0)
			_exit(2);
		_exit(confine_self(OTHER_UID + 1, &err) == -EPERM && err.code == EPERM ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_needs),
	    cmocka_unit_test(test_forbidden),
	    cmocka_unit_test(test_other_identity),
	    cmocka_unit_test(test_identity_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
