/* cli_unpack: a tar archive becomes a directory of the host. sbxctl; if it dies, members before the
 * one at hand are there, and of that at most a temporary name. */
#include "tools/cli_unpack.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/fd.h"

#define MODE_MASK 0777

/* A directory whose mode and time are set at the end: until then things are put into it. */
struct folder {
	char *name; /* owned */
	mode_t mode;
	struct timespec mtime;
};

struct unpack {
	int root;
	cli_unpack_fn *fn;
	void *ctx;
	struct err *err; /* of fn */
	bool source_failed;
	struct folder *folders; /* owned */
	size_t folder_count;
	char temporary[32];
};

/* ---- names ---- */

/* Makes a member's name relative to the directory: "" for itself. 0 or -EINVAL. */
static int clean_name(const char *name, char out[PATH_MAX])
{
	size_t len = 0;

	if (!name || *name == '/')
		return -EINVAL;
	while (*name) {
		size_t n = strcspn(name, "/");

		if (n == 2 && name[0] == '.' && name[1] == '.')
			return -EINVAL;
		if (n > 0 && !(n == 1 && name[0] == '.')) {
			if (len + n + 2 > PATH_MAX)
				return -EINVAL;
			if (len > 0)
				out[len++] = '/';
			memcpy(out + len, name, n);
			len += n;
		}
		name += n;
		name += *name == '/';
	}
	out[len] = '\0';
	return 0;
}

/* The directory of a clean name, opened below the root and through no link, and its last
 * component. The descriptor (caller's) or -errno. */
static int open_parent(const struct unpack *u, const char *name, const char **last)
{
	const struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
	    .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
	const char *slash = strrchr(name, '/');
	char parent[PATH_MAX] = ".";
	long fd;

	if (slash)
		(void)snprintf(parent, sizeof(parent), "%.*s", (int)(slash - name), name);
	*last = slash ? slash + 1 : name;
	fd = syscall(SYS_openat2, u->root, parent, &how, sizeof(how));
	return fd < 0 ? -errno : (int)fd;
}

/* ---- members ---- */

static int keep_folder(struct unpack *u, const char *name, const struct stat *st)
{
	struct folder *more = realloc(u->folders, (u->folder_count + 1) * sizeof(*u->folders));
	struct folder *f;

	if (!more)
		return -ENOMEM;
	u->folders = more;
	f = &more[u->folder_count];
	*f = (struct folder){strdup(name), st->st_mode & MODE_MASK, st->st_mtim};
	if (!f->name)
		return -ENOMEM;
	u->folder_count++;
	return 0;
}

static int put_folder(
    struct unpack *u, int parent, const char *last, const char *name, const struct stat *st)
{
	struct stat there;

