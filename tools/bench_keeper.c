/* bench_keeper: a process beside sbxbench that ends its private daemons when it cannot. It learns
 * of them through a pipe, and of its end through a pidfd. If the keeper dies, sbxbench still ends
 * them in all cases but its own sudden death, when they end in order but their files stay. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/fd.h"
#include "tools/bench_private.h"

#define SERIAL_QUIT UINT32_MAX /* sbxbench ends, and waits for us */

static const int caught[] = {SIGINT, SIGTERM, SIGHUP};

#define CAUGHT (sizeof(caught) / sizeof(caught[0]))

/* What a signal handler needs. */
static struct {
	pid_t main;
	pid_t keeper;
	int pipe;
} us = {.pipe = -1};

/* ---- the keeper ---- */

struct kept {
	struct bench_private p;
	int pidfd;
};

static struct kept *find(struct kept *all, uint32_t serial)
{
	for (size_t i = 0; i < BENCH_PRIVATES; i++) {
		if (all[i].p.serial == serial)
			return &all[i];
	}
	return NULL;
}

static void take_note(struct kept *all, const struct bench_private *p)
{
	struct kept *k = find(all, p->serial);

	if (!k)
		k = find(all, 0);
	if (!k)
		return; /* sbxbench has no more of them at a time */
	if (k->pidfd >= 0)
		fd_close(&k->pidfd);
	*k = (struct kept){.pidfd = -1};
	if (*p->dir == '\0')
		return;
	k->p = *p;
	if (p->pid > 0)
		k->pidfd = bench_pidfd(p->pid);
}

/* Notes are shorter than what a pipe takes at once, so they come whole. False: it was the last. */
static bool read_note(int fd, struct kept *all)
{
	struct bench_private p;
	ssize_t n = read(fd, &p, sizeof(p));

	if (n != (ssize_t)sizeof(p))
		return n < 0 && errno == EINTR;
	if (p.serial == SERIAL_QUIT)
		return false;
	take_note(all, &p);
	return true;
}

static void keep(int fd, int main_fd)
{
	struct pollfd fds[] = {{.fd = fd, .events = POLLIN}, {.fd = main_fd, .events = POLLIN}};
	struct kept all[BENCH_PRIVATES];

	for (size_t i = 0; i < BENCH_PRIVATES; i++)
		all[i] = (struct kept){.pidfd = -1};
	for (bool on = true; on;) {
		(void)poll(fds, 2, -1); /* bounded by the life of sbxbench */
		if (fds[0].revents & POLLIN)
			on = read_note(fd, all);
		else if (fds[0].revents || fds[1].revents)
			on = false; /* it is gone, and every note is read */
	}
	for (size_t i = 0; i < BENCH_PRIVATES; i++) {
		if (all[i].p.serial)
			(void)bench_private_end(&all[i].p, all[i].pidfd); /* it has said so */
	}
}

/* Nothing of sbxbench's may be held open: somebody may wait for the end of its output. */
static void be_keeper(int fd, pid_t parent)
{
	int main_fd;
	int null;

	for (size_t i = 0; i < CAUGHT; i++)
		(void)signal(caught[i], SIG_IGN);
	(void)setsid();
	if (fd != 3 && dup3(fd, 3, O_CLOEXEC) < 0)
		_exit(1);
	(void)syscall(SYS_close_range, 4U, ~0U, 0U);
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	(void)dup2(null, STDIN_FILENO);
	(void)dup2(null, STDOUT_FILENO);
	main_fd = bench_pidfd(parent);
	if (getppid() != parent)
		fd_close(&main_fd); /* that pid is somebody else's by now */
	keep(3, main_fd);
	_exit(0);
}

/* ---- sbxbench ---- */

static void on_signal(int sig)
{
	const struct bench_private quit = {.serial = SERIAL_QUIT};

	if (getpid() == us.main) {
		keeper_note(&quit);
		(void)waitpid(us.keeper, NULL, 0); /* which bounds it */
	}
	_exit(128 + sig);
}

int keeper_start(void)
{
	struct sigaction act = {.sa_handler = on_signal};
	int ends[2];
	pid_t pid;

	if (us.keeper)
		return 0;
	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	us.main = getpid();
	pid = fork();
	if (pid < 0)
		return -errno;
	if (pid == 0)
		be_keeper(ends[0], us.main);
	(void)close(ends[0]); /* the keeper's */
	us.pipe = ends[1];
	us.keeper = pid;
	for (size_t i = 0; i < CAUGHT; i++)
		(void)sigaction(caught[i], &act, NULL);
	return 0;
}

void keeper_note(const struct bench_private *p)
{
	/* A keeper that was killed can be told nothing. */
	ssize_t n = write(us.pipe, p, sizeof(*p));

	(void)n;
}

void keeper_forget(uint32_t serial)
{
	const struct bench_private gone = {.serial = serial};

	keeper_note(&gone);
}
