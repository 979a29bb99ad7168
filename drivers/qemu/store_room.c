/*
 * store_room: disks and templates: which machines have them, what they take, and what of them goes.
 * Janitor, worker, `sbx-worker image`. If it dies while it removes one, that has a name by then
 * under which nobody looks for it, and which the next sweep removes.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "drivers/qemu/site.h"
#include "drivers/qemu/store.h"
#include "lib/clock.h"
#include "lib/fd.h"

#define HOLD_TRY_MS 2
#define BLOCK 512U /* st_blocks has this unit */
#define LOCKS "/proc/locks"

/* ---- having one ---- */

static bool has_name(int fd, const char *path)
{
	struct stat held;
	struct stat named;

	return fstat(fd, &held) == 0 && stat(path, &named) == 0 && held.st_ino == named.st_ino &&
	       held.st_dev == named.st_dev;
}

/* Who looks whether it is in use has it exclusively for a moment. */
int store_hold(int fd, const char *path, uint64_t deadline_ns)
{
	while (flock(fd, LOCK_SH | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK)
			return -errno;
		if (clock_now_ns() >= deadline_ns)
			return -ETIMEDOUT;
		(void)poll(NULL, 0, HOLD_TRY_MS);
	}
	return has_name(fd, path) ? 0 : -EIDRM;
}

/* The file of an entry that machines lock. */
static int lock_path(const char *path, char out[QEMU_PATH])
{
	struct stat st;

	if (lstat(path, &st) < 0)
		return -errno;
	if (S_ISDIR(st.st_mode))
		return qemu_path_join(out, path, STORE_TEMPLATE_MEMORY, "");
	return snprintf(out, QEMU_PATH, "%s", path) >= QEMU_PATH ? -ENAMETOOLONG : 0;
}

/*
 * A descriptor with the exclusive lock, -EBUSY, -ENOENT: there is nothing to lock; or -errno.
 *
 * Another may have removed it since it was opened, and a third made it anew, for a machine: what is
 * locked must be what has the name.
 */
static int claim(const char *path)
{
	char file[QEMU_PATH];
	FD_SCOPED int fd = -1;
	int rc = lock_path(path, file);

	if (rc < 0)
		return rc;
	do {
		fd_close(&fd);
		fd = open(file, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0)
			return -errno;
		if (flock(fd, LOCK_EX | LOCK_NB) < 0)
			return errno == EWOULDBLOCK ? -EBUSY : -errno;
	} while (!has_name(fd, file));
	return fd_take(&fd);
}

int store_take_out(const char *path)
{
	FD_SCOPED int lock = claim(path);

	if (lock < 0 && lock != -ENOENT)
		return lock;
	if (access(path, F_OK) < 0)
		return -errno;
	store_discard(path); /* also what is damaged, and has nothing to be locked */
	return 0;
}

/* ---- looking ---- */

uint64_t store_bytes(const char *path)
{
	struct stat st;
	uint64_t bytes;
	DIR *d;
	int fd;

	if (lstat(path, &st) < 0)
		return 0;
	bytes = (uint64_t)st.st_blocks * BLOCK;
	if (!S_ISDIR(st.st_mode))
		return bytes;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	d = fd < 0 ? NULL : fdopendir(fd);
	for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d)) {
		if (e->d_name[0] != '.' &&
		    fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0)
			bytes += (uint64_t)st.st_blocks * BLOCK;
	}
	if (d)
		(void)closedir(d); /* opened for reading only */
	else
		fd_close(&fd);
	return bytes;
}

/* "12: FLOCK  ADVISORY  READ 4711 fe:01:123456 0 EOF"; who only waits for a lock has "->" there. */
static bool parse_lock(const char *line, dev_t *dev, uint64_t *ino)
{
	unsigned int major_no;
	unsigned int minor_no;

	if (sscanf(line, "%*d: FLOCK ADVISORY READ %*d %x:%x:%" SCNu64, &major_no, &minor_no,
		ino) != 3)
		return false;
	*dev = makedev(major_no, minor_no);
	return true;
}

