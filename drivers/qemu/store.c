/* store: files that are made once. Janitor and worker; they outlive both. */
#include "drivers/qemu/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "drivers/qemu/site.h"
#include "lib/clock.h"
#include "lib/fault.h"
#include "lib/fd.h"

#define LOCK_TRY_MS 5

static const char *const kinds[] = {
    "kernel-", "modules-", "image-", "template-", "trial-", "size-"};

void store_key(const uint8_t digest[DIGEST_LEN], char out[STORE_KEY])
{
	digest_hex(digest, DIGEST_LEN / 2, out);
}

static void identity_of(const struct stat *st, uint64_t out[STORE_IDENTITY])
{
	out[0] = (uint64_t)st->st_size;
	out[1] = (uint64_t)st->st_mtim.tv_sec;
	out[2] = (uint64_t)st->st_mtim.tv_nsec;
	out[3] = (uint64_t)st->st_ctim.tv_sec;
	out[4] = (uint64_t)st->st_ctim.tv_nsec;
	out[5] = st->st_ino;
}

int store_identity(const char *path, uint64_t out[STORE_IDENTITY])
{
	struct stat st;

	if (stat(path, &st) < 0)
		return -errno;
	identity_of(&st, out);
	return 0;
}

int store_identity_fd(int fd, uint64_t out[STORE_IDENTITY])
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	identity_of(&st, out);
	return 0;
}

/* Whoever has it must have it by the name that is there now: its last owner has removed it. */
static bool lock_is_current(int fd, const char *path)
{
	struct stat held;
	struct stat named;

	return fstat(fd, &held) == 0 && stat(path, &named) == 0 && held.st_ino == named.st_ino &&
	       held.st_dev == named.st_dev;
}

/* The lock, or -errno. */
static int store_lock(const char *path, uint64_t deadline_ns)
{
	int fd;

	for (;;) {
		fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (fd < 0)
			return -errno;
		if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
			if (lock_is_current(fd, path))
				return fd;
		} else if (errno != EWOULDBLOCK) {
			int rc = -errno;

			(void)close(fd);
			return rc;
		}
		(void)close(fd);
		if (clock_now_ns() >= deadline_ns)
			return -ETIMEDOUT;
		(void)poll(NULL, 0, LOCK_TRY_MS);
	}
}

static void store_unlock(struct store_entry *e)
{
	char path[QEMU_PATH];
	size_t len = strlen(e->new_path) - strlen("new");

	if (e->lock < 0)
		return;
	(void)snprintf(path, sizeof(path), "%.*slock", (int)len, e->new_path);
	(void)unlink(path); /* while it is held: who waits for it sees that it is another's */
	fd_close(&e->lock);
}

/* Its time is that of its last use. */
static bool store_is_there(const char *path)
{
	return utimensat(AT_FDCWD, path, NULL, AT_SYMLINK_NOFOLLOW) == 0 || access(path, F_OK) == 0;
}

void store_touch(const char *path)
{
	(void)store_is_there(path); /* whoever needs it finds out */
}

/* The name up to where ".lock" and ".new" follow. */
static int store_names(const struct driver_site *site, const char *kind,
    const uint8_t digest[DIGEST_LEN], struct store_entry *e, char lock[QEMU_PATH], struct err *err)
{
	char key[STORE_KEY];
	char dir[QEMU_PATH];
	char name[64];
	int rc = qemu_store_path(site, dir);

	if (rc == 0 && mkdir(dir, 0700) < 0 && errno != EEXIST)
		return err_sys(err, errno, "make %s", dir);
	store_key(digest, key);
	(void)snprintf(name, sizeof(name), "%s-%s", kind, key);
	if (rc == 0)
		rc = qemu_path_join(e->path, dir, name, "");
	if (rc == 0)
		rc = qemu_path_join(e->new_path, dir, name, ".new");
	if (rc == 0)
		rc = qemu_path_join(lock, dir, name, ".lock");
	return rc < 0 ? err_sys(err, -rc, "the store in %s", site->state_dir) : 0;
}

int store_path(const struct driver_site *site, const char *kind, const uint8_t digest[DIGEST_LEN],
    char out[QEMU_PATH], struct err *err)
{
	struct store_entry e;
	char lock[QEMU_PATH];
	int rc = store_names(site, kind, digest, &e, lock, err);

	if (rc == 0)
		memcpy(out, e.path, QEMU_PATH);
	return rc;
}

