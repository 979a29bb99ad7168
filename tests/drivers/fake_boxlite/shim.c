/* shim: the box's process: starting, requests, and the end. Dies with its watch. */
#include "tests/drivers/fake_boxlite/shim.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/fd.h"
#include "lib/proc.h"

#define SHIM_PEERS 256
#define SHIM_ROOT "/tmp"

/* One connection; pid is that of its execution, 0 before it has one. */
struct peer {
	int fd;
	pid_t pid;
	int terminal;
};

struct shim {
	int listener;
	int children; /* signalfd */
	int alive;    /* holds the init */
	pid_t init;
	struct peer peers[SHIM_PEERS];
	int count;
};

static int ready_fd = SHIM_FD_READY;

void shim_fail(const char *step, int number)
{
	struct shim_ready r = {.error = number ? number : EIO};

	(void)snprintf(r.step, sizeof(r.step), "%s", step);
	if (ready_fd >= 0)
		(void)!write(ready_fd, &r, sizeof(r));
	_exit(1);
}

void shim_need(bool ok, const char *step)
{
	if (!ok)
		shim_fail(step, errno);
}

/* Away from whoever started it: its death is told by the watch alone. */
static void go_into_background(void)
{
	pid_t pid = fork();

	shim_need(pid >= 0, "fork");
	if (pid > 0)
		_exit(0);
	(void)setsid();
	(void)umask(022);
	for (int fd = SHIM_FD_WATCH; fd <= SHIM_FD_DIR; fd++)
		(void)fcntl(fd, F_SETFD, FD_CLOEXEC);
	(void)close_range(SHIM_FD_DIR + 1, ~0U, 0); /* what whoever started us was given */
}

static int listen_at_box(void)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	(void)snprintf(a.sun_path, sizeof(a.sun_path), "/proc/self/fd/%d/sock", SHIM_FD_DIR);
	(void)unlinkat(SHIM_FD_DIR, "sock", 0);
	shim_need(
	    sock >= 0 && bind(sock, (struct sockaddr *)&a, sizeof(a)) == 0 && listen(sock, 64) == 0,
	    "socket");
	return sock;
}

static void note_process(int fd, const struct shim *s, uint64_t start, uint64_t init_start)
{
	char text[128];

	(void)snprintf(text, sizeof(text), "%d %llu %d %llu\n", (int)getpid(),
	    (unsigned long long)start, (int)s->init, (unsigned long long)init_start);
	shim_need(write(fd, text, strlen(text)) == (ssize_t)strlen(text), "note");
	(void)close(fd);
}

static void shim_boot(struct shim *s, int disk_gb)
{
	struct shim_ready ready = {0};
	uint64_t start = 0;
	uint64_t init_start = 0;
	sigset_t set;
	int note;

	s->listener = listen_at_box();
	note = openat(SHIM_FD_DIR, "process", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	shim_need(note >= 0, "note");
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGCHLD);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	s->children = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	shim_enter_namespaces();
	shim_build_root(SHIM_ROOT, disk_gb);
	s->init = shim_start_init(SHIM_ROOT, &s->alive);
	/* While the host's procfs is in sight, with the pids that the host knows. */
	(void)proc_start_time(getpid(), &start);
	(void)proc_start_time(s->init, &init_start);
	shim_enter_root(SHIM_ROOT);
	note_process(note, s, start, init_start);
	(void)close(SHIM_FD_DIR);
	(void)!write(SHIM_FD_READY, &ready, sizeof(ready));
	(void)close(SHIM_FD_READY);
	ready_fd = -1;
}

/* Whoever waits for the end of the box sees it when all is over. */
static _Noreturn void shim_end(struct shim *s)
{
	(void)close(s->alive);
	(void)kill(s->init, SIGKILL);
	while (waitpid(-1, NULL, 0) > 0 || errno == EINTR)
		continue;
	_exit(0);
}

/* ---- requests ---- */

static void peer_drop(struct shim *s, int i)
{
	fd_close(&s->peers[i].fd);
	fd_close(&s->peers[i].terminal);
	s->peers[i] = s->peers[--s->count];
}

