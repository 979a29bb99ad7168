/*
 * place: the BoxLite driver's directories. Janitor and worker; they outlive both and are found
 * again by name.
 */
#include "drivers/boxlite/place.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "drivers/record.h"
#include "lib/fd.h"

static bool fits(int n)
{
	return n >= 0 && n < PLACE_LEN;
}

int place_fill(const struct driver_site *site, const struct driver_options *options,
    struct place *out, struct err *err)
{
	const char *home = driver_option(options, "boxlite.home");
	struct place p = {
	    .remote = driver_option(options, "boxlite.url") != NULL,
	    .own_root = home != NULL,
	};

	if (!fits(snprintf(
		p.records, PLACE_LEN, "%s/boxlite-%s", site->runtime_dir, site->instance)) ||
	    !fits(snprintf(p.state, PLACE_LEN, "%s/boxlite-%s", site->state_dir, site->instance)) ||
	    !fits(home ? snprintf(p.root, PLACE_LEN, "%s/%s", home, site->instance)
		       : snprintf(p.root, PLACE_LEN, "%s", p.state)))
		return err_set(
		    err, ENAMETOOLONG, "the paths of instance %s are too long", site->instance);
	*out = p;
	return 0;
}

bool place_in_use(const struct place *p)
{
	struct stat st;

	return lstat(p->state, &st) == 0;
}

static int make_dir(const char *path, struct err *err)
{
	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		return err_sys(err, errno, "make %s", path);
	return 0;
}

static int make_below(const char *path, const char *name, struct err *err)
{
	char full[PLACE_LEN + 16];

	(void)snprintf(full, sizeof(full), "%s/%s", path, name);
	return make_dir(full, err);
}

int place_make(const struct place *p, struct err *err)
{
	char above[PLACE_LEN];

	if (make_dir(p->state, err) < 0 || make_dir(p->records, err) < 0 ||
	    make_below(p->records, "boxes", err) < 0)
		return -err->code;
	if (p->remote)
		return 0;
	(void)snprintf(above, sizeof(above), "%s", p->root);
	*strrchr(above, '/') = '\0'; /* it is an absolute path of two parts at least */
	if ((p->own_root && make_dir(above, err) < 0) || make_dir(p->root, err) < 0 ||
	    make_below(p->root, "homes", err) < 0 || make_below(p->root, "images", err) < 0)
		return -err->code;
	return 0;
}

int place_remove(const struct place *p, struct err *err)
{
	char homes[PLACE_LEN + 16];
	int rc = 0;

	(void)snprintf(homes, sizeof(homes), "%s/homes", p->root);
	if (p->own_root)
		rc = record_remove_tree(AT_FDCWD, homes);
	if (rc == 0)
		rc = record_remove_tree(AT_FDCWD, p->records);
	if (rc == 0) /* last: it says that there is something */
		rc = record_remove_tree(AT_FDCWD, p->state);
	return rc < 0 ? err_sys(err, -rc, "remove %s", p->state) : 0;
}

int place_home(const struct place *p, const char *name, char out[PLACE_LEN])
{
	return fits(snprintf(out, PLACE_LEN, "%s/homes/%s", p->root, name)) ? 0 : -ENAMETOOLONG;
}

/* FNV-1a: only to have a name of it that is a file's. */
int place_image(const struct place *p, const char *image, char out[PLACE_LEN])
{
	uint64_t hash = 14695981039346656037ULL;

	for (const char *c = image; *c; c++)
		hash = (hash ^ (unsigned char)*c) * 1099511628211ULL;
	return fits(
		   snprintf(out, PLACE_LEN, "%s/images/%016llx", p->root, (unsigned long long)hash))
		   ? 0
		   : -ENAMETOOLONG;
}

/* ---- a box's home from an image's ---- */

enum how {
	LINK, /* files of it never change */
	COPY,
};

static const struct {
	const char *name;
	enum how how;
} parts[] = {
    {"images", LINK}, {"bases", LINK}, {"db", COPY}, /* what is known of the images */
};

static int copy_file(int from_dir, int to_dir, const char *name)
{
	FD_SCOPED int from = openat(from_dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	FD_SCOPED int to =
	    openat(to_dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	ssize_t n;

	if (from < 0 || to < 0)
		return -errno;
	do {
		n = sendfile(to, from, NULL, 1U << 20);
	} while (n > 0);
	return n < 0 ? -errno : 0;
}

static int clone_link(int from_dir, int to_dir, const char *name)
{
	char target[PATH_MAX];
	ssize_t n = readlinkat(from_dir, name, target, sizeof(target) - 1);

	if (n < 0)
		return -errno;
	target[n] = '\0';
	return symlinkat(target, to_dir, name) < 0 ? -errno : 0;
}

static int clone_tree(int from_dir, int to_dir, const char *name, enum how how);

static int clone_entry(int from, int to, const char *name, enum how how)
{
	struct stat st;

	if (fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (S_ISDIR(st.st_mode))
		return clone_tree(from, to, name, how);
	if (S_ISLNK(st.st_mode))
		return clone_link(from, to, name);
	if (!S_ISREG(st.st_mode))
		return 0; /* sockets and the like are no image's */
	if (how == COPY)
		return copy_file(from, to, name);
	return linkat(from, name, to, name, 0) < 0 ? -errno : 0;
}

/* Depth is bounded by what an image's layers are, which BoxLite has unpacked already. */
static int clone_tree(int from_dir, int to_dir, const char *name, enum how how)
{
	int from = openat(from_dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	FD_SCOPED int to = -1;
	struct stat st;
	DIR *dir;
	int rc = 0;

	if (from < 0)
		return errno == ENOENT ? 0 : -errno;
	dir = fdopendir(from);
	if (!dir) {
		rc = -errno;
		(void)close(from);
		return rc;
	}
	if (fstat(from, &st) < 0 || mkdirat(to_dir, name, st.st_mode & 07777) < 0)
		rc = -errno;
	if (rc == 0) {
		to = openat(to_dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		rc = to < 0 ? -errno : 0;
	}
	for (struct dirent *e = readdir(dir); rc == 0 && e; e = readdir(dir)) {
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			rc = clone_entry(from, to, e->d_name, how);
	}
	(void)closedir(dir); /* opened for reading only */
	return rc;
}

int place_make_home(const char *image, const char *home, struct err *err)
{
	FD_SCOPED int from = open(image, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	FD_SCOPED int to = -1;
	int rc = record_remove_tree(AT_FDCWD, home); /* what an earlier start has left */

	if (rc == 0 && mkdir(home, 0700) < 0)
		rc = -errno;
	if (rc == 0)
		to = open(home, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (rc == 0 && to < 0)
		rc = -errno;
	for (size_t i = 0; rc == 0 && from >= 0 && i < sizeof(parts) / sizeof(parts[0]); i++)
		rc = clone_tree(from, to, parts[i].name, parts[i].how);
	if (rc == 0)
		return 0;
	(void)record_remove_tree(AT_FDCWD, home);
	return err_sys(err, -rc, "make %s", home);
}
