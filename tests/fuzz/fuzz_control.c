/*
 * Fuzz target of the control messages. A packet is taken or refused by its contract alone; what is
 * taken can be sent again as it came; what is refused leaves no descriptor behind.
 *
 * Input: one byte for the number of descriptors that come along, then the packet.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "wire/control.h"

#define REQUIRE(cond) ((cond) ? (void)0 : (fprintf(stderr, "not so: %s\n", #cond), abort()))

/* The lowest free descriptor: it moves up when one leaks. */
static int lowest_free(void)
{
	int fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);

	(void)close(fd);
	return fd;
}

static bool same(const struct ctl_msg *a, const struct ctl_msg *b)
{
	return !memcmp(&a->head, &b->head, sizeof(a->head)) &&
	       !memcmp(&a->body, &b->body, sizeof(a->body)) && a->tail_len == b->tail_len &&
	       (a->tail_len == 0 || !memcmp(a->tail, b->tail, a->tail_len));
}

static const bool with_fd[CTL_TYPES] = {
    [CTL_HANDOVER] = true,
    [CTL_HELD] = true,
    [CTL_HANDBACK] = true,
    [CTL_PREPARE] = true,
    [CTL_SWEEP] = true,
    [CTL_IMAGE] = true,
};

/* Sends a good message on and expects the same at the other end. */
static void check_again(const int pair[2], const struct ctl_msg *msg, uint8_t *buf)
{
	static const union ctl_body zero;
	bool needs_fd = with_fd[msg->head.type];
	const void *body = &msg->body;
	struct ctl_msg back;
	int rc;

	rc = ctl_send(pair[0], (enum ctl_type)msg->head.type, msg->head.seq, msg->head.gen, body,
	    msg->tail, msg->tail_len, needs_fd ? STDERR_FILENO : -1);
	if (rc == -EINVAL) { /* it has no body */
		REQUIRE(!memcmp(&msg->body, &zero, sizeof(zero)));
		rc = ctl_send(pair[0], (enum ctl_type)msg->head.type, msg->head.seq, msg->head.gen,
		    NULL, NULL, 0, -1);
	}
	REQUIRE(rc == 0);
	REQUIRE(ctl_recv(pair[1], buf, &back) == 1);
	REQUIRE(same(msg, &back) && (back.fd >= 0) == needs_fd);
	fd_close(&back.fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static int pair[2] = {-1, -1};
	static uint8_t buf[2][CTL_MSG_MAX];
	const int fds[FD_PASS_MAX] = {0, 1, 2, 0};
	struct ctl_msg parsed;
	struct ctl_msg got;
	size_t nfds;
	int before;
	int good;
	int rc;

	if (pair[0] < 0)
		REQUIRE(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
	if (n < 2 || n - 1 > CTL_MSG_MAX)
		return 0;
	before = lowest_free();
	nfds = data[0] % (FD_PASS_MAX + 1);
	good = ctl_parse(data + 1, n - 1, &parsed);
	REQUIRE(good == 0 || good == -EBADMSG);
	REQUIRE(good < 0 || parsed.tail + parsed.tail_len == data + n);
	REQUIRE(fd_send_msg(pair[0], data + 1, n - 1, fds, nfds) == (ssize_t)(n - 1));
	rc = ctl_recv(pair[1], buf[0], &got);
	REQUIRE(rc == 1 || rc == -EBADMSG);
	REQUIRE(rc < 0 || (good == 0 && same(&parsed, &got) && nfds == (got.fd >= 0)));
	if (rc == 1)
		fd_close(&got.fd);
	if (good == 0)
		check_again(pair, &parsed, buf[1]);
	REQUIRE(lowest_free() == before);
	return 0;
}
