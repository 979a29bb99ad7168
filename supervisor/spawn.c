/*
 * spawn: starts a helper process without copying this one. Runs in sbxd, which must be
 * single-threaded: the child shares its memory until it has called exec, and sbxd is stopped for
 * that long.
 */
#include "supervisor/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/fd.h"
#include "lib/proc.h"

#define SPAWN_STACK 65536
#define SPAWN_ENV_MAX 32
#define SPAWN_FIRST_FD 3

extern char **environ;

struct spawn_job {
	const char *path;
	char *const *argv;
	char *const *env;
	const int *fds;
	int null_fd;
	int error; /* set by the child when it could not exec */
};

/*
 * What sbxd was started with ignored would stay ignored (systemd ignores SIGPIPE). The plain call,
 * since a wrapper may note the change in our memory. All zero is SIG_DFL, for any layout.
 */
static void spawn_reset_signals(void)
{
	static const uint64_t by_default[8];

	for (int sig = 1; sig < NSIG; sig++)
		(void)syscall(SYS_rt_sigaction, sig, by_default, NULL,
		    (size_t)(NSIG - 1) / 8); /* not for SIGKILL and SIGSTOP */
}

/* Runs in the child, on its own stack, in our memory: only plain system calls. */
static int spawn_child(void *arg)
{
	struct spawn_job *job = arg;
	sigset_t none;

	if (dup2(job->null_fd, STDIN_FILENO) < 0 || dup2(job->null_fd, STDOUT_FILENO) < 0)
		goto fail;
	for (int i = 0; i < SPAWN_FDS; i++) {
		if (job->fds[i] < 0)
			(void)close(SPAWN_FIRST_FD + i); /* may not be open */
		else if (dup2(job->fds[i], SPAWN_FIRST_FD + i) < 0)
			goto fail;
	}
	if (syscall(SYS_close_range, SPAWN_FIRST_FD + SPAWN_FDS, ~0U, 0) < 0)
		goto fail;
	spawn_reset_signals();
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL); /* cannot fail with these arguments */
	execve(job->path, job->argv, job->env);
fail:
	job->error = errno;
	_exit(127);
}

static bool env_is_for_helpers(const char *entry)
{
	const char *eq = strchr(entry, '=');
	static const char suffix[] = "SAN_OPTIONS";
	static const char *const proxies[] = {"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"};
	size_t name = eq ? (size_t)(eq - entry) : 0;

	if (!strncmp(entry, "SBX_", 4) || !strncmp(entry, "SSL_CERT_", 9))
		return true;
	for (size_t i = 0; i < sizeof(proxies) / sizeof(proxies[0]); i++) {
		if (name == strlen(proxies[i]) && !strncasecmp(entry, proxies[i], name))
			return true;
	}
	return name > sizeof(suffix) - 1 &&
	       !memcmp(eq - (sizeof(suffix) - 1), suffix, sizeof(suffix) - 1);
}

static void pick_env(char *out[SPAWN_ENV_MAX + 1])
{
	size_t n = 0;

	for (char **e = environ; e && *e && n < SPAWN_ENV_MAX; e++) {
		if (env_is_for_helpers(*e))
			out[n++] = *e;
	}
	out[n] = NULL;
}

/* dup2() into a low number must neither hit a source that is still needed nor keep its
 * close-on-exec flag. */
static int lift_fd(int fd)
{
	return fcntl(fd, F_DUPFD_CLOEXEC, SPAWN_FIRST_FD + SPAWN_FDS);
}

static int lift_fds(const int in[SPAWN_FDS], int out[SPAWN_FDS])
{
	for (int i = 0; i < SPAWN_FDS; i++) {
		out[i] = in[i] < 0 ? -1 : lift_fd(in[i]);
		if (in[i] >= 0 && out[i] < 0)
			return -errno;
	}
	return 0;
}

static int spawn_clone(struct spawn_job *job, struct spawned *out)
{
	char *stack = malloc(SPAWN_STACK);
	int pidfd = -1;
	pid_t pid;

	if (!stack)
		return -ENOMEM;
	pid = clone(spawn_child, stack + SPAWN_STACK,
	    CLONE_VM | CLONE_VFORK | CLONE_PIDFD | SIGCHLD, job, &pidfd);
	if (pid < 0) {
		free(stack);
		return -errno;
	}
	free(stack); /* CLONE_VFORK: the child has left it */
	if (job->error) {
		(void)spawn_reap(pidfd); /* it exits at once; the reason is in job->error */
		fd_close(&pidfd);
		return -job->error;
	}
	out->pid = pid;
	out->pidfd = pidfd;
	out->start = 0;
	(void)proc_start_time(
	    pid, &out->start); /* 0 when it is gone already: the pidfd will say so */
	return 0;
}

int spawn_process(
    const char *path, const char *const argv[], const int fds[SPAWN_FDS], struct spawned *out)
{
	FD_SCOPED int null_low = open("/dev/null", O_RDWR | O_CLOEXEC);
	FD_SCOPED int null_fd = null_low < 0 ? -1 : lift_fd(null_low);
	char *env[SPAWN_ENV_MAX + 1];
	int lifted[SPAWN_FDS] = {-1, -1, -1, -1, -1, -1};
	struct spawn_job job = {
	    .path = path,
	    .argv = (char *const *)(uintptr_t)argv, /* execve() does not write to it */
	    .env = env,
	    .fds = lifted,
	    .null_fd = null_fd,
	};
	int rc;

	if (null_fd < 0)
		return -errno;
	pick_env(env);
	rc = lift_fds(fds, lifted);
	if (rc == 0)
		rc = spawn_clone(&job, out);
	for (int i = 0; i < SPAWN_FDS; i++)
		fd_close(&lifted[i]);
	return rc;
}

int spawn_reap(int pidfd)
{
	siginfo_t info = {0};

	if (waitid(P_PIDFD, (id_t)pidfd, &info, WEXITED) < 0)
		return -errno;
	if (info.si_code == CLD_EXITED)
		return W_EXITCODE(info.si_status, 0);
	return W_EXITCODE(0, info.si_status);
}

void spawn_describe(int status, char *out, size_t size)
{
	if (status < 0)
		(void)snprintf(out, size, "ended, how is not known");
	else if (WIFSIGNALED(status))
		(void)snprintf(out, size, "killed by signal %d (%s)", WTERMSIG(status),
		    strsignal(WTERMSIG(status)));
	else
		(void)snprintf(out, size, "exited with status %d", WEXITSTATUS(status));
}
