/*
 * adopt: is a box, of which only the name is known, there and alive? Janitor, for each box that a
 * new supervisor takes over. It only looks, so it may die anywhere.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>

#include "drivers/namespace/cgroup.h"
#include "drivers/namespace/cgroup_site.h"
#include "drivers/namespace/namespace.h"
#include "drivers/namespace/site.h"
#include "lib/fault.h"
#include "lib/fd.h"
#include "lib/proc.h"

struct adopt {
	const struct driver_site *site;
	const char *name;
	bool lives;
	char dead[NS_PATH]; /* what bears its name and has no process, if anything */
};

/* The box may be missing: parents of other hierarchies, and of another supervisor, are listed too.
 */
static int adopt_look_at_cgroup(void *ctx, const char *parent)
{
	struct adopt *a = ctx;
	int used = cgroup_is_used(parent, a->name);

	if (used < 0)
		return used == -ENOENT ? 0 : used;
	if (used) {
		a->lives = true;
		return 0;
	}
	(void)snprintf(a->dead, sizeof(a->dead), "%s", parent);
	return -EUCLEAN;
}

/* Where no cgroup bears its name, its record does. */
static int adopt_look_at_record(struct adopt *a)
{
	FD_SCOPED int pidfd = -1;
	pid_t pid = 0;
	uint64_t start = 0;
	int rc = site_record_read(a->site, a->name, &pid, &start);

	if (rc < 0)
		return rc == -ENOENT ? 0 : rc;
	pidfd = proc_open_exact(pid, start);
	if (pidfd < 0 && pidfd != -ESRCH)
		return pidfd;
	a->lives = pidfd >= 0 && proc_wait_gone(pidfd, 0) == -ETIMEDOUT;
	if (a->lives)
		return 0;
	(void)snprintf(a->dead, sizeof(a->dead), "the record");
	return -EUCLEAN;
}

static int adopt_look(struct adopt *a)
{
	FD_SCOPED int dir = site_dir_open(a->site);
	int rc;

	if (dir < 0)
		return dir == -ENOENT ? -ESRCH : dir;
	rc = cgroup_site_each(dir, adopt_look_at_cgroup, a);
	if (rc == 0)
		rc = adopt_look_at_record(a);
	return rc == 0 && !a->lives ? -ESRCH : rc;
}

/*
 * Its first process lives if any does. What a box needs on the host is its cgroups and its layers:
 * the first are looked at; the second are removed by finish() only, which comes after the last box.
 */
int namespace_adopt(const struct driver_site *site, const char *name, struct err *err)
{
	struct adopt a = {.site = site, .name = name};
	int rc;

	if (!driver_owns_name(site, name))
		return err_set(
		    err, EINVAL, "%s is no box name of instance %s", name, site->instance);
	FAULT_POINT("driver.namespace.adopt");
	rc = adopt_look(&a);
	if (rc == -EUCLEAN)
		return err_sys(err, EUCLEAN, "box %s: no process in %s", name, a.dead);
	if (rc == -ESRCH)
		return err_sys(err, ESRCH, "box %s: nothing of it is there", name);
	return rc < 0 ? err_sys(err, -rc, "look for box %s", name) : 0;
}
