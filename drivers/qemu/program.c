/*
 * program: running a program of the host to its end. Janitor. If we die here it is killed
 * (PR_SET_PDEATHSIG).
 */
#include "drivers/qemu/program.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/clock.h"
#include "lib/fd.h"

#define PROGRAM_WORDS 160 /* of its last words that are told */

int program_find(const char *name, char *out, size_t size)
{
	const char *at = PROGRAM_PATH;

	while (*at) {
		size_t len = strcspn(at, ":");
		int n = snprintf(out, size, "%.*s/%s", (int)len, at, name);

		if (n > 0 && (size_t)n < size && access(out, X_OK) == 0)
			return 0;
		at += len + (at[len] == ':');
	}
	return -ENOENT;
}

static _Noreturn void child_run(const char *const argv[], int in, int out, int words)
{
	static char path[] = "PATH=" PROGRAM_PATH;
	static char locale[] = "LC_ALL=C";
	char *const envp[] = {path, locale, NULL};
	sigset_t none;
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	for (int sig = 1; sig < _NSIG; sig++)
		(void)signal(sig, SIG_DFL); /* what we ignore it would ignore, too */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || null < 0 ||
	    dup2(in < 0 ? null : in, STDIN_FILENO) < 0 ||
	    dup2(out < 0 ? null : out, STDOUT_FILENO) < 0 || dup2(words, STDERR_FILENO) < 0)
		_exit(126);
	(void)syscall(SYS_close_range, 3, ~0U, 0);
	(void)execve(argv[0], (char *const *)(uintptr_t)argv, envp);
	_exit(127);
}

/* The end of what it said, in one line. */
static void read_words(int fd, char out[PROGRAM_WORDS])
{
	off_t size = lseek(fd, 0, SEEK_END);
	ssize_t n = pread(
	    fd, out, PROGRAM_WORDS - 1, size > PROGRAM_WORDS - 1 ? size - (PROGRAM_WORDS - 1) : 0);

	out[n > 0 ? n : 0] = '\0';
	for (char *p = out; *p; p++) {
		if ((unsigned char)*p < ' ')
			*p = ' ';
	}
}

static int await_end(int pidfd, uint64_t deadline_ns)
{
	uint64_t now = clock_now_ns();
	uint64_t left = deadline_ns > now ? (deadline_ns - now) / NS_PER_MS + 1 : 0;
	struct pollfd p = {.fd = pidfd, .events = POLLIN};
	int rc = poll(&p, 1, left > 1000000 ? 1000000 : (int)left);

	return rc < 0 ? -errno : rc == 0 ? -ETIMEDOUT : 0;
}

int program_run(const char *const argv[], int in, int out, uint64_t deadline_ns, struct err *err)
{
	FD_SCOPED int words = memfd_create("words", MFD_CLOEXEC);
	FD_SCOPED int pidfd = -1;
	char text[PROGRAM_WORDS];
	siginfo_t info = {0};
	pid_t pid = words < 0 ? -1 : fork();
	int rc;

	if (pid < 0)
		return err_sys(err, errno, "run %s", argv[0]);
	if (pid == 0)
		child_run(argv, in, out, words);
	pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	rc = pidfd < 0 ? -errno : await_end(pidfd, deadline_ns);
	if (rc < 0)
		(void)kill(pid, SIGKILL); /* ours and not reaped: it is there */
	if (waitid(P_PID, (id_t)pid, &info, WEXITED) < 0 && rc == 0)
		rc = -errno;
	if (rc < 0)
		return err_sys(err, -rc, "run %s", argv[0]);
	if (info.si_code == CLD_EXITED && info.si_status == 0)
		return 0;
	if (info.si_code != CLD_EXITED && info.si_status == SIGKILL)
		return err_set(err, EOWNERDEAD, "%s was killed", argv[0]);
	read_words(words, text);
	return err_set(err, EIO, "%s failed (%s %d): %s", argv[0],
	    info.si_code == CLD_EXITED ? "status" : "signal", info.si_status, text);
}
