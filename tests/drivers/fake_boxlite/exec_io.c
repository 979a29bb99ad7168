/* exec_io: the threads of an execution. */
#include "tests/drivers/fake_boxlite/exec.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/fd.h"
#include "tests/drivers/fake_boxlite/proto.h"

#define CHUNK_MAX 65536
#define LATE_MAX                                                                                   \
	100	      /* chunks, once it was told to stop: what a child goes on to say is nobody's \
		       */
#define DRAIN_MS 1000 /* output after the exit: a child may hold the pipe for ever */

/* A write to a pipe that nobody reads is an error here, no signal. */
static void no_sigpipe(void)
{
	sigset_t set;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGPIPE);
	(void)pthread_sigmask(SIG_BLOCK, &set, NULL);
}

static void thread_over(struct execution *x)
{
	struct runtime *rt = x->rt; /* the thread's, too */

	exec_unref(x);
	thread_end(rt);
}

/* ---- stdin ---- */

static bool write_all(int fd, int stop, const uint8_t *data, size_t len)
{
	struct pollfd p[2] = {{.fd = fd, .events = POLLOUT}, {.fd = stop, .events = POLLIN}};
	ssize_t n;

	while (len) {
		if (poll(p, 2, -1) < 0 && errno != EINTR)
			return false;
		if (p[1].revents)
			return false;
		n = write(fd, data, len);
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return false;
		if (n > 0) {
			data += n;
			len -= (size_t)n;
		}
	}
	return true;
}

static void *input_run(void *arg)
{
	struct execution *x = arg;
	uint8_t *data;
	size_t len;
	bool closed = false;

	no_sigpipe();
	(void)pthread_mutex_lock(&x->lock);
	while (!closed) {
		while (!x->input_len && !x->input_closed)
			(void)pthread_cond_wait(&x->change, &x->lock);
		data = x->input;
		len = x->input_len;
		closed = x->input_closed && !len;
		x->input = NULL;
		x->input_len = 0;
		(void)pthread_mutex_unlock(&x->lock);
		if (len)
			(void)write_all(x->in, x->stop[0], data, len);
		free(data);
		(void)pthread_mutex_lock(&x->lock);
	}
	/* A terminal's end is a character. */
	if (x->tty)
		(void)!write(x->in, "\4", 1);
	fd_close(&x->in);
	(void)pthread_mutex_unlock(&x->lock);
	thread_over(x);
	return NULL;
}

/* ---- stdout and stderr ---- */

static void call_data(struct event *e)
{
	((blx_data_fn *)e->cb)(e->data, e->len, e->user);
}

/* Takes text. */
static void tell(struct execution *x, const struct stream *s, uint8_t *text, size_t len)
{
	struct event *e;

	if (!s->cb || !len) {
		free(text);
		return;
	}
	e = event_new(call_data, (void *)s->cb, s->user);
	e->stream = x;
	e->data = text;
	e->len = len;
	queue_push(x->rt, e);
}

static bool stream_wanted(struct execution *x, struct stream *s)
{
	bool wanted;

	(void)pthread_mutex_lock(&x->lock);
	while (!s->wanted && !x->freed)
		(void)pthread_cond_wait(&x->change, &x->lock);
	wanted = !x->freed;
	(void)pthread_mutex_unlock(&x->lock);
	return wanted;
}

/* How much to read at once: mostly much, at times a byte. */
static size_t chunk_size(struct execution *x)
{
	static const size_t sizes[] = {1, 3, 61, 1000, 4096, 16384, 16384, CHUNK_MAX};
	int fixed = knob_number("chunk", 0);

	if (fixed > 0)
		return fixed < CHUNK_MAX ? (size_t)fixed : CHUNK_MAX;
	return sizes[runtime_random(x->rt, sizeof(sizes) / sizeof(sizes[0]))];
}

/* One chunk; false at the end. */
static bool stream_step(struct execution *x, struct stream *s, struct text *t, uint8_t *chunk)
{
	static const char dropped[] = "[boxlite] stdout output dropped 3 bytes\r\n";
	struct pollfd p[2] = {
	    {.fd = s->fd, .events = POLLIN}, {.fd = x->stop[0], .events = POLLIN}};
	char way[16];
	uint8_t *text;
	struct knob k;
	ssize_t n;
	size_t len;

	if (poll(p, 2, -1) < 0)
		return errno == EINTR;
	if (!p[0].revents || (p[1].revents && s->late++ > LATE_MAX))
		return false;
	n = read(s->fd, chunk, chunk_size(x));
	if (n <= 0)
		return n < 0 && errno == EINTR;
	k = s == &x->streams[0] ? knob_turn(KNOB_STDOUT) : (struct knob){KNOB_NONE, 0};
	if (k.action == KNOB_STALL)
		return true; /* it is lost */
	if (k.action == KNOB_LIE)
		tell(x, s, (uint8_t *)strdup(dropped), sizeof(dropped) - 1);
	(void)knob_text("text", "chunk", way, sizeof(way));
	if (!strcmp(way, "raw")) {
		text = malloc((size_t)n);
		if (!text)
			abort();
		memcpy(text, chunk, (size_t)n);
		len = (size_t)n;
	} else {
		text = text_decode(t, chunk, (size_t)n, !strcmp(way, "hold"), &len);
	}
	if (k.action == KNOB_FLIP)
		text[len / 2] ^= 1;
	if (k.action == KNOB_TWICE) {
		uint8_t *again = malloc(len + 1);

		if (!again)
			abort();
		memcpy(again, text, len);
		tell(x, s, again, len);
	}
	tell(x, s, text, len);
	return true;
}

