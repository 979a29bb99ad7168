/* routes: which request goes where. Runs in sbxd; holds no state. */
#include "supervisor/routes.h"

#include <bsd/string.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lib/fault.h"
#include "shm/slot.h"
#include "supervisor/access.h"
#include "supervisor/client.h"
#include "supervisor/sbxd.h"
#include "supervisor/worker_link.h"

#define GET (1U << HTTP_GET)
#define HEAD (1U << HTTP_HEAD)
#define POST (1U << HTTP_POST)
#define DELETE (1U << HTTP_DELETE)
#define ROUTE_DEPTH 12
#define ROUTE_RETRY_AFTER 1 /* seconds, for a connection to a box to end */

static const struct route routes[] = {
    {.methods = POST, .segments = "acquire", .fn = api_acquire},
    {.methods = POST, .segments = "boxes/:/release", .fn = api_release},
    {.segments = "boxes/:/run", .handed_over = true},
    {.segments = "boxes/:/exec", .handed_over = true},
    {.segments = "boxes/:/executions", .handed_over = true},
    {.segments = "boxes/:/executions/*", .handed_over = true},
    {.segments = "boxes/:/fs", .handed_over = true},
    {.segments = "boxes/:/fs/*", .handed_over = true},
    {.segments = "boxes/:/files", .handed_over = true},
    {.methods = GET, .segments = "boxes", .fn = api_list_boxes},
    {.methods = POST, .segments = "boxes", .fn = api_make_box},
    {.methods = POST, .segments = "boxes/:/start", .fn = api_start_box},
    {.methods = POST, .segments = "boxes/:/stop", .fn = api_stop_box},
    {.methods = GET | HEAD, .segments = "boxes/:", .fn = api_get_box},
    {.methods = DELETE, .segments = "boxes/:", .fn = api_delete_box},
    {.methods = GET | HEAD, .segments = "events", .fn = api_events},
    {.methods = GET, .segments = "pool", .fn = api_get_pool},
    {.methods = POST, .segments = "pool/reset", .fn = api_reset_pool},
    {.methods = POST, .segments = "shutdown", .fn = api_shutdown},
    {.methods = GET, .segments = "config", .open = true, .fn = api_config},
    {.methods = GET, .segments = "me", .fn = api_me},
    {.methods = GET, .segments = "metrics", .fn = api_metrics},
    {.methods = GET, .segments = "metrics", .at_root = true, .fn = api_openmetrics},
    {.methods = GET, .segments = "boxes/:/metrics", .fn = api_box_metrics},
    {.methods = GET, .segments = "images", .fn = api_list_images},
    {.methods = POST, .segments = "images/pull", .fn = api_pull_image},
    {.methods = POST, .segments = "images/prune", .fn = api_prune_images},
    {.methods = GET | HEAD, .segments = "images/:", .fn = api_get_image},
    {.methods = DELETE, .segments = "images/:", .fn = api_remove_image},
    {.methods = GET, .segments = "templates", .fn = api_list_templates},
    {.methods = POST, .segments = "templates", .fn = api_build_template},
    {.methods = DELETE, .segments = "templates/:", .fn = api_remove_template},
    {.methods = GET | POST, .segments = "boxes/:/snapshots", .unsupported = "snapshots"},
    {.methods = GET | DELETE, .segments = "boxes/:/snapshots/:", .unsupported = "snapshots"},
    {.methods = POST, .segments = "boxes/:/snapshots/:/restore", .unsupported = "snapshots"},
    {.methods = POST, .segments = "boxes/:/clone", .unsupported = "cloning a box"},
    {.methods = POST, .segments = "boxes/:/export", .unsupported = "exporting a box"},
    {.methods = POST, .segments = "boxes/import", .unsupported = "importing a box"},
    {.methods = POST, .segments = "boxes/:/network/tunnel", .unsupported = "network tunnels"},
};

static const char *const method_names[HTTP_METHODS] = {
    [HTTP_GET] = "GET",
    [HTTP_HEAD] = "HEAD",
    [HTTP_POST] = "POST",
    [HTTP_PUT] = "PUT",
    [HTTP_DELETE] = "DELETE",
};