static void peer_add(struct shim *s)
{
	int fd = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0)
		return;
	if (s->count == SHIM_PEERS) {
		(void)close(fd);
		return;
	}
	s->peers[s->count++] = (struct peer){fd, 0, -1};
}

static void answer(int fd, uint32_t kind, int value, int terminal)
{
	struct shim_answer a = {kind, value};

	(void)!fd_send_msg(fd, &a, sizeof(a), &terminal, terminal >= 0 ? 1 : 0);
}

static void peer_exec(
    struct peer *p, const struct shim_ask *ask, size_t len, const int fds[FD_PASS_MAX])
{
	pid_t pid = shim_run(ask, len, fds, &p->terminal);

	p->pid = pid > 0 ? pid : 0;
	answer(p->fd, SHIM_ANSWER, pid, p->terminal);
}

static struct peer *find_execution(struct shim *s, pid_t pid)
{
	for (int i = 0; i < s->count; i++) {
		if (pid > 0 && s->peers[i].pid == pid)
			return &s->peers[i];
	}
	return NULL;
}

static int order(struct shim *s, const struct shim_ask *ask)
{
	struct peer *p = find_execution(s, ask->a);
	struct winsize size = {.ws_row = (unsigned short)ask->b, .ws_col = (unsigned short)ask->c};

	if (!p)
		return -ESRCH;
	if (ask->kind == SHIM_RESIZE)
		return p->terminal < 0 || ioctl(p->terminal, TIOCSWINSZ, &size) < 0 ? -ENOTTY : 0;
	return kill(p->pid, ask->b) < 0 ? -errno : 0;
}

/* False when the peer is gone. */
static bool peer_read(struct shim *s, int i)
{
	static struct shim_ask ask;
	struct peer *p = &s->peers[i];
	int fds[FD_PASS_MAX];
	ssize_t n = fd_recv_msg(p->fd, &ask, sizeof(ask), fds);

	if (n <= 0)
		return n == -EAGAIN || n == -EINTR;
	if (n < (ssize_t)offsetof(struct shim_ask, text))
		return false;
	if (ask.kind == SHIM_STOP)
		shim_end(s);
	if (ask.kind == SHIM_EXEC)
		peer_exec(p, &ask, (size_t)n - offsetof(struct shim_ask, text), fds);
	else
		answer(p->fd, SHIM_ANSWER, order(s, &ask), -1);
	for (int f = 0; f < FD_PASS_MAX; f++)
		fd_close(&fds[f]);
	return true;
}

static void reap(struct shim *s)
{
	struct signalfd_siginfo info;
	struct peer *p;
	int status;
	pid_t pid;

	(void)!read(s->children, &info, sizeof(info));
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (pid == s->init)
			shim_end(s); /* all of the box is gone */
		p = find_execution(s, pid);
		if (!p)
			continue;
		answer(p->fd, SHIM_EXIT,
		    WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status), -1);
		p->pid = 0;
	}
}

static _Noreturn void serve(struct shim *s)
{
	struct pollfd p[3 + SHIM_PEERS];
	int count;

	for (;;) {
		p[0] = (struct pollfd){.fd = s->listener, .events = POLLIN};
		p[1] = (struct pollfd){.fd = s->children, .events = POLLIN};
		p[2] = (struct pollfd){.fd = SHIM_FD_WATCH};
		count = s->count;
		for (int i = 0; i < count; i++)
			p[3 + i] = (struct pollfd){.fd = s->peers[i].fd, .events = POLLIN};
		if (poll(p, 3 + (nfds_t)count, -1) < 0)
			continue;
		if (p[2].revents)
			shim_end(s);
		if (p[1].revents)
			reap(s);
		for (int i = count - 1; i >= 0; i--) {
			if (p[3 + i].revents && !peer_read(s, i))
				peer_drop(s, i);
		}
		if (p[0].revents)
			peer_add(s);
	}
}

int main(int argc, char **argv)
{
	static struct shim s;

	if (argc != 3)
		return 2;
	go_into_background();
	shim_boot(&s, atoi(argv[2]));
	serve(&s);
}
