/*
 * exec_output: what an execution has written on one stream: kept for the client that is attached,
 * or for the next one. sbx-worker.
 *
 * The newest EXEC_KEEP bytes are kept whether or not a client has them, so that it can be shown
 * again. What no client has had yet is never dropped, until a client has been there and gone: then
 * only EXEC_KEEP of it stays. Bytes are counted towards the guest's credit once they are sent or
 * dropped, so a client that does not read stops its execution; exec_output_yield() is the
 * exception.
 */
#ifndef SBXD_WORKER_EXEC_OUTPUT_H
#define SBXD_WORKER_EXEC_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/buf.h"
#include "wire/agent.h"

#define EXEC_KEEP AGENT_WINDOW_NARROW
#define EXEC_PIECE (64U * 1024U) /* of output in one message, at most */

struct exec_output {
	struct buf kept;
	size_t sent;   /* the first bytes of `kept`: the client has them */
	size_t owed;   /* bytes that the guest has not got credit for */
	bool cut;      /* something was dropped before the first byte of `kept` */
	size_t extra;  /* bytes that were yielded, until no more than EXEC_KEEP wait */
	uint64_t lost; /* bytes that no client has had, dropped since the last one was told */
};

void exec_output_init(struct exec_output *o);
void exec_output_free(struct exec_output *o);

/* n more bytes, which the guest had credit for. 0 or -ENOMEM. */
int exec_output_add(struct exec_output *o, const uint8_t *p, size_t n)
    __attribute__((warn_unused_result));

/*
 * The next bytes for the client, valid until the next call; 0: there are none. A character is not
 * cut: its beginning waits for the rest, unless `all` is wanted.
 */
size_t exec_output_next(const struct exec_output *o, bool all, const uint8_t **p);

/* Bytes that the client has not had. */
static inline size_t exec_output_left(const struct exec_output *o)
{
	return o->kept.len - o->sent;
}

/* The client has n bytes more. Returns the credit that the guest is to have for it. */
size_t exec_output_sent(struct exec_output *o, size_t n);

/*
 * What waits for the client is kept although it is more than a window: returns the credit for it,
 * which counts as extra. The caller answers for the memory.
 */
size_t exec_output_yield(struct exec_output *o);

/* Returns how much of what was extra need not be kept any more. */
size_t exec_output_settle(struct exec_output *o);

/* There is no client: only EXEC_KEEP bytes stay. Returns the credit for what had not been sent. */
size_t exec_output_leave(struct exec_output *o);

/* All that is kept is to be sent once more. */
void exec_output_rewind(struct exec_output *o);

/* Nothing more will come, and nobody may ask for a long time: takes no more memory than needed. */
void exec_output_pack(struct exec_output *o);

#endif
