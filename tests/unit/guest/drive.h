/*
 * drive: talks to the real sbx-guest by frames, as a worker would. For the tests of guest/ only,
 * each of which is one program: so everything here is static. process.h starts and ends the guest.
 */
#ifndef SBXD_TESTS_GUEST_DRIVE_H
#define SBXD_TESTS_GUEST_DRIVE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "wire/agent.h"

#define DRIVE_PATIENCE_MS 30000 /* nothing waits that long unless it hangs */
#define DRIVE_CHANNELS 512

/* What came on a channel. */
struct reply {
	bool open;
	bool done;
	bool started;
	bool no_credit; /* the test gives credit itself */
	uint8_t started_with[sizeof(struct agent_stat) +
			     PATH_MAX]; /* a link's text may be as long as a path */
	size_t started_len;
	bool failed;
	struct agent_end end;
	struct agent_error error;
	char text[AGENT_ERROR_TEXT + 1];
	uint8_t *out[AGENT_STREAMS];
	size_t len[AGENT_STREAMS];
	size_t frames;
	uint32_t allowance; /* what we may send on stdin */
};

struct drive {
	pid_t pid; /* as we see it */
	bool init;
	int fd;
	struct agent_hello hello;
	uint32_t next;
	unsigned int pongs;
	uint8_t pong[64];
	size_t pong_len;
	struct reply replies[DRIVE_CHANNELS];
	size_t have;
	uint8_t in[AGENT_HEAD_LEN + AGENT_DATA_MAX];
};

struct exec_spec {
	const char *const *argv;
	const char *const *env;
	const char *user;
	const char *cwd;
	uint32_t flags;
	uint16_t cols;
	uint16_t rows;
};

