/*
 * mux: the one loop of sbx-guest, its channels, and what a kind of operation looks like to it.
 *
 * START HERE in guest/. mux_receive.c reads from the worker, mux_input.c takes frames and hands
 * them to the operation of their channel; mux.c waits and steps operations; command.c, file_read.c,
 * file_write.c (file_target.c: to where, file_pour.c: without copying) and file_path.c are the
 * operations; shim.c keeps the tree of a command together and kill.c ends it; stop.c ends all of
 * them. If we die here, PID 1 dies and the kernel ends the whole box.
 */
#ifndef SBXD_GUEST_MUX_H
#define SBXD_GUEST_MUX_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "guest/command.h"
#include "guest/file.h"
#include "guest/kill.h"
#include "guest/out.h"
#include "guest/shim.h"
#include "guest/sink.h"
#include "guest/stop.h"
#include "guest/text.h"
#include "wire/agent.h"

#define MUX_NEVER UINT64_MAX
#define MUX_MS 1000000ULL
#define MUX_INPUT_MAX (4U * (AGENT_HEAD_LEN + AGENT_PAYLOAD_MAX))
#define MUX_REQUESTS_MAX (16U * 1024U * 1024U) /* all continued requests together */
#define MUX_REFUSED_MAX 64U
#define MUX_WAITS 3
#define MUX_FDS_FIXED 3

struct guest;
struct channel;

/* A kind of operation. A frame whose function is NULL breaks the rules. */
struct operation {
	/* The whole request is there. It answers with mux_fail() when it cannot begin; -EBADMSG:
	 * the request breaks the rules. */
	int (*open)(struct guest *g, struct channel *c, const uint8_t *request, size_t n);

	/* Data on stream 0, never more than the window allows; its end. -EBADMSG as above. */
	int (*data)(struct guest *g, struct channel *c, const uint8_t *bytes, size_t n);
	/* Instead of data(), while c->pours: takes at most n bytes from the stream itself. As
	 * read(2), but -errno; -EAGAIN also when they shall come through data() after all. */
	ssize_t (*pour)(struct guest *g, struct channel *c, int stream, size_t n);
	int (*eof)(struct guest *g, struct channel *c);
	void (*resize)(struct guest *g, struct channel *c, uint16_t cols, uint16_t rows);
	void (*signal)(struct guest *g, struct channel *c, int sig);

	/* AGENT_CLOSE: ends soon, by mux_end() or mux_fail(). */
	void (*close)(struct guest *g, struct channel *c);

	/* What to wait for: w has MUX_WAITS entries, fd -1. *at: lowered to when it must be stepped
	 * at the latest. */
	void (*wait)(struct guest *g, struct channel *c, struct pollfd *w, uint64_t *at);

	/* Goes on as far as it can without blocking; w as wait() filled it, with what poll(2) saw.
	 * May end the channel. */
	void (*step)(struct guest *g, struct channel *c, const struct pollfd *w);

	/* Releases everything, leaves nothing behind. The channel is being forgotten. */
	void (*drop)(struct guest *g, struct channel *c);
};

enum channel_phase {
	CHANNEL_FREE = 0,
	CHANNEL_REQUEST, /* a continued request is coming in */
	CHANNEL_OPEN,
};

struct channel {
	uint32_t id;
	uint8_t phase; /* enum channel_phase */
	uint8_t type;  /* of the request */
	bool eof;      /* AGENT_EOF came */
	bool pours;    /* much is to come, and op->pour() takes it */
	const struct operation *op;
	uint64_t credit[AGENT_STREAMS]; /* what we may send */
	uint32_t allowance;		/* what the worker may still send on stream 0 */
	uint32_t owed;			/* consumed, not yet given back as credit */
	uint8_t *request;		/* continued request, malloc'ed */
	size_t request_len;
	size_t request_size;
	union {
		struct command command;
		struct file_reader reader;
		struct file_writer writer;
	} u;
};

