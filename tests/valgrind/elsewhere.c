/*
 * elsewhere: system calls that valgrind does not know, for a program under it. Preloaded by `make
 * check-valgrind`; of no other use.
 *
 * Valgrind answers ENOSYS to what is newer than it is: Debian 12's knows none of pidfd_open(),
 * openat2() and pidfd_send_signal(). The first two are done by a program that is not under it
 * (elsewhere_do.c, beside this library), which passes the descriptor on. The third is kill() with
 * the pid that the descriptor stands for, which is as good where the process is a child that nobody
 * else reaps.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#define ARGS 6

static pid_t pidfd_pid(int pidfd)
{
	char path[64];
	char text[1024];
	const char *line;
	ssize_t n;
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", pidfd);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	n = read(fd, text, sizeof(text) - 1);
	(void)close(fd); /* it was only read */
	text[n > 0 ? n : 0] = '\0';
	line = strstr(text, "\nPid:");
	return line ? (pid_t)strtol(line + strlen("\nPid:"), NULL, 10) : -1;
}

static long pidfd_signal(int pidfd, int sig)
{
	pid_t pid = pidfd_pid(pidfd);

	if (pid > 0)
		return kill(pid, sig);
	errno = ESRCH; /* "Pid: -1": reaped */
	return -1;
}

/* What the program starts is not under valgrind. Valgrind itself, which starts the program and adds
 * its own to this variable then, passes it on. */
__attribute__((constructor)) static void stay_here(void)
{
	const char *preload = getenv("LD_PRELOAD");

	if (preload && strstr(preload, "vgpreload"))
		(void)unsetenv("LD_PRELOAD");
}

/* The program, beside this library. */
static int doer_path(char out[PATH_MAX])
{
	Dl_info info;
	char *slash;

	if (!dladdr((void *)(uintptr_t)pidfd_pid, &info) || !info.dli_fname)
		return -1;
	(void)snprintf(out, PATH_MAX, "%s", info.dli_fname);
	slash = strrchr(out, '/');
	if (!slash || slash + sizeof("/valgrind_elsewhere_do") > out + PATH_MAX)
		return -1;
	(void)strcpy(slash, "/valgrind_elsewhere_do");
	return 0;
}

static int doer_start(int dir, int sock, char *const argv[])
{
	char *const env[] = {NULL}; /* nothing is preloaded into that one */
	posix_spawn_file_actions_t actions;
	char path[PATH_MAX];
	pid_t child = -1;
	int high = fcntl(sock, F_DUPFD_CLOEXEC, 10); /* away from where the other goes */

	if (high < 0 || doer_path(path) < 0 || posix_spawn_file_actions_init(&actions) != 0)
		return -1;
	if ((dir >= 0 && posix_spawn_file_actions_adddup2(&actions, dir, 3) != 0) ||
	    posix_spawn_file_actions_adddup2(&actions, high, 4) != 0 ||
	    posix_spawn(&child, path, &actions, NULL, argv, env) != 0)
		child = -1;
	(void)posix_spawn_file_actions_destroy(&actions);
	(void)close(high);
	return child;
}

/* The descriptor, or -1 with errno. */
static int doer_take(int sock)
{
	char control[CMSG_SPACE(sizeof(int))];
	int number = ENOSYS;
	struct iovec iov = {.iov_base = &number, .iov_len = sizeof(number)};
	struct msghdr msg = {
	    .msg_iov = &iov,
	    .msg_iovlen = 1,
	    .msg_control = control,
	    .msg_controllen = sizeof(control),
	};
	ssize_t n = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC);
	struct cmsghdr *c = n == sizeof(number) ? CMSG_FIRSTHDR(&msg) : NULL;
	int fd = -1;

	if (c)
		memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	else
		errno = number;
	return fd;
}

static long open_elsewhere(int dir, char *const argv[])
{
	int pair[2];
	pid_t child;
	int fd = -1;
	int number = ENOSYS;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -1;
	child = doer_start(dir, pair[1], argv);
	(void)close(pair[1]); /* so that its end is seen */
	if (child > 0) {
		fd = doer_take(pair[0]);
		number = errno;
		while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
			continue;
	}
	(void)close(pair[0]);
	errno = number;
	return fd;
}

static char doer[] = "valgrind_elsewhere_do";

static long pidfd_elsewhere(pid_t pid)
{
	static char what[] = "pidfd";
	char text[16];
	char *const argv[] = {doer, what, text, NULL};

	(void)snprintf(text, sizeof(text), "%d", (int)pid);
	return open_elsewhere(-1, argv);
}

/* With AT_FDCWD the working directory is the program's, too. */
static long openat2_elsewhere(int dir, const char *path, const struct open_how *how)
{
	static char what[] = "openat2";
	char numbers[3][24];
	char *const argv[] = {
	    doer, what, numbers[0], numbers[1], numbers[2], (char *)(uintptr_t)path, NULL};
	int here = dir == AT_FDCWD ? open(".", O_PATH | O_DIRECTORY | O_CLOEXEC) : dir;
	long fd;

	(void)snprintf(numbers[0], sizeof(numbers[0]), "%llu", (unsigned long long)how->flags);
	(void)snprintf(numbers[1], sizeof(numbers[1]), "%llu", (unsigned long long)how->mode);
	(void)snprintf(numbers[2], sizeof(numbers[2]), "%llu", (unsigned long long)how->resolve);
	fd = open_elsewhere(here, argv);
	if (here != dir)
		(void)close(here);
	return fd;
}

/* Stands before the C library's own. */
long syscall(long nr, ...)
{
	long (*next)(long, ...);
	void *found = dlsym(RTLD_NEXT, "syscall");
	long a[ARGS];
	va_list ap;

	va_start(ap, nr);
	for (int i = 0; i < ARGS; i++)
		a[i] = va_arg(ap, long); /* a caller that gave fewer: what is there is not used */
	va_end(ap);
	if (nr == SYS_pidfd_send_signal)
		return pidfd_signal((int)a[0], (int)a[1]);
	if (nr == SYS_pidfd_open)
		return pidfd_elsewhere((pid_t)a[0]);
	if (nr == SYS_openat2)
		return openat2_elsewhere((int)a[0], (const char *)a[1], (const void *)a[2]);
	memcpy(&next, &found, sizeof(next)); /* an object pointer, for ISO C */
	return next(nr, a[0], a[1], a[2], a[3], a[4], a[5]);
}
