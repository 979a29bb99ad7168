/*
 * pack: `sbx-files pack path= follow= contents= directory=`: a file or a tree as records
 * (wire/entry.h) on standard output. sbx-files; only reads.
 *
 * The last component of the path is the name of the file, or the first of all names of the tree;
 * with contents=1 they begin with "." instead. Links on the way to the path, and at its end, are
 * followed; in the tree they are said as links, or, with follow=1, as what they lead to, unless
 * that is nothing or a directory that the link itself is in. Sockets, fifos and devices are left
 * out, and so is what is in file systems of the kernel's own making (/proc, /sys).
 *
 * It has a walk of its own: none of the others follows links.
 */
#include "guest/files/pack.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "guest/path.h"

#define PACK_READ 16384U /* of a directory, at once */
#define PACK_DEPTH (ENTRY_PATH_MAX / 2U + 1U)

struct frame {
	int fd;
	dev_t dev;
	ino_t ino;
	size_t name_len; /* of the directory */
	size_t at;	 /* in bytes */
	size_t len;
	uint8_t *bytes; /* entries that were read */
};

struct pack {
	bool follow;
	uint64_t members;
	size_t depth;
	struct frame frames[PACK_DEPTH];
	size_t name_len;
	char name[ENTRY_PATH_MAX + 1]; /* of the member at hand */
};

static const long kernel_made[] = {
    PROC_SUPER_MAGIC,
    SYSFS_MAGIC,
    CGROUP_SUPER_MAGIC,
    CGROUP2_SUPER_MAGIC,
    DEBUGFS_MAGIC,
    TRACEFS_MAGIC,
    SECURITYFS_MAGIC,
    BPF_FS_MAGIC,
};

static bool is_kernel_made(int fd)
{
	struct statfs fs;

	if (fstatfs(fd, &fs) != 0)
		return false;
	for (size_t i = 0; i < sizeof(kernel_made) / sizeof(kernel_made[0]); i++)
		if (fs.f_type == kernel_made[i])
			return true;
	return false;
}

static struct pack_name name_of(const struct pack *p)
{
	return (struct pack_name){.bytes = p->name, .len = p->name_len};
}

/* ---- directories ---- */

static void pop(struct pack *p)
{
	struct frame *f = &p->frames[--p->depth];

	(void)close(f->fd); /* was only read */
	free(f->bytes);
}

/* Is the directory one of those that we are in? */
static bool is_above(const struct pack *p, const struct stat *st)
{
	for (size_t i = 0; i < p->depth; i++)
		if (p->frames[i].dev == st->st_dev && p->frames[i].ino == st->st_ino)
			return true;
	return false;
}

/* Says the directory fd, which is taken over, and goes into it. 0 or an errno. */
static int push(struct pack *p, int fd, const struct stat *st)
{
	struct frame *f = &p->frames[p->depth];
	const struct pack_name name = name_of(p);
	bool other = p->depth == 0 || p->frames[p->depth - 1].dev != st->st_dev;

	if (p->depth == PACK_DEPTH) {
		(void)close(fd); /* was only read */
		return ENAMETOOLONG;
	}
	pack_member(ENTRY_DIRECTORY, st, 0, &name, NULL, 0);
	p->members++;
	*f = (struct frame){
	    .fd = fd,
	    .dev = st->st_dev,
	    .ino = st->st_ino,
	    .name_len = p->name_len,
	    .bytes = malloc(PACK_READ),
	};
	p->depth++;
	if (f->bytes == NULL)
		return ENOMEM;
	if (other && is_kernel_made(fd))
		pop(p);
	return 0;
}

/* The next name in the innermost directory. 1; 0: there is none; or -errno. */
static int next_name(struct frame *f, const char **name)
{
	for (;;) {
		const struct dirent64 *e;

		if (f->at == f->len) {
			ssize_t n = getdents64(f->fd, f->bytes, PACK_READ);

			if (n < 0)
				return -errno;
			if (n == 0)
				return 0;
			f->at = 0;
			f->len = (size_t)n;
		}
		e = (const struct dirent64 *)(const void *)(f->bytes + f->at);
		f->at += e->d_reclen;
		*name = e->d_name;
		if (strcmp(*name, ".") != 0 && strcmp(*name, "..") != 0)
			return 1;
	}
}

/* ---- members ---- */

static int say_link(struct pack *p, int dir, const char *name, const struct stat *st)
{
	char text[ENTRY_PATH_MAX + 1];
	const struct pack_name called = name_of(p);
	ssize_t n = readlinkat(dir, name, text, sizeof(text));

	if (n < 0)
		return errno == EINVAL ? ENOENT : errno; /* it is no link any more */
	if (n == 0 || n > (ssize_t)ENTRY_PATH_MAX)
		return ENAMETOOLONG;
	pack_member(ENTRY_SYMLINK, st, 0, &called, text, (size_t)n);
	p->members++;
	return 0;
}

/* Says the regular file fd, which is closed. 0 or an errno. */
static int say_file(struct pack *p, int fd, const struct stat *st)
{
	const struct pack_name called = name_of(p);
	const struct pack_name *before = st->st_nlink > 1 ? links_find(st, &called) : NULL;
	int err = 0;

	if (before != NULL)
		pack_member(ENTRY_HARDLINK, st, 0, &called, before->bytes, before->len);
	else
		err = pack_file(fd, st, &called);
	(void)close(fd); /* was only read */
	p->members++;
	return err;
}

