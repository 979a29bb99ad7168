/* agent_client: a small blocking client of sbx-guest, for tests. Lives and dies with its test. */
#include "tests/drivers/agent_client.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/clock.h"
#include "tests/drivers/patience.h"

void agent_client_init(struct agent_client *c, int fd)
{
	c->fd = fd;
	c->channel = 0;
}

static int client_wait(struct agent_client *c, short events, uint64_t deadline)
{
	struct pollfd p = {.fd = c->fd, .events = events};
	uint64_t now = clock_now_ns();
	int rc = poll(&p, 1, deadline > now ? (int)((deadline - now) / NS_PER_MS) + 1 : 0);

	return rc < 0 ? -errno : rc == 0 ? -ETIMEDOUT : 0;
}

static int client_send(struct agent_client *c, enum agent_type type, uint8_t arg, uint32_t channel,
    const void *payload, uint32_t size, uint64_t deadline)
{
	uint8_t frame[AGENT_HEAD_LEN + 8192];
	size_t done = 0;
	ssize_t n;
	int rc;

	if (size > sizeof(frame) - AGENT_HEAD_LEN)
		return -EMSGSIZE;
	agent_put_head(frame, type, 0, arg, channel, size);
	if (size)
		memcpy(frame + AGENT_HEAD_LEN, payload, size);
	while (done < AGENT_HEAD_LEN + size) {
		rc = client_wait(c, POLLOUT, deadline);
		if (rc < 0)
			return rc;
		n = send(c->fd, frame + done, AGENT_HEAD_LEN + size - done, MSG_NOSIGNAL);
		if (n < 0 && errno != EAGAIN)
			return -errno;
		done += n > 0 ? (size_t)n : 0;
	}
	return 0;
}

static int client_read(struct agent_client *c, uint8_t *to, size_t size, uint64_t deadline)
{
	size_t done = 0;
	ssize_t n;
	int rc;

	while (done < size) {
		rc = client_wait(c, POLLIN, deadline);
		if (rc < 0)
			return rc;
		n = read(c->fd, to + done, size - done);
		if (n == 0)
			return -EPIPE;
		if (n < 0 && errno != EAGAIN)
			return -errno;
		done += n > 0 ? (size_t)n : 0;
	}
	return 0;
}

static int client_frame(struct agent_client *c, struct agent_head *head, uint64_t deadline)
{
	uint8_t bytes[AGENT_HEAD_LEN];
	int rc = client_read(c, bytes, sizeof(bytes), deadline);

	if (rc < 0)
		return rc;
	if (agent_get_head(bytes, sizeof(bytes), head) != 1)
		return -EBADMSG;
	return client_read(c, c->payload, head->size, deadline);
}

static uint64_t client_deadline(int timeout_ms)
{
	return clock_now_ns() + (unsigned int)timeout_ms * NS_PER_MS;
}

int agent_client_hello(struct agent_client *c, int timeout_ms)
{
	struct agent_head head;
	struct agent_hello hello;
	int rc = client_frame(c, &head, client_deadline(timeout_ms));

	if (rc < 0)
		return rc;
	if (head.type != AGENT_HELLO || head.size != sizeof(hello))
		return -EBADMSG;
	memcpy(&hello, c->payload, sizeof(hello));
	return hello.version == AGENT_VERSION ? 0 : -EBADMSG;
}

int agent_client_ping(struct agent_client *c, int timeout_ms)
{
	uint64_t deadline = client_deadline(timeout_ms);
	struct agent_head head;
	int rc = client_send(c, AGENT_PING, 0, 0, "ping", 4, deadline);

	if (rc == 0)
		rc = client_frame(c, &head, deadline);
	if (rc < 0)
		return rc;
	if (head.type != AGENT_PONG || head.size != 4 || memcmp(c->payload, "ping", 4) != 0)
		return -EBADMSG;
	return 0;
}

static void client_put_string(uint8_t *to, size_t *len, const char *s)
{
	uint32_t n = (uint32_t)strlen(s);

	memcpy(to + *len, &n, sizeof(n));
	memcpy(to + *len + sizeof(n), s, n);
	*len += sizeof(n) + n;
}

