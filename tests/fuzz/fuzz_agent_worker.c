/*
 * The worker's end of the stream: whatever a guest sends, the link hands it to its channels or
 * breaks, once, and never more than the windows allow.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/fuzz/agent_frames.h"
#include "worker/agent_link.h"

#define CHECK(cond)              \
	do {                     \
		if (!(cond))     \
			abort(); \
	} while (0)

#define CHANNELS 3

static const uint8_t types[] = {AGENT_HELLO, AGENT_PONG, AGENT_STARTED, AGENT_END, AGENT_ERROR,
    AGENT_DATA, AGENT_EOF, AGENT_CREDIT, AGENT_PING, AGENT_DATA, AGENT_DATA, AGENT_CREDIT};

struct world {
	struct agent_link link;
	int broken;
};

/* A channel that counts what it hears. */
struct listener {
	struct agent_chan chan;
	bool over;
	size_t unread[AGENT_STREAMS];
};

static struct listener *listener_of(struct agent_chan *c)
{
	struct listener *l = (struct listener *)(void *)c;

	CHECK(!l->over);
	return l;
}

static int on_started(struct agent_chan *c, const uint8_t *payload, size_t n)
{
	(void)listener_of(c);
	return n > 0 && payload[0] == 0xee ? -EBADMSG : 0;
}

static size_t on_data(struct agent_chan *c, unsigned int stream, const uint8_t *p, size_t n)
{
	struct listener *l = listener_of(c);

	CHECK(stream < AGENT_STREAMS && n > 0 && n <= AGENT_DATA_MAX);
	l->unread[stream] += n;
	CHECK(l->unread[stream] <= AGENT_WINDOW);
	if (p[0] % 2 == 0) {
		agent_chan_grant(c, stream, l->unread[stream]);
		l->unread[stream] = 0;
	}
	return n;
}

static void on_sendable(struct agent_chan *c)
{
	CHECK(agent_chan_room(c) <= AGENT_WINDOW);
	(void)listener_of(c);
}

static void on_end(struct agent_chan *c, const struct agent_end *end)
{
	(void)end;
	listener_of(c)->over = true;
}

static void on_error(struct agent_chan *c, uint32_t code, const char *text)
{
	CHECK(strlen(text) <= AGENT_ERROR_TEXT);
	(void)agent_code_name(code);
	listener_of(c)->over = true;
}

static const struct agent_chan_ops chan_ops = {
    .started = on_started,
    .data = on_data,
    .sendable = on_sendable,
    .end = on_end,
    .error = on_error,
};

static void on_hello(void *ctx, const struct agent_hello *h)
{
	(void)ctx;
	(void)h;
}

static void on_pong(void *ctx, const uint8_t *payload, size_t n)
{
	(void)ctx;
	(void)payload;
	CHECK(n <= AGENT_PAYLOAD_MAX);
}

static void on_broken(void *ctx, int code, const char *why)
{
	struct world *w = ctx;

	CHECK(code > 0 && why != NULL);
	CHECK(w->broken++ == 0);
}

static const struct agent_link_ops link_ops = {
    .hello = on_hello,
    .pong = on_pong,
    .broken = on_broken,
};

/* Lets the loop run until it has nothing more to do at once. */
static void settle(struct loop *loop)
{
	for (int i = 0; i < 4; i++)
		CHECK(loop_step(loop, 0) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t piece[AGENT_HEAD_LEN + AGENT_PAYLOAD_MAX];
	static uint8_t drain[65536];
	struct loop *loop = loop_create();
	struct listener listeners[CHANNELS] = {0};
	struct frames f = {.p = data, .left = size};
	struct world w = {0};
	int pair[2];
	size_t n;

	CHECK(loop != NULL);
	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) == 0);
	CHECK(agent_link_init(&w.link, loop, pair[0], &link_ops, &w) == 0);
	/* Every guest says HELLO first, or the rest is never looked at. */
	if (size % 8 != 0) {
		const struct agent_hello hello = {.version = AGENT_VERSION, .pid = 1};

		agent_put_head(piece, AGENT_HELLO, 0, 0, 0, sizeof(hello));
		memcpy(piece + AGENT_HEAD_LEN, &hello, sizeof(hello));
		(void)!write(pair[1], piece, AGENT_HEAD_LEN + sizeof(hello));
		settle(loop);
	}
	for (int i = 0; i < CHANNELS; i++)
		(void)!agent_chan_open(
		    &w.link, &listeners[i].chan, &chan_ops, AGENT_EXEC, "request", 7);
	while (w.broken == 0 && (n = frames_next(&f, types, sizeof(types), piece)) > 0) {
		for (size_t at = 0; w.broken == 0 && at < n;) {
			ssize_t done = write(pair[1], piece + at, n - at);

			CHECK(done > 0 || errno == EAGAIN);
			at += done > 0 ? (size_t)done : 0;
			settle(loop);
			while (read(pair[1], drain, sizeof(drain)) > 0)
				continue;
		}
	}
	settle(loop);
	for (int i = 0; i < CHANNELS; i++)
		agent_chan_drop(&listeners[i].chan);
	agent_link_fini(&w.link);
	close(pair[1]);
	loop_destroy(loop);
	return 0;
}
