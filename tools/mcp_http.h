/*
 * mcp_http: HTTP/1.1 requests over a Unix socket, in the loop. sbx-mcp.
 *
 * One connection, one request at a time. Every wait has a bound: when neither side moved a byte for
 * as long as the request says, it fails. The service ends what it does for a connection that
 * closes.
 */
#ifndef SBXD_TOOLS_MCP_HTTP_H
#define SBXD_TOOLS_MCP_HTTP_H

#include <stddef.h>
#include <stdint.h>

#include "lib/err.h"
#include "lib/loop.h"
#include "wire/http.h"

struct mcp_http;

struct mcp_http_request {
	const char *method;
	const char *path;	 /* escaped, with its query */
	const char *accept;	 /* NULL: anything */
	const char *traceparent; /* NULL: none; a sound one */
	uint64_t box_generation; /* of the box that is meant; 0: none is, or any */
	const void *body;	 /* NULL: none, unless body_fd */
	size_t body_len;
	int body_fd; /* -1, or what has the body: a regular file, the caller's, read from its offset
		      */
	uint64_t body_fd_len; /* bytes */
	uint64_t patience;    /* ns */
};

/*
 * What happens, in this order. Any of them may close the connection or send the next request; only
 * gone() comes when no request is under way, too.
 */
struct mcp_http_events {
	void (*head)(void *ctx, const struct http_head *head);
	void (*body)(void *ctx, const uint8_t *bytes, size_t n);
	void (*end)(void *ctx); /* the answer is complete */
	void (*gone)(
	    void *ctx, const struct err *err); /* no answer will come; still to be closed */
};

/*
 * Takes over the connected, non-blocking fd, also on failure. events and ctx must outlive it. 0 or
 * -errno with *err; *out is the caller's to mcp_http_close().
 */
int mcp_http_open(struct loop *l, int fd, const struct mcp_http_events *events, void *ctx,
    struct mcp_http **out, struct err *err);

/* Begins a request; the answer before must be complete. The body is copied. 0 or -errno with *err.
 */
int mcp_http_send(struct mcp_http *h, const struct mcp_http_request *req, struct err *err);

/* Bytes of the body that were sent so far. */
uint64_t mcp_http_sent(const struct mcp_http *h);

/* Harmless on NULL. */
void mcp_http_close(struct mcp_http *h);

#endif