static void stream_run(struct execution *x, struct stream *s)
{
	struct text t = {.held_len = 0};
	uint8_t *chunk = malloc(CHUNK_MAX);
	uint8_t *tail;
	size_t len;

	if (!chunk)
		abort();
	if (stream_wanted(x, s)) {
		while (stream_step(x, s, &t, chunk))
			continue;
		tail = text_end(&t, &len);
		tell(x, s, tail, len);
	}
	free(chunk);
	(void)pthread_mutex_lock(&x->lock);
	s->done = true;
	fd_close(&s->fd);
	(void)pthread_cond_broadcast(&x->change);
	(void)pthread_mutex_unlock(&x->lock);
	thread_over(x);
}

static void *stdout_run(void *arg)
{
	struct execution *x = arg;

	stream_run(x, &x->streams[0]);
	return NULL;
}

static void *stderr_run(void *arg)
{
	struct execution *x = arg;

	stream_run(x, &x->streams[1]);
	return NULL;
}

/* ---- the end ---- */

static void call_exit(struct event *e)
{
	((blx_exit_fn *)e->cb)(e->number, e->user);
}

/* -1, as the library's, when the box's process goes away first. */
static int await_exit(struct execution *x)
{
	struct pollfd p = {.fd = x->conn, .events = POLLIN};
	struct shim_answer a;

	if (x->timeout_ms && poll(&p, 1, x->timeout_ms) == 0)
		(void)exec_ask(x, SHIM_SIGNAL, SIGKILL, 0);
	if (recv(x->conn, &a, sizeof(a), 0) != sizeof(a) || a.kind != SHIM_EXIT)
		return -1;
	return a.value;
}

static bool streams_done(const struct execution *x)
{
	return (x->streams[0].done || !x->streams[0].wanted) &&
	       (x->streams[1].done || !x->streams[1].wanted);
}

static void await_streams(struct execution *x)
{
	struct timespec until;

	(void)clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += DRAIN_MS / 1000;
	while (!streams_done(x) && !x->freed) {
		if (pthread_cond_timedwait(&x->change, &x->lock, &until) == ETIMEDOUT)
			break;
	}
	fd_close(&x->stop[1]); /* those that are still at it stop */
	while (!streams_done(x) && !x->freed)
		(void)pthread_cond_wait(&x->change, &x->lock);
}

static void *exit_run(void *arg)
{
	struct execution *x = arg;
	struct event *e = NULL;
	struct knob k;
	int code = await_exit(x);

	(void)pthread_mutex_lock(&x->lock);
	x->exited = true;
	x->code = code;
	(void)pthread_cond_broadcast(&x->change);
	while (!x->exit_cb && !x->freed)
		(void)pthread_cond_wait(&x->change, &x->lock);
	await_streams(x);
	if (x->exit_cb && !x->told && !x->freed) {
		x->told = true;
		e = event_new(call_exit, (void *)x->exit_cb, x->exit_user);
	}
	(void)pthread_mutex_unlock(&x->lock);
	if (e) {
		k = knob_turn(KNOB_EXIT);
		e->stream = x;
		e->number = k.action == KNOB_LIE ? 0x7fffffff : code;
		if (k.action == KNOB_STALL)
			event_free(e);
		else
			queue_push(x->rt, e);
	}
	thread_over(x);
	return NULL;
}

int exec_io_start(struct execution *x)
{
	static void *(*const runs[])(void *arg) = {input_run, exit_run, stdout_run, stderr_run};
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < sizeof(runs) / sizeof(runs[0]); i++) {
		if (runs[i] == stderr_run && x->streams[1].fd < 0) {
			x->streams[1].done = true;
			continue;
		}
		rc = thread_start(x->rt, runs[i], exec_ref(x));
		if (rc < 0)
			exec_unref(x);
	}
	return rc;
}
