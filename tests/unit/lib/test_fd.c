/* Unit tests of lib/fd.c: ownership, passing descriptors, small files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/fd.h"

static void test_close_and_take(void **state)
{
	int fd = dup(STDERR_FILENO);
	int was = fd;
	int none = -1;

	(void)state;
	assert_int_equal(fd_take(&fd), was);
	assert_int_equal(fd, -1);
	fd = was;
	errno = 1234;
	fd_close(&fd);
	assert_int_equal(errno, 1234);
	assert_int_equal(fd, -1);
	assert_int_equal(fcntl(was, F_GETFD), -1);
	fd_close(&none);
	{
		FD_SCOPED int scoped = dup(STDERR_FILENO);

		was = scoped;
	}
	assert_int_equal(fcntl(was, F_GETFD), -1);
}

static void test_nonblock(void **state)
{
	int ends[2];

	(void)state;
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_int_equal(fd_set_nonblock(ends[0]), 0);
	assert_true(fcntl(ends[0], F_GETFL) & O_NONBLOCK);
	assert_int_equal(fd_set_nonblock(-1), -EBADF);
	fd_close(&ends[0]);
	fd_close(&ends[1]);
}

static void pair_open(int ends[2])
{
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
}

static void test_pass(void **state)
{
	int before = fd_count_open();
	int ends[2];
	int got[FD_PASS_MAX];
	int files[2];
	struct stat a;
	struct stat b;
	char text[8];

	(void)state;
	pair_open(ends);
	assert_int_equal(pipe2(files, O_CLOEXEC), 0);
	assert_int_equal(fd_send_msg(ends[0], "hey", 3, files, 2), 3);
	assert_int_equal(fd_recv_msg(ends[1], text, sizeof(text), got), 3);
	assert_memory_equal(text, "hey", 3);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(fstat(files[i], &a), 0);
		assert_int_equal(fstat(got[i], &b), 0);
		assert_int_equal(a.st_ino, b.st_ino);
		assert_true(fcntl(got[i], F_GETFD) & FD_CLOEXEC);
		fd_close(&got[i]);
		fd_close(&files[i]);
	}
	assert_int_equal(got[2], -1);
	assert_int_equal(got[3], -1);

	assert_int_equal(fd_send_msg(ends[0], "x", 1, NULL, 0), 1);
	assert_int_equal(fd_recv_msg(ends[1], text, sizeof(text), got), 1);
	assert_int_equal(got[0], -1);
	assert_int_equal(fd_recv_msg(ends[1], text, sizeof(text), got), -EAGAIN);
	fd_close(&ends[0]);
	assert_int_equal(fd_recv_msg(ends[1], text, sizeof(text), got), 0);
	assert_int_equal(fd_send_msg(ends[1], "x", 1, NULL, 0), -EPIPE); /* and no SIGPIPE */
	fd_close(&ends[1]);
	assert_int_equal(fd_count_open(), before);
}

/* Sends more descriptors than fd_send_msg() would. */
static void send_many(int sock, int count)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int) * 64)];
	} control;
	char byte = 'x';
	struct iovec iov = {.iov_base = &byte, .iov_len = 1};
	struct msghdr msg = {.msg_iov = &iov,
	    .msg_iovlen = 1,
	    .msg_control = control.bytes,
	    .msg_controllen = CMSG_SPACE(sizeof(int) * (size_t)count)};
	struct cmsghdr *c;

	memset(&control, 0, sizeof(control));
	c = CMSG_FIRSTHDR(&msg);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int) * (size_t)count);
	for (int i = 0; i < count; i++)
		memcpy(CMSG_DATA(c) + (size_t)i * sizeof(int), &sock, sizeof(int));
	assert_int_equal(sendmsg(sock, &msg, 0), 1);
}

/* What does not fit is refused, and nothing of it stays open. */
static void test_pass_too_much(void **state)
{
	const int five[5] = {0, 0, 0, 0, 0};
	int got[FD_PASS_MAX];
	int ends[2];
	char text[8];
	int before;

	(void)state;
	pair_open(ends);
	before = fd_count_open();
	assert_int_equal(fd_send_msg(ends[0], "x", 1, five, 5), -EINVAL);
	assert_int_equal(fd_send_msg(ends[0], "123456789", 9, ends, 2), 9);
	assert_int_equal(fd_recv_msg(ends[1], text, sizeof(text), got), -EMSGSIZE);
	assert_int_equal(fd_count_open(), before);
	for (int count = FD_PASS_MAX + 1; count < 64; count += 9) {
		send_many(ends[0], count);
		assert_int_equal(fd_recv_msg(ends[1], text, sizeof(text), got), -EMSGSIZE);
		for (int i = 0; i < FD_PASS_MAX; i++)
			assert_int_equal(got[i], -1);
		assert_int_equal(fd_count_open(), before);
	}
	send_many(ends[0], FD_PASS_MAX);
	assert_int_equal(fd_recv_msg(ends[1], text, sizeof(text), got), 1);
	assert_int_equal(fd_count_open(), before + FD_PASS_MAX);
	for (int i = 0; i < FD_PASS_MAX; i++)
		fd_close(&got[i]);
	fd_close(&ends[0]);
	fd_close(&ends[1]);
}

static void test_small_files(void **state)
{
	char dir[] = "/tmp/test_fd.XXXXXX";
	char text[8];
	int dirfd;
	int fd;

	(void)state;
	assert_non_null(mkdtemp(dir));
	dirfd = open(dir, O_DIRECTORY | O_CLOEXEC);
	assert_true(dirfd >= 0);
	assert_int_equal(fd_write_file_at(dirfd, "f", "x"), -ENOENT); /* it creates nothing */
	assert_int_equal(fd_read_file_at(dirfd, "f", text, sizeof(text)), -ENOENT);
	fd = openat(dirfd, "f", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	fd_close(&fd);
	assert_int_equal(fd_read_file_at(dirfd, "f", text, sizeof(text)), 0);
	assert_string_equal(text, "");
	assert_int_equal(fd_write_file_at(dirfd, "f", "0123456789"), 0);
	assert_int_equal(fd_read_file_at(dirfd, "f", text, sizeof(text)), 7);
	assert_string_equal(text, "0123456");
	assert_int_equal(fd_read_file_at(dirfd, ".", text, sizeof(text)), -EISDIR);
	assert_int_equal(unlinkat(dirfd, "f", 0), 0);
	fd_close(&dirfd);
	assert_int_equal(rmdir(dir), 0);
}

static void test_count(void **state)
{
	int before = fd_count_open();
	int fd = dup(STDERR_FILENO);

	(void)state;
	assert_true(before >= 3);
	assert_int_equal(fd_count_open(), before + 1);
	fd_close(&fd);
	assert_int_equal(fd_count_open(), before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_close_and_take),
	    cmocka_unit_test(test_nonblock),
	    cmocka_unit_test(test_pass),
	    cmocka_unit_test(test_pass_too_much),
	    cmocka_unit_test(test_small_files),
	    cmocka_unit_test(test_count),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
