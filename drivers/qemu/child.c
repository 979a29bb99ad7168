/*
 * child: from the clone to the exec of QEMU. In the cloned process, which is killed when the worker
 * dies. What it inherits is the worker's; it keeps nothing but what it is told to.
 */
#include "drivers/qemu/child.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "drivers/qemu/opens.h"
#include "lib/fd.h"

#define NOBODY 65534		/* of the box's ids the last: none that a guest's file would have */
#define CLOSE_ON_EXEC (1U << 2) /* CLOSE_RANGE_CLOEXEC, missing in older headers */
#define FILES_MAX 256
#define FILE_SIZE_MAX (1UL << 20) /* of what it writes: only what it says */
#define STATE_SIZE_MAX (64UL << 20)

static _Noreturn void child_fail(const struct child *c, const char *step)
{
	struct child_failure f = {.code = errno ? errno : EIO};

	(void)snprintf(f.step, sizeof(f.step), "%s", step);
	(void)send(c->sync, &f, sizeof(f), MSG_NOSIGNAL);
	_exit(1);
}

static int child_await_go(const struct child *c)
{
	char go;
	ssize_t n = recv(c->sync, &go, 1, 0);

	if (n == 0)
		errno = EPIPE;
	return n == 1 ? 0 : -1;
}

static void child_reset_signals(void)
{
	sigset_t none;

	for (int sig = 1; sig < _NSIG; sig++)
		(void)signal(sig, SIG_DFL); /* some refuse */
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

static int child_become_root(const struct child *c)
{
	if (syscall(SYS_setresgid, 0, 0, 0) < 0)
		return -1;
	/* With one mapped id the kernel does not let groups go. */
	if (c->privileged && syscall(SYS_setgroups, 0, NULL) < 0)
		return -1;
	if (syscall(SYS_setresuid, 0, 0, 0) < 0)
		return -1;
	return prctl(PR_SET_PDEATHSIG, SIGKILL); /* new ids have cleared it */
}

static int child_limit(int resource, rlim_t value)
{
	const struct rlimit limit = {value, value};

	return setrlimit(resource, &limit);
}

static int child_set_limits(const struct child *c)
{
	/* A template's state is written, a clone's is read. */
	rlim_t size = c->spec->boots ? STATE_SIZE_MAX : FILE_SIZE_MAX;

	if (child_limit(RLIMIT_CORE, 1) < 0 || child_limit(RLIMIT_NOFILE, FILES_MAX) < 0 ||
	    child_limit(RLIMIT_FSIZE, size) < 0)
		return -1;
	/* Pages of 2 MiB for what is hardly used are what a parked machine would be made of. */
	return prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
}

/* First out of the way of each other, then to their places. */
static int child_place_fds(const struct child *c)
{
	int high[MACHINE_FDS];

	for (int i = 0; i < MACHINE_FDS; i++) {
		high[i] = c->fds[i] < 0 ? -1 : fcntl(c->fds[i], F_DUPFD_CLOEXEC, CHILD_FD_MIN);
		if (c->fds[i] >= 0 && high[i] < 0)
			return -1;
	}
	for (int i = 0; i < MACHINE_FDS; i++) {
		if (high[i] >= 0 && dup2(high[i], i) < 0)
			return -1;
		if (high[i] < 0 && i > STDERR_FILENO)
			(void)close(i); /* the worker's own, if anything */
	}
	return 0;
}

static int child_drop_privileges(const struct child *c)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[2] = {{0}};

	for (int cap = 0; prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) == 0; cap++)
		;
	if (c->privileged && (syscall(SYS_setresgid, NOBODY, NOBODY, NOBODY) < 0 ||
				 syscall(SYS_setresuid, NOBODY, NOBODY, NOBODY) < 0))
		return -1;
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0 ||
	    syscall(SYS_capset, &head, none) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -1;
	return prctl(PR_SET_PDEATHSIG, SIGKILL);
}

static int child_send_listener(const struct child *c)
{
	int fd = opens_listen();
	ssize_t n;

	if (fd < 0) {
		errno = -fd;
		return -1;
	}
	n = fd_send_msg(c->sync, "", 1, &fd, 1);
	(void)close(fd); /* it must not answer itself */
	return n == 1 ? 0 : -1;
}

_Noreturn void qemu_child_main(const struct child *c)
{
	static char path[] = "PATH=/usr/bin:/bin";
	static char locale[] = "LC_ALL=C";
	char *const envp[] = {path, locale, NULL};
	const char *step = "bind its life to the worker's";

	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		child_fail(c, step);
	(void)close(c->sync_peer); /* so that its end is seen */
	child_reset_signals();
	if (child_await_go(c) < 0 || child_become_root(c) < 0)
		child_fail(c, "become root of its user namespace");
	if (qemu_child_enter_root(c, &step) < 0)
		child_fail(c, step);
	if (child_set_limits(c) < 0)
		child_fail(c, "set its resource limits");
	if (child_place_fds(c) < 0)
		child_fail(c, "set up its descriptors");
	if (child_drop_privileges(c) < 0)
		child_fail(c, "drop its privileges");
	if (child_send_listener(c) < 0)
		child_fail(c, "load its filter (Linux 5.12 or newer is needed)");
	if (child_await_go(c) < 0)
		child_fail(c, "wait for its cgroup");
	if (syscall(SYS_close_range, MACHINE_FDS, ~0U, CLOSE_ON_EXEC) < 0)
		child_fail(c, "set up its descriptors");
	(void)execve(c->argv[0], c->argv, envp);
	child_fail(c, "execute QEMU");
}
