/*
 * file_write: AGENT_WRITE. A file is replaced whole or not at all. sbx-guest; if we
 * die here a temporary name may be left in the box.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "guest/file.h"
#include "guest/mux.h"
#include "guest/path.h"

#define WRITE_LINKS_MAX 40 /* as the kernel */
#define WRITE_NEW_MODE 0644U
#define WRITE_NO_OWNER UINT32_MAX

/* An append that was cut is taken back, unless somebody else appended meanwhile. */
static int write_take_back(const struct file_writer *w)
{
	struct stat st;

	if (!w->append || w->fd < 0 || w->done == 0 || fstat(w->fd, &st) < 0 ||
	    (uint64_t)st.st_size != w->before + w->done)
		return 0;
	return ftruncate(w->fd, (off_t)w->before);
}

static void write_drop(struct guest *g, struct channel *c)
{
	struct file_writer *w = &c->u.writer;

	if (w->flusher != NULL)
		shim_release(&g->shims, w->flusher);
	if (w->dir_fd >= 0 && w->temporary[0] != '\0')
		(void)unlinkat(w->dir_fd, w->temporary, 0); /* somebody may have been faster */
	(void)write_take_back(w);			    /* the error is being told already */
	path_close(&w->fd);
	path_close(&w->dir_fd);
}

static void write_fail(struct guest *g, struct channel *c, const char *path, int err)
{
	struct text why;

	text_clear(&why);
	if (err == EINVAL || err == ENXIO) {
		text_add(&why, "not a regular file: ");
		text_add_quoted(&why, path, 256);
	} else {
		path_explain(&why, "cannot write", path, err);
	}
	mux_fail(g, c, path_code(err), err, &why);
}

/* Splits path into its directory, which is opened, and w->name. 0 or an errno. */
static int open_directory(struct guest *g, struct file_writer *w, char *path)
{
	char *slash = strrchr(path, '/');
	size_t len;
	int fd;

	if (slash == NULL || slash[1] == '\0' || strcmp(slash, "/..") == 0 ||
	    strcmp(slash, "/.") == 0)
		return EISDIR;
	len = strlen(slash + 1);
	if (len >= sizeof(w->name))
		return ENAMETOOLONG;
	memcpy(w->name, slash + 1, len + 1);
	*slash = '\0';
	fd = path_open(g->root_fd, slash == path ? "/" : path, O_PATH | O_DIRECTORY, 0);
	*slash = '/';
	if (fd < 0)
		return -fd;
	w->dir_fd = fd;
	return 0;
}

/* Replaces the last component of path by the text of a link. 0 or an errno. */
static int follow_link(char *path, const char *link, size_t n)
{
	size_t base = link[0] == '/' ? 0 : (size_t)(strrchr(path, '/') - path) + 1;

	if (base + n > PATH_LEN_MAX)
		return ENAMETOOLONG;
	memcpy(path + base, link, n);
	path[base + n] = '\0';
	return 0;
}

/*
 * Finds the directory and name that path stands for when links at its end are followed, so that
 * not the link is replaced. path (PATH_LEN_MAX + 1 bytes) is changed. 0 or an errno.
 */
static int find_target(struct guest *g, struct file_writer *w, char *path)
{
	char link[PATH_LEN_MAX + 1];

	for (int i = 0; i < WRITE_LINKS_MAX; i++) {
		ssize_t n;
		int err = open_directory(g, w, path);

		if (err != 0)
			return err;
		n = readlinkat(w->dir_fd, w->name, link, sizeof(link));
		if (n < 0)
			return errno == EINVAL || errno == ENOENT ? 0 : errno;
		path_close(&w->dir_fd);
		err = n == 0 ? ENOENT : follow_link(path, link, (size_t)n);
		if (err != 0)
			return err;
	}
	return ELOOP;
}

