/* buf: a growable byte buffer with a hard bound. Any process. */
#include "lib/buf.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define BUF_FIRST 2048 /* most requests and answers fit without growing */

void buf_init(struct buf *b, size_t max)
{
	*b = (struct buf){.max = max};
}

void buf_free(struct buf *b)
{
	free(b->data);
	*b = (struct buf){.max = b->max};
}

void buf_clear(struct buf *b)
{
	b->off = 0;
	b->len = 0;
}

void buf_trim(struct buf *b, size_t keep)
{
	if (b->len == 0 && b->cap > keep)
		buf_free(b);
}

static int buf_grow(struct buf *b, size_t need)
{
	size_t cap = b->cap ? b->cap : BUF_FIRST;
	uint8_t *data;

	while (cap < need)
		cap *= 2;
	data = malloc(cap);
	if (!data)
		return -ENOMEM;
	if (b->data)
		memcpy(data, b->data + b->off, b->len);
	free(b->data);
	b->data = data;
	b->off = 0;
	b->cap = cap;
	return 0;
}

static int buf_make_room(struct buf *b, size_t n)
{
	if (n > b->max || b->len > b->max - n)
		return -ENOBUFS;
	if (b->cap - b->off - b->len >= n && b->data)
		return 0;
	if (b->cap - b->len >= n && b->data && b->off >= b->cap / 2) {
		memmove(b->data, b->data + b->off, b->len);
		b->off = 0;
		return 0;
	}
	return buf_grow(b, b->len + n);
}

uint8_t *buf_reserve(struct buf *b, size_t n)
{
	if (buf_make_room(b, n) < 0)
		return NULL;
	return b->data + b->off + b->len;
}

void buf_commit(struct buf *b, size_t n)
{
	b->len += n;
}

void buf_consume(struct buf *b, size_t n)
{
	b->off += n;
	b->len -= n;
	if (b->len == 0)
		b->off = 0;
}

int buf_append(struct buf *b, const void *src, size_t n)
{
	int rc;

	if (n == 0)
		return 0;
	rc = buf_make_room(b, n);
	if (rc < 0)
		return rc;
	memcpy(b->data + b->off + b->len, src, n);
	b->len += n;
	return 0;
}

int buf_puts(struct buf *b, const char *s)
{
	return buf_append(b, s, strlen(s));
}

int buf_printf(struct buf *b, const char *fmt, ...)
{
	char small[256];
	va_list ap;
	uint8_t *dst;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(small, sizeof(small), fmt, ap);
	va_end(ap);
	if (n < 0)
		return -EINVAL;
	if ((size_t)n < sizeof(small))
		return buf_append(b, small, (size_t)n);
	if (buf_room(b) < (size_t)n + 1)
		return -ENOBUFS;
	dst = buf_reserve(b, (size_t)n + 1);
	if (!dst)
		return -ENOMEM;
	va_start(ap, fmt);
	(void)vsnprintf((char *)dst, (size_t)n + 1, fmt, ap); /* fits: measured above */
	va_end(ap);
	buf_commit(b, (size_t)n);
	return 0;
}

int buf_terminate(struct buf *b)
{
	int rc = buf_make_room(b, 1);

	if (rc < 0)
		return rc;
	b->data[b->off + b->len] = 0;
	return 0;
}

static ssize_t read_plain(int fd, void *dst, size_t n)
{
	return read(fd, dst, n);
}

static ssize_t read_socket(int fd, void *dst, size_t n)
{
	return recv(fd, dst, n, MSG_DONTWAIT);
}

static ssize_t buf_read_with(
    struct buf *b, int fd, size_t want, ssize_t (*fn)(int fd, void *dst, size_t n))
{
	uint8_t *dst;
	ssize_t n;

	if (want > buf_room(b))
		want = buf_room(b);
	if (want == 0)
		return -ENOBUFS;
	dst = buf_reserve(b, want);
	if (!dst)
		return -ENOMEM;
	n = fn(fd, dst, want);
	if (n < 0)
		return -errno;
	buf_commit(b, (size_t)n);
	return n;
}

ssize_t buf_read_fd(struct buf *b, int fd, size_t want)
{
	return buf_read_with(b, fd, want, read_plain);
}

ssize_t buf_recv(struct buf *b, int sock, size_t want)
{
	return buf_read_with(b, sock, want, read_socket);
}

static ssize_t buf_written(struct buf *b, ssize_t n)
{
	if (n < 0)
		return -errno;
	buf_consume(b, (size_t)n);
	return n;
}

ssize_t buf_write_fd(struct buf *b, int fd)
{
	return buf_written(b, write(fd, b->data + b->off, b->len));
}

ssize_t buf_send(struct buf *b, int sock)
{
	return buf_written(b, send(sock, b->data + b->off, b->len, MSG_DONTWAIT | MSG_NOSIGNAL));
}
