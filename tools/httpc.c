/* httpc: a blocking HTTP client over a Unix socket. sbxctl, sbxbench; when it dies the service sees
 * its connection close, and ends what was done for it. */
#include "tools/httpc.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/clock.h"
#include "lib/fd.h"
#include "tools/httpc_send.h"

#define READ_SIZE 65536U

struct httpc {
	int fd; /* owned */
	int cancel_fd;
	uint64_t box_generation; /* of the box that is meant; 0: any */
	struct http_in *in;
	struct buf bytes; /* received and not yet parsed */
	bool until_close; /* the body ends where the connection does */
	size_t used;	  /* of bytes, by the event before: dropped at the next one */
};

static int wait_ms(uint64_t deadline)
{
	uint64_t now = clock_now_ns();
	uint64_t ms;

	if (deadline == CLOCK_NEVER)
		return -1;
	ms = deadline > now ? (deadline - now) / NS_PER_MS + 1 : 0;
	return ms > 3600000 ? 3600000 : (int)ms;
}

int httpc_wait(int fd, short events, int cancel_fd, uint64_t deadline)
{
	struct pollfd p[2] = {{.fd = fd, .events = events}, {.fd = cancel_fd, .events = POLLIN}};
	int rc;

	for (;;) {
		rc = poll(p, 2, wait_ms(deadline));
		if (rc < 0 && errno != EINTR)
			return -errno;
		if (rc > 0 && p[1].revents)
			return -ECANCELED;
		if (rc > 0)
			return 0;
		if (rc == 0 && clock_now_ns() >= deadline)
			return -ETIMEDOUT;
	}
}

int httpc_connect_to(const struct dial_where *where, int cancel_fd, uint64_t deadline,
    struct httpc **out, struct err *err)
{
	struct httpc *c;
	int fd;

	/* A Unix socket whose backlog is full says so at once instead of waiting. */
	while ((fd = dial_service(where, err)) == -EAGAIN) {
		uint64_t retry = clock_now_ns() + 10 * NS_PER_MS;

		if (clock_now_ns() >= deadline)
			return err_set(err, ETIMEDOUT, "the service: no connection in time");
		if (httpc_wait(-1, 0, cancel_fd, retry < deadline ? retry : deadline) == -ECANCELED)
			return err_set(err, ECANCELED, "interrupted");
	}
	if (fd < 0)
		return fd;
	c = calloc(1, sizeof(*c));
	if (c)
		c->in = http_in_create(HTTP_RESPONSE);
	if (!c || !c->in) {
		fd_close(&fd);
		free(c);
		return err_sys(err, ENOMEM, "connection");
	}
	c->fd = fd;
	c->cancel_fd = cancel_fd;
	buf_init(&c->bytes, 4 * READ_SIZE);
	*out = c;
	return 0;
}

int httpc_connect(
    const char *socket_path, int cancel_fd, uint64_t deadline, struct httpc **out, struct err *err)
{
	const struct dial_where where = {.socket = socket_path};

	return httpc_connect_to(&where, cancel_fd, deadline, out, err);
}

void httpc_close(struct httpc *c)
{
	if (!c)
		return;
	fd_close(&c->fd);
	http_in_free(c->in);
	buf_free(&c->bytes);
	free(c);
}

static int receive(struct httpc *c, uint64_t deadline, struct err *err)
{
	ssize_t n;

	for (;;) {
		int rc = httpc_wait(c->fd, POLLIN, c->cancel_fd, deadline);

		if (rc < 0)
			return httpc_fail_wait(rc, "answer", err);
		n = buf_read_fd(&c->bytes, c->fd, READ_SIZE);
		if (n > 0)
			return 0;
		if (n == 0 || n == -ECONNRESET)
			return err_set(err, ECONNRESET, "the service closed the connection");
		if (n != -EAGAIN && n != -EINTR)
			return err_sys(err, (int)-n, "reading the answer");
	}
}

/* The next event of the response. An enum http_event or -errno. */
static int next_event(
    struct httpc *c, uint64_t deadline, const uint8_t **body, size_t *len, struct err *err)
{
	int rc;

	for (;;) {
		size_t used = 0;

		buf_consume(&c->bytes, c->used);
		c->used = 0;
		rc = http_in_feed(c->in, buf_head(&c->bytes), c->bytes.len, &used, body, len, err);
		if (rc < 0)
			return rc;
		c->used = used; /* *body points into what was used */
		if (rc != HTTP_MORE)
			return rc;
		buf_consume(&c->bytes, c->used);
		c->used = 0;
		rc = receive(c, deadline, err);
		if (rc == -ECONNRESET && c->until_close)
			return HTTP_END;
		if (rc < 0)
			return rc;
	}
}

void httpc_mean_box(struct httpc *c, uint64_t generation)
{
	c->box_generation = generation;
}

int httpc_send(struct httpc *c, const struct httpc_request *req, uint64_t deadline,
    const struct http_head **head, struct err *err)
{
	const uint8_t *body = NULL;
	size_t len = 0;
	int rc;

	http_in_reset(c->in);
	c->until_close = false;
	rc = httpc_put_request(
	    &(const struct httpc_line){c->fd, c->cancel_fd, c->box_generation}, req, deadline, err);
	if (rc < 0)
		return rc;
	if (req->fill)
		deadline = clock_now_ns() + req->fill_ns;
	rc = next_event(c, deadline, &body, &len, err);
	if (rc < 0)
		return rc;
	if (rc != HTTP_HEAD_DONE)
		return err_set(err, EBADMSG, "the answer has no head");
	*head = http_in_head(c->in);
	c->until_close = !(*head)->chunked && (*head)->content_length == UINT64_MAX;
	return 0;
}

int httpc_read(
    struct httpc *c, uint64_t deadline, const uint8_t **body, size_t *len, struct err *err)
{
	int rc = next_event(c, deadline, body, len, err);

	if (rc < 0)
		return rc;
	return rc == HTTP_BODY;
}

int httpc_read_all(struct httpc *c, uint64_t deadline, struct buf *body, struct err *err)
{
	const uint8_t *bytes = NULL;
	size_t len = 0;
	int rc;

	while ((rc = httpc_read(c, deadline, &bytes, &len, err)) > 0) {
		rc = buf_append(body, bytes, len);
		if (rc < 0)
			return err_set(err, -rc, "the answer does not fit %zu bytes", body->max);
	}
	return rc;
}

int httpc_take_socket(struct httpc *c, int *fd, struct buf *rest)
{
	struct buf bytes;

	buf_init(&bytes, c->bytes.max);
	buf_consume(&c->bytes, c->used);
	c->used = 0;
	if (buf_append(&bytes, buf_head(&c->bytes), c->bytes.len) < 0)
		return -ENOMEM;
	buf_clear(&c->bytes);
	*fd = fd_take(&c->fd);
	*rest = bytes;
	return 0;
}
