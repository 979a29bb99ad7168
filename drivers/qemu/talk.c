/* talk: a few frames to and from sbx-guest. Worker. The guest is not trusted: every length is
 * checked, and a guest that does not keep to the rules makes no box. */
#include "drivers/qemu/talk.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>

#include "lib/clock.h"
#include "wire/agent.h"

#define TALK_FRAMES_MAX 4096 /* of output that nobody reads */

struct frame {
	struct agent_head head;
	uint8_t payload[AGENT_PAYLOAD_MAX];
};

/* A QEMU that ends with something of ours unread resets the stream: its end like any other. */
static int talk_error(void)
{
	return errno == ECONNRESET ? -EPIPE : -errno;
}

static int talk_send(const struct machine *m, enum agent_type type, uint32_t channel,
    const void *payload, size_t n, uint64_t deadline_ns)
{
	uint8_t bytes[AGENT_HEAD_LEN + 1024];
	size_t sent = 0;

	if (n > sizeof(bytes) - AGENT_HEAD_LEN)
		return -EMSGSIZE;
	agent_put_head(bytes, type, 0, 0, channel, (uint32_t)n);
	memcpy(bytes + AGENT_HEAD_LEN, payload, n);
	n += AGENT_HEAD_LEN;
	while (sent < n) {
		ssize_t put = send(m->stream, bytes + sent, n - sent, MSG_NOSIGNAL);
		int rc;

		if (put > 0) {
			sent += (size_t)put;
			continue;
		}
		if (put < 0 && errno != EAGAIN && errno != EINTR)
			return talk_error();
		rc = machine_wait(m, m->stream, POLLOUT, deadline_ns);
		if (rc < 0)
			return rc;
	}
	return 0;
}

/* Exactly so many bytes: what follows is for who reads next. */
static int talk_read(const struct machine *m, uint8_t *out, size_t n, uint64_t deadline_ns)
{
	while (n > 0) {
		ssize_t got;
		int rc = machine_wait(m, m->stream, POLLIN, deadline_ns);

		if (rc < 0)
			return rc;
		got = recv(m->stream, out, n, 0);
		if (got == 0)
			return -EPIPE;
		if (got < 0 && errno != EAGAIN && errno != EINTR)
			return talk_error();
		if (got > 0) {
			out += got;
			n -= (size_t)got;
		}
	}
	return 0;
}

static int talk_receive(const struct machine *m, struct frame *f, uint64_t deadline_ns)
{
	uint8_t head[AGENT_HEAD_LEN];
	int rc = talk_read(m, head, sizeof(head), deadline_ns);

	if (rc == 0 && agent_get_head(head, sizeof(head), &f->head) != 1)
		rc = -EBADMSG;
	return rc == 0 ? talk_read(m, f->payload, f->head.size, deadline_ns) : rc;
}

static int talk_fail(int rc, const char *what, struct err *err)
{
	if (rc == -ETIMEDOUT)
		return err_set(err, ETIMEDOUT, "the guest agent did not %s in time", what);
	if (rc == -EPIPE)
		return err_set(err, EPIPE, "the machine ended before its guest agent did %s", what);
	return err_sys(err, -rc, "have the guest agent %s", what);
}

int talk_hello(const struct machine *m, uint64_t deadline_ns, struct err *err)
{
	struct frame f;
	struct agent_hello hello;
	int rc = talk_receive(m, &f, deadline_ns);

	if (rc == 0 && (f.head.type != AGENT_HELLO || f.head.size != sizeof(hello)))
		rc = -EBADMSG;
	if (rc < 0)
		return talk_fail(rc, "say hello", err);
	memcpy(&hello, f.payload, sizeof(hello));
	if (hello.version != AGENT_VERSION)
		return err_set(err, EPROTO, "the guest agent speaks another version");
	return 0;
}

/* The end of the one operation there is. */
static int talk_await_end(const struct machine *m, uint64_t deadline_ns)
{
	struct frame f;
	int rc = 0;

	for (int i = 0; i < TALK_FRAMES_MAX && rc == 0; i++) {
		rc = talk_receive(m, &f, deadline_ns);
		if (rc == 0 && (f.head.type == AGENT_END || f.head.type == AGENT_ERROR))
			return 0;
	}
	return rc < 0 ? rc : -EBADMSG;
}

