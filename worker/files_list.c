/* files_list: GET fs/list: what is in a directory. sbx-worker; only reads. */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "wire/http.h"
#include "worker/conn.h"
#include "worker/files.h"
#include "worker/files_json.h"
#include "worker/files_walk.h"

#define LIST_DEPTH 1U
#define LIST_RESULTS 10000U

static void list_put(struct walk *w, const struct entry *e)
{
	const struct entry_item *i = &e->u.item;
	const struct files_stat st = {
	    .size = i->size,
	    .mtime_ns = i->mtime_ns,
	    .mode = i->mode,
	    .uid = i->uid,
	    .gid = i->gid,
	};

	json_object_begin(&w->json, NULL);
	files_put_name(&w->json, "path", e->path, e->path_len);
	files_put_stat(&w->json, &st);
	if (e->text_len)
		files_put_name(&w->json, "link_target", e->text, e->text_len);
	json_object_end(&w->json);
}

static const struct walk_class list_class = {
    .type = ENTRY_ITEM,
    .array = "entries",
    .put = list_put,
    .end = walk_end_search,
};

void files_begin_list(struct conn *c, const struct http_head *h)
{
	char path[sizeof("path=") + PATH_MAX] = "path=";
	char depth[32];
	char max[32];
	const char *const argv[] = {"list", path, depth, max, NULL};
	uint64_t levels = LIST_DEPTH;
	uint64_t results = LIST_RESULTS;
	struct walk *w;

	if (files_take_directory(c, h, path + strlen("path=")) < 0 ||
	    files_take_number(c, h, "depth", 10, 1, FILES_DEPTH_MAX, &levels) < 0 ||
	    files_take_number(c, h, "max_results", 10, 1, FILES_ENTRIES_MAX, &results) < 0)
		return;
	(void)snprintf(depth, sizeof(depth), "depth=%u", (unsigned int)levels);
	(void)snprintf(max, sizeof(max), "max=%u", (unsigned int)results);
	w = walk_new(c, &list_class);
	if (w)
		walk_start(w, argv);
}
