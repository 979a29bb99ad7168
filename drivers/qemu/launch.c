/*
 * launch: from nothing to a QEMU that runs. Worker.
 *
 *   worker                                child (child.c)
 *   ------                                ---------------
 *   clone, born()                         dies with the worker
 *   id maps, first go ---------------->   becomes root, enters a root of its own, drops privileges
 *   <---------------------------------   the listener of its calls
 *   limit(), second go --------------->   exec of QEMU
 *   answers calls until QEMU runs
 *
 * If the worker dies anywhere in here the child dies too; cgroups and the record are left for the
 * janitor.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "drivers/namespace/userns.h"
#include "drivers/qemu/child.h"
#include "drivers/qemu/machine.h"
#include "drivers/qemu/opens.h"
#include "lib/clock.h"
#include "lib/fault.h"
#include "lib/fd.h"
#include "lib/proc.h"

#define ARGS_TEXT 4096
#define UNDO_NS (5 * NS_PER_S)
#define OOM_SCORE "500" /* when the host runs out of memory, boxes go first */
#define STREAM_BUFFER                                                              \
	(512 * 1024) /* QEMU sends what the guest writes in pieces of this at most \
		      */

struct launch {
	const struct machine_spec *spec;
	const struct machine_hooks *hooks;
	uid_t base;
	uint64_t deadline_ns;
	struct machine *m;
	struct child child;
	int sync;		 /* our end; the child's is in child */
	int theirs[MACHINE_FDS]; /* ends that are QEMU's alone */
	char text[ARGS_TEXT];
	char *argv[MACHINE_ARGS];
};

/* Ours is *mine; QEMU's is kept for the child. */
static int launch_pair(struct launch *l, enum machine_fd place, int *mine)
{
	int pair[2];
	int size = STREAM_BUFFER;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	*mine = pair[0];
	l->theirs[place] = pair[1];
	/* Only a preference: the host may allow less. */
	(void)setsockopt(pair[1], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	return fd_set_nonblock(pair[0]);
}

static int launch_sync(struct launch *l)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	l->sync = pair[0];
	l->child.sync_peer = pair[0];
	l->child.sync = fcntl(pair[1], F_DUPFD_CLOEXEC, CHILD_FD_MIN);
	(void)close(pair[1]);
	return l->child.sync < 0 ? -errno : 0;
}

static int launch_set_up(struct launch *l, struct err *err)
{
	struct machine *m = l->m;
	int rc = machine_args(l->spec, l->text, sizeof(l->text), l->argv);

	if (rc == 0)
		rc = launch_sync(l);
	if (rc == 0)
		rc = launch_pair(l, MACHINE_FD_AGENT, &m->stream);
	if (rc == 0)
		rc = launch_pair(l, MACHINE_FD_QMP, &m->qmp);
	if (rc == 0 && l->spec->boots)
		rc = launch_pair(l, MACHINE_FD_CONSOLE, &m->console);
	if (rc == 0) {
		m->words = memfd_create("qemu", MFD_CLOEXEC);
		m->said = l->spec->boots ? memfd_create("console", MFD_CLOEXEC) : -1;
		rc = m->words < 0 || (l->spec->boots && m->said < 0) ? -errno : 0;
	}
	if (rc < 0)
		return err_sys(err, -rc, "set up QEMU's descriptors");
	l->child.spec = l->spec;
	l->child.argv = l->argv;
	l->child.privileged = l->base != 0;
	for (int i = 0; i < MACHINE_FDS; i++)
		l->child.fds[i] = l->theirs[i];
	l->child.fds[MACHINE_FD_WORDS] = m->words;
	l->child.fds[MACHINE_FD_DISK] = l->spec->disk;
	l->child.fds[MACHINE_FD_STATE] = l->spec->state;
	return 0;
}

/* With every signal blocked: what is ours to handle is not the child's. */
static long launch_clone_blocked(struct launch *l)
{
	struct clone_args args = {
	    .flags = CLONE_PIDFD | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC |
		     CLONE_NEWUTS | CLONE_NEWNET,
	    .pidfd = (uint64_t)(uintptr_t)&l->m->pidfd,
	    .exit_signal = SIGCHLD,
	};
	sigset_t all;
	sigset_t before;
	long pid;

	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, &before);
	pid = syscall(SYS_clone3, &args, sizeof(args));
	if (pid == 0)
		qemu_child_main(&l->child);
	pid = pid < 0 ? -errno : pid;
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
	return pid;
}

static int launch_clone(struct launch *l, struct err *err)
{
	uid_t worker = l->base + DRIVER_WORKER_UID;
	struct userns_self self;
	long pid;
	int rc = 0;

	/* The namespace shall belong to the worker's later uid: as its owner the worker may signal
	 * what is inside when it has no privilege left. */
	if (l->base)
		rc = userns_assume(worker, &self);
	if (rc < 0)
		return err_sys(err, -rc, "take on the worker's uid %u", worker);
	pid = launch_clone_blocked(l);
	if (l->base)
		rc = userns_resume(&self);
	if (pid < 0)
		return err_sys(err, (int)-pid, "clone a process into new namespaces");
	l->m->pid = (pid_t)pid;
	fd_close(&l->child.sync);
	for (int i = 0; i < MACHINE_FDS; i++)
		fd_close(&l->theirs[i]);
	return rc < 0 ? err_sys(err, -rc, "become root again") : 0;
}

