/*
 * site: what the qemu driver keeps on the host for one instance. Janitor and worker; it outlives
 * both and is found again by name.
 */
#include "drivers/qemu/site.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/fd.h"

int qemu_path_join(char out[QEMU_PATH], const char *dir, const char *name, const char *more)
{
	int n = snprintf(out, QEMU_PATH, "%s/%s%s", dir, name, more);

	return n < 0 || n >= QEMU_PATH ? -ENAMETOOLONG : 0;
}

int qemu_site_path(const struct driver_site *site, char out[QEMU_PATH])
{
	return qemu_path_join(out, site->runtime_dir, "qemu-", site->instance);
}

int qemu_store_path(const struct driver_site *site, char out[QEMU_PATH])
{
	return qemu_path_join(out, site->state_dir, "qemu", "");
}

int qemu_site_open(const struct driver_site *site)
{
	char path[QEMU_PATH];
	int rc = qemu_site_path(site, path);
	int fd;

	if (rc < 0)
		return rc;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int qemu_site_make(const struct driver_site *site, struct err *err)
{
	char path[QEMU_PATH];
	FD_SCOPED int fd = -1;
	int rc = qemu_site_path(site, path);

	if (rc < 0)
		return err_sys(err, -rc, "runtime directory %s", site->runtime_dir);
	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		return err_sys(err, errno, "make %s", path);
	fd = qemu_site_open(site);
	if (fd < 0)
		return err_sys(err, -fd, "open %s", path);
	if (mkdirat(fd, "boxes", 0700) < 0 && errno != EEXIST)
		return err_sys(err, errno, "make %s/boxes", path);
	return fd_take(&fd);
}
