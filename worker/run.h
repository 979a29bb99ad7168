/*
 * run: POST run: one command, its output in one JSON object (run_buffer.c) or as a stream of lines
 * (run_stream.c). sbx-worker.
 */
#ifndef SBXD_WORKER_RUN_H
#define SBXD_WORKER_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/buf.h"
#include "worker/op.h"
#include "worker/run_request.h"

#define RUN_STREAMS 2 /* stdout, stderr */

struct http_head;
struct run;

/* The two ways to answer. */
struct run_mode {
	/* The command runs. NULL: nothing to do. */
	void (*started)(struct run *r);
	/* Output of stream 0 or 1; to be granted when it is used up. */
	void (*data)(struct run *r, unsigned int stream, const uint8_t *p, size_t n);
	/* The client took what was queued. NULL: nothing to do. */
	void (*drained)(struct run *r);
	/* It is over: answers at last, and ends r with op_free(). */
	void (*end)(struct run *r);
	/* It failed after the response was begun: adds a last message. NULL: never happens. */
	void (*lost)(struct run *r, enum api_error e, const char *message);
};

struct run_stream {
	struct buf kept; /* output that is not answered yet */
	bool truncated;
};

struct run {
	struct op op; /* first */
	const struct run_mode *mode;
	struct buf body;
	struct run_request req;
	size_t stdin_sent;
	bool stdin_done;
	bool begun; /* the response was */
	bool timed_out;
	bool over; /* `end` is filled */
	struct agent_end end;
	uint64_t started_ns;
	uint64_t ended_ns;
	struct loop_timer timeout;
	struct run_stream streams[RUN_STREAMS];
	struct buf line; /* run_stream.c */
};

extern const struct run_mode run_mode_buffer;
extern const struct run_mode run_mode_stream;

/* A route's begin(). */
void run_begin(struct conn *c, const struct http_head *h);

/* n bytes of stream 0 or 1 are used up. */
void run_grant(struct run *r, unsigned int stream, size_t n);

/* The members that end both kinds of answer: exit_code, signal, timed_out. */
struct json_out;
void run_put_end(struct run *r, struct json_out *j);
void run_put_duration(struct run *r, struct json_out *j);

#endif
