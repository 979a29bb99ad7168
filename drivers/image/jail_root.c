/*
 * jail_root: the small root of a jail: a tmpfs with the host's programs, all read-only, and what
 * the spec binds. In the jail's first process; it is gone with the jail's mount namespace.
 *
 * There is no /proc and no /sys: root of files could write to both. /dev has nothing but null.
 */
#include "drivers/image/jail_root.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/fd.h"

/* From sys/mount.h, which does not go together with linux/mount.h on older C libraries. */
#define MNT_DETACH 2

#define PLACE "/tmp" /* where the root is built: there on every host */
#define SHOWN_MAX 32
#define LINK_MAX_LEN 64

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* Where the host has these: what programs need to run, and to find and to trust a registry. */
static const char *const shown[] = {
    "/usr",
    "/bin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/etc/ca-certificates.conf",
    "/etc/containers",
    "/etc/docker/certs.d",
    "/etc/gai.conf",
    "/etc/host.conf",
    "/etc/hosts",
    "/etc/ld.so.cache",
    "/etc/nsswitch.conf",
    "/etc/pki",
    "/etc/resolv.conf",
    "/etc/ssl/certs",
};

static const char *const made_dirs[] = {"etc", "etc/docker", "etc/ssl", "dev", "work"};

struct place {
	const char *target; /* with its slash */
	int tree;	    /* a mount that is nowhere yet, -1: a link */
	bool is_dir;
	bool writable;
	char link[LINK_MAX_LEN];
};

static int mount_call(const char *source, const char *target, const char *type, unsigned long flags,
    const char *options)
{
	return syscall(SYS_mount, source, target, type, flags, options) < 0 ? -errno : 0;
}

/* Everything is taken before the root covers what may be its place. */
static int take(const char *source, const char *target, bool writable, struct place *out)
{
	struct place p = {.target = target, .tree = -1, .writable = writable};
	struct stat st;
	ssize_t n;

	if (lstat(source, &st) < 0)
		return -errno;
	/* /bin and the like, on hosts with a merged /usr. */
	if (S_ISLNK(st.st_mode) && !strncmp(target, source, strlen(source)) &&
	    !strchr(target + 1, '/')) {
		n = readlink(source, p.link, sizeof(p.link) - 1);
		if (n < 0)
			return -errno;
	} else {
		p.tree = (int)syscall(SYS_open_tree, AT_FDCWD, source,
		    OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
		if (p.tree < 0)
			return -errno;
		if (fstat(p.tree, &st) < 0)
			return -errno;
		p.is_dir = S_ISDIR(st.st_mode);
	}
	*out = p;
	return 0;
}

static int take_all(const struct jail_spec *spec, struct place *places, size_t *count)
{
	size_t n = 0;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < COUNT(shown); i++) {
		rc = take(shown[i], shown[i], false, &places[n]);
		n += rc == 0;
		if (rc == -ENOENT)
			rc = 0;
	}
	for (size_t i = 0; rc == 0 && i < JAIL_BINDS && spec->binds[i].source; i++) {
		rc = take(spec->binds[i].source, spec->binds[i].target, spec->binds[i].writable,
		    &places[n]);
		n += rc == 0;
	}
	*count = n;
	return rc;
}

/* A mount point: an empty directory or file. */
static int make_point(const struct place *p)
{
	FD_SCOPED int fd = -1;

	if (p->is_dir)
		return mkdir(p->target + 1, 0755) < 0 && errno != EEXIST ? -errno : 0;
	fd = open(p->target + 1, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	return fd < 0 ? -errno : 0;
}

static int put(const struct place *p)
{
	struct mount_attr attr = {
	    .attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
			(p->writable ? 0 : (uint64_t)MOUNT_ATTR_RDONLY),
	};
	int rc;

	if (p->tree < 0)
		return symlink(p->link, p->target + 1) < 0 ? -errno : 0;
	rc = make_point(p);
	if (rc < 0)
		return rc;
	/* Before it is anywhere. */
	if (syscall(SYS_mount_setattr, p->tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr,
		sizeof(attr)) < 0 ||
	    syscall(SYS_move_mount, p->tree, "", AT_FDCWD, p->target + 1, MOVE_MOUNT_F_EMPTY_PATH) <
		0)
		return -errno;
	return 0;
}

/* Its own copy: the host's file is not to be read by it. */
static int put_auth(const struct buf *auth, uid_t uid)
{
	FD_SCOPED int fd = open(JAIL_AUTH + 1, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0400);

	if (fd < 0 || write(fd, buf_head(auth), auth->len) != (ssize_t)auth->len)
		return errno ? -errno : -ENOSPC;
	return uid && fchown(fd, uid, uid) < 0 ? -errno : 0;
}

static int make_root(void)
{
	int rc = mount_call("jail", PLACE, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC,
	    "size=1m,nr_inodes=256,mode=0755");

	if (rc == 0 && chdir(PLACE) < 0)
		rc = -errno;
	for (size_t i = 0; rc == 0 && i < COUNT(made_dirs); i++)
		rc = mkdir(made_dirs[i], 0755) < 0 ? -errno : 0;
	return rc;
}

static int enter(void)
{
	struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY};

	if (syscall(SYS_mount_setattr, AT_FDCWD, ".", 0, &attr, sizeof(attr)) < 0)
		return -errno;
	/* The old root ends up on top of the new one at ".", and is taken off from there. */
	if (syscall(SYS_pivot_root, ".", ".") < 0 || syscall(SYS_umount2, ".", MNT_DETACH) < 0 ||
	    chdir("/") < 0)
		return -errno;
	return 0;
}

int jail_root_enter(const struct jail_spec *spec, const char **step)
{
	struct place places[SHOWN_MAX];
	size_t count = 0;
	int rc;

	*step = "make its mounts private";
	rc = mount_call(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
	if (rc == 0) {
		*step = "take what it shows";
		rc = take_all(spec, places, &count);
	}
	if (rc == 0) {
		*step = "make its root";
		rc = make_root();
	}
	for (size_t i = 0; rc == 0 && i < count; i++) {
		*step = "show what it needs";
		rc = put(&places[i]);
	}
	if (rc == 0 && spec->auth && spec->auth->len) {
		*step = "show the credentials";
		rc = put_auth(spec->auth, spec->uid);
	}
	if (rc == 0) {
		*step = "enter its root";
		rc = enter();
	}
	return rc;
}

_Static_assert(COUNT(shown) + JAIL_BINDS <= SHOWN_MAX, "all fit");
