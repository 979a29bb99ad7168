/* route: the table of endpoints that a worker serves. sbx-worker; holds no state. */
#include "worker/route.h"

#include <stdio.h>
#include <string.h>

#include "worker/conn.h"
#include "worker/exec_api.h"
#include "worker/exec_attach.h"
#include "worker/files.h"
#include "worker/files_tar.h"
#include "worker/run.h"

#define ROUTE_SEGMENTS (3 + ROUTE_DEPTH) /* v1, boxes, the id */
#define ROUTE_STORAGE 512

static const struct route routes[] = {
    {HTTP_POST, {"run"}, ROUTE_LIMIT(run_body_bytes), run_begin},
    {HTTP_POST, {"exec"}, ROUTE_LIMIT(exec_body_bytes), exec_begin_start},
    {HTTP_GET, {"executions"}, 0, exec_begin_list},
    {HTTP_GET, {"executions", ":"}, 0, exec_begin_get},
    {HTTP_DELETE, {"executions", ":"}, 0, exec_begin_kill},
    {HTTP_POST, {"executions", ":", "signal"}, EXEC_ORDER_MAX, exec_begin_signal},
    {HTTP_POST, {"executions", ":", "resize"}, EXEC_ORDER_MAX, exec_begin_resize},
    {HTTP_GET, {"executions", ":", "attach"}, 0, exec_begin_attach},
    {HTTP_GET, {"fs", "read"}, 0, files_begin_read},
    {HTTP_PUT, {"fs", "write"}, ROUTE_LIMIT(file_bytes), files_begin_write},
    {HTTP_GET, {"fs", "stat"}, 0, files_begin_stat},
    {HTTP_GET, {"fs", "list"}, 0, files_begin_list},
    {HTTP_GET, {"fs", "glob"}, 0, files_begin_glob},
    {HTTP_GET, {"fs", "grep"}, 0, files_begin_grep},
    {HTTP_POST, {"fs", "mkdir"}, FILES_BODY_MAX, files_begin_mkdir},
    {HTTP_DELETE, {"fs"}, 0, files_begin_remove},
    {HTTP_POST, {"fs", "rename"}, FILES_BODY_MAX, files_begin_rename},
    {HTTP_PUT, {"files"}, ROUTE_LIMIT(file_bytes), files_begin_upload},
    {HTTP_GET, {"files"}, 0, files_begin_download},
};

#define ROUTES (sizeof(routes) / sizeof(routes[0]))

static const char *const method_names[HTTP_METHODS] = {
    [HTTP_OTHER] = "",
    [HTTP_GET] = "GET",
    [HTTP_HEAD] = "HEAD",
    [HTTP_POST] = "POST",
    [HTTP_PUT] = "PUT",
    [HTTP_DELETE] = "DELETE",
};

/* The segments of a path after the box id; -1 when it is not about this box. */
static int route_split(
    struct conn *c, const char *path, char storage[ROUTE_STORAGE], const char *rest[ROUTE_DEPTH])
{
	const char *segments[ROUTE_SEGMENTS] = {NULL};
	int n = http_split_path(path, storage, ROUTE_STORAGE, segments, ROUTE_SEGMENTS);
	const char *id;

	if (n < 4 || strcmp(segments[0], "v1") || strcmp(segments[1], "boxes") || !*c->s->token)
		return -1; /* a box of stock has no name yet */
	id = segments[2] + strspn(segments[2], "0123456789");
	id = *id == ':' && id != segments[2] ? id + 1 : segments[2];
	if (strcmp(id, c->s->token) && (!*c->s->name || strcmp(id, c->s->name)))
		return -1;
	if (strlen(segments[2]) >= sizeof(c->id))
		return -1;
	if (!*c->id)
		(void)snprintf(c->id, sizeof(c->id), "%s", segments[2]);
	else if (strcmp(c->id, segments[2]))
		return -1;
	for (int i = 0; i < ROUTE_DEPTH; i++)
		rest[i] = 3 + i < n ? segments[3 + i] : NULL;
	return n - 3;
}

uint64_t route_body_max(const struct route *r, const struct ctl_limits *limits)
{
	uint64_t max = r->body_max;

	if (max & ROUTE_LIMITED)
		memcpy(&max, (const char *)limits + (max & ~ROUTE_LIMITED), sizeof(max));
	return max;
}

static bool route_is(const struct route *r, const char *const rest[ROUTE_DEPTH])
{
	for (int i = 0; i < ROUTE_DEPTH; i++) {
		if (!r->path[i] != !rest[i])
			return false;
		if (rest[i] && strcmp(r->path[i], ":") != 0 && strcmp(r->path[i], rest[i]) != 0)
			return false;
	}
	return true;
}

/* What stands for the ':'; a name that is too long to be one is "". */
static void route_keep_item(
    struct conn *c, const struct route *r, const char *const rest[ROUTE_DEPTH])
{
	c->item[0] = '\0';
	for (int i = 0; i < ROUTE_DEPTH && r->path[i]; i++) {
		if (!strcmp(r->path[i], ":") && strlen(rest[i]) < sizeof(c->item))
			(void)snprintf(c->item, sizeof(c->item), "%s", rest[i]);
	}
}

enum route_result route_lookup(struct conn *c, const struct http_head *h, const struct route **out)
{
	char storage[ROUTE_STORAGE];
	const char *rest[ROUTE_DEPTH];
	enum route_result result = ROUTE_ELSEWHERE;
	int n = route_split(c, h->path, storage, rest);

	/* What has become of the box of another generation, sbxd knows. */
	if (n < 0 || (h->box_generation && h->box_generation != c->s->report->work.generation))
		return ROUTE_ELSEWHERE;
	for (size_t i = 0; i < ROUTES; i++) {
		if (route_is(&routes[i], rest)) {
			if (routes[i].method == h->method) {
				*out = &routes[i];
				route_keep_item(c, &routes[i], rest);
				return ROUTE_OK;
			}
			result = ROUTE_METHOD;
		} else if (result == ROUTE_ELSEWHERE && routes[i].path[1] &&
			   !strcmp(routes[i].path[0], rest[0])) {
			result = ROUTE_UNKNOWN;
		}
	}
	return result;
}

void route_refuse(struct conn *c, enum route_result why, const struct http_head *h)
{
	char storage[ROUTE_STORAGE];
	const char *rest[ROUTE_DEPTH];
	char allow[64] = "";

	if (why != ROUTE_METHOD || route_split(c, h->path, storage, rest) < 0) {
		conn_fail(c, API_NOT_FOUND, "there is no such endpoint");
		return;
	}
	for (size_t i = 0; i < ROUTES; i++) {
		size_t len = strlen(allow);

		if (route_is(&routes[i], rest))
			(void)snprintf(allow + len, sizeof(allow) - len, "%s%s", len ? ", " : "",
			    method_names[routes[i].method]);
	}
	conn_fail_method(c, allow);
}
