/*
 * bench_client: one client of the service that is measured: a connection, and requests on it whose
 * failures are results.
 */
#ifndef SBXD_TOOLS_BENCH_CLIENT_H
#define SBXD_TOOLS_BENCH_CLIENT_H

#include <jansson.h>
#include <stdint.h>

#include "lib/buf.h"
#include "lib/err.h"
#include "tools/httpc.h"
#include "wire/json.h"

struct bench_client {
	const char *socket; /* the caller's */
	int cancel_fd;	    /* as of httpc_connect(); the caller's */
	uint64_t timeout_ns;
	struct httpc *c; /* NULL: not connected */
	struct buf path; /* of the next request */
	struct buf body;
	struct buf answer;
	struct json_out j; /* writes into body */
};

void bench_client_init(
    struct bench_client *cl, const char *socket, int cancel_fd, double timeout_seconds);
void bench_client_close(struct bench_client *cl);

/* Connects if it is not connected. 0 or -errno with *err. */
int bench_client_connect(struct bench_client *cl, struct err *err);

/* The path and the body of the next request; without a body NULL is returned and
 * bench_client_call() sends none. The body begins as an object, which the caller fills through
 * cl->j. */
void bench_client_begin(
    struct bench_client *cl, const char *path, const char *box, const char *rest);
void bench_client_begin_body(struct bench_client *cl);

/*
 * Sends what was begun and reads the answer. *ns: from the first byte sent to the last one read.
 * out (may be NULL): its JSON, the caller's. 0; -EIO for an answer that is no success; what
 * httpc_send() returns, and then the connection is closed. All with *err.
 */
int bench_client_call(
    struct bench_client *cl, const char *method, uint64_t *ns, json_t **out, struct err *err);

/* Acquires the box of the user and thread; image may be NULL. As bench_client_call(). */
int bench_client_acquire(struct bench_client *cl, const char *user, const char *thread,
    const char *image, uint64_t *ns, json_t **out, struct err *err);

int bench_client_release(
    struct bench_client *cl, const char *box, const char *lease, uint64_t *ns, struct err *err);

/* Removes a box that nobody uses. */
int bench_client_remove(struct bench_client *cl, const char *box, struct err *err);

/* A box's description. */
int bench_client_inspect(struct bench_client *cl, const char *box, json_t **out, struct err *err);

#endif
