/*
 * cli_stream: the output of a command as the service streams it, one JSON object a line. sbxctl.
 */
#ifndef SBXD_TOOLS_CLI_STREAM_H
#define SBXD_TOOLS_CLI_STREAM_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/buf.h"
#include "lib/err.h"

#define CLI_LINE_MAX (8U * 1024U * 1024U)

/* How the command ended. */
struct cli_result {
	bool known; /* the last line has come */
	bool timed_out;
	int exit_code; /* -1 when there is none */
	int signal;    /* 0 none */
	bool failed;   /* the service could not carry it through: message and reason */
	char message[160];
	char reason[40];
};

/* Where bytes of a stream ("stdout" is 1, "stderr" 2) go. 0 or -errno, which ends the feeding. */
typedef int cli_stream_fn(void *ctx, int stream, const uint8_t *bytes, size_t n);

struct cli_stream {
	struct buf line; /* begun and not yet complete */
	cli_stream_fn *fn;
	void *ctx;
	struct cli_result result;
};

void cli_stream_init(struct cli_stream *s, cli_stream_fn *fn, void *ctx);
void cli_stream_free(struct cli_stream *s);

/* Takes the next bytes of the body. 0, -EBADMSG with *err (no such line), or fn's result. */
int cli_stream_feed(struct cli_stream *s, const uint8_t *bytes, size_t n, struct err *err);

/* Fills a result from the object that ends a stream, or that a buffered run answers. 0 or -EBADMSG.
 */
int cli_result_read(const json_t *answer, struct cli_result *out, struct err *err);

/* The exit status of sbxctl for it: the command's own, 128+N, 124, 125. */
int cli_result_status(const struct cli_result *r);

#endif
