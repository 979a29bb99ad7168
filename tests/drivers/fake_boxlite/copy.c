/*
 * copy: files into a box and out of it, by the root that its first process has. Links in the box
 * are followed within it. A tmpfs in the box is no place for a copy, as with the real one.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <linux/capability.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "lib/fd.h"
#include "tests/drivers/fake_boxlite/fake.h"
#include "tests/drivers/fake_boxlite/proto.h"

#define COPY_HEAD 4096

/* Where to put it, and whose it is. */
struct place {
	int dir;
	char name[NAME_MAX + 1];
	bool head; /* only the beginning of each file: a lie */
};

static int open_in(int root, const char *path, uint64_t flags)
{
	struct open_how how = {.flags = flags | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT};
	long fd = syscall(SYS_openat2, root, path, &how, sizeof(how));

	return fd < 0 ? -errno : (int)fd;
}

/*
 * The files of a box's tmpfs must have ids that the box knows. So this thread, which ends with the
 * copy, makes them as the box's root, and takes back what the kernel takes away for that.
 */
static void be_boxes_root(void)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct caps[2];

	if (geteuid() != 0)
		return;
	(void)setfsgid(SHIM_UID_BASE);
	(void)setfsuid(SHIM_UID_BASE);
	if (syscall(SYS_capget, &head, caps) < 0)
		return;
	caps[0].effective = caps[0].permitted;
	caps[1].effective = caps[1].permitted;
	(void)syscall(SYS_capset, &head, caps);
}

static int copy_bytes(int from, int to, off_t limit)
{
	char chunk[65536];
	ssize_t n = 0;

	while (limit > 0 && (n = read(from, chunk, sizeof(chunk))) > 0) {
		n = n > limit ? limit : n;
		limit -= n;
		if (write(to, chunk, (size_t)n) != n)
			return errno ? -errno : -EIO;
	}
	return n < 0 ? -errno : 0;
}