/* What stands at the target now: its mode and owner are kept. 0 or an errno. */
static int look_at_target(struct file_writer *w)
{
	struct stat st;

	if (fstatat(w->dir_fd, w->name, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return errno == ENOENT ? 0 : errno;
	if (S_ISDIR(st.st_mode))
		return EISDIR;
	if (!S_ISREG(st.st_mode))
		return EINVAL;
	if (!w->set_mode)
		w->mode = st.st_mode & 07777U;
	w->uid = st.st_uid;
	w->gid = st.st_gid;
	return 0;
}

static int open_temporary(struct file_writer *w)
{
	static const char digits[] = "0123456789abcdef";
	uint8_t random[7];
	char *to = w->temporary;

	if (getrandom(random, sizeof(random), GRND_NONBLOCK) != (ssize_t)sizeof(random))
		return EAGAIN;
	memcpy(to, ".sbx-", 5);
	to += 5;
	for (size_t i = 0; i < sizeof(random); i++) {
		*to++ = digits[random[i] >> 4];
		*to++ = digits[random[i] & 15U];
	}
	memcpy(to, ".tmp", sizeof(".tmp"));
	w->fd = openat(
	    w->dir_fd, w->temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (w->fd >= 0)
		return 0;
	w->temporary[0] = '\0';
	return errno;
}
_Static_assert(FILE_TEMPORARY_MAX == sizeof(".sbx-.tmp") + 14, "the name fits exactly");

static int open_append(struct guest *g, struct file_writer *w, const char *path)
{
	struct stat st;
	struct statfs fs;
	int fd = path_open(g->root_fd, path, O_WRONLY | O_APPEND | O_CREAT, w->mode & 07777U);

	if (fd < 0)
		return -fd;
	w->fd = fd;
	if (fstat(fd, &st) != 0 || fstatfs(fd, &fs) != 0)
		return errno;
	if (S_ISDIR(st.st_mode))
		return EISDIR;
	/* A write to our own memory through /proc would be taken literally. */
	if (!S_ISREG(st.st_mode) || fs.f_type == PROC_SUPER_MAGIC)
		return EINVAL;
	w->before = (uint64_t)st.st_size;
	if (w->set_mode && fchmod(fd, w->mode) != 0)
		return errno;
	return 0;
}

static int open_replace(struct guest *g, struct file_writer *w, char *path)
{
	int err = find_target(g, w, path);

	if (err == 0)
		err = look_at_target(w);
	return err != 0 ? err : open_temporary(w);
}

/* There nothing can be made, and the kernel says that it is not there. */
static bool is_of_proc(struct guest *g, struct file_writer *w, char *path)
{
	struct statfs fs;

	return (w->dir_fd >= 0 || open_directory(g, w, path) == 0) &&
	       fstatfs(w->dir_fd, &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC;
}

static int write_open(struct guest *g, struct channel *c, const uint8_t *request, size_t n)
{
	struct file_writer *w = &c->u.writer;
	struct agent_write aw;
	char path[PATH_LEN_MAX + 1];
	char target[PATH_LEN_MAX + 1];
	int err;

	*w = (struct file_writer){.fd = -1, .dir_fd = -1, .uid = WRITE_NO_OWNER};
	if (n < sizeof(aw))
		return -EBADMSG;
	memcpy(&aw, request, sizeof(aw));
	if (aw.path_len != n - sizeof(aw) || aw.reserved != 0 ||
	    (aw.flags & ~(AGENT_WRITE_APPEND | AGENT_WRITE_MODE)) != 0)
		return -EBADMSG;
	if (!path_is_valid((const char *)request + sizeof(aw), aw.path_len)) {
		mux_fail_str(g, c, AGENT_E_INVALID_PATH, 0, PATH_INVALID);
		return 0;
	}
	memcpy(path, request + sizeof(aw), aw.path_len);
	path[aw.path_len] = '\0';
	memcpy(target, path, aw.path_len + 1);
	w->size = aw.size;
	w->append = (aw.flags & AGENT_WRITE_APPEND) != 0;
	w->set_mode = (aw.flags & AGENT_WRITE_MODE) != 0;
	w->mode = aw.mode != 0 || w->set_mode ? aw.mode & 07777U : WRITE_NEW_MODE;
	err = w->append ? open_append(g, w, path) : open_replace(g, w, target);
	if (err == ENOENT && is_of_proc(g, w, target))
		err = EINVAL;
	if (err != 0)
		write_fail(g, c, path, err);
	return 0;
}

static void write_fail_now(struct guest *g, struct channel *c, int err)
{
	mux_fail_str(g, c, path_code(err), err, strerror(err));
}

static int write_data(struct guest *g, struct channel *c, const uint8_t *bytes, size_t n)
{
	struct file_writer *w = &c->u.writer;
	size_t at = 0;

	if (n > w->size - w->done) {
		mux_fail_str(g, c, AGENT_E_INVALID, 0, "more bytes came than were announced");
		return 0;
	}
	while (at < n) {
		ssize_t done = write(w->fd, bytes + at, n - at);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0) {
			write_fail_now(g, c, done < 0 ? errno : EIO);
			return 0;
		}
		at += (size_t)done;
		w->done += (uint64_t)done;
	}
	mux_consumed(g, c, n);
	return 0;
}

/* The content is on disk: gives it its name and ends the channel. */
static void write_flushed(struct guest *g, struct channel *c, int err)
{
	struct file_writer *w = &c->u.writer;
	const struct agent_end end = {.bytes = w->done};

	if (err == 0 && !w->append) {
		if (renameat(w->dir_fd, w->temporary, w->dir_fd, w->name) == 0)
			w->temporary[0] = '\0';
		else
			err = errno;
	}
	if (err != 0) {
		write_fail_now(g, c, err);
		return;
	}
	w->append = false; /* nothing is taken back any more */
	mux_end(g, c, &end);
}

/* Flushing something that lives in memory costs nothing, handing it to a shim does. */
static bool flush_is_cheap(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) == 0 && fs.f_type == TMPFS_MAGIC;
}

static int write_eof(struct guest *g, struct channel *c)
{
	struct file_writer *w = &c->u.writer;
	int err;

	if (w->size != UINT64_MAX && w->done < w->size) {
		mux_fail_str(g, c, AGENT_E_SHORT, 0, "fewer bytes came than were announced");
		return 0;
	}
	if (!w->append) {
		/* Without the right to it the file is ours, as any new one. */
		if (w->uid != WRITE_NO_OWNER)
			(void)!fchown(w->fd, w->uid, w->gid);
		if (fchmod(w->fd, w->mode) != 0) {
			write_fail_now(g, c, errno);
			return 0;
		}
	}
	if (!flush_is_cheap(w->fd))
		w->flusher = shim_take(&g->shims, &err);
	if (w->flusher != NULL)
		shim_start_flush(w->flusher, SHIM_JOB_FSYNC, w->fd);
	else
		write_flushed(g, c, fsync(w->fd) == 0 ? 0 : errno);
	return 0;
}

static void write_step(struct guest *g, struct channel *c, const struct pollfd *p)
{
	struct file_writer *w = &c->u.writer;
	int err = -1;

	(void)p;
	if (w->flusher == NULL)
		return;
	if (shim_phase(w->flusher) == SHIM_DONE)
		err = w->flusher->err;
	else if (w->flusher->pid == 0) /* killed from within the box */
		err = fsync(w->fd) == 0 ? 0 : errno;
	if (err < 0)
		return;
	shim_release(&g->shims, w->flusher);
	w->flusher = NULL;
	write_flushed(g, c, err);
}

static void write_close(struct guest *g, struct channel *c)
{
	const struct agent_end end = {.flags = AGENT_END_KILLED, .bytes = c->u.writer.done};

	mux_end(g, c, &end);
}

static void write_wait(struct guest *g, struct channel *c, struct pollfd *w, uint64_t *at)
{
	/* Everything is done when it comes in. */
	(void)g;
	(void)c;
	(void)w;
	(void)at;
}

const struct operation file_write_operation = {
    .open = write_open,
    .data = write_data,
    .eof = write_eof,
    .close = write_close,
    .wait = write_wait,
    .step = write_step,
    .drop = write_drop,
};
