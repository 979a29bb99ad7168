/* httpc_send: the sending half of httpc. sbxctl; a request that is not whole is dropped by the
 * service. */
#include "tools/httpc_send.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "lib/clock.h"

#define HEAD_SIZE 16384U
#define FILL_SIZE (256U * 1024U)
#define CHUNK_ROOM 20U /* for the size before a chunk, and the line end after it */

int httpc_fail_wait(int rc, const char *what, struct err *err)
{
	if (rc == -ETIMEDOUT)
		return err_set(err, ETIMEDOUT, "the service did not %s in time", what);
	if (rc == -ECANCELED)
		return err_set(err, ECANCELED, "interrupted");
	return err_sys(err, -rc, "waiting for the service");
}

/* True when the service has said something already, or hung up: it wants no more. */
static bool has_answered(const struct httpc_line *l)
{
	struct pollfd p = {.fd = l->fd, .events = POLLIN};

	return poll(&p, 1, 0) > 0;
}

/* A peer that has answered or hung up before it has everything is no error here. */
static int send_bytes(
    const struct httpc_line *l, const uint8_t *data, size_t len, uint64_t deadline, struct err *err)
{
	while (len > 0) {
		ssize_t n = send(l->fd, data, len, MSG_NOSIGNAL);
		int rc;

		if (n >= 0) {
			data += n;
			len -= (size_t)n;
			continue;
		}
		if (errno == EPIPE || errno == ECONNRESET)
			return 0;
		if (errno != EAGAIN && errno != EINTR)
			return err_sys(err, errno, "sending the request");
		rc = httpc_wait(l->fd, POLLOUT | POLLIN, l->cancel_fd, deadline);
		if (rc < 0)
			return httpc_fail_wait(rc, "take the request", err);
		if (has_answered(l))
			return 0;
	}
	return 0;
}

static int put_head(struct buf *head, const struct httpc_request *req, uint64_t box_generation)
{
	uint64_t len = req->fill ? req->fill_len : req->body_len;
	int rc = buf_printf(head, "%s %s HTTP/1.1\r\nHost: localhost\r\nAccept: %s\r\n%s",
	    req->method, req->path, req->accept ? req->accept : "application/json",
	    req->headers ? req->headers : "");

	if (rc == 0 && box_generation)
		rc = buf_printf(
		    head, "X-Box-Generation: %llu\r\n", (unsigned long long)box_generation);
	if (rc == 0 && (req->body || req->fill))
		rc = buf_printf(
		    head, "Content-Type: %s\r\n", req->type ? req->type : "application/json");
	if (rc == 0 && req->fill && len == HTTPC_ANY_LENGTH)
		rc = buf_puts(head, "Transfer-Encoding: chunked\r\n");
	else if (rc == 0 && (req->body || req->fill))
		rc = buf_printf(head, "Content-Length: %llu\r\n", (unsigned long long)len);
	return rc < 0 ? rc : buf_puts(head, "\r\n");
}

/* A piece of a body, as it is or as a chunk. It stands CHUNK_ROOM behind the buffer's begin. */
static int send_piece(const struct httpc_line *l, const struct httpc_request *req, uint8_t *piece,
    size_t n, struct err *err)
{
	uint64_t deadline = clock_now_ns() + req->fill_ns;
	uint8_t *begin = piece;
	char size[CHUNK_ROOM];
	int len = 0;

	if (req->fill_len == HTTPC_ANY_LENGTH) {
		len = snprintf(size, sizeof(size), "%zx\r\n", n);
		begin -= len;
		memcpy(begin, size, (size_t)len);
		memcpy(piece + n, "\r\n", 2);
		len += 2;
	}
	return send_bytes(l, begin, n + (size_t)len, deadline, err);
}

static int send_filled(const struct httpc_line *l, const struct httpc_request *req, struct err *err)
{
	uint8_t *buffer = malloc(FILL_SIZE + 2 * CHUNK_ROOM);
	uint8_t *piece = buffer + CHUNK_ROOM;
	uint64_t sent = 0;
	ssize_t n = 1;
	int rc = 0;

	if (!buffer)
		return err_sys(err, ENOMEM, "the request's body");
	while (rc == 0 && n > 0 && sent < req->fill_len && !has_answered(l)) {
		uint64_t left = req->fill_len - sent;

		n = req->fill(req->fill_ctx, piece, left < FILL_SIZE ? left : FILL_SIZE, err);
		if (n < 0)
			rc = (int)n;
		else if (n > 0 || req->fill_len == HTTPC_ANY_LENGTH)
			rc = send_piece(l, req, piece, (size_t)n, err);
		else
			rc = err_set(err, EIO, "the body ended early");
		sent += n > 0 ? (size_t)n : 0;
	}
	free(buffer);
	return rc;
}

int httpc_put_request(
    const struct httpc_line *l, const struct httpc_request *req, uint64_t deadline, struct err *err)
{
	struct buf head;
	bool with_body;
	int rc;

	buf_init(&head, HEAD_SIZE);
	rc = put_head(&head, req, l->box_generation);
	/* A short body goes with the head: the service is woken once. */
	with_body = rc == 0 && req->body && buf_append(&head, req->body, req->body_len) == 0;
	if (rc < 0)
		rc = err_set(err, -rc, "the request does not fit: %.80s", req->path);
	if (rc == 0)
		rc = send_bytes(l, buf_head(&head), head.len, deadline, err);
	if (rc == 0 && req->body && !with_body)
		rc = send_bytes(l, req->body, req->body_len, deadline, err);
	if (rc == 0 && req->fill)
		rc = send_filled(l, req, err);
	buf_free(&head);
	return rc;
}
