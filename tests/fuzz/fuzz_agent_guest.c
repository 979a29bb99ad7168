/*
 * The guest's end of the stream: whatever a worker sends, mux_receive() answers or refuses, and its
 * books stay right. Nothing is started, no file of anybody is touched: what is written is real, but
 * goes to memory, and the other operations are fakes.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "guest/mux.h"
#include "tests/fuzz/agent_frames.h"

#define CHECK(cond)              \
	do {                     \
		if (!(cond))     \
			abort(); \
	} while (0)

static const uint8_t types[] = {AGENT_PING, AGENT_EXEC, AGENT_READ, AGENT_WRITE, AGENT_PATH,
    AGENT_SIGNAL, AGENT_RESIZE, AGENT_CLOSE, AGENT_SYNC, AGENT_STOP, AGENT_WAKE, AGENT_DATA,
    AGENT_EOF, AGENT_CREDIT, AGENT_HELLO};

static int fake_open(struct guest *g, struct channel *c, const uint8_t *request, size_t n)
{
	struct agent_exec_request *r = NULL;
	int rc;

	CHECK(n <= AGENT_REQUEST_MAX);
	if (c->type != AGENT_EXEC) {
		if (n > 0 && request[n - 1] == 1)
			mux_fail_str(g, c, AGENT_E_INVALID, 0, "fuzz");
		return 0;
	}
	rc = agent_parse_exec(request, n, &r);
	if (rc != 0)
		return rc;
	CHECK(r->argv[r->head.argc] == NULL && r->envp[r->head.envc] == NULL);
	for (uint32_t i = 0; i < r->head.argc; i++)
		CHECK(strlen(r->argv[i]) < n);
	free(r);
	return 0;
}

static int fake_data(struct guest *g, struct channel *c, const uint8_t *bytes, size_t n)
{
	CHECK(n > 0 && n <= AGENT_DATA_MAX && !c->eof);
	CHECK(c->allowance <= AGENT_WINDOW && c->owed <= AGENT_WINDOW);
	if (bytes[0] % 4 != 0)
		mux_consumed(g, c, n);
	return 0;
}

static int fake_eof(struct guest *g, struct channel *c)
{
	const struct agent_end end = {0};

	CHECK(c->eof);
	if (c->id % 2 == 0)
		mux_end(g, c, &end);
	return 0;
}

static void fake_resize(struct guest *g, struct channel *c, uint16_t cols, uint16_t rows)
{
	(void)g;
	(void)c;
	(void)cols;
	(void)rows;
}

static void fake_signal(struct guest *g, struct channel *c, int sig)
{
	(void)g;
	(void)c;
	CHECK(sig > 0 && sig < 65);
}

static void fake_close(struct guest *g, struct channel *c)
{
	const struct agent_end end = {.flags = AGENT_END_KILLED};

	mux_end(g, c, &end);
}

static void fake_wait(struct guest *g, struct channel *c, struct pollfd *w, uint64_t *at)
{
	(void)g;
	(void)c;
	(void)w;
	(void)at;
}

static void fake_step(struct guest *g, struct channel *c, const struct pollfd *w)
{
	(void)g;
	(void)w;
	for (int i = 0; i < AGENT_STREAMS; i++)
		CHECK(c->credit[i] <= AGENT_WINDOW);
}

static void fake_drop(struct guest *g, struct channel *c)
{
	(void)g;
	CHECK(c->phase == CHANNEL_OPEN);
}

static const struct operation fake_command = {
    .open = fake_open,
    .data = fake_data,
    .eof = fake_eof,
    .resize = fake_resize,
    .signal = fake_signal,
    .close = fake_close,
    .wait = fake_wait,
    .step = fake_step,
    .drop = fake_drop,
};

static const struct operation fake_file = {
    .open = fake_open,
    .close = fake_close,
    .wait = fake_wait,
    .step = fake_step,
    .drop = fake_drop,
};

/* ---- AGENT_WRITE: that of guest/file_write.c, poured or not ---- */

/* These stand for guest/file_target.c. */
int file_target_open(int root_fd, struct file_writer *w, const char *path)
{
	(void)root_fd;
	if (path[1] == 'e')
		return EACCES;
	w->fd = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	CHECK(w->fd >= 0);
	if (path[1] == 'f') /* it takes nothing */
		CHECK(fcntl(w->fd, F_ADD_SEALS, F_SEAL_GROW) == 0);
	return 0;
}

int file_target_dress(struct file_writer *w)
{
	return w->fd >= 0 ? 0 : EBADF;
}