	if (mkdirat(parent, last, 0700) == 0)
		return keep_folder(u, name, st);
	if (errno != EEXIST)
		return -errno;
	if (fstatat(parent, last, &there, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	return S_ISDIR(there.st_mode) ? 0 : -ENOTDIR; /* what was there keeps its mode and time */
}

/* What has been made under the temporary name takes its place. */
static int put_in_place(const struct unpack *u, int parent, const char *last)
{
	int rc = renameat(parent, u->temporary, parent, last) < 0 ? -errno : 0;

	/* Renaming one hard link over another of the same file does nothing. */
	if (unlinkat(parent, u->temporary, 0) < 0 && errno != ENOENT && rc == 0)
		rc = -errno;
	return rc;
}

static int write_content(struct archive *a, int fd, int64_t size)
{
	const void *bytes;
	size_t n;
	la_int64_t at;
	int rc;

	while ((rc = archive_read_data_block(a, &bytes, &n, &at)) == ARCHIVE_OK) {
		const uint8_t *p = bytes;

		while (n > 0) {
			ssize_t written = pwrite(fd, p, n, at);

			if (written < 0)
				return -errno;
			p += written;
			at += written;
			n -= (size_t)written;
		}
	}
	if (rc != ARCHIVE_EOF)
		return -EBADMSG;
	return ftruncate(fd, size) < 0 ? -errno : 0; /* holes at its end */
}

static int put_file(struct unpack *u, struct archive *a, struct archive_entry *e, int parent,
    const char *last, const struct stat *st)
{
	const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, st->st_mtim};
	FD_SCOPED int fd = openat(
	    parent, u->temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	int rc;

	if (fd < 0)
		return -errno;
	rc = write_content(a, fd, archive_entry_size(e));
	if (rc == 0 && (fchmod(fd, st->st_mode & MODE_MASK) < 0 || futimens(fd, times) < 0))
		rc = -errno;
	if (rc == 0)
		rc = put_in_place(u, parent, last);
	if (rc < 0)
		(void)unlinkat(parent, u->temporary, 0); /* the first error counts */
	return rc;
}

static int put_symlink(
    const struct unpack *u, const char *target, int parent, const char *last, const struct stat *st)
{
	const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, st->st_mtim};

	if (!target || symlinkat(target, parent, u->temporary) < 0)
		return target ? -errno : -EINVAL;
	(void)utimensat(parent, u->temporary, times, AT_SYMLINK_NOFOLLOW); /* not all keep it */
	return put_in_place(u, parent, last);
}

static int put_hardlink(const struct unpack *u, const char *target, int parent, const char *last)
{
	char name[PATH_MAX];
	const char *from_last;
	FD_SCOPED int from = -1;

	if (clean_name(target, name) < 0 || !*name)
		return -EINVAL;
	from = open_parent(u, name, &from_last);
	if (from < 0)
		return from;
	if (linkat(from, from_last, parent, u->temporary, 0) < 0)
		return -errno;
	return put_in_place(u, parent, last);
}

static int put_member(struct unpack *u, struct archive *a, struct archive_entry *e)
{
	const struct stat *st = archive_entry_stat(e);
	const char *hard = archive_entry_hardlink(e);
	char name[PATH_MAX];
	const char *last;
	FD_SCOPED int parent = -1;

	if (clean_name(archive_entry_pathname(e), name) < 0)
		return -EINVAL;
	if (!*name)
		return S_ISDIR(st->st_mode) ? 0 : -EINVAL;
	parent = open_parent(u, name, &last);
	if (parent < 0)
		return parent;
	if (hard)
		return put_hardlink(u, hard, parent, last);
	if (S_ISDIR(st->st_mode))
		return put_folder(u, parent, last, name, st);
	if (S_ISLNK(st->st_mode))
		return put_symlink(u, archive_entry_symlink(e), parent, last, st);
	return S_ISREG(st->st_mode) ? put_file(u, a, e, parent, last, st) : -EINVAL;
}

/* ---- the archive ---- */

static la_ssize_t give_bytes(struct archive *a, void *ctx, const void **bytes)
{
	struct unpack *u = ctx;
	const uint8_t *p = NULL;
	size_t n = 0;
	int rc = u->fn(u->ctx, &p, &n, u->err);

	*bytes = p;
	if (rc >= 0)
		return rc == 0 ? 0 : (la_ssize_t)n;
	u->source_failed = true;
	archive_set_error(a, EIO, "the source failed");
	return -1;
}

static int fail_archive(const struct unpack *u, struct archive *a, struct err *err)
{
	const char *text = archive_error_string(a);

	if (u->source_failed)
		return -err->code;
	return err_set(err, EBADMSG, "the archive: %.200s", text ? text : "damaged");
}

static int put_members(struct unpack *u, struct archive *a, struct err *err)
{
	struct archive_entry *e = NULL;
	int rc;

	while ((rc = archive_read_next_header(a, &e)) >= ARCHIVE_WARN && rc != ARCHIVE_EOF) {
		rc = put_member(u, a, e);
		if (rc == -EBADMSG)
			return fail_archive(u, a, err);
		if (rc < 0)
			return err_sys(err, -rc, "%.200s", archive_entry_pathname(e) ?: "a name");
	}
	return rc == ARCHIVE_EOF ? 0 : fail_archive(u, a, err);
}

/* From the innermost to the outermost: a mode may forbid to go into it. */
static int finish_folders(struct unpack *u, struct err *err)
{
	int rc = 0;

	while (u->folder_count > 0) {
		struct folder *f = &u->folders[--u->folder_count];
		const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, f->mtime};
		const struct open_how how = {.flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC,
		    .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
		FD_SCOPED int fd = (int)syscall(SYS_openat2, u->root, f->name, &how, sizeof(how));

		if ((fd < 0 || futimens(fd, times) < 0 || fchmod(fd, f->mode) < 0) && rc == 0)
			rc = err_sys(err, errno, "%.200s", f->name);
		free(f->name);
	}
	free(u->folders);
	u->folders = NULL;
	return rc;
}

int cli_unpack(int dirfd, cli_unpack_fn *fn, void *ctx, struct err *err)
{
	struct err late = {0};
	struct unpack u = {.root = dirfd, .fn = fn, .ctx = ctx, .err = err};
	struct archive *a = archive_read_new();
	int rc;
	int finished;

	(void)snprintf(u.temporary, sizeof(u.temporary), ".sbxctl-%d.tmp", (int)getpid());
	if (!a || archive_read_support_format_tar(a) < ARCHIVE_WARN ||
	    archive_read_open(a, &u, NULL, give_bytes, NULL) != ARCHIVE_OK)
		rc = a ? fail_archive(&u, a, err) : err_set(err, ENOMEM, "no memory");
	else
		rc = put_members(&u, a, err);
	finished = finish_folders(&u, &late);
	if (rc == 0 && finished < 0)
		rc = err_set(err, -finished, "%s", late.text);
	if (a)
		(void)archive_read_free(a); /* it was only read */
	return rc;
}