static int launch_map_ids(struct launch *l, struct err *err)
{
	char path[32];
	FD_SCOPED int proc = -1;
	int rc;

	(void)snprintf(path, sizeof(path), "/proc/%d", (int)l->m->pid);
	proc = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (proc < 0)
		return err_sys(err, errno, "open %s", path);
	rc = userns_write_maps(proc, l->base);
	if (rc < 0)
		return err_sys(err, -rc, "write the id maps of the box");
	/* Only a preference: some hosts allow no change. */
	(void)fd_write_file_at(proc, "oom_score_adj", OOM_SCORE);
	return 0;
}

static int launch_go(struct launch *l, struct err *err)
{
	if (send(l->sync, "", 1, MSG_NOSIGNAL) == 1)
		return 0;
	return err_sys(err, errno, "let QEMU's process go on");
}

/* One message of the child: its listener, why it failed, or that it has executed QEMU (0 bytes). */
static ssize_t launch_hear(struct launch *l, struct child_failure *f, int fds[FD_PASS_MAX])
{
	struct pollfd p = {.fd = l->sync, .events = POLLIN};
	int rc = poll(&p, 1, machine_wait_ms(l->deadline_ns));

	for (int i = 0; i < FD_PASS_MAX; i++)
		fds[i] = -1;
	if (rc <= 0)
		return rc < 0 ? -errno : -ETIMEDOUT;
	return fd_recv_msg(l->sync, f, sizeof(*f), fds);
}

static int launch_failed(ssize_t n, const struct child_failure *f, struct err *err)
{
	if (n == (ssize_t)sizeof(*f))
		return err_sys(err, f->code > 0 ? f->code : EIO, "QEMU's process could not %.*s",
		    (int)sizeof(f->step), f->step);
	if (n < 0 && n != -ECONNRESET)
		return err_sys(err, (int)-n, "wait for QEMU's process");
	return err_set(err, EIO, "QEMU's process died before it was QEMU");
}

static int launch_take_listener(struct launch *l, struct err *err)
{
	struct child_failure f;
	int fds[FD_PASS_MAX];
	ssize_t n = launch_hear(l, &f, fds);

	if (n == 1 && fds[0] >= 0) {
		l->m->listener = fds[0];
		return 0;
	}
	return launch_failed(n, &f, err);
}

static int launch_await_exec(struct launch *l, struct err *err)
{
	struct child_failure f;
	int fds[FD_PASS_MAX];
	ssize_t n = launch_hear(l, &f, fds);

	return n == 0 ? 0 : launch_failed(n, &f, err);
}

static int launch_run(struct launch *l, struct err *err)
{
	const struct machine_hooks *h = l->hooks;
	int rc = launch_clone(l, err);

	FAULT_POINT("driver.qemu.cloned");
	if (rc == 0 && h->born)
		rc = h->born(h->ctx, l->m->pid, err);
	FAULT_POINT("driver.qemu.born");
	if (rc == 0)
		rc = launch_map_ids(l, err);
	if (FAULT_FAILS("driver.qemu.mapped"))
		rc = err_set(err, EIO, "fault");
	if (rc == 0)
		rc = launch_go(l, err);
	if (rc == 0)
		rc = launch_take_listener(l, err);
	if (rc == 0 && h->limit)
		rc = h->limit(h->ctx, l->m->pid, err);
	if (FAULT_FAILS("driver.qemu.cgroup"))
		rc = err_set(err, EIO, "fault");
	if (rc == 0)
		rc = launch_go(l, err);
	if (rc == 0)
		rc = launch_await_exec(l, err);
	FAULT_POINT("driver.qemu.released");
	return rc;
}

int machine_launch(const struct machine_spec *spec, uid_t base, const struct machine_hooks *hooks,
    uint64_t deadline_ns, struct machine *m, struct err *err)
{
	struct launch *l = calloc(1, sizeof(*l));
	int rc;

	*m = (struct machine){
	    .pidfd = -1,
	    .stream = -1,
	    .qmp = -1,
	    .words = -1,
	    .console = -1,
	    .said = -1,
	    .listener = -1,
	    .memory = spec->memory,
	};
	if (!l)
		return err_sys(err, ENOMEM, "launch QEMU");
	l->spec = spec;
	l->hooks = hooks;
	l->base = base;
	l->deadline_ns = deadline_ns;
	l->m = m;
	l->sync = -1;
	l->child.sync = -1;
	for (int i = 0; i < MACHINE_FDS; i++)
		l->theirs[i] = -1;
	rc = launch_set_up(l, err);
	if (rc == 0)
		rc = launch_run(l, err);
	if (rc < 0 && proc_was_killed(m->pidfd, l->sync))
		rc = err_set(err, EOWNERDEAD, "QEMU's process was killed before it was QEMU");
	if (rc < 0) {
		(void)machine_kill(m, clock_now_ns() + UNDO_NS); /* else it is the janitor's */
		machine_close(m);
	}
	fd_close(&l->sync);
	fd_close(&l->child.sync);
	for (int i = 0; i < MACHINE_FDS; i++)
		fd_close(&l->theirs[i]);
	free(l);
	return rc;
}
