/*
 * userns: user namespaces and ids. Worker, during start(), and janitor; what it makes dies with the
 * process that it was made for.
 */
#include "drivers/namespace/userns.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/mount.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
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

/*
 * Who made the user namespace that pid is in. -ESRCH when the process is gone or is in the caller's
 * own, another -errno when that cannot be seen. 0 or -errno.
 */
static int userns_owner(pid_t pid, uid_t *owner)
{
	struct stat own;
	struct stat its;
	char path[32];
	FD_SCOPED int ns = -1;

	(void)snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)pid);
	ns = open(path, O_RDONLY | O_CLOEXEC);
	if (ns < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	if (fstat(ns, &its) < 0 || stat("/proc/self/ns/user", &own) < 0)
		return -errno;
	if (own.st_dev == its.st_dev && own.st_ino == its.st_ino)
		return -ESRCH;
	return ioctl(ns, NS_GET_OWNER_UID, owner) < 0 ? -errno : 0;
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

/* Holds a user namespace until its end of the pair is closed. */
static void userns_hold(int sock)
{
	char byte = 0;

	_exit(unshare(CLONE_NEWUSER) < 0 || write(sock, &byte, 1) != 1 || read(sock, &byte, 1) < 0);
}

static bool userns_try_layer(pid_t pid, const char *path, uid_t base)
{
	char proc[32];
	FD_SCOPED int dir = -1;
	FD_SCOPED int ns = -1;
	FD_SCOPED int layer = userns_clone_layer(path);

	(void)snprintf(proc, sizeof(proc), "/proc/%d", (int)pid);
	dir = open(proc, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (layer < 0 || dir < 0 || userns_write_maps(dir, base) < 0)
		return false;
	ns = openat(dir, "ns/user", O_RDONLY | O_CLOEXEC);
	return ns >= 0 && userns_map_layer(layer, ns) == 0;
}

bool userns_can_map_layer(const char *path, uid_t base)
{
	int pair[2];
	bool can = false;
	char byte;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return false;
	pid = fork();
	if (pid == 0) {
		(void)close(pair[0]);
		userns_hold(pair[1]);
	}
	(void)close(pair[1]);
	if (pid > 0 && read(pair[0], &byte, 1) == 1)
		can = userns_try_layer(pid, path, base);
	(void)close(pair[0]);
	if (pid > 0)
		(void)waitpid(pid, NULL, 0);
	return can;
}

bool userns_is_of_box(const struct driver_site *site, const char *name, pid_t pid)
{
	const char *slot = name + strlen("sbxd-") + strlen(site->instance) + 1;
	uid_t maker = geteuid();
	uid_t owner;

	if (site->uid_base)
		maker = site->uid_base + (uint32_t)strtoul(slot, NULL, 10) * DRIVER_UIDS +
			DRIVER_WORKER_UID;
	return pid > 0 && userns_owner(pid, &owner) == 0 && owner == maker;
}
