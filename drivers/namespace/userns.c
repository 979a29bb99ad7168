/*
 * userns: user namespaces and ids. Worker, during start(); what it makes dies with the box's first
 * process.
 */
#include "drivers/namespace/userns.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/mount.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "drivers/driver.h"
#include "lib/fd.h"

static int userns_raise_permitted(void)
{
	struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct caps[2];

	if (syscall(SYS_capget, &head, caps) < 0)
		return -errno;
	for (int i = 0; i < 2; i++)
		caps[i].effective = caps[i].permitted;
	return syscall(SYS_capset, &head, caps) < 0 ? -errno : 0;
}

/* Real and saved ids stay root's, which keeps the permitted capabilities and the way back. */
int userns_assume(uid_t id, struct userns_self *self)
{
	int rc;

	self->dumpable = prctl(PR_GET_DUMPABLE);
	if (syscall(SYS_setresgid, -1, id, -1) < 0 || syscall(SYS_setresuid, -1, id, -1) < 0)
		rc = -errno;
	else
		rc = userns_raise_permitted();
	if (rc < 0)
		(void)userns_resume(self); /* the first error counts */
	return rc;
}

int userns_resume(const struct userns_self *self)
{
	if (syscall(SYS_setresuid, -1, 0, -1) < 0 || syscall(SYS_setresgid, -1, 0, -1) < 0)
		return -errno;
	/* Changing ids has cleared it. */
	if (self->dumpable == 1 && prctl(PR_SET_DUMPABLE, 1) < 0)
		return -errno;
	return 0;
}

int userns_write_maps(int procfd, uid_t base)
{
	char uids[48];
	char gids[48];
	int rc = 0;

	if (base) {
		(void)snprintf(uids, sizeof(uids), "0 %u %u\n", base, DRIVER_BOX_UIDS);
		(void)snprintf(gids, sizeof(gids), "%s", uids);
	} else {
		(void)snprintf(uids, sizeof(uids), "0 %u 1\n", geteuid());
		(void)snprintf(gids, sizeof(gids), "0 %u 1\n", getegid());
		/* Without it an ordinary user may not map a group. */
		rc = fd_write_file_at(procfd, "setgroups", "deny");
	}
	if (rc == 0)
		rc = fd_write_file_at(procfd, "uid_map", uids);
	if (rc == 0)
		rc = fd_write_file_at(procfd, "gid_map", gids);
	return rc;
}

int userns_clone_layer(const char *path)
{
	long fd = syscall(SYS_open_tree, AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);

	return fd < 0 ? -errno : (int)fd;
}

int userns_map_layer(int mountfd, int usernsfd)
{
	struct mount_attr attr = {
	    .attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_IDMAP,
	    .userns_fd = (unsigned int)usernsfd,
	};
	int rc;

	if (syscall(SYS_mount_setattr, mountfd, "", AT_EMPTY_PATH, &attr, sizeof(attr)) == 0)
		return 0;
	rc = -errno;
	attr.attr_set &= ~(uint64_t)MOUNT_ATTR_IDMAP;
	attr.userns_fd = 0;
	if (syscall(SYS_mount_setattr, mountfd, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0)
		return -errno;
	return rc == -EPERM || rc == -EINVAL ? -EINVAL : rc;
}
