/*
 * tree: what is done to whole roots. `sbx-worker image`; if it dies, the root has no name yet or no
 * more, and goes.
 *
 * fts changes the working directory as it goes, and checks that a directory is the one it saw: a
 * name is always one component, looked up in a directory that is really below the root.
 */
#include "drivers/image/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#define TREE_BLOCK 512U
#define TREE_PATH 512
#define ATTRIBUTES_MAX 65536 /* the kernel's own bound */

typedef int tree_fn(const FTSENT *e, struct image_tree *t);

static int walk(const char *path, tree_fn *fn, struct image_tree *t)
{
	char root[TREE_PATH];
	char *const roots[] = {root, NULL};
	FTS *fts;
	FTSENT *e;
	int rc = 0;

	if (snprintf(root, sizeof(root), "%s", path) >= (int)sizeof(root))
		return -ENAMETOOLONG;
	fts = fts_open(roots, FTS_PHYSICAL | FTS_XDEV, NULL);
	if (!fts)
		return -errno;
	while (rc == 0 && (errno = 0, e = fts_read(fts)))
		rc = fn(e, t);
	if (rc == 0)
		rc = -errno;
	(void)fts_close(fts); /* it only walked */
	return rc;
}

static bool is_error(const FTSENT *e)
{
	return e->fts_info == FTS_DNR || e->fts_info == FTS_ERR || e->fts_info == FTS_NS;
}

static void count(const FTSENT *e, struct image_tree *t)
{
	const struct stat *st = e->fts_statp;
	uint64_t links = S_ISDIR(st->st_mode) || st->st_nlink == 0 ? 1 : st->st_nlink;

	t->size += (uint64_t)st->st_blocks * TREE_BLOCK / links + TREE_ENTRY;
	t->entries += e->fts_level > FTS_ROOTLEVEL;
}

static int measure_entry(const FTSENT *e, struct image_tree *t)
{
	/* What is gone again meanwhile does not count. */
	if (!is_error(e) && e->fts_info != FTS_DP)
		count(e, t);
	return 0;
}

int image_tree_measure(const char *path, struct image_tree *out)
{
	struct image_tree t = {0};
	int rc = walk(path, measure_entry, &t);

	if (rc == 0)
		*out = t;
	return rc;
}

static int scrub_attributes(const char *name)
{
	static char names[ATTRIBUTES_MAX]; /* one thread, used within this call only */
	static const char *const bad[] = {"user.overlay.", "trusted.overlay."};
	ssize_t n = llistxattr(name, names, sizeof(names));

	if (n < 0)
		return errno == ENOTSUP ? 0 : -errno;
	for (ssize_t at = 0; at < n; at += (ssize_t)strlen(names + at) + 1) {
		for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
			if (!strncmp(names + at, bad[i], strlen(bad[i])) &&
			    lremovexattr(name, names + at) < 0)
				return -errno;
		}
	}
	return 0;
}

static int scrub_entry(const FTSENT *e, struct image_tree *t)
{
	const struct stat *st = e->fts_statp;

	if (is_error(e))
		return e->fts_errno ? -e->fts_errno : -EIO;
	if (e->fts_info == FTS_DP)
		return 0;
	if (S_ISCHR(st->st_mode) || S_ISBLK(st->st_mode)) {
		t->devices++;
		return unlink(e->fts_accpath) < 0 ? -errno : 0;
	}
	count(e, t);
	return S_ISLNK(st->st_mode) ? 0 : scrub_attributes(e->fts_accpath);
}

int image_tree_scrub(const char *path, struct image_tree *out)
{
	struct image_tree t = {0};
	int rc = walk(path, scrub_entry, &t);

	if (rc == 0)
		*out = t;
	return rc;
}

/* A directory of an ordinary user's need not let its owner in. */
static int remove_entry(const FTSENT *e, struct image_tree *t)
{
	int rc = 0;

	(void)t;
	if (e->fts_info == FTS_NS || e->fts_info == FTS_ERR)
		return e->fts_errno == ENOENT ? 0 : -e->fts_errno;
	if (e->fts_info == FTS_D && geteuid() != 0)
		(void)chmod(e->fts_accpath, 0700); /* if not, removing says so */
	if (e->fts_info == FTS_DP || e->fts_info == FTS_DNR)
		rc = rmdir(e->fts_accpath);
	else if (e->fts_info != FTS_D)
		rc = unlink(e->fts_accpath);
	return rc < 0 && errno != ENOENT ? -errno : 0;
}

int image_tree_remove(const char *path)
{
	int rc = walk(path, remove_entry, &(struct image_tree){0});

	return rc == -ENOENT ? 0 : rc;
}
