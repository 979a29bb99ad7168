/*
 * vm_root: the file systems of a box that is a machine. sbx-guest, first process of a virtual
 * machine. If we die here the kernel panics, which ends the machine.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "guest/mux.h"
#include "guest/vm.h"

#define VM_DISK "/dev/vda"

#define SAFE (MS_NOSUID | MS_NODEV)
#define SAFEST (SAFE | MS_NOEXEC)
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

struct vm_mount {
	const char *type;
	const char *target;
	unsigned long flags;
	const char *options;
};

static int vm_mount(const struct vm_mount *m)
{
	if (mkdir(m->target, 0755) != 0 && errno != EEXIST)
		return vm_fail("make", m->target);
	if (mount(m->type, m->target, m->type, m->flags, m->options) != 0)
		return vm_fail("mount", m->target);
	return 0;
}

/* What the initial file system needs to go on; moved into the root later. */
static const struct vm_mount early[] = {
    {"devtmpfs", "/dev", MS_NOSUID, "mode=0755"},
    {"proc", "/proc", SAFEST, NULL},
    {"sysfs", "/sys", SAFEST, NULL},
};

int vm_mount_early(void)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < COUNT(early); i++)
		rc = vm_mount(&early[i]);
	return rc;
}

static int root_mount_image(void)
{
	static const char *const types[] = {"erofs", "ext4"};

	if (vm_await(VM_DISK) != 0)
		return -1;
	for (size_t i = 0; i < COUNT(types); i++) {
		if (mount(VM_DISK, "/lower", types[i], MS_RDONLY, NULL) == 0)
			return 0;
	}
	return vm_fail("mount the image", VM_DISK);
}

/* The image as it is, and above it what the box writes. */
static int root_mount(struct guest *g)
{
	static const char *const dirs[] = {"/lower", "/scratch", "/root"};
	static const struct vm_mount scratch = {"tmpfs", "/scratch", SAFE, "mode=0755"};

	for (size_t i = 0; i < COUNT(dirs); i++) {
		if (mkdir(dirs[i], 0755) != 0 && errno != EEXIST)
			return vm_fail("make", dirs[i]);
	}
	if (root_mount_image() != 0 || vm_mount(&scratch) != 0)
		return -1;
	if (mkdir("/scratch/upper", 0755) != 0 || mkdir("/scratch/work", 0700) != 0 ||
	    mkdir("/scratch/shm", 01777) != 0)
		return vm_fail("make", "/scratch/upper");
	g->scratch_fd = open("/scratch", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (mount("root", "/root", "overlay", 0,
		"lowerdir=/lower,upperdir=/scratch/upper,workdir=/scratch/work") != 0)
		return vm_fail("mount", "the overlay");
	return 0;
}

struct vm_dir {
	const char *path;
	mode_t mode;
};

/* What every box has, whatever its image; the same as in a box of namespaces. */
static const struct vm_dir box_dirs[] = {
    {"/root/dev", 0755},
    {"/root/etc", 0755},
    {"/root/home", 0755},
    {"/root/mnt", 0755},
    {"/root/mnt/skills", 0777},
    {"/root/mnt/user-data", 0755},
    {"/root/mnt/user-data/outputs", 0777},
    {"/root/mnt/user-data/uploads", 0777},
    {"/root/mnt/user-data/workspace", 0777},
    {"/root/proc", 0555},
    {"/root/root", 0700},
    {"/root/run", 0755},
    {"/root/sys", 0555},
    {"/root/tmp", 01777},
    {"/root/var", 0755},
    {"/root/var/tmp", 01777},
};

static const struct vm_mount pts = {
    "devpts", "/root/dev/pts", MS_NOSUID | MS_NOEXEC, "ptmxmode=0666,mode=0620,gid=5"};

static const char *const links[][2] = {
    {"/proc/self/fd", "/root/dev/fd"},
    {"/proc/self/fd/0", "/root/dev/stdin"},
    {"/proc/self/fd/1", "/root/dev/stdout"},
    {"/proc/self/fd/2", "/root/dev/stderr"},
};

static int root_fill(void)
{
	char target[32];

	for (size_t i = 0; i < COUNT(box_dirs); i++) {
		if (mkdir(box_dirs[i].path, box_dirs[i].mode) != 0 && errno != EEXIST)
			return vm_fail("make", box_dirs[i].path);
	}
	for (size_t i = 0; i < COUNT(early); i++) {
		(void)snprintf(target, sizeof(target), "/root%s", early[i].target);
		if (mount(early[i].target, target, NULL, MS_MOVE, NULL) != 0)
			return vm_fail("move", early[i].target);
	}
	for (size_t i = 0; i < COUNT(links); i++) {
		if (symlink(links[i][0], links[i][1]) != 0 && errno != EEXIST)
			return vm_fail("make", links[i][1]);
	}
	/* What is shared memory counts as what is written does. */
	if ((mkdir("/root/dev/shm", 0755) != 0 && errno != EEXIST) ||
	    mount("/scratch/shm", "/root/dev/shm", NULL, MS_BIND, NULL) != 0)
		return vm_fail("mount", "/dev/shm");
	return vm_mount(&pts);
}

static int root_enter(void)
{
	if (chdir("/root") != 0 || mount(".", "/", NULL, MS_MOVE, NULL) != 0 || chroot(".") != 0 ||
	    chdir("/") != 0)
		return vm_fail("enter", "the root");
	return 0;
}

int vm_make_root(struct guest *g)
{
	g->scratch_fd = -1;
	return root_mount(g) != 0 || root_fill() != 0 || root_enter() != 0 ? -1 : 0;
}