/* What one round of the loop waits for. */
struct mux_round {
	unsigned int channels;
	unsigned int sinks;
	bool children; /* a child of ours, or of a shim, changed */
	bool due;      /* a deadline has passed */
	uint16_t order[AGENT_CHANNELS_MAX];
	struct pollfd fds[MUX_FDS_FIXED + SINKS_MAX + AGENT_CHANNELS_MAX * MUX_WAITS];
};

struct guest {
	int in_fd;
	int sig_fd;
	int root_fd;   /* "/", O_PATH */
	int helper_fd; /* sbx-files, to be executed; -1: there is none */
	bool init;     /* we are PID 1 */
	pid_t pid;
	uint64_t now; /* CLOCK_MONOTONIC ns, of this round */

	const struct operation *const *ops; /* by request type; MUX_OPS entries */
	/* AGENT_SYNC: answers PONG with the payload when it is done. */
	void (*sync)(struct guest *g, const uint8_t *payload, size_t n);
	/* AGENT_STOP. 0, or -EBADMSG: it breaks the rules. */
	int (*stop)(struct guest *g, const uint8_t *payload, size_t n);
	/* AGENT_WAKE. As stop(); NULL: there is no machine that could be woken. */
	int (*wake)(struct guest *g, const uint8_t *payload, size_t n);
	int scratch_fd; /* vm.c: the tmpfs below the root, O_PATH; -1: none */

	unsigned int open;	  /* channels in use are the first of order[] */
	unsigned int turn;	  /* whose turn is first */
	unsigned int refused_len; /* channels whose continued request was refused */
	size_t requests_bytes;
	uint16_t order[AGENT_CHANNELS_MAX];
	uint32_t refused[MUX_REFUSED_MAX];

	uint32_t data_channel; /* of the data frame whose payload is coming */
	size_t data_left;

	bool held; /* frames in in[] wait until the worker reads */
	size_t in_head;
	size_t in_tail;

	struct out out;
	struct sinks sinks;
	struct killer killer;
	struct file_sync syncing;
	struct stop stopping;
	struct mux_round round;
	struct channel channels[AGENT_CHANNELS_MAX];
	struct shim_pool shims;
	uint8_t in[MUX_INPUT_MAX];
};

#define MUX_OPS (AGENT_PATH + 1)

/* Prepares everything but descriptors. */
void mux_init(struct guest *g, int in_fd, int out_fd);

/* Sends HELLO. 0 or -errno. */
int mux_hello(struct guest *g);

/* Serves until the worker is gone or breaks the rules: 0 or -errno. Operations are dropped then. */
int mux_run(struct guest *g);

/* Receives what is there and takes its frames. 0, or -errno: the worker is gone (-EPIPE) or breaks
 * the rules. */
int mux_receive(struct guest *g);

/* Takes all whole frames that lie in in[], and of data frames what is there. 0 or -EBADMSG: a frame
 * that breaks the rules. */
int mux_take_frames(struct guest *g);

/* Releases the channel without a word to the worker. */
void mux_forget(struct guest *g, struct channel *c);

/* Frees what was kept of a continued request. */
void mux_free_request(struct guest *g, struct channel *c);

/* Drops every channel. */
void mux_drop_all(struct guest *g);

/* The open channel `id`, or NULL. */
struct channel *mux_find(struct guest *g, uint32_t id);

/* A new channel in phase CHANNEL_REQUEST, or NULL. */
struct channel *mux_new_channel(struct guest *g, uint32_t id, uint8_t type);

/* Closes the channel with END or ERROR. */
void mux_end(struct guest *g, struct channel *c, const struct agent_end *end);
void mux_fail(
    struct guest *g, struct channel *c, enum agent_code code, int sys_err, const struct text *why);

/* As mux_fail() with a constant text. */
void mux_fail_str(
    struct guest *g, struct channel *c, enum agent_code code, int sys_err, const char *why);

/* An ERROR for a channel that never came to be. */
void mux_refuse(struct guest *g, uint32_t id, enum agent_code code, const char *why);

/* n bytes of stream 0 were consumed: gives credit when it is worth a frame. */
void mux_consumed(struct guest *g, struct channel *c, size_t n);

/* CLOCK_MONOTONIC, ns. */
uint64_t mux_clock(void);

#endif
