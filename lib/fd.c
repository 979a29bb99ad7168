/* fd: descriptors, their ownership, and passing them over Unix sockets. Any process; holds no
 * state. */
#include "lib/fd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

void fd_close(int *fd)
{
	int saved = errno;

	if (*fd >= 0)
		(void)close(*fd); /* the descriptor is gone whatever close says */
	*fd = -1;
	errno = saved;
}

int fd_take(int *fd)
{
	int taken = *fd;

	*fd = -1;
	return taken;
}

int fd_set_nonblock(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
		return -errno;
	return 0;
}

union fd_control {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(sizeof(int) * FD_PASS_MAX)];
};

ssize_t fd_send_iov(int sock, const struct iovec *iov, size_t parts, const int *fds, size_t nfds)
{
	union fd_control control;
	struct msghdr msg = {
	    .msg_iov = (struct iovec *)(uintptr_t)iov, /* sendmsg() does not write to it */
	    .msg_iovlen = parts,
	};
	struct cmsghdr *c;
	ssize_t n;

	if (nfds > FD_PASS_MAX)
		return -EINVAL;
	if (nfds > 0) {
		memset(&control, 0, sizeof(control));
		msg.msg_control = control.bytes;
		msg.msg_controllen = CMSG_SPACE(sizeof(int) * nfds);
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int) * nfds);
		memcpy(CMSG_DATA(c), fds, sizeof(int) * nfds);
	}
	n = sendmsg(sock, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
	return n < 0 ? -errno : n;
}

ssize_t fd_send_msg(int sock, const void *data, size_t len, const int *fds, size_t nfds)
{
	const struct iovec iov = {.iov_base = (void *)(uintptr_t)data, .iov_len = len};

	return fd_send_iov(sock, &iov, 1, fds, nfds);
}

static void fd_collect(struct msghdr *msg, int fds[FD_PASS_MAX])
{
	size_t count = 0;
	size_t n;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		if (n > FD_PASS_MAX - count)
			n = FD_PASS_MAX - count;
		memcpy(fds + count, CMSG_DATA(c), n * sizeof(int));
		count += n;
	}
}

ssize_t fd_recv_msg(int sock, void *data, size_t size, int fds[FD_PASS_MAX])
{
	union fd_control control;
	struct iovec iov = {.iov_base = data, .iov_len = size};
	struct msghdr msg = {
	    .msg_iov = &iov,
	    .msg_iovlen = 1,
	    .msg_control = control.bytes,
	    .msg_controllen = sizeof(control.bytes),
	};
	ssize_t n;

	for (size_t i = 0; i < FD_PASS_MAX; i++)
		fds[i] = -1;
	n = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	if (n < 0)
		return -errno;
	fd_collect(&msg, fds);
	if (msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) {
		for (size_t i = 0; i < FD_PASS_MAX; i++)
			fd_close(&fds[i]);
		return -EMSGSIZE;
	}
	return n;
}

ssize_t fd_read_file_at(int dirfd, const char *path, char *out, size_t size)
{
	FD_SCOPED int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC);
	size_t len = 0;
	ssize_t n;

	if (fd < 0)
		return -errno;
	while (len < size - 1) {
		n = read(fd, out + len, size - 1 - len);
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		len += (size_t)n;
	}
	out[len] = '\0';
	return (ssize_t)len;
}

int fd_write_file_at(int dirfd, const char *path, const char *text)
{
	FD_SCOPED int fd = openat(dirfd, path, O_WRONLY | O_CLOEXEC);
	size_t len = strlen(text);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = write(fd, text, len);
	if (n < 0)
		return -errno;
	return (size_t)n == len ? 0 : -EIO;
}

int fd_count_open(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int count = 0;

	if (!dir)
		return -errno;
	for (struct dirent *e = readdir(dir); e; e = readdir(dir))
		count += e->d_name[0] != '.';
	(void)closedir(dir); /* opened for reading only */
	return count - 1;    /* the directory's own descriptor */
}
