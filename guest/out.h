/*
 * out: frames towards the worker. sbx-guest. If we die here the worker sees the stream end.
 *
 * Two queues, both bounded. `main` keeps the order of everything that belongs to a channel. `quick`
 * holds what may overtake data at any frame border (PONG, CREDIT), so a health check never waits
 * behind a bulk read. Producers put data straight into the main queue, and only while it is empty
 * or has not yet been refused by the stream: so a worker that does not read stops them all and
 * costs one batch of memory.
 *
 * The payload of a data frame may also come straight from a file (out_send_file()): only its head
 * is in the main queue then, and nothing is put on the stream between the two. The stream refers
 * to the file's pages, so what changes in the file before the client reads may show.
 *
 * Room for control frames is never lacking: out_may_serve() tells the reader of requests to stop
 * while the queues hold more than what every open channel may still have to say.
 */
#ifndef SBXD_GUEST_OUT_H
#define SBXD_GUEST_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "wire/agent.h"

#define OUT_FRAMES 4U /* full data frames in a batch */
#define OUT_FRAME_MAX (AGENT_HEAD_LEN + AGENT_PAYLOAD_MAX)
#define OUT_DATA_MAX (OUT_FRAMES * OUT_FRAME_MAX)

_Static_assert(AGENT_HEAD_LEN + AGENT_DATA_MAX <= OUT_DATA_MAX, "a file's payload can be copied");

/* What one channel can say without being asked again: STARTED, and END or ERROR. */
#define OUT_CHANNEL_MAX (64U + AGENT_HEAD_LEN + sizeof(struct agent_error) + AGENT_ERROR_TEXT)
#define OUT_CONTROL_MAX (2U * AGENT_CHANNELS_MAX * OUT_CHANNEL_MAX)
#define OUT_QUICK_MAX (64U * 1024U)

struct out_queue {
	uint8_t *bytes;
	size_t size;
	size_t head; /* first unsent byte */
	size_t tail;
	size_t border; /* first frame border at or after head; main queue only */
};

/* What became of the payloads that came from a file. */
struct out_told {
	bool copied; /* the stream or the file makes it necessary: sending from it is of no use */
	bool cut;    /* there was less: the frame was filled up with zeros */
	int err;     /* reading failed with it, 0: the file is shorter now */
};

/* The payload, still to be sent, of the frame that is first in the main queue. */
struct out_file {
	int fd;
	uint64_t offset;       /* of the next byte */
	size_t left;	       /* bytes; 0: there is none such */
	size_t head;	       /* bytes of the frame's head that are still in the queue */
	bool owned;	       /* fd is closed when they are sent */
	struct out_told *told; /* NULL: nobody asks any more */
};

struct out {
	int fd;
	bool blocked; /* the stream took less than we had: wait for POLLOUT */
	struct out_file file;
	struct out_queue main;
	struct out_queue quick;
	uint8_t main_bytes[OUT_DATA_MAX + OUT_CONTROL_MAX];
	uint8_t quick_bytes[OUT_QUICK_MAX];
};

void out_init(struct out *o, int fd);

static inline bool out_is_empty(const struct out *o)
{
	return o->main.head == o->main.tail && o->quick.head == o->quick.tail && o->file.left == 0;
}

/* True while more requests may be taken from the worker. */
bool out_may_serve(const struct out *o);

/* A whole control frame on its channel's place in the order. False only when out_may_serve() was
 * not heeded. */
bool out_put(struct out *o, enum agent_type type, uint8_t arg, uint32_t channel, const void *a,
    size_t a_len, const void *b, size_t b_len);

/* As out_put(), for PONG and CREDIT: may overtake. */
bool out_put_quick(struct out *o, enum agent_type type, uint8_t arg, uint32_t channel,
    const void *payload, size_t len);

/*
 * Where the payload of a data frame may be read to, and how much (*max; at most
 * AGENT_PAYLOAD_MAX). NULL while the batch is full or on its way.
 */
uint8_t *out_data_room(struct out *o, size_t *max);

/* The first n bytes there are a data frame now. */
void out_data_commit(struct out *o, uint32_t channel, uint8_t stream, size_t n);

/*
 * Space for several data frames at once, for preadv(2): fills iov[] (OUT_FRAMES entries) with the
 * payloads of the frames that fit, at most `want` bytes in all. Returns how many, 0 while the batch
 * is not empty.
 */
int out_data_rooms(struct out *o, size_t want, struct iovec iov[OUT_FRAMES]);

/* The first n bytes of what out_data_rooms() gave are data frames now. */
void out_data_commits(struct out *o, uint32_t channel, uint8_t stream, size_t n);

/*
 * Sends a data frame of n bytes (1 to AGENT_DATA_MAX) at `offset` of a regular file, as far as
 * the stream takes it; out_flush() does the rest. fd and *told stay valid until it is sent or
 * out_take_file() was called. False, and nothing is done, while anything else is to be sent.
 */
bool out_send_file(struct out *o, uint32_t channel, uint8_t stream, int fd, uint64_t offset,
    size_t n, struct out_told *told);

/* The owner of fd has no use for it any more. True: bytes of it are still to be sent, and it is
 * closed here after them; *told is not touched any more. */
bool out_take_file(struct out *o, int fd);

/* Writes what the stream takes. 0 or -errno: the worker is gone. */
int out_flush(struct out *o);

#endif
