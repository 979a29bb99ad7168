/*
 * control_link: a worker's end of the socket to sbxd: messages in, and out as the socket takes
 * them. sbx-worker only.
 *
 * What waits to be sent is bounded by the connections that sbxd gave us: each is answered for once.
 */
#ifndef SBXD_WORKER_CONTROL_LINK_H
#define SBXD_WORKER_CONTROL_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "lib/loop.h"
#include "wire/control.h"

#define CONTROL_NO_WORD UINT32_MAX

struct control_msg;

struct control_link_ops {
	/* msg->fd is the callee's. msg->tail is valid until it returns. */
	void (*message)(void *ctx, struct ctl_msg *msg);
	/* A message with a word (see control_link_send) is in the socket. */
	void (*sent)(void *ctx, uint32_t word);
	/* sbxd is gone; nothing can be sent any more. */
	void (*gone)(void *ctx);
};

struct control_link {
	struct loop *loop;
	struct loop_watch watch;
	int fd; /* owned; -1: no sbxd */
	uint64_t gen;
	const struct control_link_ops *ops;
	void *ctx;
	uint8_t *scratch; /* the caller's, CTL_MSG_MAX bytes */
	STAILQ_HEAD(control_queue, control_msg) queue;
};

/* Takes over fd and begins to read. 0 or -errno; the descriptor is closed then too. */
int control_link_init(struct control_link *l, struct loop *loop, int fd, uint64_t gen,
    uint8_t *scratch, const struct control_link_ops *ops, void *ctx)
    __attribute__((warn_unused_result));

/*
 * For sbxd is known to be gone: takes the messages that are still there, and then all is as if the
 * end of the socket had been read.
 */
void control_link_end(struct control_link *l);

/* Closes the socket and what was not sent. */
void control_link_fini(struct control_link *l);

/*
 * Sends, or keeps until the socket takes it. Takes over fd (-1: none). word: told to ops->sent()
 * once sent, or CONTROL_NO_WORD. False, and nothing taken over: sbxd is gone, or no memory.
 */
bool control_link_send(struct control_link *l, enum ctl_type type, uint64_t seq, const void *body,
    size_t body_len, const void *tail, size_t tail_len, int fd, uint32_t word);

/* Nothing waits to be sent. */
bool control_link_idle(const struct control_link *l);

#endif