/* Opens what was looked at and says it. 0 or an errno. */
static int say_open(struct pack *p, int dir, const char *name, int flags)
{
	struct stat st;
	int fd = openat(dir, name, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | flags);
	int err = 0;

	if (fd < 0)
		return errno;
	if (fstat(fd, &st) != 0)
		err = errno;
	else if (S_ISREG(st.st_mode))
		return say_file(p, fd, &st);
	else if (S_ISDIR(st.st_mode))
		return push(p, fd, &st);
	(void)close(fd); /* something else stands there now */
	return err;
}

/* One entry of the innermost directory. 0 or an errno. */
static int say_entry(struct pack *p, const char *name)
{
	int dir = p->frames[p->depth - 1].fd;
	struct stat target;
	struct stat st;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return errno;
	if (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode))
		return say_open(p, dir, name, O_NOFOLLOW);
	if (!S_ISLNK(st.st_mode))
		return 0;
	if (!p->follow || fstatat(dir, name, &target, 0) != 0 ||
	    (S_ISDIR(target.st_mode) && is_above(p, &target)))
		return say_link(p, dir, name, &st);
	if (S_ISREG(target.st_mode) || S_ISDIR(target.st_mode))
		return say_open(p, dir, name, 0);
	return 0;
}

/* All that is in the directories that are open. 0 or an errno, with the name in p->name. */
static int say_tree(struct pack *p)
{
	while (p->depth > 0) {
		struct frame *f = &p->frames[p->depth - 1];
		const char *name = "";
		int rc = next_name(f, &name);
		size_t len;

		p->name_len = f->name_len;
		p->name[p->name_len] = '\0';
		if (rc < 0 && !path_is_gone(-rc))
			return -rc;
		if (rc <= 0) {
			pop(p);
			continue;
		}
		len = strlen(name);
		if (p->name_len + 1 + len > ENTRY_PATH_MAX)
			return ENAMETOOLONG;
		p->name[p->name_len] = '/';
		memcpy(p->name + p->name_len + 1, name, len + 1);
		p->name_len += 1 + len;
		emit_step();
		rc = say_entry(p, name);
		if (rc != 0 && !path_is_gone(rc))
			return rc;
	}
	return 0;
}

/* ---- the command ---- */

/* Every directory on the way is open: that may be more than is usual. */
static void raise_limit(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) != 0)
		return;
	files.rlim_cur = files.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &files); /* if not, it is what it is */
}

/* Opens what is at path; what blocks, or does something when it is opened, is refused. 0 or an
 * errno. */
static int open_path(const char *path, int *fd, struct stat *st)
{
	int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	int place = root < 0 ? -errno : path_open(root, path, O_PATH, 0);
	int err = place < 0 ? -place : 0;

	if (err == 0 && fstat(place, st) != 0)
		err = errno;
	if (err == 0 && !S_ISREG(st->st_mode) && !S_ISDIR(st->st_mode))
		err = EINVAL;
	if (place >= 0)
		(void)close(place); /* names a place only */
	if (err == 0) {
		*fd = path_open(root, path, O_RDONLY, 0);
		err = *fd < 0 ? -*fd : 0;
	}
	if (root >= 0)
		(void)close(root); /* names a place only */
	if (err == 0 && fstat(*fd, st) != 0)
		err = errno;
	return err;
}

static int fail(const char *path, enum agent_code code, const char *what)
{
	struct text why;

	text_clear(&why);
	text_add(&why, what);
	text_add_quoted(&why, path, 256);
	return emit_failure(code, &why);
}

/* What the archive calls it. */
static void set_name(struct pack *p, const char *path, bool contents)
{
	const char *name = strrchr(path, '/') + 1;

	if (contents || *name == '\0')
		name = ".";
	p->name_len = strlen(name);
	memcpy(p->name, name, p->name_len + 1);
}

int pack_run(char *const *args)
{
	static struct pack p;
	const char *path = "";
	bool contents = false;
	bool directory = false;
	const struct option_field fields[] = {
	    {"path", OPTION_TEXT, &path},
	    {"follow", OPTION_FLAG, &p.follow},
	    {"contents", OPTION_FLAG, &contents},
	    {"directory", OPTION_FLAG, &directory},
	};
	struct stat st;
	int fd = -1;
	int err = options_take(args, fields, sizeof(fields) / sizeof(fields[0]));

	if (err != 0)
		return err;
	if (!path_is_valid(path, strlen(path)))
		return fail(path, AGENT_E_INVALID_PATH, PATH_INVALID ": ");
	err = open_path(path, &fd, &st);
	if (err == 0 && directory && !S_ISDIR(st.st_mode))
		err = ENOTDIR;
	if (err == EINVAL)
		return fail(path, AGENT_E_INVALID, "neither a file nor a directory: ");
	if (err != 0)
		return emit_errno("cannot read", path, err);
	raise_limit();
	set_name(&p, path, contents);
	err = S_ISDIR(st.st_mode) ? push(&p, fd, &st) : say_file(&p, fd, &st);
	if (err == 0)
		err = say_tree(&p);
	return err != 0 ? emit_errno("cannot read", p.name, err) : emit_done(0, p.members);
}
