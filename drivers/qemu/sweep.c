/*
 * sweep: finding, proving and removing boxes by name, without their worker. Janitor. All of it can
 * be done again after it died half-way.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "drivers/namespace/cgroup.h"
#include "drivers/namespace/cgroup_site.h"
#include "drivers/namespace/userns.h"
#include "drivers/qemu/qemu.h"
#include "drivers/qemu/site.h"
#include "drivers/qemu/store.h"
#include "lib/clock.h"
#include "lib/fault.h"
#include "lib/fd.h"
#include "lib/proc.h"

#define CLEANUP_NS (5 * NS_PER_S) /* for QEMU to be gone */

struct sweep {
	const struct driver_site *site;
	const char *name;
	uint64_t deadline_ns;
	bool dead; /* what bears its name has no process */
	struct record_names names;
};

static int refuse_name(const struct driver_site *site, const char *name, struct err *err)
{
	if (driver_owns_name(site, name))
		return 0;
	return err_set(err, EINVAL, "%s is no box name of instance %s", name, site->instance);
}

/* ---- list ---- */

static int sweep_collect(void *ctx, const char *parent)
{
	struct sweep *s = ctx;

	return record_names_add_dir(&s->names, s->site, AT_FDCWD, parent);
}

int qemu_list(const struct driver_site *site, driver_list_fn *fn, void *ctx)
{
	struct sweep s = {.site = site};
	FD_SCOPED int dir = qemu_site_open(site);
	int rc;

	if (dir < 0)
		return dir == -ENOENT ? 0 : dir;
	FAULT_POINT("driver.qemu.list");
	rc = cgroup_site_each(dir, sweep_collect, &s);
	if (rc == 0)
		rc = record_names_add_dir(&s.names, site, dir, "boxes");
	for (size_t i = 0; rc == 0 && i < s.names.count; i++)
		rc = fn(ctx, s.names.names[i]);
	record_names_free(&s.names);
	return rc;
}

/* ---- adopt ---- */

static int adopt_look_at_cgroup(void *ctx, const char *parent)
{
	struct sweep *s = ctx;
	int used = cgroup_is_used(parent, s->name);

	if (used == -ENOENT)
		return 0;
	if (used >= 0)
		s->dead = used == 0;
	return used < 0 ? used : used == 0 ? -EUCLEAN : 0;
}

/* Its record names QEMU, and QEMU is all of the box. */
static int adopt_look(struct sweep *s)
{
	FD_SCOPED int dir = qemu_site_open(s->site);
	FD_SCOPED int pidfd = -1;
	char path[QEMU_PATH];
	pid_t pid = 0;
	uint64_t start = 0;
	int rc;

	if (dir < 0)
		return dir == -ENOENT ? -ESRCH : dir;
	rc = cgroup_site_each(dir, adopt_look_at_cgroup, s);
	if (rc == 0)
		rc = qemu_site_path(s->site, path);
	if (rc == 0)
		rc = record_read(path, s->name, &pid, &start);
	if (rc < 0)
		return rc == -ENOENT ? -ESRCH : rc;
	pidfd = proc_open_exact(pid, start);
	if (pidfd < 0)
		return pidfd == -ESRCH ? -EUCLEAN : pidfd;
	return proc_wait_gone(pidfd, 0) == -ETIMEDOUT ? 0 : -EUCLEAN;
}

int qemu_adopt(const struct driver_site *site, const char *name, struct err *err)
{
	struct sweep s = {.site = site, .name = name};
	int rc = refuse_name(site, name, err);

	if (rc < 0)
		return rc;
	FAULT_POINT("driver.qemu.adopt");
	rc = adopt_look(&s);
	if (rc == -EUCLEAN)
		return err_sys(err, EUCLEAN, "box %s: QEMU is gone", name);
	if (rc == -ESRCH)
		return err_sys(err, ESRCH, "box %s: nothing of it is there", name);
	return rc < 0 ? err_sys(err, -rc, "look for box %s", name) : 0;
}

/* ---- cleanup ---- */

static int sweep_destroy(void *ctx, const char *parent)
{
	struct sweep *s = ctx;

	FAULT_POINT("driver.qemu.cleanup");
	return cgroup_destroy(parent, s->name, s->deadline_ns);
}

static int sweep_clean(struct sweep *s, pid_t pid, uint64_t start)
{
	FD_SCOPED int dir = qemu_site_open(s->site);
	char path[QEMU_PATH];
	pid_t recorded = 0;
	uint64_t recorded_start = 0;
	int rc = 0;

	if (dir < 0)
		return dir == -ENOENT ? 0 : dir;
	if (userns_is_of_box(s->site, s->name, pid))
		rc = proc_kill_exact(pid, start, s->deadline_ns);
	if (rc == 0)
		rc = qemu_site_path(s->site, path);
	if (rc == 0 && record_read(path, s->name, &recorded, &recorded_start) == 0)
		rc = proc_kill_exact(recorded, recorded_start, s->deadline_ns);
	FAULT_POINT("driver.qemu.cleanup.killed");
	if (rc == 0)
		rc = cgroup_site_each(dir, sweep_destroy, s);
	if (rc == 0)
		rc = record_remove(path, s->name);
	FAULT_POINT("driver.qemu.cleanup.removed");
	return rc;
}

int qemu_cleanup(
    const struct driver_site *site, const char *name, pid_t pid, uint64_t start, struct err *err)
{
	struct sweep s = {.site = site, .name = name, .deadline_ns = clock_now_ns() + CLEANUP_NS};
	int rc = refuse_name(site, name, err);

	if (rc < 0)
		return rc;
	rc = sweep_clean(&s, pid, start);
	store_sweep_dead(site); /* its worker may have made a template */
	return rc < 0 ? err_sys(err, -rc, "clean up after box %s", name) : 0;
}
