/* image: disks of root directories. Made by the janitor and `sbx-worker image`, opened by workers;
 * what is half done is not found again. */
#include "drivers/qemu/image.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "drivers/qemu/program.h"
#include "drivers/qemu/room.h"
#include "drivers/qemu/site.h"
#include "drivers/qemu/store.h"
#include "lib/fault.h"
#include "lib/fd.h"

#define MIB (1024ULL * 1024ULL)
#define EXT4_ROOM_MIB 32U /* for what is not files */
#define TRIES 3		  /* with a disk that is removed as soon as it is there */

int image_root(
    const struct driver_site *site, const char *image, char out[QEMU_PATH], struct err *err)
{
	if (!site->root)
		return err_set(err, EINVAL,
		    "image %s: micro-VMs are made of an image with a root of its own", image);
	if (!strcmp(site->root, "/"))
		return err_set(err, EINVAL, "image /: give a directory that holds a root");
	if (strlen(site->root) >= QEMU_PATH)
		return err_set(err, ENAMETOOLONG, "image %s: its root's path is too long", image);
	(void)snprintf(out, QEMU_PATH, "%s", site->root);
	return 0;
}

/* What a directory holds, as numbers. */
struct tree {
	uint64_t stamp; /* another one when any file is */
	uint64_t entries;
	uint64_t bytes;
};

static uint64_t mix(uint64_t h, uint64_t word)
{
	h = (h ^ word) * 0x9e3779b97f4a7c15ULL;
	return h ^ h >> 32;
}

/* Added up, so that the order of a directory's entries does not count. */
static void tree_add(struct tree *t, const FTSENT *e, size_t skip)
{
	const struct stat *st = e->fts_statp;
	const uint64_t words[] = {st->st_mode, st->st_uid, st->st_gid, st->st_ino,
	    S_ISDIR(st->st_mode) ? 0 : (uint64_t)st->st_size, (uint64_t)st->st_mtim.tv_sec,
	    (uint64_t)st->st_mtim.tv_nsec, (uint64_t)st->st_ctim.tv_sec,
	    (uint64_t)st->st_ctim.tv_nsec};
	uint64_t h = 0;

	for (const char *c = e->fts_path + skip; *c; c++)
		h = mix(h, (unsigned char)*c);
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		h = mix(h, words[i]);
	t->stamp += h;
	t->entries++;
	if (S_ISREG(st->st_mode))
		t->bytes += (uint64_t)st->st_size;
}

static int tree_read(const char *root, struct tree *out)
{
	char path[QEMU_PATH];
	char *const roots[] = {path, NULL};
	struct tree t = {0};
	FTS *fts;
	FTSENT *e;
	int rc = 0;

	(void)snprintf(path, sizeof(path), "%s", root);
	fts = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
	if (!fts)
		return -errno;
	errno = 0;
	while (rc == 0 && (e = fts_read(fts))) {
		if (e->fts_info == FTS_DNR || e->fts_info == FTS_ERR || e->fts_info == FTS_NS)
			rc = -e->fts_errno;
		else if (e->fts_info != FTS_DP)
			tree_add(&t, e, strlen(root));
	}
	if (rc == 0)
		rc = -errno;
	(void)fts_close(fts); /* it only read */
	*out = t;
	return rc;
}

/* The programs that can do it, the better first: erofs is made to be read only, and to be shared.
 */
enum maker {
	MAKER_EROFS,
	MAKER_EXT4,
	MAKERS,
};

static const char *const maker_names[MAKERS] = {
    [MAKER_EROFS] = "mkfs.erofs",
    [MAKER_EXT4] = "mke2fs",
};

static int find_maker(char path[QEMU_PATH], struct err *err)
{
	for (int i = 0; i < MAKERS; i++) {
		if (program_find(maker_names[i], path, QEMU_PATH) == 0)
			return i;
	}
	return err_set(err, ENOENT, "there is neither mkfs.erofs nor mke2fs: install erofs-utils");
}

int image_probe(struct err *err)
{
	char path[QEMU_PATH];
	int maker = find_maker(path, err);

	return maker < 0 ? maker : 0;
}

