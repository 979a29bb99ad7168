/*
 * elsewhere_do: opens what a program under valgrind cannot (elsewhere.c). Not under it itself.
 *
 *   pidfd PID | openat2 FLAGS MODE RESOLVE PATH
 *
 * Descriptor 3 is the directory of openat2, 4 a socket, on which the descriptor goes out, or the
 * errno alone.
 */
#include <errno.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FD_DIR 3
#define FD_SOCKET 4

static int do_open(int argc, char **argv)
{
	struct open_how how = {0};

	if (argc == 3 && !strcmp(argv[1], "pidfd"))
		return (int)syscall(SYS_pidfd_open, atoi(argv[2]), 0);
	if (argc != 6 || strcmp(argv[1], "openat2") != 0) {
		errno = ENOSYS;
		return -1;
	}
	how.flags = strtoull(argv[2], NULL, 10);
	how.mode = strtoull(argv[3], NULL, 10);
	how.resolve = strtoull(argv[4], NULL, 10);
	return (int)syscall(SYS_openat2, FD_DIR, argv[5], &how, sizeof(how));
}

int main(int argc, char **argv)
{
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = {.bytes = {0}};
	int fd = do_open(argc, argv);
	int number = fd < 0 ? errno : 0;
	struct iovec iov = {.iov_base = &number, .iov_len = sizeof(number)};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};

	if (fd >= 0) {
		msg.msg_control = &control;
		msg.msg_controllen = sizeof(control);
		control.head.cmsg_level = SOL_SOCKET;
		control.head.cmsg_type = SCM_RIGHTS;
		control.head.cmsg_len = CMSG_LEN(sizeof(fd));
		memcpy(CMSG_DATA(&control.head), &fd, sizeof(fd));
	}
	return sendmsg(FD_SOCKET, &msg, MSG_NOSIGNAL) == sizeof(number) ? 0 : 1;
}
