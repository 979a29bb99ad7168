/*
 * buf: a growable byte buffer with a hard bound.
 *
 * Bytes are appended at the tail and consumed at the head. It never grows past `max`, so no peer
 * can make a process grow without limit. Not NUL-terminated unless buf_terminate() is called.
 */
#ifndef SBXD_LIB_BUF_H
#define SBXD_LIB_BUF_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct buf {
	uint8_t *data; /* owned */
	size_t off;    /* first unread byte */
	size_t len;    /* unread bytes from off */
	size_t cap;
	size_t max;
};

void buf_init(struct buf *b, size_t max);
void buf_free(struct buf *b);

/* Forgets all bytes, keeps the memory. */
void buf_clear(struct buf *b);

/* Gives the memory back when it holds more than `keep` bytes and nothing is in it. */
void buf_trim(struct buf *b, size_t keep);

/* NULL when nothing was ever put in. */
static inline const uint8_t *buf_head(const struct buf *b)
{
	return b->data ? b->data + b->off : NULL;
}

static inline size_t buf_room(const struct buf *b)
{
	return b->max - b->len;
}

/* Makes room for n bytes and returns where they go, or NULL (past max, or no memory). */
uint8_t *buf_reserve(struct buf *b, size_t n);

/* Counts n bytes, written where buf_reserve() pointed, as appended. */
void buf_commit(struct buf *b, size_t n);

/* Drops n bytes (n <= len) from the head. */
void buf_consume(struct buf *b, size_t n);

/* All return 0, -ENOBUFS past max, -ENOMEM; the buffer is then as before. */
int buf_append(struct buf *b, const void *src, size_t n) __attribute__((warn_unused_result));
int buf_puts(struct buf *b, const char *s) __attribute__((warn_unused_result));
int buf_printf(struct buf *b, const char *fmt, ...)
    __attribute__((format(printf, 2, 3), warn_unused_result));

/* Writes a NUL after the last byte without counting it. 0, -ENOBUFS or -ENOMEM. */
int buf_terminate(struct buf *b) __attribute__((warn_unused_result));

/*
 * One read(2) of at most `want` bytes into the tail, or one write(2) from the head that consumes
 * what was written. Both return the count (0 at end of file), or -errno; -ENOBUFS when the buffer
 * is full.
 */
ssize_t buf_read_fd(struct buf *b, int fd, size_t want);
ssize_t buf_write_fd(struct buf *b, int fd);

/* The same for a socket that others have too: they may have made it blocking. Never wait. */
ssize_t buf_recv(struct buf *b, int sock, size_t want);
ssize_t buf_send(struct buf *b, int sock);

#endif
