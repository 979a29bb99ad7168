/*
 * glob: paths that are like a pattern. sbx-files; only reads.
 *
 *     glob path=P pattern=G [dirs=1] [max=N]
 */
#include <dirent.h>
#include <stdbool.h>

#include "guest/files/files.h"
#include "guest/files/ignore.h"
#include "guest/files/match.h"
#include "guest/files/walk.h"

struct globbing {
	struct match match;
	uint64_t left; /* matches that may still be told */
	bool dirs;     /* directories count too */
	bool truncated;
};

static enum walk_verdict glob_entry(void *ctx, const struct walk_item *item)
{
	struct globbing *g = ctx;
	struct entry_path e = {.path_len = (uint32_t)item->path_len};

	if (ignore_name(item->name, item->name_len))
		return WALK_SKIP;
	if ((item->type == DT_DIR && !g->dirs) ||
	    !match_path(&g->match, item->path, item->path_len))
		return WALK_ON;
	if (g->left == 0) {
		g->truncated = true;
		return WALK_STOP;
	}
	g->left--;
	emit_record(ENTRY_PATH, &e, sizeof(e), item->path, item->path_len, NULL, 0);
	return WALK_ON;
}

static void glob_problem(void *ctx, const char *path, size_t len, int err)
{
	(void)ctx;
	emit_problem(path, len, err);
}

int glob_run(char *const *args)
{
	static const struct walk_ops ops = {
	    .entry = glob_entry,
	    .problem = glob_problem,
	    .step = emit_step,
	    .sorted = true,
	    .deepest = ENTRY_PATH_MAX,
	};
	struct globbing g = {.left = UINT64_MAX};
	const char *path = NULL;
	const char *pattern = "";
	const struct option_field fields[] = {
	    {"path", OPTION_TEXT, &path},
	    {"pattern", OPTION_TEXT, &pattern},
	    {"dirs", OPTION_FLAG, &g.dirs},
	    {"max", OPTION_NUMBER, &g.left},
	};
	int status = options_take(args, fields, sizeof(fields) / sizeof(fields[0]));
	int root;
	int err;

	if (status == 0)
		status = match_take(&g.match, "pattern", pattern);
	root = status != 0 ? -1 : root_open(path, &status);
	if (root < 0)
		return status;
	err = walk_tree(root, &ops, &g);
	if (err != 0)
		return emit_errno("cannot read", path, err);
	return emit_done(g.truncated ? ENTRY_DONE_TRUNCATED : 0, emit_problems());
}
