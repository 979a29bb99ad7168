/*
 * rootfs: the mounts of a box. In the cloned child, raw system calls only; nothing here outlives
 * the box's mount namespace.
 *
 * The scratch is one tmpfs on /tmp of the old tree, bounded in size and inodes. It holds upper and
 * work directories of the overlays, /dev/shm, and the mount points of the layers. After
 * pivot_root the old tree is detached; the scratch lives on only below the overlays.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <stdbool.h>
#include <stddef.h>

#include "drivers/namespace/child.h"
#include "drivers/namespace/raw.h"

/* From sys/mount.h, which does not go together with linux/mount.h on older C libraries. */
#define MNT_DETACH 2

#define SAFE (MS_NOSUID | MS_NODEV)
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

SYS_BARE static long root_mount(const char *source, const char *target, const char *type,
    unsigned long flags, const char *options)
{
	return sys_call(SYS_mount, RAW_PTR(source), RAW_PTR(target), RAW_PTR(type), (long)flags,
	    RAW_PTR(options));
}

SYS_BARE static long root_bind(const char *source, const char *target)
{
	return root_mount(source, target, NULL, MS_BIND, NULL);
}

/* Appends src to the string in dst of the given size; what does not fit is cut. */
SYS_BARE static void root_path(char *dst, size_t size, const char *head, const char *tail)
{
	size_t n = 0;

	while (*head && n < size - 1)
		dst[n++] = *head++;
	while (*tail && n < size - 1)
		dst[n++] = *tail++;
	dst[n] = '\0';
}

struct scratch_dir {
	const char *path;
	int mode;
};

static const struct scratch_dir scratch_dirs[] = {
    {"u0", 0755},
    {"u0/root", 0700},
    {"w0", 0700},
    {"u1", 0755},
    {"w1", 0700},
    {"l0", 0700},
    {"l1", 0700},
    {"none", 0555},
    {"shm", 01777},
    {"root", 0700},
};

/* The upper side of directories of our layer that root of the box must own to be of use. */
static const struct scratch_dir owned_dirs[] = {
    {"u0/home", 0755},
    {"u0/mnt", 0755},
    {"u0/mnt/skills", 0777},
    {"u0/mnt/user-data", 0755},
    {"u0/mnt/user-data/outputs", 0777},
    {"u0/mnt/user-data/uploads", 0777},
    {"u0/mnt/user-data/workspace", 0777},
    {"u0/run", 0755},
    {"u0/tmp", 01777},
    {"u0/var", 0755},
    {"u0/var/tmp", 01777},
};

SYS_BARE static long root_make_dirs(const struct scratch_dir *dirs, size_t count)
{
	long rc = 0;

	for (size_t i = 0; rc == 0 && i < count; i++)
		rc = sys_call(SYS_mkdirat, AT_FDCWD, RAW_PTR(dirs[i].path), dirs[i].mode, 0, 0);
	return rc;
}

SYS_BARE static long root_make_scratch(struct child *c)
{
	long rc;

	c->step = STEP_SCRATCH;
	rc = root_mount("scratch", "/tmp", "tmpfs", SAFE, c->scratch);
	if (rc == -EINVAL) /* a kernel without huge pages does not know the option */
		rc = root_mount(
		    "scratch", "/tmp", "tmpfs", SAFE, c->scratch + sizeof(CHILD_SCRATCH_HUGE) - 1);
	if (rc == 0)
		rc = sys_call(SYS_chdir, RAW_PTR("/tmp"), 0, 0, 0, 0);
	if (rc == 0)
		rc = root_make_dirs(scratch_dirs, COUNT(scratch_dirs));
	if (rc == 0 && (c->flags & CHILD_LAYER_FOREIGN))
		rc = root_make_dirs(owned_dirs, COUNT(owned_dirs));
	return rc;
}

/* Read-only without set-uid and devices, whatever else the mount already is. */
SYS_BARE static long root_harden(const char *target)
{
	struct mount_attr attr = {
	    .attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV,
	};

	return sys_call(
	    SYS_mount_setattr, AT_FDCWD, RAW_PTR(target), 0, RAW_PTR(&attr), sizeof(attr));
}

SYS_BARE static long root_bind_hardened(const char *source, const char *target)
{
	long rc = root_bind(source, target);

	return rc < 0 ? rc : root_harden(target);
}

/* Layers that the worker could not clone, before the scratch covers what may be their place. */
SYS_BARE static long root_take_layers(struct child *c, long layers[NS_LOWERS])
{
	c->step = STEP_LAYERS;
	for (size_t i = 0; i < NS_LOWERS; i++) {
		layers[i] = c->lower[i];
		if (layers[i] < 0)
			layers[i] = sys_call(SYS_open_tree, AT_FDCWD, RAW_PTR(c->prep->lower[i]),
			    OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC, 0, 0);
		if (layers[i] < 0)
			return layers[i];
	}
	return 0;
}