/* How many have it locked, as the kernel tells. */
static uint32_t count_holders(const struct stat *file)
{
	FILE *f = fopen(LOCKS, "re");
	char line[256];
	uint32_t n = 0;

	while (f && fgets(line, sizeof(line), f)) {
		dev_t dev = 0;
		uint64_t ino = 0;

		n += parse_lock(line, &dev, &ino) && ino == file->st_ino && dev == file->st_dev;
	}
	if (f)
		(void)fclose(f); /* opened for reading only */
	return n;
}

/* Some file systems call their devices otherwise there: then it is known only whether anybody has
 * it. */
static uint32_t holders_of(const char *path)
{
	char file[QEMU_PATH];
	struct stat st;
	uint32_t n = 0;
	FD_SCOPED int lock = -1;

	if (lock_path(path, file) == 0 && stat(file, &st) == 0)
		n = count_holders(&st);
	if (n > 0)
		return n;
	lock = claim(path);
	return lock == -EBUSY;
}

static int add_item(struct store_census *c, const char *dir, const char *name)
{
	struct store_item item = {.is_template = store_is_entry(name, "template")};
	char path[QEMU_PATH];
	struct stat st;
	void *grown;

	if (strlen(name) >= sizeof(item.name) || qemu_path_join(path, dir, name, "") < 0 ||
	    lstat(path, &st) < 0)
		return 0; /* none of ours, or removed meanwhile */
	(void)snprintf(item.name, sizeof(item.name), "%.*s", STORE_NAME - 1, name);
	item.bytes = store_bytes(path);
	item.holders = holders_of(path);
	item.used_wall_ns = (uint64_t)st.st_mtim.tv_sec * NS_PER_S + (uint64_t)st.st_mtim.tv_nsec;
	grown = realloc(c->items, (c->count + 1) * sizeof(*c->items));
	if (!grown)
		return -ENOMEM;
	c->items = grown;
	c->items[c->count++] = item;
	c->bytes += item.bytes;
	return 0;
}

static int longest_unused_first(const void *a, const void *b)
{
	const struct store_item *x = a;
	const struct store_item *y = b;

	return x->used_wall_ns < y->used_wall_ns ? -1 : x->used_wall_ns > y->used_wall_ns;
}

int store_census_take(const struct driver_site *site, struct store_census *out)
{
	struct store_census c = {0};
	char dir[QEMU_PATH];
	int rc = qemu_store_path(site, dir);
	DIR *d = rc == 0 ? opendir(dir) : NULL;

	if (rc == 0 && !d && errno != ENOENT) /* else nothing was ever made */
		rc = -errno;
	for (struct dirent *e = d ? readdir(d) : NULL; rc == 0 && e; e = readdir(d)) {
		if (store_is_entry(e->d_name, "image") || store_is_entry(e->d_name, "template"))
			rc = add_item(&c, dir, e->d_name);
	}
	if (d)
		(void)closedir(d); /* opened for reading only */
	if (rc < 0) {
		store_census_free(&c);
		return rc;
	}
	if (c.count)
		qsort(c.items, c.count, sizeof(*c.items), longest_unused_first);
	*out = c;
	return 0;
}

void store_census_free(struct store_census *c)
{
	free(c->items);
	*c = (struct store_census){0};
}

/* ---- making room ---- */

int store_make_room(const struct driver_site *site, uint64_t most, uint64_t *left)
{
	struct store_census c = {0};
	char dir[QEMU_PATH];
	char path[QEMU_PATH];
	int rc = qemu_store_path(site, dir);

	if (rc == 0)
		rc = store_census_take(site, &c);
	if (rc < 0)
		return rc;
	for (size_t i = 0; i < c.count && c.bytes > most; i++) {
		const struct store_item *item = &c.items[i];

		if (item->holders || qemu_path_join(path, dir, item->name, "") < 0)
			continue;
		rc = store_take_out(path);
		if (rc == 0 || rc == -ENOENT)
			c.bytes -= item->bytes;
	}
	*left = c.bytes;
	store_census_free(&c);
	return 0;
}
