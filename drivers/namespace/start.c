/*
 * start: from nothing to a box whose sbx-guest runs. Worker.
 *
 *   worker                               child (child.c)
 *   ------                               ---------------
 *   clone, born()                        dies with the worker; loopback, private mounts
 *   id maps, layers, first go ------->   becomes root, builds and enters its root
 *   cgroups and limits, attach
 *   second go ----------------------->   cgroup namespace, capabilities, filter, exec
 *   end of `sync`: it runs
 *
 * If the worker dies anywhere in here the child dies too; cgroups and the record are left for the
 * janitor, which finds them by the box's name.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "drivers/namespace/box.h"
#include "drivers/namespace/child.h"
#include "drivers/namespace/image_host.h"
#include "drivers/namespace/raw.h"
#include "drivers/namespace/site.h"
#include "drivers/namespace/start.h"
#include "drivers/namespace/userns.h"
#include "lib/clock.h"
#include "lib/fault.h"
#include "lib/fd.h"
#include "lib/proc.h"

#define UNDO_NS (5 * NS_PER_S)
#define OOM_SCORE "500" /* when the host runs out of memory, boxes go first */

/* Only what the configuration names: a client must not choose what of the host it sees. */
static int start_check_image(struct start *s, struct err *err)
{
	if (strcmp(s->spec->image, s->prep->image) != 0)
		return err_set(err, EINVAL, "image %s is not the one this service was set up for",
		    s->spec->image);
	return 0;
}

/* With every signal blocked: a handler must not run in the child, in our memory. */
static long start_clone_blocked(struct start *s, struct clone_args *args)
{
	sigset_t all;
	sigset_t before;
	long pid;

	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, &before);
	pid = raw_clone3(args, sizeof(*args), child_main, s->child);
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
	return pid;
}

static int start_clone(struct start *s, struct err *err)
{
	struct userns_self self;
	struct clone_args args = {
	    .flags = CLONE_VM | CLONE_PIDFD | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS |
		     CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWNET,
	    .pidfd = (uint64_t)(uintptr_t)&s->box->pidfd,
	    .exit_signal = SIGCHLD,
	    .stack = (uint64_t)(uintptr_t)s->child + CHILD_AREA,
	    .stack_size = CHILD_STACK,
	};
	long pid;
	int rc = 0;

	if (s->prep->flags & NS_F_CLONE_CGROUP) {
		args.flags |= CLONE_INTO_CGROUP;
		args.cgroup = (uint64_t)(unsigned int)s->box->cgroups.dirs[0];
	}
	/* The namespace shall belong to the worker's later uid: as its owner the worker may signal
	 * what is inside when it has no privilege left. */
	if (s->base)
		rc = userns_assume(s->base + DRIVER_WORKER_UID, &self);
	if (rc < 0)
		return err_sys(
		    err, -rc, "take on the worker's uid %u", s->base + DRIVER_WORKER_UID);
	pid = start_clone_blocked(s, &args);
	if (s->base)
		rc = userns_resume(&self);
	if (pid < 0)
		return err_sys(err, (int)-pid, "clone a process into new namespaces");
	s->box->pid = (pid_t)pid;
	fd_close(&s->sync[1]); /* the child has its own, and reads their numbers in *child */
	fd_close(&s->stream[1]);
	return rc < 0 ? err_sys(err, -rc, "become root again") : 0;
}

/* Tells the caller, and where no cgroup bears the name leaves a record that does. */
static int start_announce(struct start *s, struct err *err)
{
	uint64_t start = 0;
	int rc = proc_start_time(s->box->pid, &start);

	if (rc == 0 && s->prep->cgroup_count == 0 && !s->trial) {
		rc = site_record_write(s->site, s->spec->name, s->box->pid, start);
		s->recorded = rc == 0;
	}
	if (rc < 0)
		return err_sys(err, -rc, "note the box's first process");
	if (s->spec->born)
		s->spec->born(s->spec->born_ctx, s->box->pid, start);
	return 0;
}

static int start_map_ids(struct start *s, struct err *err)
{
	char path[32];
	FD_SCOPED int ns = -1;
	int rc;

	(void)snprintf(path, sizeof(path), "/proc/%d", (int)s->box->pid);
	s->proc = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (s->proc < 0)
		return err_sys(err, errno, "open %s", path);
	rc = userns_write_maps(s->proc, s->base);
	if (rc < 0)
		return err_sys(err, -rc, "write the id maps of the box");
	if (!s->base)
		return 0;
	ns = openat(s->proc, "ns/user", O_RDONLY | O_CLOEXEC);
	if (ns < 0)
		return err_sys(err, errno, "open the user namespace of the box");
	for (int i = 0; i < NS_LOWERS; i++) {
		rc = userns_map_layer(s->child->lower[i], ns);
		/* Then its files belong to nobody, and the child makes up for ours. */
		if (rc == -EINVAL && i == 0)
			s->child->flags |= CHILD_LAYER_FOREIGN;
		else if (rc < 0 && rc != -EINVAL)
			return err_sys(err, -rc, "map the owners of %s", s->prep->lower[i]);
	}
	return 0;
}

static int start_join_cgroups(struct start *s, struct err *err)
{
	uint32_t i = s->prep->flags & NS_F_CLONE_CGROUP ? 1 : 0;
	int rc;

	for (; i < s->prep->cgroup_count; i++) {
		rc = cgroup_make(s->prep, i, s->spec, &s->box->cgroups, err);
		if (rc < 0)
			return rc;
		rc = cgroup_attach(&s->box->cgroups, i, s->box->pid);
		if (rc < 0)
			return err_sys(err, -rc, "move the box into its cgroup");
	}
	return 0;
}

