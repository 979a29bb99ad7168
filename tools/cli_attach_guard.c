/*
 * cli_attach_guard: the process that survives sbxctl when that is killed or crashes in the middle
 * of an execution. If it dies, too, the terminal stays raw and the service ends the execution after
 * its limits.execution_detach_grace.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/fd.h"
#include "tools/cli_attach.h"

#define GUARD_PIPE 3
#define GUARD_TTY 4
#define ALL_IS_WELL 'w'

/* Keeps the two descriptors, under those numbers, and nothing of ours open. -1 tty: none. */
static int keep_only(int pipe_fd, int tty)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int high_pipe = fcntl(pipe_fd, F_DUPFD_CLOEXEC, 16);
	int high_tty = tty < 0 ? null : fcntl(tty, F_DUPFD_CLOEXEC, 16);

	if (null < 0 || high_pipe < 0 || high_tty < 0 || dup2(high_pipe, GUARD_PIPE) < 0 ||
	    dup2(high_tty, GUARD_TTY) < 0)
		return -1;
	for (int fd = 0; fd <= 2; fd++) {
		if (dup2(null, fd) < 0)
			return -1;
	}
	return (int)syscall(SYS_close_range, GUARD_TTY + 1, ~0U, 0);
}

static void guard(
    int pipe_fd, const struct cli *cli, const struct cli_execution *e, const struct cli_terminal *t)
{
	struct cli own = *cli;
	struct cli_terminal terminal = *t;
	sigset_t all;
	char byte;
	ssize_t n;

	(void)sigfillset(&all); /* neither fails with these arguments */
	(void)sigprocmask(SIG_SETMASK, &all, NULL);
	/* In a session of its own it may set a terminal whose foreground it is not. */
	if (setsid() < 0 || keep_only(pipe_fd, t->fd) < 0)
		_exit(1);
	own.signal_fd = -1;
	terminal.fd = t->fd < 0 ? -1 : GUARD_TTY;
	do
		n = read(GUARD_PIPE, &byte, 1);
	while (n < 0 && errno == EINTR);
	if (n == 1 && byte == ALL_IS_WELL)
		_exit(0);
	cli_terminal_rescue(&terminal);
	cli_attach_kill(&own, e);
	_exit(0);
}

int cli_guard_start(struct cli_guard *g, const struct cli *cli, const struct cli_execution *e,
    const struct cli_terminal *t)
{
	int ends[2];
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	pid = fork(); /* sbxctl has one thread */
	if (pid == 0) {
		(void)close(ends[1]);
		guard(ends[0], cli, e, t);
	}
	fd_close(&ends[0]);
	if (pid < 0) {
		fd_close(&ends[1]);
		return -EAGAIN;
	}
	*g = (struct cli_guard){.pipe = ends[1], .pid = pid};
	return 0;
}

void cli_guard_end(struct cli_guard *g)
{
	const char word = ALL_IS_WELL;

	if (g->pipe < 0)
		return;
	/* It cannot fail to fit; a guard that was killed is collected all the same. */
	(void)!write(g->pipe, &word, 1);
	fd_close(&g->pipe);
	while (waitpid(g->pid, NULL, 0) < 0 && errno == EINTR)
		;
}
