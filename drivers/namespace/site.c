/*
 * site: what the namespace driver keeps on the host for one instance. Janitor and worker; the
 * files outlive both and are found again by name.
 */
#include "drivers/namespace/site.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/fd.h"

static int site_path(
    const char *dir, const struct driver_site *site, const char *suffix, char out[NS_PATH])
{
	int n = snprintf(out, NS_PATH, "%s/namespace-%s%s", dir, site->instance, suffix);

	return n < 0 || n >= NS_PATH ? -ENAMETOOLONG : 0;
}

int site_dir_path(const struct driver_site *site, char out[NS_PATH])
{
	return site_path(site->runtime_dir, site, "", out);
}

int site_state_path(const struct driver_site *site, char out[NS_PATH])
{
	return site_path(site->state_dir, site, "", out);
}

int site_trial_path(const struct driver_site *site, char out[NS_PATH])
{
	return site_path(site->runtime_dir, site, ".trial", out);
}

int site_dir_open(const struct driver_site *site)
{
	char path[NS_PATH];
	int rc = site_dir_path(site, path);
	int fd;

	if (rc < 0)
		return rc;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int site_dir_make(const struct driver_site *site, struct err *err)
{
	char path[NS_PATH];
	FD_SCOPED int fd = -1;
	int rc = site_dir_path(site, path);

	if (rc < 0)
		return err_sys(err, -rc, "runtime directory %s", site->runtime_dir);
	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		return err_sys(err, errno, "make %s", path);
	fd = site_dir_open(site);
	if (fd < 0)
		return err_sys(err, -fd, "open %s", path);
	if (mkdirat(fd, "boxes", 0700) < 0 && errno != EEXIST)
		return err_sys(err, errno, "make %s/boxes", path);
	return fd_take(&fd);
}

const struct ns_prepared *site_prepared_map(const struct driver_site *site, struct err *err)
{
	struct stat st;
	const struct ns_prepared *prep;
	size_t size;

	if (fstat(site->prepared, &st) < 0 || (size_t)st.st_size < sizeof(*prep)) {
		(void)err_set(err, EINVAL, "the namespace driver was not prepared");
		return NULL;
	}
	/* Populated: each fault avoided is worth several system calls. */
	size = sizeof(*prep);
	prep = mmap(NULL, size, PROT_READ, MAP_SHARED | MAP_POPULATE, site->prepared, 0);
	if (prep == MAP_FAILED) {
		(void)err_sys(err, errno, "map what was prepared");
		return NULL;
	}
	if (prep->magic != NS_MAGIC || prep->size != size) {
		site_prepared_unmap(prep);
		(void)err_set(err, EINVAL, "what was prepared is not of this version");
		return NULL;
	}
	return prep;
}

void site_prepared_unmap(const struct ns_prepared *prep)
{
	if (prep)
		(void)munmap((void *)(uintptr_t)prep, sizeof(*prep));
}

static int site_record_path(const struct driver_site *site, const char *name, char out[PATH_MAX])
{
	char dir[NS_PATH];
	int rc = site_dir_path(site, dir);

	if (rc == 0)
		(void)snprintf(out, PATH_MAX, "%s/boxes/%s", dir, name);
	return rc;
}

int site_record_write(const struct driver_site *site, const char *name, pid_t pid, uint64_t start)
{
	char path[PATH_MAX];
	char text[48];
	FD_SCOPED int fd = -1;
	int rc = site_record_path(site, name, path);
	int n;

	if (rc < 0)
		return rc;
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	n = snprintf(text, sizeof(text), "%d %llu\n", (int)pid, (unsigned long long)start);
	return write(fd, text, (size_t)n) == n ? 0 : -EIO;
}

int site_record_read(const struct driver_site *site, const char *name, pid_t *pid, uint64_t *start)
{
	char path[PATH_MAX];
	char text[48];
	char *end;
	ssize_t n;
	int rc = site_record_path(site, name, path);

	if (rc < 0)
		return rc;
	n = fd_read_file_at(AT_FDCWD, path, text, sizeof(text));
	if (n < 0)
		return (int)n;
	*pid = (pid_t)strtol(text, &end, 10);
	*start = strtoull(end, NULL, 10);
	return *pid > 0 ? 0 : -EBADMSG;
}

int site_record_remove(const struct driver_site *site, const char *name)
{
	char path[PATH_MAX];
	int rc = site_record_path(site, name, path);

	if (rc == 0 && unlink(path) < 0 && errno != ENOENT)
		rc = -errno;
	return rc;
}

int site_names_add(struct site_names *set, const char *name)
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
	(void)snprintf(set->names[set->count++], SITE_NAME, "%s", name);
	return 0;
}

int site_names_add_dir(
    struct site_names *set, const struct driver_site *site, int dirfd, const char *path)
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
			rc = site_names_add(set, e->d_name);
	}
	(void)closedir(dir); /* opened for reading only */
	return rc;
}

void site_names_free(struct site_names *set)
{
	free(set->names);
	*set = (struct site_names){0};
}

/* Depth is bounded by what prepare() makes, not by an outsider: the directory is 0700. */
static int site_empty_dir(int fd)
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
			rc = errno == EISDIR || errno == EPERM ? site_remove_tree(fd, e->d_name)
							       : -errno;
	}
	(void)closedir(dir); /* opened for reading only */
	return rc;
}

int site_remove_tree(int dirfd, const char *name)
{
	int fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int rc;

	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	rc = site_empty_dir(fd); /* closes fd */
	if (rc == 0 && unlinkat(dirfd, name, AT_REMOVEDIR) < 0)
		rc = -errno;
	return rc;
}
