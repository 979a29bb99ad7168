/*
 * list: what is in a directory, and to some depth below. sbx-files; only reads.
 *
 *     list path=P [depth=N] [max=N]
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

#include "guest/files/files.h"
#include "guest/files/walk.h"
#include "guest/path.h"

struct list {
	uint64_t depth;
	uint64_t left; /* entries that may still be told */
	bool truncated;
};

/* The text of a symbolic link. Its length, or -1 with errno. */
static ssize_t read_link(const struct walk_item *item, char text[ENTRY_PATH_MAX + 1])
{
	ssize_t n = readlinkat(item->dir, item->name, text, ENTRY_PATH_MAX + 1);

	if (n <= (ssize_t)ENTRY_PATH_MAX)
		return n;
	errno = ENAMETOOLONG;
	return -1;
}

/* Tells one entry. 0 or an errno. */
static int list_item(const struct walk_item *item)
{
	char link[ENTRY_PATH_MAX + 1];
	ssize_t link_len = 0;
	struct entry_item e;
	struct stat st;

	if (fstatat(item->dir, item->name, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return errno;
	if (S_ISLNK(st.st_mode))
		link_len = read_link(item, link);
	if (link_len < 0 && (errno == ENOENT || errno == EINVAL)) /* EINVAL: replaced meanwhile */
		return ENOENT;
	if (link_len < 0) { /* it is there, and nobody shall know where it leads */
		emit_problem(item->path, item->path_len, errno);
		link_len = 0;
	}
	e = (struct entry_item){
	    .size = (uint64_t)st.st_size,
	    .mtime_ns =
		(int64_t)((uint64_t)st.st_mtim.tv_sec * 1000000000U + (uint64_t)st.st_mtim.tv_nsec),
	    .mode = st.st_mode,
	    .uid = st.st_uid,
	    .gid = st.st_gid,
	    .path_len = (uint32_t)item->path_len,
	    .link_len = (uint32_t)link_len,
	};
	emit_record(ENTRY_ITEM, &e, sizeof(e), item->path, item->path_len, link, (size_t)link_len);
	return 0;
}

static enum walk_verdict list_entry(void *ctx, const struct walk_item *item)
{
	struct list *l = ctx;
	int err;

	if (l->left == 0) {
		l->truncated = true;
		return WALK_STOP;
	}
	err = list_item(item);
	if (err == 0)
		l->left--;
	else if (!path_is_gone(err))
		emit_problem(item->path, item->path_len, err);
	return item->depth < l->depth ? WALK_ON : WALK_SKIP;
}

static void list_problem(void *ctx, const char *path, size_t len, int err)
{
	(void)ctx;
	emit_problem(path, len, err);
}

int list_run(char *const *args)
{
	static const struct walk_ops ops = {
	    .entry = list_entry,
	    .problem = list_problem,
	    .step = emit_step,
	    .sorted = true,
	    .deepest = ENTRY_PATH_MAX,
	};
	struct list l = {.depth = 1, .left = UINT64_MAX};
	const char *path = NULL;
	const struct option_field fields[] = {
	    {"path", OPTION_TEXT, &path},
	    {"depth", OPTION_NUMBER, &l.depth},
	    {"max", OPTION_NUMBER, &l.left},
	};
	int status = options_take(args, fields, sizeof(fields) / sizeof(fields[0]));
	int root = status != 0 ? -1 : root_open(path, &status);

	int err;

	if (root < 0)
		return status;
	err = walk_tree(root, &ops, &l);
	if (err != 0)
		return emit_errno("cannot read", path, err);
	return emit_done(l.truncated ? ENTRY_DONE_TRUNCATED : 0, emit_problems());
}
