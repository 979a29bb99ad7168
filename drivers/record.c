/*
 * record: traces of boxes on the host, by name. Janitor and worker; the files outlive both.
 */
#include "drivers/record.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/fd.h"

static int record_path(const char *dir, const char *name, char out[PATH_MAX])
{
	int n = snprintf(out, PATH_MAX, "%s/boxes/%s", dir, name);

	return n < 0 || n >= PATH_MAX ? -ENAMETOOLONG : 0;
}

int record_write(const char *dir, const char *name, pid_t pid, uint64_t start)
{
	char path[PATH_MAX];
	char text[48];
	FD_SCOPED int fd = -1;
	int rc = record_path(dir, name, path);
	int n;

	if (rc < 0)
		return rc;
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	n = snprintf(text, sizeof(text), "%d %llu\n", (int)pid, (unsigned long long)start);
	return write(fd, text, (size_t)n) == n ? 0 : -EIO;
}

int record_read(const char *dir, const char *name, pid_t *pid, uint64_t *start)
{
	char path[PATH_MAX];
	char text[48];
	char *end;
	ssize_t n;
	int rc = record_path(dir, name, path);

	if (rc < 0)
		return rc;
	n = fd_read_file_at(AT_FDCWD, path, text, sizeof(text));
	if (n < 0)
		return (int)n;
	*pid = (pid_t)strtol(text, &end, 10);
	*start = strtoull(end, NULL, 10);
	return *pid > 0 ? 0 : -EBADMSG;
}

int record_remove(const char *dir, const char *name)
{
	char path[PATH_MAX];
	int rc = record_path(dir, name, path);

	if (rc == 0 && unlink(path) < 0 && errno != ENOENT)
		rc = -errno;
	return rc;
}

int record_names_add(struct record_names *set, const char *name)
{
	size_t cap;
	void *grown;

	for (size_t i = 0; i < set->count; i++) {
		if (!strcmp(set->names[i], name))
			return 0;
	}
	if (set->count == set->cap) {
		cap = set->cap ? set->cap * 2 : 16;
		grown = realloc(set->names, cap * sizeof(*set->names));
		if (!grown)
			return -ENOMEM;
		set->names = grown;
		set->cap = cap;
	}
	(void)snprintf(set->names[set->count++], DRIVER_NAME_LEN, "%s", name);
	return 0;
}

int record_names_add_dir(
    struct record_names *set, const struct driver_site *site, int dirfd, const char *path)
{
	int fd = openat(dirfd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir;
	int rc = 0;

	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	dir = fdopendir(fd);
	if (!dir) {
		rc = -errno;
		(void)close(fd);
		return rc;
	}
	for (struct dirent *e = readdir(dir); rc == 0 && e; e = readdir(dir)) {
		if (driver_owns_name(site, e->d_name))
			rc = record_names_add(set, e->d_name);
	}
	(void)closedir(dir); /* opened for reading only */
	return rc;
}

void record_names_free(struct record_names *set)
{
	free(set->names);
	*set = (struct record_names){0};
}

/* Depth is bounded by what drivers make, not by an outsider: the directories are 0700. */
static int record_empty_dir(int fd)
{
	DIR *dir = fdopendir(fd);
	int rc = 0;

	if (!dir) {
		rc = -errno;
		(void)close(fd);
		return rc;
	}
	for (struct dirent *e = readdir(dir); rc == 0 && e; e = readdir(dir)) {
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		if (unlinkat(fd, e->d_name, 0) < 0)
			rc = errno == EISDIR || errno == EPERM ? record_remove_tree(fd, e->d_name)
							       : -errno;
	}
	(void)closedir(dir); /* opened for reading only */
	return rc;
}

int record_remove_tree(int dirfd, const char *name)
{
	int fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int rc;

	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	rc = record_empty_dir(fd); /* closes fd */
	if (rc == 0 && unlinkat(dirfd, name, AT_REMOVEDIR) < 0)
		rc = -errno;
	return rc;
}
