/*
 * httpc: a blocking HTTP/1.1 client over a Unix socket, with a deadline on every wait. sbxctl.
 */
#ifndef SBXD_TOOLS_HTTPC_H
#define SBXD_TOOLS_HTTPC_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/buf.h"
#include "lib/err.h"
#include "tools/dial.h"
#include "wire/http.h"

struct httpc; /* one connection */

/* Gives the next bytes of a body: at most `size` into out. Their number, 0 at the end, or -errno
 * with *err, which ends the request. */
typedef ssize_t httpc_fill_fn(void *ctx, uint8_t *out, size_t size, struct err *err);

#define HTTPC_ANY_LENGTH UINT64_MAX

struct httpc_request {
	const char *method;
	const char *path;    /* escaped, with its query */
	const char *accept;  /* NULL: application/json */
	const char *type;    /* of the body; NULL: application/json */
	const char *headers; /* more of them, each ending in \r\n; NULL: none */
	const void *body;    /* NULL: none */
	size_t body_len;
	httpc_fill_fn *fill; /* where a body that is not at hand comes from; NULL: there is none */
	void *fill_ctx;
	uint64_t fill_len; /* exactly so many bytes, or HTTPC_ANY_LENGTH */
	uint64_t fill_ns;  /* how long the service may take for the next of them */
};

/*
 * Connects. cancel_fd: when it becomes readable every wait ends with -ECANCELED; -1 for none, stays
 * the caller's. Deadlines are CLOCK_MONOTONIC ns, CLOCK_NEVER for none. *out is the caller's to
 * httpc_close(). 0 or -errno with *err.
 */
int httpc_connect(
    const char *socket_path, int cancel_fd, uint64_t deadline, struct httpc **out, struct err *err);

/* The same to the service, wherever it is (dial.h). */
int httpc_connect_to(const struct dial_where *where, int cancel_fd, uint64_t deadline,
    struct httpc **out, struct err *err);

/*
 * From here on each request is for the box of that generation, and refused by another one that has
 * got its id: X-Box-Generation. 0: for whichever has it.
 */
void httpc_mean_box(struct httpc *c, uint64_t generation);

/* Harmless on NULL. */
void httpc_close(struct httpc *c);

/*
 * Sends a request and reads the head of its response, valid until the next httpc_send(). The
 * response before must have been read to its end. A body from `fill` is sent until the service has
 * answered, and `deadline` is then not looked at; unless it was sent to its end the connection is
 * of no further use. 0, -ETIMEDOUT, -ECANCELED, -ECONNRESET (the service hung up), -EBADMSG or
 * -errno with *err.
 */
int httpc_send(struct httpc *c, const struct httpc_request *req, uint64_t deadline,
    const struct http_head **head, struct err *err);

/*
 * Reads on in the body. 1: *body and *len, valid until the next call; 0: the response is complete;
 * or as httpc_send().
 */
int httpc_read(
    struct httpc *c, uint64_t deadline, const uint8_t **body, size_t *len, struct err *err);

/* httpc_read() to the end, appending to *body. 0; -ENOBUFS when it does not fit; or as
 * httpc_send(). */
int httpc_read_all(struct httpc *c, uint64_t deadline, struct buf *body, struct err *err);

/*
 * Takes the socket out of a connection that has become something else (101): *fd and what was read
 * of the other protocol, in a buf that this initialises, are the caller's. 0 or -ENOMEM.
 */
int httpc_take_socket(struct httpc *c, int *fd, struct buf *rest);

/*
 * Waits until fd has one of `events` (poll(2)). 0, -ETIMEDOUT, -ECANCELED, -errno.
 */
int httpc_wait(int fd, short events, int cancel_fd, uint64_t deadline);

#endif
