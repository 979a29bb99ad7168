/* bench_end: the life of a private sbxd as a process. sbxbench and its keeper; nothing is kept
 * here. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "lib/clock.h"
#include "lib/fd.h"
#include "lib/paths.h"
#include "lib/proc.h"
#include "tools/bench.h"
#include "tools/bench_private.h"
#include "tools/httpc.h"

#define PROBE_NS (5 * NS_PER_S)	 /* a service that says nothing for so long hangs */
#define START_NS (30 * NS_PER_S) /* for a successor, which has boxes to take over */
#define END_MS (600 * 1000)	 /* thousands of boxes take their time; a hang is found before */
#define HANG_MS (10 * 1000)
#define KILLED_MS (30 * 1000) /* for the kernel to end a process */
#define TICK_NS (5 * NS_PER_MS)
#define FILE_PATH (BENCH_DIR + 32)

int bench_pidfd(pid_t pid)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);

	return fd < 0 ? -errno : fd;
}

/* The program that stands beside this one: that of the same build. */
static void program_path(char out[PATHS_LEN])
{
	ssize_t n = readlink("/proc/self/exe", out, PATHS_LEN - 1);
	char *slash;

	out[n < 0 ? 0 : n] = '\0';
	slash = strrchr(out, '/');
	(void)snprintf(
	    slash ? slash + 1 : out, PATHS_LEN - (slash ? (size_t)(slash + 1 - out) : 0), "sbxd");
}

/* Interrupts of a terminal are ours to handle; the daemon is told when its time has come. */
static void leave_terminal(void)
{
	sigset_t none;

	(void)setsid(); /* fails only for the leader of a group, which a new child is not */
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)signal(SIGPIPE, SIG_DFL);
	(void)signal(SIGINT, SIG_DFL);
	(void)signal(SIGTERM, SIG_DFL);
	(void)signal(SIGHUP, SIG_DFL);
}

void bench_private_exec(const struct bench_private *p, bool tied)
{
	char program[PATHS_LEN];
	char config[FILE_PATH];
	char run[FILE_PATH];
	char state[FILE_PATH];
	char log[FILE_PATH];
	int fd;

	program_path(program);
	(void)snprintf(config, sizeof(config), "%s/c.yaml", p->dir);
	(void)snprintf(run, sizeof(run), "%s/run", p->dir);
	(void)snprintf(state, sizeof(state), "%s/state", p->dir);
	(void)snprintf(log, sizeof(log), "%s/log", p->dir);
	leave_terminal();
	if (tied)
		(void)prctl(PR_SET_PDEATHSIG, SIGTERM); /* the keeper would do it too, later */
	fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (fd >= 0) {
		(void)dup2(fd, STDOUT_FILENO);
		(void)dup2(fd, STDERR_FILENO);
	}
	execl(program, "sbxd", "--config", config, "--runtime-dir", run, "--state-dir", state,
	    "--instance", p->instance, (char *)NULL);
	perror(program);
	_exit(127);
}

/* ---- its end ---- */

bool bench_serves(const char *socket)
{
	const struct httpc_request ask = {.method = "GET", .path = "/v1/me"};
	uint64_t deadline = clock_now_ns() + PROBE_NS;
	const struct http_head *head = NULL;
	struct httpc *c = NULL;
	struct err err;
	int rc = httpc_connect(socket, -1, deadline, &c, &err);

	if (rc == 0)
		rc = httpc_send(c, &ask, deadline, &head, &err);
	httpc_close(c);
	return rc == 0;
}

static bool serves(const struct bench_private *p)
{
	char socket[FILE_PATH];

	(void)snprintf(socket, sizeof(socket), "%s/run/sbxd.sock", p->dir);
	return bench_serves(socket);
}

/* In order if it serves, by force if not. 0, or -errno when it lives on. */
static int end_process(const struct bench_private *p, int pidfd)
{
	int rc = proc_wait_gone(pidfd, 0);
	int patience_ms;

	if (rc == 0)
		return 0;
	patience_ms = serves(p) ? END_MS : HANG_MS;
	if (proc_signal(pidfd, SIGTERM) == 0)
		rc = proc_wait_gone(pidfd, patience_ms);
	if (rc == 0)
		return 0;
	rc = proc_signal(pidfd, SIGKILL);
	return rc == -ESRCH ? 0 : proc_wait_gone(pidfd, KILLED_MS);
}

/* A daemon that ends in order takes its table with it. */
static bool left_table(const struct bench_private *p)
{
	char name[64];
	bool found;
	int fd;

	if (paths_shm_name(name, sizeof(name), geteuid(), p->instance) < 0)
		return false;
	fd = shm_open(name, O_RDONLY | O_CLOEXEC, 0);
	found = fd >= 0 || errno != ENOENT;
	fd_close(&fd);
	return found;
}

/* The next one takes over what the last one left, and closes it at its own end. */
static int end_leftovers(const struct bench_private *p)
{
	uint64_t deadline = clock_now_ns() + START_NS;
	struct timespec tick = {.tv_nsec = TICK_NS};
	FD_SCOPED int pidfd = -1;
	pid_t pid = fork();
	int rc;

	if (pid < 0)
		return -errno;
	if (pid == 0)
		bench_private_exec(p, false);
	pidfd = bench_pidfd(pid);
	if (pidfd < 0)
		return pidfd;
	while (!serves(p) && proc_wait_gone(pidfd, 0) < 0 && clock_now_ns() < deadline)
		(void)nanosleep(&tick, NULL);
	rc = end_process(p, pidfd);
	(void)waitpid(pid, NULL, rc == 0 ? 0 : WNOHANG);
	return rc < 0 ? rc : left_table(p) ? -EBUSY : 0;
}

int bench_private_end(const struct bench_private *p, int pidfd)
{
	int rc = 0;

	if (*p->instance) {
		if (pidfd >= 0)
			rc = end_process(p, pidfd);
		if (rc == 0 && left_table(p))
			rc = end_leftovers(p);
	}
	if (rc < 0) {
		(void)fprintf(stderr,
		    "sbxbench: boxes of instance %s may be left (%s); its files are in %s\n",
		    p->instance, strerror(-rc), p->dir);
		return rc;
	}
	bench_dir_remove(p->dir);
	return 0;
}
