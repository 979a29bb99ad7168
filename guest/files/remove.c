/*
 * remove: a file, or a directory with all that is in it. sbx-files; if it dies, a part is gone.
 *
 *     remove path=P
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "guest/files/files.h"
#include "guest/files/walk.h"
#include "guest/path.h"

#define REMOVE_AGAIN_MAX 8 /* somebody may add to the tree while we empty it */

struct removal {
	const char *root; /* its path */
	uint64_t removed;
	int err;	 /* of the first failure */
	char first[512]; /* where it was */
};

static void remove_failed(struct removal *r, const char *path, size_t len, int err)
{
	if (r->err != 0)
		return;
	r->err = err;
	(void)snprintf(r->first, sizeof(r->first), "%s%s%.*s", r->root, len > 0 ? "/" : "",
	    (int)(len < sizeof(r->first) ? len : sizeof(r->first)), path);
}

/* What is gone already was to be removed. */
static void remove_one(struct removal *r, const struct walk_item *item, int flags)
{
	if (unlinkat(item->dir, item->name, flags) == 0)
		r->removed++;
	else if (errno != ENOENT)
		remove_failed(r, item->path, item->path_len, errno);
}

static enum walk_verdict remove_entry(void *ctx, const struct walk_item *item)
{
	if (item->type != DT_DIR)
		remove_one(ctx, item, 0);
	return WALK_ON;
}

static void remove_left(void *ctx, const struct walk_item *item)
{
	remove_one(ctx, item, AT_REMOVEDIR);
}

static void remove_problem(void *ctx, const char *path, size_t len, int err)
{
	remove_failed(ctx, path, len, err);
}

/* Empties the directory and removes it. 0 or an errno. */
static int remove_tree(struct removal *r, int parent, const char *name)
{
	static const struct walk_ops ops = {
	    .entry = remove_entry,
	    .left = remove_left,
	    .problem = remove_problem,
	    .step = emit_step,
	    .deepest = SIZE_MAX,
	};
	int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int err;

	if (fd < 0)
		return errno;
	err = walk_tree(fd, &ops, r);
	if (err == 0)
		err = r->err;
	if (err != 0)
		return err;
	if (unlinkat(parent, name, AT_REMOVEDIR) != 0)
		return errno;
	r->removed++;
	return 0;
}

/* 0 or an errno. */
static int remove_all(struct removal *r, int parent, const char *name)
{
	int err = 0;

	if (unlinkat(parent, name, 0) == 0) {
		r->removed++;
		return 0;
	}
	if (errno != EISDIR)
		return errno;
	for (int i = 0; i < REMOVE_AGAIN_MAX; i++) {
		r->err = 0;
		err = remove_tree(r, parent, name);
		if (err != ENOTEMPTY && err != EEXIST)
			break;
	}
	return err;
}

int remove_run(char *const *args)
{
	struct removal r = {.root = NULL};
	const struct option_field fields[] = {{"path", OPTION_TEXT, &r.root}};
	int status = options_take(args, fields, sizeof(fields) / sizeof(fields[0]));
	const char *name;
	int parent = status != 0 ? -1 : root_open_parent(r.root, &name, &status);
	int err;

	if (parent < 0)
		return status;
	err = remove_all(&r, parent, name);
	if (err != 0)
		return emit_errno("cannot remove", r.err != 0 ? r.first : r.root, err);
	return emit_done(0, r.removed);
}