/* Those that the worker has cloned are hardened already. */
SYS_BARE static long root_attach_layers(struct child *c, const long layers[NS_LOWERS])
{
	static const char *const places[NS_LOWERS] = {"l0", "l1"};
	long rc = 0;

	c->step = STEP_LAYERS;
	for (size_t i = 0; rc == 0 && i < NS_LOWERS; i++) {
		rc = sys_call(SYS_move_mount, layers[i], RAW_PTR(""), AT_FDCWD, RAW_PTR(places[i]),
		    MOVE_MOUNT_F_EMPTY_PATH);
		if (rc == 0 && c->lower[i] < 0)
			rc = root_harden(places[i]);
	}
	return rc;
}

/* The layer of an image lies below ours, which has the mount points; /usr is a tree of its own. */
SYS_BARE static long root_mount_overlays(struct child *c)
{
	bool usr = c->prep->flags & NS_F_USR;
	long rc;

	c->step = STEP_OVERLAY;
	rc = root_mount("root", "root", "overlay", SAFE,
	    usr ? "lowerdir=l0,upperdir=u0,workdir=w0,userxattr"
		: "lowerdir=l0:l1,upperdir=u0,workdir=w0,userxattr");
	if (rc < 0 || !usr)
		return rc;
	c->step = STEP_USR;
	return root_mount(
	    "usr", "root/usr", "overlay", SAFE, "lowerdir=l1,upperdir=u1,workdir=w1,userxattr");
}

SYS_BARE static long root_bind_dirs(struct child *c)
{
	char target[32];
	long rc = 0;

	c->step = STEP_BINDS;
	for (uint32_t i = 0; rc == 0 && i < c->prep->bind_count; i++) {
		root_path(target, sizeof(target), "root", c->prep->binds[i]);
		rc = root_bind_hardened(c->prep->binds[i], target);
	}
	return rc;
}

static const char *const devices[] = {
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
};

SYS_BARE static long root_make_dev(struct child *c)
{
	char target[32];
	long rc = 0;

	c->step = STEP_DEVICES;
	for (size_t i = 0; rc == 0 && i < COUNT(devices); i++) {
		root_path(target, sizeof(target), "root", devices[i]);
		rc = root_bind(devices[i], target);
	}
	if (rc == 0)
		rc = root_bind("shm", "root/dev/shm");
	if (rc < 0)
		return rc;
	c->step = STEP_PTS;
	/* Group 5 is tty, where it is mapped. */
	return root_mount("devpts", "root/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC,
	    c->flags & CHILD_PRIVILEGED ? "newinstance,ptmxmode=0666,mode=0620,gid=5"
					: "newinstance,ptmxmode=0666,mode=0620");
}

/*
 * While procfs is read-only its bind mounts are born read-only: one call for each, and one to make
 * procfs itself writable again.
 */
SYS_BARE static long root_make_proc(struct child *c)
{
	const unsigned long flags = MS_NOSUID | MS_NODEV | MS_NOEXEC;
	const struct ns_mask *m;
	char target[40];
	long rc;

	c->step = STEP_PROC;
	rc = root_mount("proc", "root/proc", "proc", flags | MS_RDONLY, NULL);
	c->step = STEP_MASKS;
	if (rc == 0)
		rc = root_bind_hardened("none", "none");
	for (uint32_t i = 0; rc == 0 && i < c->prep->mask_count; i++) {
		m = &c->prep->masks[i];
		root_path(target, sizeof(target), "root/", m->path);
		if (m->kind == NS_MASK_READONLY)
			rc = root_bind(target, target);
		else
			rc = root_bind(m->kind == NS_MASK_FILE ? "/dev/null" : "none", target);
	}
	if (rc == 0)
		rc = root_mount(NULL, "root/proc", NULL, MS_REMOUNT | flags, NULL);
	return rc;
}

SYS_BARE static long root_enter(struct child *c)
{
	long rc;

	c->step = STEP_PIVOT;
	rc = sys_call(SYS_chdir, RAW_PTR("root"), 0, 0, 0, 0);
	/* The old root ends up on top of the new one at ".", and is taken off from there. */
	if (rc == 0)
		rc = sys_call(SYS_pivot_root, RAW_PTR("."), RAW_PTR("."), 0, 0, 0);
	if (rc == 0)
		rc = sys_call(SYS_umount2, RAW_PTR("."), MNT_DETACH, 0, 0, 0);
	if (rc == 0)
		rc = sys_call(SYS_chdir, RAW_PTR("/"), 0, 0, 0, 0);
	return rc;
}

SYS_BARE long child_build_root(struct child *c)
{
	long layers[NS_LOWERS];
	long rc = root_take_layers(c, layers);

	if (rc == 0)
		rc = root_make_scratch(c);
	if (rc == 0)
		rc = root_attach_layers(c, layers);
	if (rc == 0)
		rc = root_mount_overlays(c);
	if (rc == 0)
		rc = root_bind_dirs(c);
	if (rc == 0)
		rc = root_make_dev(c);
	if (rc == 0)
		rc = root_make_proc(c);
	if (rc == 0)
		rc = root_enter(c);
	return rc;
}