static int client_request(struct agent_client *c, uint32_t flags, const char *user,
    const char *const *argv, uint64_t deadline)
{
	struct agent_exec exec = {.flags = AGENT_EXEC_NO_STDIN | flags};
	uint8_t payload[8192];
	size_t len = sizeof(exec);
	size_t need = 256;

	while (argv[exec.argc])
		need += strlen(argv[exec.argc++]) + 4;
	if (need > sizeof(payload))
		return -E2BIG;
	exec.envc = (flags & AGENT_EXEC_HELPER) == 0;
	memcpy(payload, &exec, sizeof(exec));
	client_put_string(payload, &len, user);
	client_put_string(payload, &len, "");
	for (uint32_t i = 0; i < exec.argc; i++)
		client_put_string(payload, &len, argv[i]);
	if (exec.envc)
		client_put_string(
		    payload, &len, "PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin");
	return client_send(c, AGENT_EXEC, 0, ++c->channel, payload, (uint32_t)len, deadline);
}

static int client_keep(struct agent_client *c, const struct agent_head *head,
    struct agent_result *out, uint64_t deadline)
{
	size_t n = head->size;

	if (n > sizeof(out->out) - 1 - out->len)
		n = sizeof(out->out) - 1 - out->len;
	memcpy(out->out + out->len, c->payload, n);
	out->len += n;
	out->out[out->len] = '\0';
	return client_send(
	    c, AGENT_CREDIT, head->arg, head->channel, &head->size, sizeof(head->size), deadline);
}

/* 1: the command has ended; 0: it goes on. */
static int client_step(struct agent_client *c, struct agent_result *out, uint64_t deadline)
{
	struct agent_head head;
	struct agent_error error;
	int rc = client_frame(c, &head, deadline);

	if (rc < 0 || head.channel != c->channel)
		return rc;
	switch (head.type) {
	case AGENT_DATA:
		return client_keep(c, &head, out, deadline);
	case AGENT_END:
		if (head.size != sizeof(out->end))
			return -EBADMSG;
		memcpy(&out->end, c->payload, sizeof(out->end));
		return 1;
	case AGENT_ERROR:
		if (head.size < sizeof(error))
			return -EBADMSG;
		memcpy(&error, c->payload, sizeof(error));
		out->error = error.code;
		out->len = head.size - sizeof(error);
		if (out->len > sizeof(out->out) - 1)
			return -EBADMSG;
		memcpy(out->out, c->payload + sizeof(error), out->len);
		out->out[out->len] = '\0';
		return 1;
	default:
		return 0;
	}
}

static int client_run(struct agent_client *c, uint32_t flags, const char *user,
    const char *const *argv, int timeout_ms, struct agent_result *out)
{
	uint64_t deadline = client_deadline(timeout_ms);
	int closed = 0;
	int rc;

	memset(out, 0, sizeof(*out));
	rc = client_request(c, flags, user, argv, deadline);
	while (rc == 0) {
		rc = client_step(c, out, deadline);
		if (rc != -ETIMEDOUT || closed)
			continue;
		closed = 1;
		deadline = patience_soon();
		rc = client_send(c, AGENT_CLOSE, 0, c->channel, NULL, 0, deadline);
	}
	return rc < 0 ? rc : 0;
}

int agent_client_run(struct agent_client *c, const char *user, const char *const *argv,
    int timeout_ms, struct agent_result *out)
{
	return client_run(c, 0, user, argv, timeout_ms, out);
}

int agent_client_shell(struct agent_client *c, const char *user, const char *line, int timeout_ms,
    struct agent_result *out)
{
	const char *const argv[] = {"/bin/sh", "-c", line, NULL};

	return agent_client_run(c, user, argv, timeout_ms, out);
}

int agent_client_files(
    struct agent_client *c, const char *const *argv, int timeout_ms, struct agent_result *out)
{
	const char *all[16] = {"sbx-files"};

	for (size_t i = 0; argv[i]; i++) {
		if (i + 2 >= sizeof(all) / sizeof(all[0]))
			return -E2BIG;
		all[i + 1] = argv[i];
	}
	return client_run(c, AGENT_EXEC_HELPER, "", all, timeout_ms, out);
}
