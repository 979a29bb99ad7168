/*
 * namespace: boxes made of Linux namespaces. Worker: the box after its start. If the worker dies
 * the kernel kills the box's first process (PR_SET_PDEATHSIG), and with it the whole box; the
 * janitor removes what is left.
 */
#include "drivers/namespace/namespace.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "drivers/image/root.h"
#include "drivers/namespace/box.h"
#include "drivers/namespace/image_host.h"
#include "drivers/namespace/site.h"
#include "lib/clock.h"
#include "lib/fault.h"
#include "lib/fd.h"
#include "lib/proc.h"

static bool namespace_takes(const char *image)
{
	return !strcmp(image, IMAGE_HOST) || image_root_takes(image);
}

static int namespace_start(const struct driver_site *site, const struct driver_spec *spec,
    struct driver_box **box, int *stream, struct err *err)
{
	const struct ns_prepared *prep = site_prepared_map(site, err);
	int rc;

	if (!prep)
		return -EINVAL;
	if (!driver_owns_name(site, spec->name))
		rc = err_set(
		    err, EINVAL, "%s is no box name of instance %s", spec->name, site->instance);
	else
		rc = ns_box_start(site, prep, spec, false, box, stream, err);
	if (rc < 0)
		site_prepared_unmap(prep);
	else
		(*box)->prep = prep;
	return rc;
}

static int namespace_watch_fd(const struct driver_box *box)
{
	return box->pidfd;
}

/* Opens what stats() reads; the rest of what was needed to start goes. */
static int namespace_unprivileged(struct driver_box *box, struct err *err)
{
	(void)err;
	if (!box->prep)
		return 0;
	cgroup_open_stats(box->prep, &box->cgroups);
	for (int i = 0; i < NS_CGROUPS; i++)
		fd_close(&box->cgroups.dirs[i]);
	site_prepared_unmap(box->prep);
	box->prep = NULL;
	return 0;
}

/* The first process is gone only when every process of its pid namespace is. */
int ns_box_kill(struct driver_box *box, uint64_t deadline_ns)
{
	siginfo_t info;
	uint64_t now = clock_now_ns();
	uint64_t left = deadline_ns > now ? (deadline_ns - now) / NS_PER_MS + 1 : 0;
	int rc;

	if (box->reaped)
		return 0;
	FAULT_POINT("driver.namespace.kill");
	rc = proc_signal(box->pidfd, SIGKILL);
	if (rc < 0 && rc != -ESRCH)
		return rc;
	rc = proc_wait_gone(box->pidfd, left > 1000000 ? 1000000 : (int)left);
	if (rc < 0)
		return rc;
	/* A caller that ignores SIGCHLD has it reaped already. */
	if (waitid(P_PIDFD, (id_t)box->pidfd, &info, WEXITED | __WALL) < 0 && errno != ECHILD)
		return -errno;
	box->reaped = true;
	return 0;
}

static int namespace_stats(const struct driver_box *box, struct driver_stats *out)
{
	struct driver_stats s = {0};

	cgroup_read_stats(&box->cgroups, &s);
	*out = s;
	return 0;
}

static void namespace_free(struct driver_box *box)
{
	if (!box)
		return;
	cgroup_set_close(&box->cgroups);
	fd_close(&box->pidfd);
	site_prepared_unmap(box->prep);
	free(box);
}

const struct driver driver_namespace = {
    .name = "namespace",
    .takes = namespace_takes,
    .rooted = true,
    .probe = namespace_probe,
    .prepare = namespace_prepare,
    .list = namespace_list,
    .adopt = namespace_adopt,
    .cleanup = namespace_cleanup,
    .finish = namespace_finish,
    .start = namespace_start,
    .watch_fd = namespace_watch_fd,
    .unprivileged = namespace_unprivileged,
    .kill = ns_box_kill,
    .stats = namespace_stats,
    .free = namespace_free,
};
