/*
 * exec_request: the bodies of POST exec, signal and resize, and the orders that come over an
 * attached WebSocket, checked. sbx-worker.
 */
#ifndef SBXD_WORKER_EXEC_REQUEST_H
#define SBXD_WORKER_EXEC_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/buf.h"
#include "lib/err.h"
#include "wire/api_error.h"

#define EXEC_COMMAND_LEN 160U /* of a command line that is only shown */

struct service;

struct exec_request {
	struct buf exec;     /* payload of AGENT_EXEC */
	uint64_t timeout_ns; /* 0: none */
	bool tty;
	bool has_stdin;
	char command[EXEC_COMMAND_LEN]; /* program and arguments, maybe cut; UTF-8 */
};

/*
 * Parses n bytes of JSON; fields that are not known are refused. s: as for run_request_parse().
 * 0 with *out filled, or -EINVAL (also -E2BIG, -ENOMEM) with *e and *err set. *out is to be freed
 * in either case.
 */
int exec_request_parse(const uint8_t *body, size_t n, const struct service *s,
    struct exec_request *out, enum api_error *e, struct err *err);

void exec_request_free(struct exec_request *r);

/* What a client wants of a running execution. */
enum exec_order_type {
	EXEC_ORDER_RESIZE,
	EXEC_ORDER_SIGNAL,
	EXEC_ORDER_STDIN_EOF,
};

struct exec_order {
	enum exec_order_type type;
	int signal;
	uint16_t cols;
	uint16_t rows;
};

/* The body of POST signal: {"signal": N}. 0 or -EINVAL with *e and *err. */
int exec_signal_parse(
    const uint8_t *body, size_t n, struct exec_order *out, enum api_error *e, struct err *err);

/* The body of POST resize: {"cols": N, "rows": N}. The same. */
int exec_resize_parse(
    const uint8_t *body, size_t n, struct exec_order *out, enum api_error *e, struct err *err);

/*
 * A text message of a WebSocket: {"type": "resize", "cols": N, "rows": N}, {"type": "signal",
 * "sig": N} or {"type": "stdin_eof"}. The same; members that are not known are ignored.
 */
int exec_order_parse(const uint8_t *text, size_t n, struct exec_order *out, struct err *err);

#endif
