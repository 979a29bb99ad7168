/*
 * files_remove: DELETE fs with recursive=1: a directory with all that is in it. sbx-worker. If we
 * die here, a part of it is gone.
 */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "worker/conn.h"
#include "worker/files.h"
#include "worker/files_json.h"
#include "worker/files_walk.h"

static void remove_end(struct walk *w, const struct entry_done *done)
{
	json_put_uint(&w->json, "removed", done->count);
}

static const struct walk_class remove_class = {
    .type = ENTRY_NONE,
    .end = remove_end,
};

void files_remove_tree(struct conn *c, const char *path)
{
	char option[sizeof("path=") + PATH_MAX];
	const char *const argv[] = {"remove", option, NULL};
	struct walk *w = walk_new(c, &remove_class);

	if (!w)
		return;
	(void)snprintf(option, sizeof(option), "path=%s", path);
	files_put_name(&w->json, "path", path, strlen(path));
	walk_start(w, argv);
}