static int start_go(struct start *s, struct err *err)
{
	if (send(s->sync[0], "", 1, MSG_NOSIGNAL) == 1)
		return 0;
	return err_sys(err, errno, "let the box's first process go on");
}

static int start_await_exec(struct start *s, struct err *err)
{
	struct pollfd p = {.fd = s->sync[0], .events = POLLIN};
	uint64_t now = clock_now_ns();
	uint64_t left = s->spec->deadline_ns > now ? s->spec->deadline_ns - now : 0;
	int rc;

	left = left / NS_PER_MS + 1;
	rc = poll(&p, 1, left > 1000000 ? 1000000 : (int)left);
	if (rc < 0)
		return err_sys(err, errno, "wait for sbx-guest");
	if (rc == 0)
		return err_set(err, ETIMEDOUT, "the box did not start in time: it was to %s",
		    child_step_name(s->child->step));
	/* The end of sync is an exec or a death; the last step tells which. */
	if (s->child->error || s->child->step != STEP_EXEC)
		return err_set(
		    err, EIO, "the box died: it was to %s", child_step_name(s->child->step));
	/* Only a preference: some hosts allow no change. Until the exec it would have been ours
	 * too: the memory was. */
	(void)fd_write_file_at(s->proc, "oom_score_adj", OOM_SCORE);
	return 0;
}

static int start_run(struct start *s, struct err *err)
{
	int rc = 0;

	if (clock_now_ns() >= s->spec->deadline_ns)
		rc = err_set(err, ETIMEDOUT, "the box was to have started already");
	if (rc == 0 && (s->prep->flags & NS_F_CLONE_CGROUP))
		rc = cgroup_make(s->prep, 0, s->spec, &s->box->cgroups, err);
	if (rc == 0)
		rc = start_clone(s, err);
	FAULT_POINT("driver.namespace.cloned");
	if (rc == 0)
		rc = start_announce(s, err);
	FAULT_POINT("driver.namespace.born");
	if (rc == 0)
		rc = start_map_ids(s, err);
	if (FAULT_FAILS("driver.namespace.mapped"))
		rc = err_set(err, EIO, "fault");
	if (rc == 0)
		rc = start_go(s, err);
	if (rc == 0)
		rc = start_join_cgroups(s, err);
	if (FAULT_FAILS("driver.namespace.cgroup"))
		rc = err_set(err, EIO, "fault");
	if (rc == 0)
		rc = start_go(s, err);
	FAULT_POINT("driver.namespace.released");
	if (rc == 0)
		rc = start_await_exec(s, err);
	if (FAULT_FAILS("driver.namespace.started"))
		rc = err_set(err, EIO, "fault");
	/* Its end of sync closes with an exec, too. */
	if (rc < 0 && s->box->pid > 0 && s->child->step != STEP_EXEC &&
	    proc_was_killed(s->box->pidfd, s->sync[0]))
		rc = err_set(err, EOWNERDEAD, "the box was killed: it was to %s",
		    child_step_name(s->child->step));
	return rc;
}

/* What only the start needed, whatever came of it. */
static void start_release(struct start *s)
{
	if (s->child) {
		fd_close(&s->child->guest);
		fd_close(&s->child->helper);
		for (int i = 0; i < NS_LOWERS; i++)
			fd_close(&s->child->lower[i]);
		if (!s->box_in_memory)
			(void)munmap(s->child, s->region);
	}
	fd_close(&s->sync[0]);
	fd_close(&s->sync[1]);
	fd_close(&s->stream[1]);
	fd_close(&s->proc);
}

/* In the order that leaves nothing: processes, their cgroups, the record. */
static void start_undo(struct start *s, struct err *err)
{
	uint64_t deadline = clock_now_ns() + UNDO_NS;

	if (s->box->pid > 0)
		s->box_in_memory = ns_box_kill(s->box, deadline) < 0; /* then it is the janitor's */
	if (s->child && s->child->error)
		(void)err_sys(
		    err, s->child->error, "the box could not %s", child_step_name(s->child->step));
	for (uint32_t i = 0; i < s->prep->cgroup_count; i++) {
		if (s->box->cgroups.dirs[i] >= 0)
			(void)cgroup_destroy(s->prep->cgroups[i].parent, s->spec->name, deadline);
	}
	cgroup_set_close(&s->box->cgroups);
	if (s->recorded)
		(void)site_record_remove(s->site, s->spec->name);
	fd_close(&s->box->pidfd);
	fd_close(&s->stream[0]);
}

int ns_box_start(const struct driver_site *site, const struct ns_prepared *prep,
    const struct driver_spec *spec, bool trial, struct driver_box **out, int *stream,
    struct err *err)
{
	struct start s = {
	    .site = site,
	    .spec = spec,
	    .prep = prep,
	    .sync = {-1, -1},
	    .stream = {-1, -1},
	    .proc = -1,
	    .trial = trial,
	};
	int rc;

	s.box = calloc(1, sizeof(*s.box));
	if (!s.box)
		return err_sys(err, ENOMEM, "start box %s", spec->name);
	s.box->pidfd = -1;
	cgroup_set_init(&s.box->cgroups);
	if (site->uid_base)
		s.base = site->uid_base + spec->slot * DRIVER_UIDS;
	rc = start_check_image(&s, err);
	if (rc == 0)
		rc = start_set_up(&s, err);
	if (rc == 0)
		rc = start_run(&s, err);
	if (rc < 0 || trial) {
		start_undo(&s, err);
		if (rc < 0 && err && err->code)
			rc = -err->code;
		free(s.box);
	} else {
		*out = s.box;
		*stream = s.stream[0];
	}
	start_release(&s);
	return rc;
}
