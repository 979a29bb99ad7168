/* run_request: the body of POST run, checked and turned into an AGENT_EXEC request. sbx-worker. */
#ifndef SBXD_WORKER_RUN_REQUEST_H
#define SBXD_WORKER_RUN_REQUEST_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/buf.h"
#include "lib/err.h"
#include "wire/api_error.h"
#include "wire/control.h"

#define RUN_OUTPUT_DEFAULT \
	(16U * 1024U * 1024U) /* kept per stream, unless that is over the limit */

struct run_request {
	struct buf exec;      /* payload of AGENT_EXEC */
	json_t *json;	      /* what stdin_data may point into */
	uint8_t *stdin_bytes; /* decoded, or NULL */
	const uint8_t *stdin_data;
	size_t stdin_len;
	bool has_stdin;
	uint64_t timeout_ns; /* 0: none */
	size_t max_output;
};

struct service;

/*
 * Parses n bytes of JSON. s: whose box's environment, user and working directory stand where the
 * request has none of its own. 0 with *out filled, or -EINVAL (also -E2BIG, -ENOMEM) with *e and
 * *err set. *out is to be freed in either case.
 */
int run_request_parse(const uint8_t *body, size_t n, const struct service *s,
    struct run_request *out, enum api_error *e, struct err *err);

void run_request_free(struct run_request *r);

/* Gives back what is not needed once the request was sent and stdin is through. */
void run_request_sent(struct run_request *r, bool stdin_done);

#endif
