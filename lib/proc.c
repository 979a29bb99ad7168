/* proc: who a process is, proven. Any process; holds no state. */
#include "lib/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/clock.h"
#include "lib/fd.h"

#define EXIT_MS 1000 /* from the end of a process's descriptors to its own */

int proc_start_time(pid_t pid, uint64_t *ticks)
{
	char path[32];
	char text[1024];
	const char *p;
	ssize_t n;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	n = fd_read_file_at(AT_FDCWD, path, text, sizeof(text));
	if (n < 0)
		return n == -ENOENT ? -ESRCH : (int)n;
	p = strrchr(text, ')'); /* the command name may hold anything */
	for (int field = 2; p && field < 22; field++) {
		p = strchr(p + 1, ' ');
	}
	if (!p)
		return -EIO;
	*ticks = strtoull(p + 1, NULL, 10);
	return 0;
}

int proc_open_exact(pid_t pid, uint64_t start_ticks)
{
	uint64_t now_ticks = 0;
	FD_SCOPED int fd = (int)syscall(SYS_pidfd_open, pid, 0);
	int rc;

	/*
	 * A dead leader's pid is still that of its session or group as long as one of those lives:
	 * kernels such as 6.1 then say EINVAL, newer ones ESRCH. No process has it.
	 */
	if (fd < 0)
		return errno == EINVAL && pid > 0 ? -ESRCH : -errno;
	/* The descriptor pins the process first; whoever has the pid now is who the descriptor
	 * means. */
	rc = proc_start_time(pid, &now_ticks);
	if (rc < 0)
		return rc;
	if (now_ticks != start_ticks)
		return -ESRCH;
	return fd_take(&fd);
}

int proc_signal(int pidfd, int sig)
{
	if (syscall(SYS_pidfd_send_signal, pidfd, sig, NULL, 0) < 0)
		return -errno;
	return 0;
}

int proc_wait_gone(int pidfd, int timeout_ms)
{
	struct pollfd p = {.fd = pidfd, .events = POLLIN};
	int rc = poll(&p, 1, timeout_ms);

	if (rc < 0)
		return -errno;
	return rc == 0 ? -ETIMEDOUT : 0;
}

bool proc_was_killed(int pidfd, int sock)
{
	struct pollfd p = {.fd = sock};
	siginfo_t info = {0};
	int wait_ms = poll(&p, 1, 0) > 0 ? EXIT_MS : 0;

	return proc_wait_gone(pidfd, wait_ms) == 0 &&
	       waitid(P_PIDFD, (id_t)pidfd, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) == 0 &&
	       info.si_code == CLD_KILLED && info.si_status == SIGKILL;
}

int proc_kill_exact(pid_t pid, uint64_t start_ticks, uint64_t deadline_ns)
{
	FD_SCOPED int pidfd = proc_open_exact(pid, start_ticks);
	uint64_t now = clock_now_ns();
	int rc;

	if (pidfd < 0)
		return pidfd == -ESRCH ? 0 : pidfd;
	rc = proc_signal(pidfd, SIGKILL);
	if (rc == 0)
		rc = proc_wait_gone(
		    pidfd, deadline_ns > now ? (int)((deadline_ns - now) / NS_PER_MS) + 1 : 0);
	return rc == -ESRCH ? 0 : rc;
}
