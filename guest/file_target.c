/*
 * file_target: what AGENT_WRITE writes to: a temporary file that gets the name at last, or the file
 * itself when it is appended to. sbx-guest; if we die here a temporary name may be left in the box.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "guest/file.h"
#include "guest/path.h"

#define TARGET_LINKS_MAX 40 /* as the kernel */
#define TARGET_NO_OWNER UINT32_MAX

/* Splits path into its directory, which is opened, and w->name. 0 or an errno. */
static int open_directory(int root_fd, struct file_writer *w, char *path)
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
	fd = path_open(root_fd, slash == path ? "/" : path, O_PATH | O_DIRECTORY, 0);
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
static int find_target(int root_fd, struct file_writer *w, char *path)
{
	char link[PATH_LEN_MAX + 1];

	for (int i = 0; i < TARGET_LINKS_MAX; i++) {
		ssize_t n;
		int err = open_directory(root_fd, w, path);

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

static int open_append(int root_fd, struct file_writer *w, const char *path)
{
	struct stat st;
	struct statfs fs;
	int fd = path_open(root_fd, path, O_WRONLY | O_APPEND | O_CREAT, w->mode & 07777U);

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

static int open_replace(int root_fd, struct file_writer *w, char *path)
{
	int err = find_target(root_fd, w, path);

	if (err == 0)
		err = look_at_target(w);
	return err != 0 ? err : open_temporary(w);
}

/* There nothing can be made, and the kernel says that it is not there. */
static bool is_of_proc(int root_fd, struct file_writer *w, char *path)
{
	struct statfs fs;

	return (w->dir_fd >= 0 || open_directory(root_fd, w, path) == 0) &&
	       fstatfs(w->dir_fd, &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC;
}

int file_target_open(int root_fd, struct file_writer *w, const char *path)
{
	char target[PATH_LEN_MAX + 1];
	int err;

	memcpy(target, path, strlen(path) + 1);
	w->uid = TARGET_NO_OWNER;
	err = w->append ? open_append(root_fd, w, path) : open_replace(root_fd, w, target);
	return err == ENOENT && is_of_proc(root_fd, w, target) ? EINVAL : err;
}

int file_target_dress(struct file_writer *w)
{
	if (w->append)
		return 0;
	/* Without the right to it the file is ours, as any new one. */
	if (w->uid != TARGET_NO_OWNER)
		(void)!fchown(w->fd, w->uid, w->gid);
	return fchmod(w->fd, w->mode) == 0 ? 0 : errno;
}

int file_target_name(struct file_writer *w)
{
	if (!w->append && renameat(w->dir_fd, w->temporary, w->dir_fd, w->name) != 0)
		return errno;
	w->temporary[0] = '\0';
	w->append = false; /* nothing is taken back any more */
	return 0;
}

/* An append that was cut is taken back, unless somebody else appended meanwhile. */
static int take_back(const struct file_writer *w)
{
	struct stat st;

	if (!w->append || w->fd < 0 || w->done == 0 || fstat(w->fd, &st) < 0 ||
	    (uint64_t)st.st_size != w->before + w->done)
		return 0;
	return ftruncate(w->fd, (off_t)w->before);
}

void file_target_close(struct file_writer *w)
{
	if (w->dir_fd >= 0 && w->temporary[0] != '\0')
		(void)unlinkat(w->dir_fd, w->temporary, 0); /* somebody may have been faster */
	(void)take_back(w);				    /* the error is being told already */
	path_close(&w->fd);
	path_close(&w->dir_fd);
}
