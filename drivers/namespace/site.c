/*
 * site: what the namespace driver keeps on the host for one instance. Janitor and worker; the
 * files outlive both and are found again by name.
 */
#include "drivers/namespace/site.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "drivers/record.h"
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

int site_record_write(const struct driver_site *site, const char *name, pid_t pid, uint64_t start)
{
	char dir[NS_PATH];
	int rc = site_dir_path(site, dir);

	return rc < 0 ? rc : record_write(dir, name, pid, start);
}

int site_record_read(const struct driver_site *site, const char *name, pid_t *pid, uint64_t *start)
{
	char dir[NS_PATH];
	int rc = site_dir_path(site, dir);

	return rc < 0 ? rc : record_read(dir, name, pid, start);
}

int site_record_remove(const struct driver_site *site, const char *name)
{
	char dir[NS_PATH];
	int rc = site_dir_path(site, dir);

	return rc < 0 ? rc : record_remove(dir, name);
}
