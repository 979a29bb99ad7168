/*
 * link: starts sbx-boxlite and talks to it. Worker (until it has given up its privileges) and
 * janitor. If we die, its socket ends, and so does it.
 */
#include "drivers/boxlite/link.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/clock.h"
#include "lib/fd.h"
#include "lib/proc.h"

#define LINK_GRACE_NS (2 * NS_PER_S) /* for an answer after its order's time */
#define LINK_BUSY_MS 2000
#define LINK_ENV_MAX 64

extern char **environ;

/* ---- the child, between fork and exec ---- */

/* BoxLite looks for its programs and for a place of its own. */
static void child_env(char *out[LINK_ENV_MAX + 3])
{
	static char path[] = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
	static char home[] = "HOME=/root";
	size_t n = 0;

	if (!getenv("PATH"))
		out[n++] = path;
	if (!getenv("HOME"))
		out[n++] = home;
	for (char **e = environ; e && *e && n < LINK_ENV_MAX; e++)
		out[n++] = *e;
	out[n] = NULL;
}

static void child_run(const char *path, int control, pid_t parent)
{
	static char name[] = "sbx-boxlite";
	char *argv[] = {name, NULL};
	char *env[LINK_ENV_MAX + 3];
	sigset_t none;
	int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL); /* cannot fail with these arguments */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
		_exit(127);
	if (null_fd < 0 || dup2(null_fd, STDIN_FILENO) < 0 || dup2(null_fd, STDOUT_FILENO) < 0)
		_exit(127);
	if (control == ENG_FD_CONTROL ? fcntl(control, F_SETFD, 0) < 0
				      : dup2(control, ENG_FD_CONTROL) < 0)
		_exit(127);
	if (syscall(SYS_close_range, ENG_FD_CONTROL + 1, ~0U, 0) < 0)
		_exit(127);
	child_env(env);
	(void)execve(path, argv, env);
	_exit(127);
}

/* ---- us ---- */

static int link_path(char out[PATH_MAX + 16], struct err *err)
{
	char self[PATH_MAX] = "";

	if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
		return err_sys(err, errno, "find our own path in /proc");
	(void)snprintf(out, PATH_MAX + 16, "%s/sbx-boxlite", dirname(self));
	if (access(out, X_OK) < 0)
		return err_sys(err, errno, "start %s", out);
	return 0;
}

int link_open(struct link *l, struct err *err)
{
	char path[PATH_MAX + 16];
	pid_t parent = getpid();
	FD_SCOPED int theirs = -1;
	int pair[2];

	*l = (struct link){.control = -1, .pidfd = -1};
	if (link_path(path, err) < 0)
		return -err->code;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
		return err_sys(err, errno, "start sbx-boxlite");
	l->control = pair[0];
	theirs = pair[1];
	l->pid = fork();
	if (l->pid == 0)
		child_run(path, theirs, parent);
	if (l->pid < 0) {
		fd_close(&l->control);
		return err_sys(err, errno, "start sbx-boxlite");
	}
	l->pidfd = (int)syscall(SYS_pidfd_open, l->pid, 0);
	if (l->pidfd < 0 || proc_start_time(l->pid, &l->start) < 0) {
		(void)kill(l->pid, SIGKILL); /* ours, and not reaped: it is that one */
		(void)waitpid(l->pid, NULL, 0);
		fd_close(&l->pidfd);
		fd_close(&l->control);
		return err_set(err, ESRCH, "start sbx-boxlite: it ended at once");
	}
	return 0;
}

int link_reap(const struct link *l, bool *killed)
{
	siginfo_t info = {0};

	/* A caller that ignores SIGCHLD has it reaped already. */
	if (waitid(P_PIDFD, (id_t)l->pidfd, &info, WEXITED | __WALL) < 0 && errno != ECHILD)
		return -errno;
	*killed = info.si_code == CLD_KILLED || info.si_code == CLD_DUMPED;
	return 0;
}

