/* host_program: runs another program of ours, or a part of this one in a process of its own.
 * sbxctl; if it dies, they find nobody who reads. */
#include "tools/host_program.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <libgen.h>
#include <limits.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/clock.h"
#include "lib/fd.h"
#include "lib/proc.h"

#define READ_SIZE 65536U

int host_program_find(const char *name, char *out, size_t size, struct err *err)
{
	static const char *const places[] = {"", "/../libexec/sbxd"};
	char self[PATH_MAX] = "";
	const char *dir;

	if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
		return err_sys(err, errno, "our own path in /proc");
	dir = dirname(self);
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		int n = snprintf(out, size, "%s%s/%s", dir, places[i], name);

		if (n > 0 && (size_t)n < size && access(out, X_OK) == 0)
			return 0;
	}
	return err_set(
	    err, ENOENT, "%s is neither in %.100s nor in its ../libexec/sbxd", name, dir);
}

/* In the child: never returns. */
static void execute(char *const argv[], int out, int errors)
{
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	sigset_t none;

	(void)sigemptyset(&none); /* neither fails with these arguments */
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)signal(SIGPIPE, SIG_DFL);
	if (null >= 0 && dup2(null, STDIN_FILENO) >= 0 && dup2(out, STDOUT_FILENO) >= 0 &&
	    dup2(errors, STDERR_FILENO) >= 0)
		(void)execv(argv[0], argv);
	_exit(127);
}

/* More of a pipe; what does not fit is read and forgotten. False at its end. */
static bool drain(int fd, struct buf *b)
{
	char rest[4096];
	ssize_t n = buf_read_fd(b, fd, READ_SIZE);

	if (n == -ENOBUFS)
		n = read(fd, rest, sizeof(rest));
	return n > 0 || n == -EINTR || n == -EAGAIN;
}

/* 0 when both have ended, -ETIMEDOUT. */
static int collect(int fds[2], struct buf *bufs[2], uint64_t deadline)
{
	while (fds[0] >= 0 || fds[1] >= 0) {
		struct pollfd p[2] = {{fds[0], POLLIN, 0}, {fds[1], POLLIN, 0}};
		uint64_t now = clock_now_ns();

		if (now >= deadline)
			return -ETIMEDOUT;
		if (poll(p, 2, (int)((deadline - now) / NS_PER_MS) + 1) < 0 && errno != EINTR)
			return -errno;
		for (int i = 0; i < 2; i++) {
			if (p[i].revents && !drain(fds[i], bufs[i]))
				fd_close(&fds[i]);
		}
	}
	return 0;
}

/* What has closed its output is at its end, or hangs. 0 or -ETIMEDOUT. */
static int await_end(pid_t pid, uint64_t deadline)
{
	FD_SCOPED int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	uint64_t now = clock_now_ns();

	if (pidfd < 0)
		return -errno;
	return proc_wait_gone(pidfd, deadline > now ? (int)((deadline - now) / NS_PER_MS) + 1 : 0);
}

/* Collects what the child writes, until it has ended or must be ended. Its status as from
 * waitpid(2) in *status. 0, -ETIMEDOUT or -errno. */
static int attend(pid_t pid, int ends[2], struct buf *bufs[2], uint64_t deadline, int *status)
{
	int rc = collect(ends, bufs, deadline);

	fd_close(&ends[0]);
	fd_close(&ends[1]);
	if (rc == 0)
		rc = await_end(pid, deadline);
	if (rc < 0)
		(void)kill(pid, SIGKILL); /* our own child, not yet waited for */
	while (waitpid(pid, status, 0) < 0) {
		if (errno != EINTR)
			return -errno;
	}
	return rc;
}

int host_program_run(char *const argv[], uint64_t deadline, struct buf *out, struct buf *errors)
{
	struct buf *bufs[2] = {out, errors};
	int one[2] = {-1, -1};
	int two[2] = {-1, -1};
	int status = 0;
	pid_t pid;
	int rc;

	if (pipe2(one, O_CLOEXEC) < 0)
		return -errno;
	pid = pipe2(two, O_CLOEXEC) < 0 ? -1 : fork(); /* sbxctl has one thread */
	if (pid == 0)
		execute(argv, one[1], two[1]);
	fd_close(&one[1]);
	fd_close(&two[1]);
	if (pid < 0) {
		fd_close(&one[0]);
		fd_close(&two[0]);
		return -EAGAIN;
	}
	rc = attend(pid, (int[2]){one[0], two[0]}, bufs, deadline, &status);
	if (rc < 0)
		return rc;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -EINTR;
}

int host_program_become(uid_t uid)
{
	const struct passwd *pw = getpwuid(uid);
	gid_t gid = pw ? pw->pw_gid : (gid_t)uid;

	return setsid() < 0 || setgroups(0, NULL) < 0 || setresgid(gid, gid, gid) < 0 ||
		       setresuid(uid, uid, uid) < 0
		   ? -errno
		   : 0;
}

int host_program_call(host_program_fn *fn, void *ctx, uint64_t deadline, struct buf *out)
{
	struct buf *bufs[2] = {out, NULL};
	int pipe[2];
	int status = 0;
	pid_t pid;
	int rc;

	if (pipe2(pipe, O_CLOEXEC) < 0)
		return -errno;
	pid = fork(); /* sbxctl has one thread */
	if (pid == 0)
		_exit(fn(ctx, pipe[1]) < 0 ? 1 : 0);
	fd_close(&pipe[1]);
	if (pid < 0) {
		fd_close(&pipe[0]);
		return -EAGAIN;
	}
	rc = attend(pid, (int[2]){pipe[0], -1}, bufs, deadline, &status);
	return rc == 0 && status != 0 ? -EIO : rc;
}
