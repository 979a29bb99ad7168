/*
 * routes: which request goes where. One const table; a new endpoint is one row and one function.
 */
#ifndef SBXD_SUPERVISOR_ROUTES_H
#define SBXD_SUPERVISOR_ROUTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/api_error.h"
#include "wire/http.h"

#define ROUTE_TEXT 512 /* decoded path */

struct client;
struct route_call;
struct sbxd;

typedef void route_fn(struct sbxd *s, struct client *c, const struct route_call *call);

struct route {
	uint32_t methods;     /* bits 1 << enum http_method */
	const char *segments; /* after /v1: words, ':' for an id or a name, '*' for anything more */
	bool at_root;	      /* not after /v1 */
	bool open;	      /* for anybody, also without a token */
	bool handed_over;     /* served by the box's worker; it knows the methods */
	const char *unsupported; /* what it would do, and no driver of ours can */
	route_fn *fn;		 /* NULL when handed over or not supported */
};

struct route_match {
	const struct route *route;
	char id[160]; /* the first ':' of segments, "" without */
};

struct route_error {
	enum api_error error;
	const char *allow;	  /* for API_METHOD: the methods there are; points into methods */
	const char *authenticate; /* for API_UNAUTHENTICATED: how */
	double retry_after;	  /* seconds; 0: there is no telling */
	char text[200];
	char methods[40];
};

/* One request, complete. All pointers are valid during the call only. */
struct route_call {
	const struct route_match *match;
	const struct http_head *head;
	const uint8_t *body; /* NULL when empty */
	size_t body_len;
};

/* Finds the route of a request. 0, or -1 with *error. */
int route_find(const struct http_head *head, struct route_match *out, struct route_error *error);

/* A request that names the generation of its box is for no other. 0, or -1 with *error. */
int route_check_generation(struct sbxd *s, const struct client *c, const struct route_match *m,
    const struct http_head *head, struct route_error *error);

/* Gives the connection to the worker of the box it names; error->error is set when it could not,
 * and c is untouched. */
void route_hand_over(struct sbxd *s, struct client *c, const struct route_match *m,
    const void *bytes, size_t n, struct route_error *error);

/* Says that a route is not supported; or, first of all, that its box is not there. */
void api_unsupported(const struct sbxd *s, const struct client *c, const struct route_match *m,
    struct route_error *error);

/* Handlers; each answers c exactly once, now or (client_wait) later. */
route_fn api_acquire;
route_fn api_release;
route_fn api_list_boxes;
route_fn api_get_box;
route_fn api_delete_box;
route_fn api_make_box;
route_fn api_start_box;
route_fn api_stop_box;
route_fn api_events;
route_fn api_get_pool;
route_fn api_reset_pool;
route_fn api_shutdown;
route_fn api_config;
route_fn api_me;
route_fn api_metrics;
route_fn api_box_metrics;
route_fn api_openmetrics;
route_fn api_list_images;
route_fn api_get_image;
route_fn api_prune_images;
route_fn api_pull_image;
route_fn api_remove_image;
route_fn api_list_templates;
route_fn api_build_template;
route_fn api_remove_template;

#endif