static inline uint64_t drive_now_ms(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

static inline void drive_write(struct drive *d, const void *bytes, size_t n)
{
	const uint8_t *p = bytes;

	while (n > 0) {
		ssize_t done = send(d->fd, p, n, MSG_NOSIGNAL);

		if (done < 0 && errno == EINTR)
			continue;
		assert_true(done > 0);
		p += done;
		n -= (size_t)done;
	}
}

static inline void drive_send(struct drive *d, enum agent_type type, uint8_t flags, uint8_t arg,
    uint32_t channel, const void *payload, size_t n)
{
	static uint8_t frame[AGENT_HEAD_LEN + AGENT_DATA_MAX];

	assert_true(n <= (type == AGENT_DATA ? AGENT_DATA_MAX : AGENT_PAYLOAD_MAX));
	agent_put_head(frame, type, flags, arg, channel, (uint32_t)n);
	if (n > 0)
		memcpy(frame + AGENT_HEAD_LEN, payload, n);
	drive_write(d, frame, AGENT_HEAD_LEN + n);
}

/* One frame; false at the end of the stream. */
static inline bool drive_recv(struct drive *d, struct agent_head *h, const uint8_t **payload)
{
	static uint8_t frame[AGENT_HEAD_LEN + AGENT_DATA_MAX];

	for (;;) {
		int rc = agent_get_head(d->in, d->have, h);
		struct pollfd p = {.fd = d->fd, .events = POLLIN};
		ssize_t n;

		assert_true(rc >= 0);
		if (rc > 0 && d->have >= AGENT_HEAD_LEN + h->size) {
			size_t all = AGENT_HEAD_LEN + h->size;

			memcpy(frame, d->in, all);
			memmove(d->in, d->in + all, d->have - all);
			d->have -= all;
			*payload = frame + AGENT_HEAD_LEN;
			return true;
		}
		assert_int_equal(poll(&p, 1, DRIVE_PATIENCE_MS), 1);
		n = recv(d->fd, d->in + d->have, sizeof(d->in) - d->have, 0);
		if (n == 0 || (n < 0 && errno == ECONNRESET))
			return false;
		assert_true(n > 0);
		d->have += (size_t)n;
	}
}

static inline void drive_credit(struct drive *d, uint32_t channel, uint8_t stream, uint32_t n)
{
	drive_send(d, AGENT_CREDIT, 0, stream, channel, &n, sizeof(n));
}

static inline struct reply *drive_reply(struct drive *d, uint32_t channel)
{
	return &d->replies[channel % DRIVE_CHANNELS];
}

static inline void reply_data(struct reply *r, uint8_t stream, const uint8_t *p, size_t n)
{
	r->out[stream] = realloc(r->out[stream], r->len[stream] + n + 1);
	assert_non_null(r->out[stream]);
	memcpy(r->out[stream] + r->len[stream], p, n);
	r->len[stream] += n;
	r->out[stream][r->len[stream]] = '\0';
	r->frames++;
}

/* Takes one frame and puts it where it belongs. False at the end of the stream. */
static inline bool drive_pump(struct drive *d)
{
	struct agent_head h;
	const uint8_t *p;
	struct reply *r;
	uint32_t credit;

	if (!drive_recv(d, &h, &p))
		return false;
	r = drive_reply(d, h.channel);
	if (h.type == AGENT_PONG) {
		assert_int_equal(h.channel, 0);
		assert_true(h.size <= sizeof(d->pong));
		memcpy(d->pong, p, h.size);
		d->pong_len = h.size;
		d->pongs++;
		return true;
	}
	assert_true(r->open);
	switch (h.type) {
	case AGENT_STARTED:
		assert_true(h.size <= sizeof(r->started_with));
		assert_false(r->started);
		r->started = true;
		memcpy(r->started_with, p, h.size);
		r->started_len = h.size;
		break;
	case AGENT_DATA:
		assert_true(r->started);
		assert_true(h.size > 0);
		reply_data(r, h.arg, p, h.size);
		if (!r->no_credit)
			drive_credit(d, h.channel, h.arg, h.size);
		break;
	case AGENT_CREDIT:
		assert_int_equal(h.size, sizeof(credit));
		memcpy(&credit, p, sizeof(credit));
		r->allowance += credit;
		assert_true(r->allowance <= AGENT_WINDOW);
		break;
	case AGENT_END:
		assert_int_equal(h.size, sizeof(r->end));
		memcpy(&r->end, p, sizeof(r->end));
		r->done = true;
		r->open = false;
		break;
	case AGENT_ERROR:
		assert_true(
		    h.size >= sizeof(r->error) && h.size <= sizeof(r->error) + AGENT_ERROR_TEXT);
		memcpy(&r->error, p, sizeof(r->error));
		memcpy(r->text, p + sizeof(r->error), h.size - sizeof(r->error));
		r->text[h.size - sizeof(r->error)] = '\0';
		r->failed = true;
		r->done = true;
		r->open = false;
		break;
	default:
		fail_msg("frame type %u", h.type);
	}
	return true;
}

static inline void drive_forget(struct drive *d, uint32_t channel)
{
	struct reply *r = drive_reply(d, channel);

	for (int i = 0; i < AGENT_STREAMS; i++)
		free(r->out[i]);
	*r = (struct reply){0};
}

static inline struct reply *drive_wait(struct drive *d, uint32_t channel)
{
	struct reply *r = drive_reply(d, channel);

	while (!r->done)
		assert_true(drive_pump(d));
	return r;
}

static inline uint32_t drive_new_channel(struct drive *d)
{
	uint32_t channel = ++d->next;
	struct reply *r;

	drive_forget(d, channel);
	r = drive_reply(d, channel);
	r->open = true;
	r->allowance = AGENT_WINDOW;
	return channel;
}

/* Sends a request of any length in as many frames as it takes. */
static inline void drive_request(
    struct drive *d, enum agent_type type, uint32_t channel, const uint8_t *p, size_t n)
{
	while (n > AGENT_PAYLOAD_MAX) {
		drive_send(d, type, AGENT_F_MORE, 0, channel, p, AGENT_PAYLOAD_MAX);
		p += AGENT_PAYLOAD_MAX;
		n -= AGENT_PAYLOAD_MAX;
	}
	drive_send(d, type, 0, 0, channel, p, n);
}

static inline size_t put_string(uint8_t *to, const char *s)
{
	uint32_t n = (uint32_t)strlen(s);

	memcpy(to, &n, sizeof(n));
	memcpy(to + sizeof(n), s, n);
	return sizeof(n) + n;
}

static inline uint32_t drive_exec(struct drive *d, const struct exec_spec *s)
{
	struct agent_exec head = {.flags = s->flags, .cols = s->cols, .rows = s->rows};
	const char *user = s->user != NULL ? s->user : "";
	const char *cwd = s->cwd != NULL ? s->cwd : "";
	size_t size = sizeof(head) + 8 + strlen(user) + strlen(cwd);
	uint32_t channel = drive_new_channel(d);
	uint8_t *p;
	size_t n = sizeof(head);

	for (; s->argv[head.argc] != NULL; head.argc++)
		size += 4 + strlen(s->argv[head.argc]);
	for (; s->env != NULL && s->env[head.envc] != NULL; head.envc++)
		size += 4 + strlen(s->env[head.envc]);
	p = malloc(size);
	assert_non_null(p);
	memcpy(p, &head, sizeof(head));
	n += put_string(p + n, user);
	n += put_string(p + n, cwd);
	for (uint32_t i = 0; i < head.argc; i++)
		n += put_string(p + n, s->argv[i]);
	for (uint32_t i = 0; i < head.envc; i++)
		n += put_string(p + n, s->env[i]);
	assert_int_equal(n, size);
	drive_request(d, AGENT_EXEC, channel, p, n);
	free(p);
	return channel;
}

/* Starts a shell line without stdin. */
static inline uint32_t drive_shell_start(struct drive *d, const char *line)
{
	const char *argv[] = {line, NULL};

	return drive_exec(
	    d, &(struct exec_spec){.argv = argv, .flags = AGENT_EXEC_SHELL | AGENT_EXEC_NO_STDIN});
}

static inline struct reply *drive_shell(struct drive *d, const char *line)
{
	return drive_wait(d, drive_shell_start(d, line));
}

static inline uint32_t drive_read_start(
    struct drive *d, const char *path, uint64_t offset, uint64_t limit, uint32_t flags)
{
	struct agent_read ar = {
	    .offset = offset, .limit = limit, .flags = flags, .path_len = (uint32_t)strlen(path)};
	uint8_t p[sizeof(ar) + 8192];
	uint32_t channel = drive_new_channel(d);

	assert_true(ar.path_len <= 8192);
	memcpy(p, &ar, sizeof(ar));
	memcpy(p + sizeof(ar), path, ar.path_len);
	drive_request(d, AGENT_READ, channel, p, sizeof(ar) + ar.path_len);
	return channel;
}

static inline struct reply *drive_read(struct drive *d, const char *path)
{
	return drive_wait(d, drive_read_start(d, path, 0, UINT64_MAX, 0));
}

static inline uint32_t drive_write_start(
    struct drive *d, const char *path, uint64_t size, uint32_t flags, uint32_t mode)
{
	struct agent_write aw = {
	    .size = size, .flags = flags, .mode = mode, .path_len = (uint32_t)strlen(path)};
	uint8_t p[sizeof(aw) + 8192];
	uint32_t channel = drive_new_channel(d);

	assert_true(aw.path_len <= 8192);
	memcpy(p, &aw, sizeof(aw));
	memcpy(p + sizeof(aw), path, aw.path_len);
	drive_request(d, AGENT_WRITE, channel, p, sizeof(aw) + aw.path_len);
	return channel;
}

/* Sends stdin or file data within the window in frames of at most `most` bytes; stops early when
 * the channel is done. */
static inline void drive_feed_by(
    struct drive *d, uint32_t channel, const void *data, size_t n, size_t most)
{
	struct reply *r = drive_reply(d, channel);
	const uint8_t *p = data;

	while (n > 0 && !r->done) {
		size_t take = n < most ? n : most;

		if (take > r->allowance)
			take = r->allowance;
		if (take == 0) {
			assert_true(drive_pump(d));
			continue;
		}
		drive_send(d, AGENT_DATA, 0, AGENT_STDIN, channel, p, take);
		r->allowance -= (uint32_t)take;
		p += take;
		n -= take;
	}
}

static inline void drive_feed(struct drive *d, uint32_t channel, const void *data, size_t n)
{
	drive_feed_by(d, channel, data, n, AGENT_PAYLOAD_MAX);
}

static inline void drive_eof(struct drive *d, uint32_t channel)
{
	if (!drive_reply(d, channel)->done)
		drive_send(d, AGENT_EOF, 0, AGENT_STDIN, channel, NULL, 0);
}

static inline struct reply *drive_write_file(
    struct drive *d, const char *path, const void *data, size_t n, uint32_t flags)
{
	uint32_t channel = drive_write_start(d, path, n, flags, 0644);

	drive_feed(d, channel, data, n);
	drive_eof(d, channel);
	return drive_wait(d, channel);
}

static inline void drive_close(struct drive *d, uint32_t channel)
{
	drive_send(d, AGENT_CLOSE, 0, 0, channel, NULL, 0);
}

/* Everything sent before was served when this returns. */
static inline void drive_ping(struct drive *d)
{
	unsigned int before = d->pongs;

	drive_send(d, AGENT_PING, 0, 0, 0, "ping", 4);
	while (d->pongs == before)
		assert_true(drive_pump(d));
}

static inline bool started_pid(const struct reply *r, uint32_t *pid)
{
	if (!r->started || r->started_len != sizeof(*pid))
		return false;
	memcpy(pid, r->started_with, sizeof(*pid));
	return true;
}

/* Pumps until the command of the channel has said `word` on stdout. */
static inline void drive_await_output(struct drive *d, uint32_t channel, const char *word)
{
	struct reply *r = drive_reply(d, channel);

	while (r->out[1] == NULL || strstr((char *)r->out[1], word) == NULL) {
		assert_false(r->done);
		assert_true(drive_pump(d));
	}
}

#endif
