/*
 * image_copy: copies of the host's public files. Janitor, in prepare(); if it fails half-way the
 * layer is thrown away.
 */
#include "drivers/namespace/image_copy.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/fd.h"

#define IMAGE_COPY_DEPTH 8

struct copy {
	int left;  /* entries that may still be made */
	int depth; /* of directories, bounded */
};

static int copy_entry(struct copy *c, int src, int dst, const char *name);

static int copy_file(int src, int dst, const char *name, const struct stat *st)
{
	FD_SCOPED int in = openat(src, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	FD_SCOPED int out = -1;
	ssize_t n;

	if (in < 0)
		return errno == ENOENT ? 0 : -errno;
	out = openat(dst, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (out < 0 || fchmod(out, st->st_mode & 0111 ? 0755 : 0644) < 0)
		return -errno;
	do {
		n = sendfile(out, in, NULL, IMAGE_COPY_SIZE);
	} while (n > 0);
	return n < 0 ? -errno : 0;
}

static int copy_link(int src, int dst, const char *name)
{
	char target[PATH_MAX];
	ssize_t n = readlinkat(src, name, target, sizeof(target) - 1);

	if (n < 0)
		return -errno;
	target[n] = '\0';
	return symlinkat(target, dst, name) < 0 ? -errno : 0;
}

/* Manual pages: hundreds of links in alternatives/, each of which costs on a disk. */
static bool copy_skips(const char *name)
{
	size_t len = strlen(name);

	return len > 3 && !strcmp(name + len - 3, ".gz");
}

static int copy_all(struct copy *c, int src, int dst, const char *prefix)
{
	int fd = openat(src, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	int rc = 0;

	if (!dir) {
		rc = -errno;
		fd_close(&fd);
		return rc;
	}
	for (struct dirent *e = readdir(dir); rc == 0 && e; e = readdir(dir)) {
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 &&
		    !strncmp(e->d_name, prefix, strlen(prefix)) && !copy_skips(e->d_name))
			rc = copy_entry(c, src, dst, e->d_name);
	}
	(void)closedir(dir); /* opened for reading only */
	return rc;
}

static int copy_dir(struct copy *c, int src, int dst, const char *name)
{
	FD_SCOPED int in = openat(src, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	FD_SCOPED int out = -1;
	int rc;

	if (in < 0)
		return errno == ENOENT ? 0 : -errno;
	if (mkdirat(dst, name, 0700) < 0 && errno != EEXIST)
		return -errno;
	out = openat(dst, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (out < 0 || fchmod(out, 0755) < 0)
		return -errno;
	c->depth++;
	rc = c->depth < IMAGE_COPY_DEPTH ? copy_all(c, in, out, "") : 0;
	c->depth--;
	return rc;
}

static int copy_entry(struct copy *c, int src, int dst, const char *name)
{
	struct stat st;

	if (fstatat(src, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (c->left-- <= 0)
		return 0;
	if (S_ISLNK(st.st_mode))
		return copy_link(src, dst, name);
	if (S_ISDIR(st.st_mode) && (st.st_mode & 0005) == 0005)
		return copy_dir(c, src, dst, name);
	if (S_ISREG(st.st_mode) && (st.st_mode & 0004) && st.st_size <= IMAGE_COPY_SIZE)
		return copy_file(src, dst, name, &st);
	return 0;
}

int image_copy(int src, int dst, const char *name)
{
	struct copy c = {.left = IMAGE_COPY_FILES};

	return copy_entry(&c, src, dst, name);
}

int image_copy_prefix(int src, int dst, const char *prefix)
{
	struct copy c = {.left = IMAGE_COPY_FILES};

	return copy_all(&c, src, dst, prefix);
}
