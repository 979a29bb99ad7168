/*
 * agent_link: a worker's end of the byte stream to sbx-guest (wire/agent.h): frames, channels,
 * credit.
 *
 * The guest is hostile: whatever breaks the contract ends the link (ops->broken, once), nothing
 * else. What is queued towards the guest is bounded; what comes from it is never kept here beyond
 * one frame.
 */
#ifndef SBXD_WORKER_AGENT_LINK_H
#define SBXD_WORKER_AGENT_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/buf.h"
#include "lib/loop.h"
#include "wire/agent.h"

#define AGENT_LINK_IN (320U * 1024U)		    /* one read from the guest, at most */
#define AGENT_LINK_OUT_MAX (3U * AGENT_REQUEST_MAX) /* queued towards the guest, at most */
#define AGENT_LINK_OUT_LOW (256U * 1024U)	    /* data waits while more than this is queued */

struct agent_link;
struct agent_chan;

/*
 * What an operation hears of its channel. end and error are the last call, and only one of them
 * comes; the channel is closed by then. None is called from within agent_chan_open(). NULL: not
 * interested.
 */
struct agent_chan_ops {
	/* A non-zero result says that the payload makes no sense: the guest is broken. */
	int (*started)(struct agent_chan *c, const uint8_t *payload, size_t n);
	/*
	 * A part of what the guest sent on a stream; to be answered with agent_chan_grant().
	 * Returns how much of it was taken: all, or less after agent_chan_hold() said true.
	 */
	size_t (*data)(struct agent_chan *c, unsigned int stream, const uint8_t *p, size_t n);
	/*
	 * Instead of data(), for a channel that agent_chan_pipe() was called for: n bytes lie in a
	 * pipe. Returns how many it took out; the rest is offered again after agent_chan_hold(),
	 * or comes through data().
	 */
	size_t (*piped)(struct agent_chan *c, unsigned int stream, int pipe, size_t n);
	/* agent_chan_send() took less than it was given and would take more now; or
	 * agent_chan_crowded() does not hold any more. */
	void (*sendable)(struct agent_chan *c);
	void (*end)(struct agent_chan *c, const struct agent_end *end);
	void (*error)(struct agent_chan *c, uint32_t code, const char *text);
};

/* Embedded in its operation; zero is closed. */
struct agent_chan {
	struct agent_link *link; /* NULL when closed */
	const struct agent_chan_ops *ops;
	uint32_t id;
	bool blocked;			 /* owed a sendable() when there is credit, too */
	bool crowded;			 /* owed one as soon as less is queued */
	bool closing;			 /* AGENT_CLOSE was sent */
	uint64_t moves;			 /* how often something of it came, or was sent on stdin */
	uint32_t credit;		 /* what we may still send */
	uint32_t window[AGENT_STREAMS];	 /* what the guest may still send */
	uint32_t granted[AGENT_STREAMS]; /* credit not yet worth a frame */
};

struct agent_link_ops {
	void (*hello)(void *ctx, const struct agent_hello *h);
	void (*pong)(void *ctx, const uint8_t *payload, size_t n);
	/*
	 * The link is of no further use: code is an errno value. Channels hear nothing more. Comes
	 * from the loop, never from within a call.
	 */
	void (*broken)(void *ctx, int code, const char *why);
	/* The guest stands still, and something is to be sent to it: it shall go on. What is sent
	 * from within comes first. 0 or -errno: the link breaks. */
	int (*rouse)(void *ctx);
};

/* The frame whose payload lies in a pipe, on its way to the guest. */
struct link_pour {
	int pipe[2]; /* -1 until it is needed */
	size_t left; /* bytes in it; 0: there is no such frame */
	size_t head_left;
	uint8_t head[AGENT_HEAD_LEN];
};

