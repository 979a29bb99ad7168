/*
 * dial: connecting to the service, wherever it listens. sbxctl, sbxtop, sbx-mcp.
 */
#ifndef SBXD_TOOLS_DIAL_H
#define SBXD_TOOLS_DIAL_H

#include "lib/err.h"
#include "lib/paths.h"

/* What decides where; all pointers are the caller's, each may be NULL. */
struct dial_where {
	const char *socket;   /* this one and no other */
	const char *instance; /* paths.h */
	char *const *env;
};

/* Where the service of our own uid is. 0 or -errno with *err. */
int dial_paths(const struct dial_where *where, struct paths *out, struct err *err);

/*
 * A connection to the Unix socket at `path`, non-blocking and the caller's. Never waits: -EAGAIN
 * when more clients wait there than it takes; or -errno, both with *err.
 */
int dial_socket(const char *path, struct err *err);

/*
 * The same to the service: where->socket, or our own instance's, or root's. Below /tmp, where
 * anybody could listen, only one of our own uid (-EPERM).
 */
int dial_service(const struct dial_where *where, struct err *err);

#endif