static int fail(struct route_error *e, enum api_error error, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

static int fail(struct route_error *e, enum api_error error, const char *fmt, ...)
{
	va_list ap;

	e->error = error;
	va_start(ap, fmt);
	(void)vsnprintf(e->text, sizeof(e->text), fmt, ap); /* a cut text is still a text */
	va_end(ap);
	return -1;
}

/* Does the pattern match the path's segments? The first of its ids goes to *id. */
static bool pattern_matches(
    const char *pattern, const char *const *segments, int count, const char **id)
{
	int i = 0;

	while (*pattern) {
		size_t len = strcspn(pattern, "/");

		if (len == 1 && *pattern == '*')
			return i < count;
		if (i >= count)
			return false;
		if (len == 1 && *pattern == ':')
			*id = **id ? *id : segments[i];
		else if (strlen(segments[i]) != len || memcmp(segments[i], pattern, len) != 0)
			return false;
		i++;
		pattern += len + (pattern[len] == '/');
	}
	return i == count;
}

/* Methods of the path, as the value of an Allow header; NULL when only the worker knows. */
static const char *allow_value(uint32_t methods, struct route_error *error)
{
	size_t len = 0;

	for (size_t i = 0; i < HTTP_METHODS; i++) {
		if (method_names[i] && (methods & (1U << i)))
			len += (size_t)snprintf(error->methods + len, sizeof(error->methods) - len,
			    "%s%s", len ? ", " : "", method_names[i]);
	}
	return len ? error->methods : NULL;
}

/* A client that was given an empty name asks so: there is nothing of that name. */
static bool ends_in_slash(const char *path)
{
	size_t len = strlen(path);

	return len > 1 && path[len - 1] == '/' && path[len - 2] != '/';
}

int route_find(const struct http_head *head, struct route_match *out, struct route_error *error)
{
	const char *segments[ROUTE_DEPTH];
	char storage[ROUTE_TEXT];
	uint32_t allowed = 0;
	int count = http_split_path(head->path, storage, sizeof(storage), segments, ROUTE_DEPTH);

	bool root;

	if (count < 0 && ends_in_slash(head->path))
		return fail(error, API_NOT_FOUND, "there is nothing at this path");
	if (count < 0)
		return fail(error, API_INVALID_ARGUMENT, "the path is not valid");
	root = count == 0 || strcmp(segments[0], "v1") != 0;
	for (size_t i = 0; i < sizeof(routes) / sizeof(routes[0]); i++) {
		const char *id = "";

		if (routes[i].at_root != root ||
		    !pattern_matches(routes[i].segments, segments + !root, count - !root, &id))
			continue;
		allowed |= routes[i].methods;
		if (!routes[i].handed_over && !(routes[i].methods & (1U << head->method)))
			continue;
		if (strlen(id) >= sizeof(out->id))
			return fail(error, API_NOT_FOUND, "box not found");
		out->route = &routes[i];
		(void)strlcpy(out->id, id, sizeof(out->id));
		return 0;
	}
	if (!allowed)
		return fail(error, API_NOT_FOUND, "there is nothing at this path");
	error->allow = allow_value(allowed, error);
	return fail(error, API_METHOD, "the method %s is not allowed here",
	    method_names[head->method] ? method_names[head->method] : "of this request");
}

int route_check_generation(struct sbxd *s, const struct client *c, const struct route_match *m,
    const struct http_head *head, struct route_error *error)
{
	const struct pool_box *b = NULL;

	if (head->box_generation && strncmp(m->route->segments, "boxes/:", 7) == 0)
		b = access_find_box(s, c, m->id);
	if (!b || b->generation == head->box_generation)
		return 0; /* where there is none, its route says so */
	return fail(error, API_STALE_GENERATION,
	    "the box is another one now: its generation is %llu",
	    (unsigned long long)b->generation);
}

static bool state_takes_requests(uint32_t state)
{
	return state == SLOT_ACTIVE || state == SLOT_WARM || state == SLOT_CHECKING;
}

void route_hand_over(struct sbxd *s, struct client *c, const struct route_match *m,
    const void *bytes, size_t n, struct route_error *error)
{
	const struct pool_box *b = access_find_box(s, c, m->id);
	struct worker *w;
	int rc;

	if (!b) {
		(void)fail(error, API_NOT_FOUND, "box not found: %s", m->id);
		return;
	}
	w = s->workers[b->slot];
	if (!w || !state_takes_requests(b->state)) {
		if (b->state == SLOT_CLOSING)
			(void)fail(
			    error, API_BOX_DIED, "the box is being closed: %s", b->last_error);
		else if (b->flags & SLOT_FLAG_SAVED)
			(void)fail(error, API_WORKER_CRASHED,
			    "the box's worker ended, and another takes the box over");
		else
			(void)fail(
			    error, API_INVALID_STATE, "the box is %s", slot_state_name(b->state));
		return;
	}
	if (worker_has_conns(w, s->config.limits.box_connections)) {
		error->retry_after = ROUTE_RETRY_AFTER;
		(void)fail(error, API_TOO_MANY, "the box has %u connections, and takes no more",
		    s->config.limits.box_connections);
		return;
	}
	if (!pool_use(s->pool, b->slot, b->generation)) {
		(void)fail(error, API_INVALID_STATE, "the box is being stopped");
		return;
	}
	publish_changed(s); /* a box that is used must not be a stopped one to our successor */
	FAULT_POINT("sbxd.handover.used");
	client_mark_owner(c, b->uid);
	rc = worker_hand_over(w, c, bytes, n);
	if (rc == -EMSGSIZE)
		(void)fail(error, API_HEAD_TOO_LARGE, "the request does not fit a hand-over");
	else if (rc < 0)
		(void)fail(error, API_WORKER_CRASHED, "the box's worker does not answer");
}
