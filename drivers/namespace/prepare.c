/*
 * prepare: what all boxes of an instance share, its making and its end. Janitor. If it dies
 * half-way, the next prepare() begins again and finish() removes all of it.
 *
 * Only layers are kept from one prepare() to the next: all else is made in less time than it would
 * take to know whether it is still right.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "drivers/namespace/cgroup_site.h"
#include "drivers/namespace/filter.h"
#include "drivers/namespace/layer.h"
#include "drivers/namespace/namespace.h"
#include "drivers/namespace/prepare.h"
#include "drivers/namespace/site.h"
#include "lib/fault.h"
#include "lib/fd.h"

/* What runc hides too, less what a box has no /sys for. */
static const struct ns_mask masks[] = {
    {NS_MASK_DIR, "proc/acpi"},
    {NS_MASK_DIR, "proc/asound"},
    {NS_MASK_DIR, "proc/scsi"},
    {NS_MASK_FILE, "proc/interrupts"},
    {NS_MASK_FILE, "proc/kcore"},
    {NS_MASK_FILE, "proc/keys"},
    {NS_MASK_FILE, "proc/latency_stats"},
    {NS_MASK_FILE, "proc/sched_debug"},
    {NS_MASK_FILE, "proc/timer_list"},
    {NS_MASK_FILE, "proc/timer_stats"},
    {NS_MASK_READONLY, "proc/bus"},
    {NS_MASK_READONLY, "proc/fs"},
    {NS_MASK_READONLY, "proc/irq"},
    {NS_MASK_READONLY, "proc/sys"},
    {NS_MASK_READONLY, "proc/sysrq-trigger"},
};

_Static_assert(sizeof(masks) / sizeof(masks[0]) <= NS_MASKS, "the masks fit");

static void prepare_masks(struct ns_prepared *prep)
{
	char path[40];

	for (size_t i = 0; i < sizeof(masks) / sizeof(masks[0]); i++) {
		(void)snprintf(path, sizeof(path), "/%s", masks[i].path);
		if (access(path, F_OK) == 0)
			prep->masks[prep->mask_count++] = masks[i];
	}
}

int prepare_fill(struct ns_prepared *prep, struct err *err)
{
	prep->magic = NS_MAGIC;
	prep->size = sizeof(*prep);
	prepare_masks(prep);
	return filter_build(prep->filter, NS_FILTER, &prep->filter_len, err);
}

static int prepare_write(int fd, const struct ns_prepared *prep, struct err *err)
{
	if (ftruncate(fd, 0) < 0 || pwrite(fd, prep, sizeof(*prep), 0) != (ssize_t)sizeof(*prep))
		return err_sys(err, errno ? errno : EIO, "write what was prepared");
	return 0;
}

static int prepare_all(
    const struct driver_site *site, const char *image, struct ns_prepared *prep, struct err *err)
{
	FD_SCOPED int dir = site_dir_make(site, err);
	int rc;

	if (dir < 0)
		return dir;
	rc = layer_get(site, image, prep, err);
	FAULT_POINT("driver.namespace.prepare.layered");
	if (rc == 0)
		rc = cgroup_site_prepare(site, dir, prep, err);
	FAULT_POINT("driver.namespace.prepare.cgroups");
	if (rc == 0)
		rc = prepare_fill(prep, err);
	return rc;
}

int namespace_prepare(const struct driver_site *site, const char *image, struct err *err)
{
	struct ns_prepared *prep = calloc(1, sizeof(*prep));
	int rc = prep ? prepare_all(site, image, prep, err)
		      : err_sys(err, ENOMEM, "prepare the namespace driver");

	if (rc == 0)
		rc = prepare_write(site->prepared, prep, err);
	free(prep);
	return rc;
}

static int prepare_forget_cgroups(const struct driver_site *site)
{
	FD_SCOPED int dir = site_dir_open(site);

	if (dir < 0)
		return dir == -ENOENT ? 0 : dir;
	return cgroup_site_finish(dir);
}

int namespace_finish(const struct driver_site *site, struct err *err)
{
	char path[NS_PATH];
	int rc = prepare_forget_cgroups(site);

	FAULT_POINT("driver.namespace.finish");
	if (rc < 0)
		return err_sys(err, -rc, "remove the cgroups of instance %s", site->instance);
	rc = site_dir_path(site, path);
	if (rc == 0)
		rc = record_remove_tree(AT_FDCWD, path);
	if (rc == 0)
		rc = site_state_path(site, path);
	if (rc == 0)
		rc = record_remove_tree(AT_FDCWD, path);
	if (rc == 0)
		rc = site_trial_path(site, path);
	if (rc == 0)
		rc = record_remove_tree(AT_FDCWD, path);
	if (rc < 0)
		return err_sys(err, -rc, "remove %s", path);
	return 0;
}