void link_close(struct link *l, uint32_t wait_ms)
{
	bool killed;

	fd_close(&l->control);
	if (l->pidfd < 0)
		return;
	if (proc_wait_gone(l->pidfd, (int)wait_ms) < 0)
		(void)proc_signal(l->pidfd, SIGKILL);
	(void)link_reap(l, &killed); /* SIGKILL: it ends at once */
	fd_close(&l->pidfd);
}

/* Waits for one packet. 1: there is one; 0: not yet; -errno. */
static int link_wait(struct link *l, uint64_t until, struct eng_msg *msg)
{
	struct pollfd p = {.fd = l->control, .events = POLLIN};
	uint64_t now = clock_now_ns();
	uint64_t left = until > now ? (until - now) / NS_PER_MS + 1 : 0;
	int rc = poll(&p, 1, left < LINK_BUSY_MS ? (int)left : LINK_BUSY_MS);

	if (rc < 0)
		return errno == EINTR ? 0 : -errno;
	if (rc == 0)
		return now >= until ? -ETIMEDOUT : 0;
	rc = eng_recv(l->control, l->packet, msg);
	return rc == 0 ? -EPIPE : rc == -EAGAIN ? 0 : rc;
}

bool link_take_died(struct link *l, const struct eng_msg *msg)
{
	if (msg->head.type != ENG_DONE || msg->head.seq != ENG_SEQ_DIED)
		return false;
	(void)snprintf(l->why, sizeof(l->why), "%s", msg->body.done.text);
	return true;
}

static int link_take(const struct link_order *order, const struct eng_msg *msg)
{
	if (msg->head.type == ENG_NAME && order->name)
		return order->name(order->ctx, msg->body.name.name);
	return 0;
}

int link_order(
    struct link *l, const struct link_order *order, struct eng_done *done, struct err *err)
{
	uint64_t until = clock_now_ns() + order->time_ms * NS_PER_MS + LINK_GRACE_NS;
	const char *what = eng_type_name(order->type);
	struct eng_msg msg;
	int rc = eng_send(l->control, order->type, ++l->seq, order->body,
	    order->options ? order->options->data : NULL, order->options ? order->options->len : 0,
	    order->fd);

	while (rc >= 0) {
		rc = link_wait(l, until, &msg);
		if (rc == 0 && l->busy)
			l->busy(l->busy_ctx);
		if (rc <= 0)
			continue;
		fd_close(&msg.fd);
		if (link_take_died(l, &msg) || msg.head.seq != l->seq)
			continue; /* of an order that was given up */
		if (msg.head.type == ENG_DONE)
			break;
		rc = link_take(order, &msg);
	}
	if (rc == -EPIPE)
		return err_set(err, EPIPE, "%s: sbx-boxlite has ended", what);
	if (rc < 0)
		return err_sys(err, -rc, "%s: sbx-boxlite", what);
	if (msg.body.done.code)
		rc = err_set(err, msg.body.done.code > 0 ? msg.body.done.code : EIO, "%s",
		    msg.body.done.text);
	else
		rc = 0;
	*done = msg.body.done;
	return rc;
}

int link_open_library(struct link *l, const struct driver_options *options, const char *home,
    uint32_t time_ms, struct eng_done *done, struct err *err)
{
	struct eng_open body = {.time_ms = time_ms};

	(void)snprintf(body.home, sizeof(body.home), "%s", home);
	return link_order(l,
	    &(struct link_order){
		.type = ENG_OPEN,
		.body = &body,
		.time_ms = time_ms,
		.options = options,
		.fd = -1,
	    },
	    done, err);
}

int link_order_name(struct link *l, enum eng_type type, const char *name, uint32_t time_ms,
    struct eng_done *done, struct err *err)
{
	struct eng_name body = {.time_ms = time_ms};

	(void)snprintf(body.name, sizeof(body.name), "%s", name);
	return link_order(l,
	    &(struct link_order){.type = type, .body = &body, .time_ms = time_ms, .fd = -1}, done,
	    err);
}
