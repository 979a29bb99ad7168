/* route: which requests a worker serves: one table of method and path below its box. sbx-worker. */
#ifndef SBXD_WORKER_ROUTE_H
#define SBXD_WORKER_ROUTE_H

#include <stddef.h>
#include <stdint.h>

#include "wire/control.h"
#include "wire/http.h"

struct conn;

#define ROUTE_DEPTH 3 /* segments after the box id */

struct route {
	enum http_method method;
	const char *path[ROUTE_DEPTH]; /* ":" is any name, for conn->item */
	uint64_t body_max;	       /* bytes, or ROUTE_LIMIT() */
	/* Makes the operation, or answers with conn_fail(). */
	void (*begin)(struct conn *c, const struct http_head *h);
};

/* For body_max: as many as a uint64_t of struct ctl_limits says. */
#define ROUTE_LIMITED (1ULL << 63)
#define ROUTE_LIMIT(member) (ROUTE_LIMITED | offsetof(struct ctl_limits, member))

/* The longest body that a request of this route may have. */
uint64_t route_body_max(const struct route *r, const struct ctl_limits *limits);

enum route_result {
	ROUTE_OK,
	ROUTE_METHOD,	 /* known path, other method */
	ROUTE_UNKNOWN,	 /* no such path, but below one that is ours */
	ROUTE_ELSEWHERE, /* for sbxd to answer */
};

/*
 * Looks a request up. The first request of a connection fixes how its client spells the box
 * (TOKEN, or UID:TOKEN): another spelling may mean another box, and only sbxd can tell.
 */
enum route_result route_lookup(struct conn *c, const struct http_head *h, const struct route **out);

/* Answers ROUTE_METHOD and ROUTE_UNKNOWN. */
void route_refuse(struct conn *c, enum route_result why, const struct http_head *h);

#endif