static int run_maker(int maker, const char *program, const char *root, const struct tree *t,
    const char *to, uint64_t deadline_ns, struct err *err)
{
	char mib[32];
	const char *const erofs[] = {program, to, root, NULL};
	const char *const ext4[] = {program, "-q", "-F", "-t", "ext4", "-O", "^has_journal", "-m",
	    "0", "-i", "8192", "-d", root, to, mib, NULL};

	(void)snprintf(mib, sizeof(mib), "%lluM",
	    (unsigned long long)((t->bytes + t->entries * 8192) / MIB * 5 / 4 + EXT4_ROOM_MIB));
	return program_run(maker == MAKER_EROFS ? erofs : ext4, -1, -1, deadline_ns, err);
}

/* The key of a directory's disk, and who would make it. */
struct disk {
	uint8_t digest[DIGEST_LEN];
	struct tree tree;
	int maker;
	char program[QEMU_PATH];
};

static int disk_look(const char *root, struct disk *d, struct err *err)
{
	int rc;

	d->tree = (struct tree){0};
	d->maker = find_maker(d->program, err);
	if (d->maker < 0)
		return d->maker;
	rc = tree_read(root, &d->tree);
	if (rc == 0) {
		const struct digest_part parts[] = {{"image 1", 7}, {&d->maker, sizeof(d->maker)},
		    {root, strlen(root)}, {&d->tree, sizeof(d->tree)}};

		rc = digest_sha256(parts, sizeof(parts) / sizeof(parts[0]), d->digest);
	}
	return rc < 0 ? err_sys(err, -rc, "read the image %s", root) : 0;
}

int image_disk_path(
    const struct driver_site *site, const char *root, char out[QEMU_PATH], struct err *err)
{
	char dir[QEMU_PATH];
	char key[STORE_KEY];
	struct disk d;
	int rc = disk_look(root, &d, err);

	if (rc < 0)
		return rc;
	store_key(d.digest, key);
	rc = qemu_store_path(site, dir);
	if (rc == 0)
		rc = qemu_path_join(out, dir, "image-", key);
	return rc < 0 ? err_sys(err, -rc, "the store in %s", site->state_dir) : 0;
}

int image_make_disk(
    const struct driver_site *site, struct qemu_plan *plan, uint64_t deadline_ns, struct err *err)
{
	struct store_entry e;
	struct disk d;
	int rc = disk_look(plan->root, &d, err);

	if (rc == 0)
		rc = store_get(site, "image", d.digest, deadline_ns, &e, err);
	if (rc < 0)
		return rc;
	(void)snprintf(plan->disk, sizeof(plan->disk), "%s", e.path);
	if (rc == 1)
		return 0;
	rc = run_maker(d.maker, d.program, plan->root, &d.tree, e.new_path, deadline_ns, err);
	FAULT_POINT("driver.qemu.prepare.image");
	if (rc == 0)
		rc = room_make(site, plan->cache_bytes, store_bytes(e.new_path), err);
	if (rc == 0)
		return store_keep(&e, err);
	store_give_up(&e);
	return rc;
}

int image_open_disk(const struct qemu_plan *plan, uint64_t deadline_ns, struct err *err)
{
	FD_SCOPED int fd = open(plan->disk, O_RDONLY | O_CLOEXEC);
	int rc = fd < 0 ? -errno : store_hold(fd, plan->disk, deadline_ns);

	if (rc == -ENOENT || rc == -EIDRM) /* it was in nobody's use, and made room */
		return err_set(err, ESTALE, "the image's disk %s is gone", plan->disk);
	if (rc < 0)
		return err_sys(err, -rc, "read the image's disk %s", plan->disk);
	store_touch(plan->disk);
	return fd_take(&fd);
}

int image_need_disk(
    const struct driver_site *site, struct qemu_plan *plan, uint64_t deadline_ns, struct err *err)
{
	int rc = image_open_disk(plan, deadline_ns, err);

	for (int i = 0; rc == -ESTALE && i < TRIES; i++) {
		rc = image_make_disk(site, plan, deadline_ns, err);
		if (rc == 0)
			rc = image_open_disk(plan, deadline_ns, err);
	}
	return rc;
}
