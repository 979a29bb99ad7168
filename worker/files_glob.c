/* files_glob: GET fs/glob: paths that are like a pattern. sbx-worker; only reads. */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "lib/utf8.h"
#include "wire/http.h"
#include "worker/conn.h"
#include "worker/files.h"
#include "worker/files_json.h"
#include "worker/files_walk.h"

#define GLOB_RESULTS 200U

/* A match is a text. What is none is told once more, at the end. */
static void glob_put(struct walk *w, const struct entry *e)
{
	char text[PATH_MAX];

	if (utf8_valid_prefix(e->path, e->path_len, NULL) == e->path_len) {
		json_put_bytes(&w->json, NULL, e->path, e->path_len);
		return;
	}
	if (!walk_list_begin(&w->encoded)) {
		walk_truncate(w);
		return;
	}
	json_put_uint(&w->encoded.json, "index", w->count);
	json_put_base64(&w->encoded.json, "path_base64", e->path, e->path_len);
	walk_list_end(&w->encoded);
	(void)snprintf(text, sizeof(text), "%.*s", (int)e->path_len, (const char *)e->path);
	json_put_string(&w->json, NULL, text);
}

static const struct walk_class glob_class = {
    .type = ENTRY_PATH,
    .array = "matches",
    .put = glob_put,
    .end = walk_end_search,
};

void files_begin_glob(struct conn *c, const struct http_head *h)
{
	char path[sizeof("path=") + PATH_MAX] = "path=";
	char pattern[sizeof("pattern=") + FILES_PATTERN_MAX] = "pattern=";
	char max[32];
	const char *argv[] = {"glob", path, pattern, max, NULL, NULL};
	uint64_t results = GLOB_RESULTS;
	bool dirs = false;
	struct walk *w;
	int rc;

	if (files_take_directory(c, h, path + strlen("path=")) < 0)
		return;
	rc = files_take_text(
	    c, h, "pattern", pattern + strlen("pattern="), FILES_PATTERN_MAX, API_INVALID_PATTERN);
	if (rc == 0)
		conn_fail(c, API_INVALID_PATTERN, "\"pattern\" is missing");
	if (rc <= 0 || files_take_flag(c, h, "include_dirs", &dirs) < 0 ||
	    files_take_number(c, h, "max_results", 10, 1, FILES_RESULTS_MAX, &results) < 0)
		return;
	(void)snprintf(max, sizeof(max), "max=%u", (unsigned int)results);
	if (dirs)
		argv[4] = "dirs=1";
	w = walk_new(c, &glob_class);
	if (w)
		walk_start(w, argv);
}
