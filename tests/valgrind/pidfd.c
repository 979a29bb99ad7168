/*
 * pidfd: signals through a pidfd for a program under valgrind. Preloaded into sbxd by `make
 * check-valgrind`; of no other use.
 *
 * Valgrind answers ENOSYS to system calls that are newer than it is: Debian 12's does not know
 * pidfd_send_signal(). Here it is kill() with the pid that the descriptor stands for, which is as
 * good where the process is a child that nobody else reaps. A pidfd_open() cannot be had that way:
 * an sbxd that takes over from a dead one is tested without valgrind.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
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
	memcpy(&next, &found, sizeof(next)); /* an object pointer, for ISO C */
	return next(nr, a[0], a[1], a[2], a[3], a[4], a[5]);
}
