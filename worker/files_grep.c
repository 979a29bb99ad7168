/* files_grep: GET fs/grep: lines in which a pattern is found. sbx-worker; only reads. */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "wire/http.h"
#include "worker/conn.h"
#include "worker/files.h"
#include "worker/files_json.h"
#include "worker/files_walk.h"

#define GREP_RESULTS 100U
#define GREP_ARGS 8

struct grep_args {
	char path[sizeof("path=") + PATH_MAX];
	char pattern[sizeof("pattern=") + FILES_PATTERN_MAX];
	char glob[sizeof("glob=") + FILES_PATTERN_MAX];
	char max[32];
	const char *argv[GREP_ARGS];
};

static void grep_put(struct walk *w, const struct entry *e)
{
	json_object_begin(&w->json, NULL);
	files_put_name(&w->json, "path", e->path, e->path_len);
	json_put_uint(&w->json, "line_number", e->u.line.number);
	json_put_bytes(&w->json, "line", e->text, e->text_len);
	json_object_end(&w->json);
}

static const struct walk_class grep_class = {
    .type = ENTRY_LINE,
    .array = "matches",
    .put = grep_put,
    .end = walk_end_search,
};

/* What is looked for. False after answering. */
static bool grep_take_patterns(
    struct grep_args *a, size_t *n, struct conn *c, const struct http_head *h)
{
	int rc = files_take_text(c, h, "pattern", a->pattern + strlen("pattern="),
	    FILES_PATTERN_MAX, API_INVALID_PATTERN);

	if (rc == 0)
		conn_fail(c, API_INVALID_PATTERN, "\"pattern\" is missing");
	if (rc <= 0)
		return false;
	a->argv[(*n)++] = a->pattern;
	rc = files_take_text(
	    c, h, "glob", a->glob + strlen("glob="), FILES_PATTERN_MAX, API_INVALID_PATTERN);
	if (rc > 0)
		a->argv[(*n)++] = a->glob;
	return rc >= 0;
}

static bool grep_take_flags(
    struct grep_args *a, size_t *n, struct conn *c, const struct http_head *h)
{
	bool literal = false;
	bool sensitive = false;

	if (files_take_flag(c, h, "literal", &literal) < 0 ||
	    files_take_flag(c, h, "case_sensitive", &sensitive) < 0)
		return false;
	if (literal)
		a->argv[(*n)++] = "literal=1";
	if (sensitive)
		a->argv[(*n)++] = "case=1";
	return true;
}

void files_begin_grep(struct conn *c, const struct http_head *h)
{
	struct grep_args a = {.path = "path=", .pattern = "pattern=", .glob = "glob="};
	uint64_t results = GREP_RESULTS;
	struct walk *w;
	size_t n = 0;

	a.argv[n++] = "grep";
	a.argv[n++] = a.path;
	a.argv[n++] = a.max;
	if (files_take_directory(c, h, a.path + strlen("path=")) < 0 ||
	    !grep_take_patterns(&a, &n, c, h) || !grep_take_flags(&a, &n, c, h) ||
	    files_take_number(c, h, "max_results", 10, 1, FILES_RESULTS_MAX, &results) < 0)
		return;
	(void)snprintf(a.max, sizeof(a.max), "max=%u", (unsigned int)results);
	w = walk_new(c, &grep_class);
	if (w)
		walk_start(w, a.argv);
}