static int talk_exec(const struct machine *m, uint32_t channel, uint32_t flags, const char *text,
    uint64_t deadline_ns, struct err *err)
{
	const struct agent_exec head = {.flags = flags | AGENT_EXEC_NO_STDIN, .argc = 1};
	const uint32_t lengths[] = {0, 0, (uint32_t)strlen(text)}; /* user, cwd, the argument */
	uint8_t request[512];
	size_t len = sizeof(head) + sizeof(lengths) + strlen(text);
	int rc = -EMSGSIZE;

	if (len <= sizeof(request)) {
		memcpy(request, &head, sizeof(head));
		memcpy(request + sizeof(head), lengths, sizeof(lengths));
		memcpy(request + sizeof(head) + sizeof(lengths), text, strlen(text));
		rc = talk_send(m, AGENT_EXEC, channel, request, len, deadline_ns);
	}
	if (rc == 0)
		rc = talk_await_end(m, deadline_ns);
	return rc < 0 ? talk_fail(rc, "run a command", err) : 0;
}

int talk_run(const struct machine *m, uint32_t channel, const char *line, uint64_t deadline_ns,
    struct err *err)
{
	return talk_exec(m, channel, AGENT_EXEC_SHELL, line, deadline_ns, err);
}

int talk_run_helper(
    const struct machine *m, uint32_t channel, uint64_t deadline_ns, struct err *err)
{
	return talk_exec(m, channel, AGENT_EXEC_HELPER, "version", deadline_ns, err);
}

static int wake_fill(struct agent_wake *w, const struct driver_spec *spec)
{
	struct timespec ts;

	*w = (struct agent_wake){
	    .flags = AGENT_WAKE_NEW,
	    .disk_mib = spec->disk_mib ? spec->disk_mib : 1, /* to tmpfs, 0 is no limit */
	    .pids_max = spec->pids_max,
	};
	if (getrandom(&w->nonce, sizeof(w->nonce), 0) != (ssize_t)sizeof(w->nonce) ||
	    getrandom(w->machine_id, sizeof(w->machine_id), 0) != (ssize_t)sizeof(w->machine_id) ||
	    getrandom(w->seed, sizeof(w->seed), 0) != (ssize_t)sizeof(w->seed))
		return -EIO;
	(void)snprintf(w->hostname, sizeof(w->hostname), "box-%02x%02x%02x%02x", w->machine_id[0],
	    w->machine_id[1], w->machine_id[2], w->machine_id[3]);
	(void)clock_gettime(CLOCK_REALTIME, &ts);
	w->realtime_ns = (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
	return 0;
}

/* What the guest says that it could not do. */
static int wake_refused(const struct frame *f, struct err *err)
{
	struct agent_error e;

	if (f->head.size < sizeof(e))
		return talk_fail(-EBADMSG, "wake", err);
	memcpy(&e, f->payload, sizeof(e));
	return err_sys(err, e.sys_err > 0 ? e.sys_err : EIO, "a machine that wakes could not %.*s",
	    (int)(f->head.size - sizeof(e) < 80 ? f->head.size - sizeof(e) : 80),
	    (const char *)f->payload + sizeof(e));
}

int talk_wake(
    const struct machine *m, const struct driver_spec *spec, uint64_t deadline_ns, struct err *err)
{
	struct frame f;
	struct agent_wake w;
	int rc = wake_fill(&w, spec);

	if (rc == 0)
		rc = talk_send(m, AGENT_WAKE, 0, &w, sizeof(w), deadline_ns);
	explicit_bzero(w.seed, sizeof(w.seed));
	if (rc == 0)
		rc = talk_receive(m, &f, deadline_ns);
	if (rc == 0 && f.head.type == AGENT_ERROR)
		return wake_refused(&f, err);
	if (rc == 0 && (f.head.type != AGENT_PONG || f.head.size != sizeof(w.nonce) ||
			   memcmp(f.payload, &w.nonce, sizeof(w.nonce)) != 0))
		rc = -EBADMSG;
	return rc < 0 ? talk_fail(rc, "wake", err) : 0;
}