struct agent_link {
	struct loop *loop;
	struct loop_watch watch;
	struct loop_timer breaking; /* due when broken() is owed */
	struct loop_timer resuming; /* due when reading goes on after a hold */
	const struct agent_link_ops *ops;
	void *ctx;
	int why_code;
	const char *why;
	int fd; /* owned */
	bool broken;
	bool greeted;		  /* AGENT_HELLO was seen */
	bool asleep;		  /* the guest stands still: set by who stopped it */
	bool held;		  /* nothing is read, see agent_chan_hold() */
	unsigned int open;	  /* channels */
	unsigned int unanswered;  /* pings and syncs */
	uint64_t heard;		  /* how often something came */
	bool in_hot;		  /* more than the first page of `in` may be in memory */
	uint8_t *in;		  /* AGENT_LINK_IN bytes, mapped */
	size_t in_off;		  /* of it, the first byte that is not used */
	size_t in_len;		  /* unused bytes from there */
	struct agent_chan *piped; /* asked for its data in the pipe, or NULL */
	int pipe[2];		  /* -1 until it is needed */
	size_t pipe_len;	  /* bytes in it, of the frame `cur` */
	struct agent_head cur;	  /* the data frame whose payload is coming */
	size_t cur_left;
	struct link_pour pour; /* comes before what is in out */
	struct buf out;
	uint32_t next_id;
	struct agent_chan *chans[AGENT_CHANNELS_MAX]; /* id % AGENT_CHANNELS_MAX */
};

/* Takes over fd (non-blocking). 0 or -errno; the descriptor is closed then too. */
int agent_link_init(struct agent_link *l, struct loop *loop, int fd,
    const struct agent_link_ops *ops, void *ctx) __attribute__((warn_unused_result));

/* Closes the stream; open channels are forgotten. */
void agent_link_fini(struct agent_link *l);

/* Sends a frame of channel 0. 0, -EPIPE (broken). */
int agent_link_send(struct agent_link *l, enum agent_type type, const void *payload, size_t n);

/* Has a guest that stands still go on. 0, -EPIPE (broken). */
int agent_link_rouse(struct agent_link *l);

/* Reads what is there, as if the loop had said so. */
void agent_link_poll(struct agent_link *l);

/* Gives memory back that an idle link does not need. */
void agent_link_trim(struct agent_link *l);

/*
 * Opens a channel with a request of n bytes (<= AGENT_REQUEST_MAX, split over frames as needed). 0,
 * -EAGAIN (too many channels, or too much queued), -EMSGSIZE, -EPIPE.
 */
int agent_chan_open(struct agent_link *l, struct agent_chan *c, const struct agent_chan_ops *ops,
    enum agent_type type, const void *request, size_t n) __attribute__((warn_unused_result));

/* How much may be sent on AGENT_STDIN now; with 0, sendable() will come. */
size_t agent_chan_room(struct agent_chan *c);

/* Sends data on AGENT_STDIN, at most what agent_chan_room() said; returns how much was taken. */
size_t agent_chan_send(struct agent_chan *c, const uint8_t *p, size_t n);

/*
 * The same for what a Unix socket holds, without a copy: n bytes of it at most. Returns how many,
 * 0 at its end, -EAGAIN, another -errno of reading it, or -EOPNOTSUPP: not now, or not this one.
 */
ssize_t agent_chan_pour(struct agent_chan *c, int fd, size_t n);

/* No more data on AGENT_STDIN. */
void agent_chan_eof(struct agent_chan *c);

/*
 * Much is queued for the guest: signals and sizes, which need no credit, must not be asked for now.
 * Then sendable() will come.
 */
bool agent_chan_crowded(struct agent_chan *c);

/* Only for AGENT_EXEC: a signal to the command, the size of its terminal. */
void agent_chan_signal(struct agent_chan *c, int signal);
void agent_chan_resize(struct agent_chan *c, uint16_t cols, uint16_t rows);

/* It was opened with AGENT_EXEC_NARROW; and, once, it shall have the whole window. */
void agent_chan_narrow(struct agent_chan *c);
void agent_chan_widen(struct agent_chan *c);

/* The operation used up n bytes of a stream: the guest may send as many again. */
void agent_chan_grant(struct agent_chan *c, unsigned int stream, size_t n);

/*
 * Stops reading from the guest until agent_chan_release(), so that what the client does not take
 * now waits in the stream and needs no copy here. False, and nothing done, when anybody but this
 * channel waits for the guest; it ends by itself as soon as somebody else does.
 */
bool agent_chan_hold(struct agent_chan *c);
void agent_chan_release(struct agent_chan *c);

/*
 * From now on piped() may be called: much is to come, and it is only passed on. Data then goes
 * from the guest's stream to a pipe without being copied, as long as no other channel is open.
 */
void agent_chan_pipe(struct agent_chan *c);

/* Asks the guest to end the operation; end or error still comes. Repeating it does nothing. */
void agent_chan_close(struct agent_chan *c);

/* Forgets the channel without a word to the guest: for links that are broken. */
void agent_chan_drop(struct agent_chan *c);

#endif
