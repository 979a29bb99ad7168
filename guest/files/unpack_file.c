/*
 * unpack_file: files and links, under a temporary name first. sbx-files; if it is killed, that name
 * may stay.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "guest/files/unpack.h"
#include "guest/path.h"

/* Who uploads is not always who made the archive: it lends nobody's rights. */
#define FILE_MODE_BITS 0777U

static void times_of(const struct entry_member *m, struct timespec times[2])
{
	times[0] = (struct timespec){.tv_nsec = UTIME_NOW};
	times[1] = (struct timespec){.tv_sec = m->mtime, .tv_nsec = m->mtime_nsec};
}

/* Another name that nothing in the box has. */
static void name_temporary(struct unpack *u, char to[UNPACK_TEMPORARY_MAX])
{
	(void)snprintf(to, UNPACK_TEMPORARY_MAX, ".sbx-%s%04x.tmp", u->random, u->temporaries++);
}

/* May something new stand there? 0 or -1. */
static int look(struct unpack *u, const struct unpack_spot *spot)
{
	struct stat st;

	if (strlen(spot->name) >= UNPACK_NAME_MAX)
		return unpack_fail_errno(u, u->name, ENAMETOOLONG);
	if (fstatat(spot->dir, spot->name, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return errno == ENOENT ? 0 : unpack_fail_errno(u, u->name, errno);
	if (S_ISDIR(st.st_mode))
		return unpack_fail_errno(u, u->name, EISDIR);
	return u->overwrite ? 0 : unpack_fail_errno(u, u->name, EEXIST);
}

int file_begin(struct unpack *u, const struct unpack_spot *spot)
{
	struct unpack_file *f = &u->file;

	if (look(u, spot) < 0)
		return -1;
	*f = (struct unpack_file){.fd = -1, .dir = spot->dir};
	name_temporary(u, f->temporary);
	f->fd = openat(spot->dir, f->temporary,
	    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, u->member.mode & FILE_MODE_BITS);
	f->growing = f->fd >= 0;
	if (f->growing)
		return 0;
	f->temporary[0] = '\0';
	return unpack_fail_errno(u, u->name, errno);
}

int file_piece(struct unpack *u, uint64_t offset, const uint8_t *p, size_t n)
{
	while (n > 0) {
		ssize_t done = pwrite(u->file.fd, p, n, (off_t)offset);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return unpack_fail_errno(u, u->name, done < 0 ? errno : ENOSPC);
		p += done;
		n -= (size_t)done;
		offset += (uint64_t)done;
	}
	u->file.end = offset;
	return 0;
}

int file_end(struct unpack *u)
{
	struct timespec times[2];

	u->file.growing = false;
	times_of(&u->member, times);
	if (u->file.end < u->member.size && ftruncate(u->file.fd, (off_t)u->member.size) != 0)
		return unpack_fail_errno(u, u->name, errno);
	if (futimens(u->file.fd, times) != 0)
		return unpack_fail_errno(u, u->name, errno);
	return 0;
}

/* Moves a temporary name to where it belongs. 0 or an errno. */
static int move(struct unpack *u, int dir, const char *temporary, const struct unpack_spot *spot)
{
	unsigned int flags = u->overwrite ? 0 : RENAME_NOREPLACE;

	if (renameat2(dir, temporary, spot->dir, spot->name, flags) == 0)
		return 0;
	if (flags == 0 || errno != EINVAL)
		return errno;
	/* A file system that cannot do that can do this. */
	if (linkat(dir, temporary, spot->dir, spot->name, 0) != 0)
		return errno;
	return unlinkat(dir, temporary, 0) == 0 ? 0 : errno;
}

int file_place(struct unpack *u, const struct unpack_spot *spot, const char *name)
{
	struct unpack_file *f = &u->file;
	int err = move(u, f->dir, f->temporary, spot);

	if (err != 0)
		return unpack_fail_errno(u, name, err);
	f->temporary[0] = '\0';
	file_drop(u);
	return 0;
}

void file_drop(struct unpack *u)
{
	struct unpack_file *f = &u->file;

	if (f->temporary[0] != '\0')
		(void)unlinkat(f->dir, f->temporary, 0); /* somebody may have been faster */
	if (f->fd >= 0)
		(void)close(f->fd); /* what must last is flushed */
	*f = (struct unpack_file){.fd = -1, .dir = -1};
}

/* ---- links ---- */

struct link_job {
	const char *text;	 /* a symbolic link's */
	struct unpack_spot from; /* a hard link's */
};

/* 0 or an errno. */
static int link_make(struct unpack *u, const struct link_job *j, const struct unpack_spot *spot)
{
	int rc;

	if (u->member.kind == ENTRY_SYMLINK)
		rc = symlinkat(j->text, spot->dir, spot->name);
	else
		rc = linkat(j->from.dir, j->from.name, spot->dir, spot->name, 0);
	return rc == 0 ? 0 : errno;
}

/* In place of what is there. 0 or an errno. */
static int link_replace(struct unpack *u, const struct link_job *j, const struct unpack_spot *spot)
{
	char temporary[UNPACK_TEMPORARY_MAX];
	struct unpack_spot aside = {.dir = spot->dir, .name = temporary};
	int err;

	name_temporary(u, temporary);
	err = link_make(u, j, &aside);
	if (err != 0)
		return err;
	err = move(u, spot->dir, temporary, spot);
	/* Two names of one file: rename() does nothing then, and leaves both. */
	if (err != 0 || u->member.kind == ENTRY_HARDLINK)
		(void)unlinkat(spot->dir, temporary, 0); /* most often it is gone */
	return err;
}

static int link_put(struct unpack *u, const struct link_job *j, const struct unpack_spot *spot)
{
	struct timespec times[2];
	int err = link_make(u, j, spot);

	if (err == EEXIST && u->overwrite)
		err = link_replace(u, j, spot);
	if (err != 0)
		return unpack_fail_errno(u, u->name, err);
	times_of(&u->member, times);
	if (u->member.kind == ENTRY_SYMLINK) /* only for show: where it cannot be, it is not */
		(void)utimensat(spot->dir, spot->name, times, AT_SYMLINK_NOFOLLOW);
	return 0;
}

/* Where the file is that a hard link is to; from->dir is to be closed. 0 or -1. */
static int link_open_source(
    struct unpack *u, const char *link, char clean[ENTRY_PATH_MAX + 1], struct unpack_spot *from)
{
	char *slash;

	if (dest_clean(u, link, u->name, clean) < 0)
		return -1;
	slash = strrchr(clean, '/');
	if (slash != NULL)
		*slash = '\0';
	from->name = slash != NULL ? slash + 1 : clean;
	from->dir = dest_open(u, slash != NULL ? clean : "", O_PATH | O_DIRECTORY);
	return from->dir < 0 ? unpack_fail_errno(u, u->name, -from->dir) : 0;
}

int file_link(struct unpack *u, const struct unpack_spot *spot, const char *link)
{
	struct link_job j = {.text = link, .from = {.dir = -1}};
	char clean[ENTRY_PATH_MAX + 1];
	int rc = look(u, spot);

	if (rc == 0 && u->member.kind == ENTRY_HARDLINK)
		rc = link_open_source(u, link, clean, &j.from);
	if (rc == 0)
		rc = link_put(u, &j, spot);
	if (j.from.dir >= 0)
		(void)close(j.from.dir); /* names a place only */
	return rc;
}