static int store_remove(const char *path)
{
	if (unlink(path) == 0 || errno == ENOENT)
		return 0;
	return record_remove_tree(AT_FDCWD, path);
}

int store_get(const struct driver_site *site, const char *kind, const uint8_t digest[DIGEST_LEN],
    uint64_t deadline_ns, struct store_entry *e, struct err *err)
{
	char lock[QEMU_PATH];
	int rc = store_names(site, kind, digest, e, lock, err);

	e->lock = -1;
	if (rc < 0 || store_is_there(e->path))
		return rc < 0 ? rc : 1;
	e->lock = store_lock(lock, deadline_ns);
	if (e->lock < 0)
		return err_sys(err, -e->lock, "wait for whoever makes %s", e->path);
	if (store_is_there(e->path)) { /* made while we waited */
		store_unlock(e);
		return 1;
	}
	rc = store_remove(e->new_path);
	if (rc < 0) {
		store_unlock(e);
		return err_sys(err, -rc, "remove %s", e->new_path);
	}
	return 0;
}

static int sync_path(const char *path)
{
	FD_SCOPED int fd = open(path, O_RDONLY | O_CLOEXEC);

	return fd < 0 || fsync(fd) < 0 ? -errno : 0;
}

int store_keep(struct store_entry *e, struct err *err)
{
	int rc = sync_path(e->new_path);

	if (rc == 0 && rename(e->new_path, e->path) < 0)
		rc = -errno;
	if (rc < 0) {
		(void)err_sys(err, -rc, "keep %s", e->path);
		store_give_up(e);
		return rc;
	}
	store_unlock(e);
	return 0;
}

void store_give_up(struct store_entry *e)
{
	(void)store_remove(e->new_path); /* else the next one does */
	store_unlock(e);
}

void store_discard(const char *path)
{
	char gone[QEMU_PATH + 32];

	/* At once for all: a directory is removed file by file. */
	(void)snprintf(gone, sizeof(gone), "%s.%d.new", path, (int)getpid());
	if (rename(path, gone) < 0)
		(void)snprintf(gone, sizeof(gone), "%s", path);
	FAULT_POINT("driver.qemu.store.out");
	(void)store_remove(gone);
}

bool store_is_entry(const char *name, const char *kind)
{
	size_t len = strlen(kind);

	return !strncmp(name, kind, len) && name[len] == '-' && !strchr(name, '.');
}

static bool name_is_ours(const char *name)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (!strncmp(name, kinds[i], strlen(kinds[i])))
			return true;
	}
	return false;
}

/* What is being made is young: this takes no lock. */
void store_sweep(const struct driver_site *site, long unused_s)
{
	char dir[QEMU_PATH];
	char path[QEMU_PATH];
	struct stat st;
	DIR *d = qemu_store_path(site, dir) == 0 ? opendir(dir) : NULL;

	for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d)) {
		if (!name_is_ours(e->d_name) || qemu_path_join(path, dir, e->d_name, "") < 0 ||
		    lstat(path, &st) < 0 || time(NULL) - st.st_mtime <= unused_s)
			continue;
		/* What cannot be removed now, the next sweep removes. */
		if (store_is_entry(e->d_name, "image") || store_is_entry(e->d_name, "template"))
			(void)store_take_out(path);
		else
			(void)store_remove(path);
	}
	if (d)
		(void)closedir(d); /* opened for reading only */
}

/* Nobody makes it if the lock can be had. */
static void sweep_new(const char *dir, const char *name)
{
	struct store_entry e = {.lock = -1};
	char lock[QEMU_PATH];
	size_t len = strlen(name) - strlen(".new");

	if (snprintf(lock, sizeof(lock), "%s/%.*s.lock", dir, (int)len, name) >=
		(int)sizeof(lock) ||
	    qemu_path_join(e.new_path, dir, name, "") < 0)
		return;
	e.lock = store_lock(lock, 0);
	if (e.lock >= 0)
		store_give_up(&e);
}

void store_sweep_dead(const struct driver_site *site)
{
	char dir[QEMU_PATH];
	DIR *d = qemu_store_path(site, dir) == 0 ? opendir(dir) : NULL;

	for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d)) {
		size_t len = strlen(e->d_name);

		if (name_is_ours(e->d_name) && len > 4 && !strcmp(e->d_name + len - 4, ".new"))
			sweep_new(dir, e->d_name);
	}
	if (d)
		(void)closedir(d); /* opened for reading only */
}
