/*
 * fd: descriptors, their ownership, and passing them over Unix sockets.
 *
 * -1 is no descriptor. close(2) is never retried. Every descriptor is close-on-exec from birth.
 */
#ifndef SBXD_LIB_FD_H
#define SBXD_LIB_FD_H

#include <stddef.h>
#include <sys/types.h>
#include <sys/uio.h>

#define FD_PASS_MAX 4 /* descriptors in one message */

/* Closes *fd unless it is -1, and makes it -1. Keeps errno. */
void fd_close(int *fd);

/* A local descriptor that is closed when its scope ends. */
#define FD_SCOPED __attribute__((cleanup(fd_close)))

/* Returns *fd and makes it -1: ownership moves to the caller. */
int fd_take(int *fd);

/* 0 or -errno. */
int fd_set_nonblock(int fd);

/*
 * Sends one message with nfds (<= FD_PASS_MAX) descriptors, which stay the caller's. MSG_NOSIGNAL,
 * MSG_DONTWAIT. Returns the bytes sent or -errno.
 */
ssize_t fd_send_iov(int sock, const struct iovec *iov, size_t parts, const int *fds, size_t nfds);

/* The same for a message in one piece. */
ssize_t fd_send_msg(int sock, const void *data, size_t len, const int *fds, size_t nfds);

/*
 * Receives one message and at most FD_PASS_MAX descriptors, close-on-exec and now the caller's.
 * Unused entries of fds[] are -1. A message or a descriptor list that does not fit is -EMSGSIZE,
 * with every received descriptor closed. Returns the length, 0 at end of file, or -errno.
 */
ssize_t fd_recv_msg(int sock, void *data, size_t size, int fds[FD_PASS_MAX]);

/* Reads a whole small file (NUL-terminated, at most size-1 bytes) below dirfd. Length or -errno. */
ssize_t fd_read_file_at(int dirfd, const char *path, char *out, size_t size);

/* Opens, writes text at once, closes: for files of procfs and cgroupfs. 0 or -errno. */
int fd_write_file_at(int dirfd, const char *path, const char *text);

/* Number of open descriptors of this process, or -errno. */
int fd_count_open(void);

#endif