int file_target_name(struct file_writer *w)
{
	struct stat st;

	CHECK(w->piped == 0);
	CHECK(fstat(w->fd, &st) == 0 && (uint64_t)st.st_size == w->done);
	CHECK(w->size == UINT64_MAX || w->size == w->done);
	return 0;
}

void file_target_close(struct file_writer *w)
{
	if (w->fd >= 0)
		CHECK(close(w->fd) == 0);
	w->fd = -1;
}

static int write_data(struct guest *g, struct channel *c, const uint8_t *bytes, size_t n)
{
	CHECK(n > 0 && n <= AGENT_DATA_MAX && !c->eof);
	CHECK(c->allowance <= AGENT_WINDOW && c->owed <= AGENT_WINDOW);
	return file_write_operation.data(g, c, bytes, n);
}

static ssize_t write_pour(struct guest *g, struct channel *c, int stream, size_t n)
{
	ssize_t got;

	CHECK(n > 0 && n <= AGENT_DATA_MAX && !c->eof && c->pours);
	CHECK(c->allowance <= AGENT_WINDOW && c->owed <= AGENT_WINDOW);
	got = file_write_operation.pour(g, c, stream, n);
	CHECK(got <= (ssize_t)n);
	return got;
}

static struct operation real_write;

static const struct operation *const fakes[MUX_OPS] = {
    [AGENT_EXEC] = &fake_command,
    [AGENT_READ] = &fake_file,
    [AGENT_WRITE] = &real_write,
    [AGENT_PATH] = &fake_command,
};

static void fake_sync(struct guest *g, const uint8_t *payload, size_t n)
{
	CHECK(n <= FILE_PING_MAX);
	(void)out_put_quick(&g->out, AGENT_PONG, 0, 0, payload, n);
}

static int fake_stop(struct guest *g, const uint8_t *payload, size_t n)
{
	if (n != sizeof(struct agent_stop))
		return -EBADMSG;
	(void)out_put_quick(&g->out, AGENT_PONG, 0, 0, payload, sizeof(uint64_t));
	return 0;
}

/* What stands in a queue is whole frames that a worker would accept. */
static void check_queue(const struct out_queue *q)
{
	size_t at = q->head;

	while (at < q->tail) {
		struct agent_head h;

		CHECK(agent_get_head(q->bytes + at, q->tail - at, &h) == 1);
		at += AGENT_HEAD_LEN + h.size;
	}
	CHECK(at == q->tail);
}

/* The worker reads at last. */
static void empty_queue(struct guest *g)
{
	check_queue(&g->out.main);
	check_queue(&g->out.quick);
	out_init(&g->out, -1);
}

static size_t unread(int fd)
{
	int n;

	CHECK(ioctl(fd, FIONREAD, &n) == 0);
	return (size_t)n;
}

/* Has the guest take all that lies in its stream. 0 or -EBADMSG. */
static int serve(struct guest *g)
{
	size_t left = unread(g->in_fd);
	int idle = 0;

	while (left > 0 || g->held) {
		size_t before = left;
		bool held = g->held;
		int rc;

		if (held)
			empty_queue(g);
		rc = mux_take_frames(g);
		if (rc == 0)
			rc = mux_receive(g);
		CHECK(rc == 0 || rc == -EBADMSG);
		if (rc != 0)
			return rc;
		CHECK(g->open <= AGENT_CHANNELS_MAX);
		CHECK(g->requests_bytes <= MUX_REQUESTS_MAX);
		left = unread(g->in_fd);
		/* A pipe that was full is emptied first; but it never waits for nothing. */
		idle = left < before || held || g->held ? 0 : idle + 1;
		CHECK(idle < 2);
	}
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct guest g;
	static uint8_t piece[AGENT_HEAD_LEN + AGENT_PAYLOAD_MAX];
	struct frames f = {.p = data, .left = size};
	int pair[2];
	size_t n;
	int rc = 0;

	real_write = file_write_operation;
	real_write.data = write_data;
	real_write.pour = write_pour;
	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) == 0);
	g.ops = fakes;
	g.sync = fake_sync;
	g.stop = fake_stop;
	g.held = false;
	g.in_head = 0;
	g.in_tail = 0;
	g.refused_len = 0;
	mux_init(&g, pair[0], -1);
	while (rc == 0 && (n = frames_next(&f, types, sizeof(types), piece)) > 0) {
		CHECK(
		    write(pair[1], piece, n) == (ssize_t)n); /* it is empty, and has room for it */
		rc = serve(&g);
	}
	check_queue(&g.out.main);
	check_queue(&g.out.quick);
	mux_drop_all(&g);
	CHECK(g.requests_bytes == 0);
	CHECK(close(pair[0]) == 0 && close(pair[1]) == 0);
	return 0;
}
