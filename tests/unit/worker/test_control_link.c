/* control_link: messages to and from an sbxd that the test plays, also one that does not read. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "worker/control_link.h"

#define OTHER_UID 65532U

struct fixture {
	struct loop *loop;
	struct control_link link;
	int sbxd;
	uint8_t scratch[CTL_MSG_MAX];
	uint8_t packet[CTL_MSG_MAX];
	struct ctl_msg got; /* by the link */
	int messages;
	int gone;
	uint32_t sent[64];
	int sent_count;
};

static void on_message(void *ctx, struct ctl_msg *msg)
{
	struct fixture *f = ctx;

	f->got = *msg;
	f->messages++;
}

static void on_sent(void *ctx, uint32_t word)
{
	struct fixture *f = ctx;

	assert_true(f->sent_count < 64);
	f->sent[f->sent_count++] = word;
}

static void on_gone(void *ctx)
{
	((struct fixture *)ctx)->gone++;
}

static const struct control_link_ops ops = {
    .message = on_message,
    .sent = on_sent,
    .gone = on_gone,
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	int pair[2];

	assert_non_null(f);
	assert_int_equal(
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
	f->loop = loop_create();
	assert_non_null(f->loop);
	f->sbxd = pair[1];
	assert_int_equal(control_link_init(&f->link, f->loop, pair[0], 5, f->scratch, &ops, f), 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	control_link_fini(&f->link);
	loop_destroy(f->loop);
	fd_close(&f->sbxd);
	free(f);
	return 0;
}

static void step(struct fixture *f)
{
	assert_int_equal(loop_step(f->loop, 0), 0);
}

static void test_receives(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(ctl_send(f->sbxd, CTL_CHECK, 9, 5, NULL, NULL, 0, -1), 0);
	step(f);
	assert_int_equal(f->messages, 1);
	assert_int_equal(f->got.head.type, CTL_CHECK);
	assert_int_equal(f->got.head.seq, 9);
}

static void test_sends_at_once(void **state)
{
	const struct ctl_conn who = {.cookie = 3};
	struct fixture *f = *state;
	struct ctl_msg msg;
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	assert_true(
	    control_link_send(&f->link, CTL_HANDBACK, 7, &who, sizeof(who), "bytes", 5, fd, 12));
	assert_int_equal(fcntl(fd, F_GETFD), -1); /* it was taken over */
	assert_int_equal(f->sent_count, 1);
	assert_int_equal(f->sent[0], 12);
	assert_int_equal(ctl_recv(f->sbxd, f->packet, &msg), 1);
	assert_int_equal(msg.head.seq, 7);
	assert_int_equal(msg.head.gen, 5);
	assert_int_equal(msg.body.conn.cookie, 3);
	assert_memory_equal(msg.tail, "bytes", 5);
	assert_true(msg.fd >= 0);
	fd_close(&msg.fd);
}

/* What does not fit the socket waits, in order, with its descriptor, and its word is told when it
 * is sent. */
static void test_queues(void **state)
{
	static const uint8_t bytes[60000];
	struct fixture *f = *state;
	const uint32_t count = 40;
	struct ctl_msg msg;
	int fds;

	for (uint32_t i = 0; i < count; i++) {
		const struct ctl_conn who = {.cookie = i};
		int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

		assert_true(control_link_send(
		    &f->link, CTL_HANDBACK, i, &who, sizeof(who), bytes, sizeof(bytes), fd, i));
	}
	assert_false(control_link_idle(&f->link));
	assert_true(f->sent_count < (int)count);
	for (uint32_t i = 0; i < count; i++) {
		while (ctl_recv(f->sbxd, f->packet, &msg) != 1)
			step(f);
		assert_int_equal(msg.body.conn.cookie, i);
		assert_int_equal(msg.tail_len, sizeof(bytes));
		assert_true(msg.fd >= 0);
		fd_close(&msg.fd);
	}
	step(f);
	assert_true(control_link_idle(&f->link));
	assert_int_equal(f->sent_count, count);
	for (uint32_t i = 0; i < count; i++)
		assert_int_equal(f->sent[i], i);
	fds = fd_count_open();
	step(f);
	assert_int_equal(fd_count_open(), fds);
}

static void test_sbxd_goes(void **state)
{
	static const uint8_t bytes[60000];
	const struct ctl_conn who = {.cookie = 1};
	struct fixture *f = *state;
	int fds = fd_count_open();
	int fd;

	for (int i = 0; i < 40; i++)
		assert_true(control_link_send(&f->link, CTL_HANDBACK, 0, &who, sizeof(who), bytes,
		    sizeof(bytes), open("/dev/null", O_RDONLY | O_CLOEXEC), 1));
	assert_int_equal(ctl_send(f->sbxd, CTL_PARK, 0, 5, NULL, NULL, 0, -1), 0);
	fd_close(&f->sbxd);
	while (!f->gone)
		step(f);
	assert_int_equal(f->gone, 1);
	assert_true(control_link_idle(&f->link));
	assert_int_equal(fd_count_open(), fds - 2); /* both ends, and nothing that waited */
	fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	assert_false(
	    control_link_send(&f->link, CTL_HANDBACK, 0, &who, sizeof(who), NULL, 0, fd, 1));
	assert_true(fcntl(fd, F_GETFD) >= 0); /* still the caller's */
	fd_close(&fd);
	assert_int_equal(fd_count_open(), fds - 2);
}

/* Its orders are obeyed to the last, also when it has not read all that it was told. */
static void test_orders_of_a_dead_sbxd(void **state)
{
	struct fixture *f = *state;

	assert_true(
	    control_link_send(&f->link, CTL_PONG, 0, NULL, 0, NULL, 0, -1, CONTROL_NO_WORD));
	assert_int_equal(ctl_send(f->sbxd, CTL_PARK, 1, 5, NULL, NULL, 0, -1), 0);
	assert_int_equal(ctl_send(f->sbxd, CTL_CHECK, 2, 5, NULL, NULL, 0, -1), 0);
	fd_close(&f->sbxd);
	while (!f->gone)
		step(f);
	assert_int_equal(f->messages, 2);
	assert_int_equal(f->got.head.seq, 2);
}

/* The same when it is found out by writing. */
static void test_orders_of_one_that_took_nothing(void **state)
{
	static const uint8_t bytes[60000];
	const struct ctl_conn who = {.cookie = 1};
	struct fixture *f = *state;

	while (control_link_idle(&f->link))
		assert_true(control_link_send(&f->link, CTL_HANDBACK, 0, &who, sizeof(who), bytes,
		    sizeof(bytes), open("/dev/null", O_RDONLY | O_CLOEXEC), 1));
	assert_int_equal(ctl_send(f->sbxd, CTL_PARK, 1, 5, NULL, NULL, 0, -1), 0);
	assert_int_equal(ctl_send(f->sbxd, CTL_CHECK, 2, 5, NULL, NULL, 0, -1), 0);
	fd_close(&f->sbxd);
	step(f);
	assert_int_equal(f->gone, 1);
	assert_int_equal(f->messages, 2);
	assert_true(control_link_idle(&f->link));
}

static void test_ended_from_here(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(ctl_send(f->sbxd, CTL_PARK, 1, 5, NULL, NULL, 0, -1), 0);
	assert_int_equal(ctl_send(f->sbxd, CTL_CHECK, 2, 5, NULL, NULL, 0, -1), 0);
	control_link_end(&f->link);
	assert_int_equal(f->messages, 2);
	assert_int_equal(f->gone, 1);
	assert_int_equal(f->link.fd, -1);
	control_link_end(&f->link);
	assert_int_equal(f->gone, 1);
	assert_int_equal(recv(f->sbxd, f->packet, sizeof(f->packet), 0), 0);
}

/* Sends more descriptors than our user may have under way; 0, or the line that was wrong. */
static int too_many_under_way(struct fixture *f)
{
	enum { MANY = 64 };
	const struct rlimit few = {16, 16};
	const struct ctl_conn who = {.cookie = 1};
	struct ctl_msg msg;

	/* Up to here it had the right to more. */
	if (setrlimit(RLIMIT_NOFILE, &few) < 0 || setresuid(OTHER_UID, OTHER_UID, OTHER_UID) < 0)
		return __LINE__;
	for (uint32_t i = 0; i < MANY && control_link_idle(&f->link); i++) {
		int fd = fcntl(f->link.fd, F_DUPFD_CLOEXEC, 0);

		if (!control_link_send(&f->link, CTL_HELD, 0, &who, sizeof(who), NULL, 0, fd, i))
			return __LINE__;
	}
	if (control_link_idle(&f->link))
		return __LINE__;
	while (!control_link_idle(&f->link)) {
		if (ctl_recv(f->sbxd, f->packet, &msg) != 1)
			return __LINE__;
		fd_close(&msg.fd);
		if (loop_step(f->loop, 0) < 0)
			return __LINE__;
	}
	return f->gone ? __LINE__ : 0;
}

static void test_too_many_descriptors_under_way(void **state)
{
	int status;
	pid_t pid;

	if (getuid() != 0)
		skip();
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		_exit(too_many_under_way(*state) % 256);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void test_garbage_ends_it(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(send(f->sbxd, "garbage", 7, 0), 7);
	step(f);
	assert_int_equal(f->gone, 1);
	assert_int_equal(f->messages, 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_receives),
	    TEST(test_sends_at_once),
	    TEST(test_queues),
	    TEST(test_sbxd_goes),
	    TEST(test_orders_of_a_dead_sbxd),
	    TEST(test_orders_of_one_that_took_nothing),
	    TEST(test_ended_from_here),
	    TEST(test_too_many_descriptors_under_way),
	    TEST(test_garbage_ends_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
