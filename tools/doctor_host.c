/* doctor_host: can this host run boxes? Tries things in a child of its own, which leaves nothing.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/fd.h"
#include "tools/doctor.h"

#define SHM_WANTED_MIB 16 /* a table of the default size, and some room */

/* Runs fn in a child. Returns the errno value that it returned, or why there was no child. */
static int try_in_child(int (*fn)(void))
{
	pid_t pid = fork(); /* sbxctl has one thread */
	int status = 0;

	if (pid < 0)
		return errno;
	if (pid == 0)
		_exit(fn() & 0xff);
	while (waitpid(pid, &status, 0) < 0) {
		if (errno != EINTR)
			return errno;
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : EINTR;
}

static int try_namespaces(void)
{
	return unshare(CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS |
		       CLONE_NEWNET | CLONE_NEWCGROUP) < 0
		   ? errno
		   : 0;
}

static bool file_says(const char *path, const char *text)
{
	char value[32];

	return fd_read_file_at(AT_FDCWD, path, value, sizeof(value)) > 0 &&
	       strncmp(value, text, strlen(text)) == 0;
}

void doctor_namespaces(struct doctor *d)
{
	int rc = try_in_child(try_namespaces);
	const char *fix = "use a kernel with CONFIG_USER_NS, PID_NS, NET_NS, IPC_NS and CGROUPS";

	if (rc == 0) {
		doctor_say(d, DOCTOR_FINE, NULL, "can be made");
		return;
	}
	if (file_says("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1"))
		fix = "sysctl kernel.apparmor_restrict_unprivileged_userns=0, or run sbxd as root";
	else if (file_says("/proc/sys/kernel/unprivileged_userns_clone", "0"))
		fix = "sysctl kernel.unprivileged_userns_clone=1, or run sbxd as root";
	else if (file_says("/proc/sys/user/max_user_namespaces", "0"))
		fix = "sysctl user.max_user_namespaces=15000";
	else if (rc == EPERM)
		fix = "run sbxd as root; in a container, outside of it or with its seccomp filter "
		      "allowing unshare";
	doctor_say(d, DOCTOR_WRONG, fix, "cannot be made: %s", strerror(rc));
}

static int try_overlay(void)
{
	char map[64];
	uid_t uid = getuid();
	gid_t gid = getgid();

	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
		return errno;
	(void)fd_write_file_at(AT_FDCWD, "/proc/self/setgroups", "deny"); /* the map tells */
	(void)snprintf(map, sizeof(map), "0 %u 1", (unsigned int)uid);
	if (fd_write_file_at(AT_FDCWD, "/proc/self/uid_map", map) < 0)
		return EPERM;
	(void)snprintf(map, sizeof(map), "0 %u 1", (unsigned int)gid);
	if (fd_write_file_at(AT_FDCWD, "/proc/self/gid_map", map) < 0)
		return EPERM;
	if (mount("none", "/", "none", MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("none", "/tmp", "tmpfs", 0, "size=1m") < 0 || mkdir("/tmp/l", 0700) < 0 ||
	    mkdir("/tmp/u", 0700) < 0 || mkdir("/tmp/w", 0700) < 0 || mkdir("/tmp/m", 0700) < 0)
		return errno;
	return mount("none", "/tmp/m", "overlay", 0,
		   "lowerdir=/tmp/l,upperdir=/tmp/u,workdir=/tmp/w,userxattr") < 0
		   ? errno
		   : 0;
}

void doctor_overlay(struct doctor *d)
{
	int rc = try_in_child(try_overlay);

	if (rc == 0)
		doctor_say(d, DOCTOR_FINE, NULL, "can be mounted in a user namespace");
	else if (rc == ENODEV)
		doctor_say(d, DOCTOR_WRONG, "modprobe overlay", "the kernel has none");
	else
		doctor_say(d, DOCTOR_WRONG, "use Linux 5.11 or later, with user namespaces allowed",
		    "cannot be mounted in a user namespace: %s", strerror(rc));
}

void doctor_seccomp(struct doctor *d)
{
	uint32_t action = SECCOMP_RET_ERRNO;

	if (syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0)
		doctor_say(d, DOCTOR_FINE, NULL, "filters can be loaded");
	else
		doctor_say(d, DOCTOR_WRONG, "use a kernel with CONFIG_SECCOMP_FILTER",
		    "filters cannot be loaded: %s", strerror(errno));
}

void doctor_shm_space(struct doctor *d)
{
	struct statvfs v;
	unsigned long long mib;

	if (statvfs("/dev/shm", &v) < 0) {
		doctor_say(d, DOCTOR_WRONG,
		    "mount -t tmpfs -o nosuid,nodev,mode=1777 tmpfs /dev/shm", "%s",
		    strerror(errno));
		return;
	}
	mib = (unsigned long long)v.f_bavail * v.f_frsize >> 20;
	if (access("/dev/shm", W_OK) < 0)
		doctor_say(
		    d, DOCTOR_WRONG, "chmod 1777 /dev/shm", "not writable: %s", strerror(errno));
	else if (mib < SHM_WANTED_MIB)
		doctor_say(d, DOCTOR_WRONG,
		    "remove what is not needed, or mount -o remount,size=64m "
		    "/dev/shm",
		    "%llu MiB are free; a table needs up to %d", mib, SHM_WANTED_MIB);
	else
		doctor_say(d, DOCTOR_FINE, NULL, "%llu MiB are free", mib);
}
