/*
 * sweep: finding and removing boxes by name, without their worker. Janitor. All of it can be done
 * again after it died half-way.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "drivers/namespace/cgroup.h"
#include "drivers/namespace/cgroup_site.h"
#include "drivers/namespace/namespace.h"
#include "drivers/namespace/site.h"
#include "drivers/namespace/userns.h"
#include "lib/clock.h"
#include "lib/fault.h"
#include "lib/fd.h"
#include "lib/proc.h"

#define CLEANUP_NS (5 * NS_PER_S) /* for all processes of a box to be gone */

struct sweep {
	const struct driver_site *site;
	const char *name;
	uint64_t deadline_ns;
	struct record_names names;
};

static int sweep_collect(void *ctx, const char *parent)
{
	struct sweep *s = ctx;

	return record_names_add_dir(&s->names, s->site, AT_FDCWD, parent);
}

int namespace_list(const struct driver_site *site, driver_list_fn *fn, void *ctx)
{
	struct sweep s = {.site = site};
	FD_SCOPED int dir = site_dir_open(site);
	int rc;

	if (dir < 0)
		return dir == -ENOENT ? 0 : dir;
	FAULT_POINT("driver.namespace.list");
	rc = cgroup_site_each(dir, sweep_collect, &s);
	if (rc == 0)
		rc = record_names_add_dir(&s.names, site, dir, "boxes");
	for (size_t i = 0; rc == 0 && i < s.names.count; i++)
		rc = fn(ctx, s.names.names[i]);
	record_names_free(&s.names);
	return rc;
}

static int sweep_destroy(void *ctx, const char *parent)
{
	struct sweep *s = ctx;

	FAULT_POINT("driver.namespace.cleanup");
	return cgroup_destroy(parent, s->name, s->deadline_ns);
}

static int sweep_clean(struct sweep *s, pid_t pid, uint64_t start)
{
	FD_SCOPED int dir = site_dir_open(s->site);
	pid_t recorded = 0;
	uint64_t recorded_start = 0;
	int rc = 0;

	if (userns_is_of_box(s->site, s->name, pid))
		rc = proc_kill_exact(pid, start, s->deadline_ns);
	if (rc < 0 || dir < 0)
		return dir == -ENOENT ? rc : rc < 0 ? rc : dir;
	if (site_record_read(s->site, s->name, &recorded, &recorded_start) == 0)
		rc = proc_kill_exact(recorded, recorded_start, s->deadline_ns);
	FAULT_POINT("driver.namespace.cleanup.killed");
	if (rc == 0)
		rc = cgroup_site_each(dir, sweep_destroy, s);
	if (rc == 0)
		rc = site_record_remove(s->site, s->name);
	FAULT_POINT("driver.namespace.cleanup.removed");
	return rc;
}

int namespace_cleanup(
    const struct driver_site *site, const char *name, pid_t pid, uint64_t start, struct err *err)
{
	struct sweep s = {.site = site, .name = name, .deadline_ns = clock_now_ns() + CLEANUP_NS};
	int rc;

	if (!driver_owns_name(site, name))
		return err_set(
		    err, EINVAL, "%s is no box name of instance %s", name, site->instance);
	rc = sweep_clean(&s, pid, start);
	if (rc < 0)
		return err_sys(err, -rc, "clean up after box %s", name);
	return 0;
}