static int copy_file(int from, const struct stat *st, const struct place *to)
{
	int fd;
	int rc;

	(void)unlinkat(to->dir, to->name, 0);
	fd = openat(to->dir, to->name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	rc = copy_bytes(from, fd, to->head ? COPY_HEAD : st->st_size);
	(void)fchmod(fd, st->st_mode & 07777);
	if (close(fd) < 0 && rc == 0)
		rc = -errno;
	return rc;
}

static int copy_entry(int dir, const char *name, const struct place *to, int depth);

static int copy_tree(int from, const struct stat *st, const struct place *to, int depth)
{
	struct place in = *to;
	DIR *d;
	int rc = 0;

	if (mkdirat(to->dir, to->name, st->st_mode & 07777) < 0 && errno != EEXIST)
		return -errno;
	in.dir = openat(to->dir, to->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (in.dir < 0)
		return -errno;
	d = fdopendir(fcntl(from, F_DUPFD_CLOEXEC, 0));
	for (struct dirent *e = d ? readdir(d) : NULL; e && rc == 0; e = readdir(d)) {
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		(void)snprintf(in.name, sizeof(in.name), "%s", e->d_name);
		rc = copy_entry(from, e->d_name, &in, depth + 1);
	}
	if (d)
		(void)closedir(d);
	fd_close(&in.dir);
	return d ? rc : -EIO;
}

static int copy_link(int dir, const char *name, const struct place *to)
{
	char target[PATH_MAX];
	ssize_t n = readlinkat(dir, name, target, sizeof(target) - 1);

	if (n < 0)
		return -errno;
	target[n] = '\0';
	(void)unlinkat(to->dir, to->name, 0);
	return symlinkat(target, to->dir, to->name) < 0 ? -errno : 0;
}

static int copy_entry(int dir, const char *name, const struct place *to, int depth)
{
	struct stat st;
	int fd;
	int rc;

	if (depth > 64)
		return -ELOOP;
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (S_ISLNK(st.st_mode))
		return copy_link(dir, name, to);
	if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
		return 0;
	fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	rc = S_ISDIR(st.st_mode) ? copy_tree(fd, &st, to, depth) : copy_file(fd, &st, to);
	(void)close(fd);
	return rc;
}

/* Opens the directory `path` in the box, making what is missing of it. */
static int make_dirs(int root, const char *path)
{
	char part[PATH_MAX];
	size_t len = 0;
	int dir = open_in(root, "/", O_RDONLY | O_DIRECTORY);
	int next;

	while (dir >= 0 && path[len]) {
		len += strspn(path + len, "/");
		len += strcspn(path + len, "/");
		(void)snprintf(part, sizeof(part), "%.*s", (int)len, path);
		next = open_in(root, part, O_RDONLY | O_DIRECTORY);
		if (next == -ENOENT && mkdirat(dir, basename(part), 0755) == 0) {
			(void)snprintf(part, sizeof(part), "%.*s", (int)len, path);
			next = open_in(root, part, O_RDONLY | O_DIRECTORY);
		}
		fd_close(&dir);
		dir = next;
	}
	return dir;
}

/* A path in the box is a directory to copy into, or the name that the copy shall have. */
static int find_place(int root, const char *dst, const char *src, struct place *to)
{
	char path[PATH_MAX];
	char name[PATH_MAX];
	int dir;

	(void)snprintf(name, sizeof(name), "%s", src);
	(void)snprintf(to->name, sizeof(to->name), "%s", basename(name));
	(void)snprintf(path, sizeof(path), "%s", dst);
	dir = open_in(root, path, O_RDONLY | O_DIRECTORY);
	if (dir < 0 && path[0] && path[strlen(path) - 1] != '/') {
		(void)snprintf(name, sizeof(name), "%s", dst);
		(void)snprintf(to->name, sizeof(to->name), "%s", basename(name));
		dir = make_dirs(root, dirname(path));
	} else if (dir < 0) {
		dir = make_dirs(root, path);
	}
	to->dir = dir;
	return dir < 0 ? dir : 0;
}

/* The box's root seen from here. */
static enum blx_code open_root(struct job *j, int *root)
{
	char path[64];
	struct record r;
	enum blx_code code = box_running(j->box, &r, &j->event->err);

	if (code != BLX_OK)
		return code;
	(void)snprintf(path, sizeof(path), "/proc/%d/root", (int)r.init);
	*root = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (*root < 0)
		return error_sys(&j->event->err, BLX_PORTAL, errno, "the box is gone");
	return BLX_OK;
}

static bool is_other_tmpfs(int root, int dir)
{
	struct statfs fs;
	struct stat a, b;

	return fstatfs(dir, &fs) == 0 && fs.f_type == TMPFS_MAGIC && fstat(root, &a) == 0 &&
	       fstat(dir, &b) == 0 && a.st_dev != b.st_dev;
}

static enum blx_code copy_code(int rc)
{
	return rc == -ENOENT   ? BLX_NOT_FOUND
	       : rc == -ENOSPC ? BLX_RESOURCE_EXHAUSTED
			       : BLX_INTERNAL;
}

static enum blx_code work_into(struct job *j)
{
	struct blx_error *err = &j->event->err;
	struct place to = {.dir = -1};
	char way[16];
	int root = -1;
	enum blx_code code;
	int rc;

	if (j->lie)
		return BLX_OK;
	code = open_root(j, &root);
	if (code != BLX_OK)
		return code;
	be_boxes_root();
	to.head = !strcmp(knob_text("copy", "whole", way, sizeof(way)), "head");
	rc = access(j->a, F_OK) < 0 ? -errno : find_place(root, j->b, j->a, &to);
	if (rc == 0 && is_other_tmpfs(root, to.dir))
		code = error_set(
		    err, BLX_UNSUPPORTED, "unsupported: %s is under a tmpfs of the box", j->b);
	else if (rc == 0)
		rc = copy_entry(AT_FDCWD, j->a, &to, 0);
	if (rc < 0)
		code = error_sys(err, copy_code(rc), rc, j->b);
	fd_close(&to.dir);
	fd_close(&root);
	return code;
}

static enum blx_code work_out(struct job *j)
{
	char path[PATH_MAX];
	char base[PATH_MAX];
	struct place to = {.dir = -1};
	struct stat st;
	int root = -1;
	int parent;
	enum blx_code code;
	int rc = 0;

	if (j->lie)
		return BLX_OK;
	code = open_root(j, &root);
	if (code != BLX_OK)
		return code;
	(void)snprintf(path, sizeof(path), "%s", j->a);
	(void)snprintf(base, sizeof(base), "%s", j->a);
	parent = open_in(root, dirname(path), O_RDONLY | O_DIRECTORY);
	(void)snprintf(path, sizeof(path), "%s", j->b);
	if (stat(j->b, &st) == 0 && S_ISDIR(st.st_mode)) {
		(void)snprintf(to.name, sizeof(to.name), "%s", basename(base));
		to.dir = open(j->b, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	} else {
		to.dir = open(dirname(path), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		(void)snprintf(path, sizeof(path), "%s", j->b);
		(void)snprintf(to.name, sizeof(to.name), "%s", basename(path));
	}
	(void)snprintf(base, sizeof(base), "%s", j->a);
	rc = parent < 0 ? parent : to.dir < 0 ? -errno : copy_entry(parent, basename(base), &to, 0);
	fd_close(&parent);
	fd_close(&to.dir);
	fd_close(&root);
	return rc < 0 ? error_sys(&j->event->err, copy_code(rc), rc, j->a) : BLX_OK;
}

static enum blx_code post_copy(struct box *box, enum knob_op op, const char *src, const char *dst,
    blx_done_fn *cb, void *user, struct blx_error *err)
{
	enum blx_code code = call_check(box, "handle", (const void *)cb, true, err);
	struct job *j;

	if (code == BLX_OK && (!src || !dst))
		code = error_set(err, BLX_INVALID_ARGUMENT, "path is null");
	if (code != BLX_OK)
		return code;
	j = job_new(
	    box->rt, op, call_done, (void *)cb, user, op == KNOB_COPY_INTO ? work_into : work_out);
	j->box = box_new(box->rt, box->id);
	j->a = strdup(src);
	j->b = strdup(dst);
	return job_post(j, err);
}

enum blx_code boxlite_copy_into(struct box *box, const char *src, const char *dst, blx_done_fn *cb,
    void *user, struct blx_error *err)
{
	return post_copy(box, KNOB_COPY_INTO, src, dst, cb, user, err);
}

enum blx_code boxlite_copy_out(struct box *box, const char *src, const char *dst, blx_done_fn *cb,
    void *user, struct blx_error *err)
{
	return post_copy(box, KNOB_COPY_OUT, src, dst, cb, user, err);
}
