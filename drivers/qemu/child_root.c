/*
 * child_root: what QEMU sees of the host: its own program, libraries and firmware, and nothing
 * else. In the cloned child; gone with its mount namespace.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/mount.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "drivers/qemu/child.h"

/* From sys/mount.h, which does not go together with linux/mount.h on older C libraries. */
#define MNT_DETACH 2

#define ROOT "/tmp"
#define COPY_MAX 0x7ffff000

static int root_mount(
    const char *from, const char *to, const char *type, unsigned long flags, const char *options)
{
	return (int)syscall(SYS_mount, from, to, type, flags, options);
}

/* With what is mounted below it: a part of that may not be taken away here. */
static int root_clone(const char *path)
{
	return (int)syscall(SYS_open_tree, AT_FDCWD, path,
	    OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | (unsigned int)AT_RECURSIVE);
}

static int root_attach(int tree, const char *to)
{
	struct mount_attr attr = {
	    .attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV,
	};

	if (tree < 0 ||
	    syscall(SYS_move_mount, tree, "", AT_FDCWD, to, MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return -1;
	(void)close(tree);
	return (int)syscall(SYS_mount_setattr, AT_FDCWD, to, AT_RECURSIVE, &attr, sizeof(attr));
}

static int root_bind(const char *from, const char *to)
{
	return root_attach(root_clone(from), to);
}

/* ROOT and each directory on the way to `path`, itself included. */
static int root_make_way(char out[PATH_MAX], const char *path)
{
	size_t at = strlen(ROOT) + 1;

	if (snprintf(out, PATH_MAX, ROOT "%s", path) >= PATH_MAX) {
		errno = ENAMETOOLONG;
		return -1;
	}
	for (char *slash = strchr(out + at, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(out, 0755) < 0 && errno != EEXIST)
			return -1;
		*slash = '/';
	}
	return mkdir(out, 0755) < 0 && errno != EEXIST ? -1 : 0;
}

/* A directory of the host, or the link that is in its place. */
static int root_take(const char *path)
{
	char target[PATH_MAX];
	char place[PATH_MAX];
	ssize_t n = readlink(path, target, sizeof(target) - 1);

	if (n > 0) {
		target[n] = '\0';
		(void)snprintf(place, sizeof(place), ROOT "%s", path);
		return symlink(target, place);
	}
	if (access(path, F_OK) < 0)
		return 0;
	return root_make_way(place, path) < 0 ? -1 : root_bind(path, place);
}

static int root_take_loader_cache(void)
{
	static const char cache[] = "/etc/ld.so.cache";
	int fd;

	if (access(cache, R_OK) < 0)
		return 0;
	fd = open(ROOT "/ld.so.cache", O_WRONLY | O_CREAT | O_CLOEXEC, 0444);
	if (fd < 0)
		return -1;
	(void)close(fd);
	if (mkdir(ROOT "/etc", 0755) < 0 ||
	    rename(ROOT "/ld.so.cache", ROOT "/etc/ld.so.cache") < 0)
		return -1;
	return root_bind(cache, ROOT "/etc/ld.so.cache");
}

/* What QEMU reads by a path. */
static int root_copy(int from, const char *path)
{
	char place[PATH_MAX];
	struct stat st;
	off_t done = 0;
	int to;

	(void)snprintf(place, sizeof(place), ROOT "%s", path);
	to = open(place, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
	if (to < 0 || fstat(from, &st) < 0)
		return -1;
	while (done < st.st_size) {
		ssize_t n = sendfile(to, from, &done, COPY_MAX);

		if (n == 0)
			errno = EIO; /* it was cut meanwhile */
		if (n <= 0)
			return -1;
	}
	return close(to);
}

static int root_enter(void)
{
	if (chdir(ROOT) < 0 || syscall(SYS_pivot_root, ".", ".") < 0 ||
	    syscall(SYS_umount2, ".", MNT_DETACH) < 0)
		return -1;
	return chdir("/");
}

int qemu_child_enter_root(const struct child *c, const char **step)
{
	static const char *const dirs[] = {"/usr", "/bin", "/lib", "/lib32", "/lib64", "/libx32"};
	const char *prefix = c->spec->plan->prefix;
	char place[PATH_MAX];
	int tree = -1;

	(void)umask(0);
	*step = "make its mounts private";
	if (root_mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return -1;
	*step = "take QEMU's directory into its root";
	if (prefix[0] && (tree = root_clone(prefix)) < 0) /* the root may cover it */
		return -1;
	*step = "mount its root";
	if (root_mount("root", ROOT, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755") < 0 ||
	    mkdir(ROOT "/run", 0755) < 0)
		return -1;
	*step = "take QEMU and its libraries into its root";
	for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++) {
		if (root_take(dirs[i]) < 0)
			return -1;
	}
	if (root_take_loader_cache() < 0)
		return -1;
	if (prefix[0] && (root_make_way(place, prefix) < 0 || root_attach(tree, place) < 0))
		return -1;
	*step = "copy the kernel into its root";
	if (c->spec->boots && (root_copy(c->spec->kernel, MACHINE_KERNEL) < 0 ||
				  root_copy(c->spec->initrd, MACHINE_INITRD) < 0))
		return -1;
	*step = "enter its root";
	return root_enter();
}
