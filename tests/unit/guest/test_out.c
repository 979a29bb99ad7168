/*
 * guest/out.c: order, borders and bounds of what goes to the worker.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "guest/out.h"

struct fixture {
	struct out out;
	int pipe[2];
	size_t len;
	uint8_t bytes[1U << 20];
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	assert_int_equal(pipe2(f->pipe, O_NONBLOCK | O_CLOEXEC), 0);
	out_init(&f->out, f->pipe[1]);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	close(f->pipe[0]);
	close(f->pipe[1]);
	free(f);
	return 0;
}

/* Takes at most n bytes from the pipe. */
static size_t take(struct fixture *f, size_t n)
{
	size_t before = f->len;

	while (n > 0) {
		ssize_t got = read(f->pipe[0], f->bytes + f->len, n);

		if (got <= 0)
			break;
		f->len += (size_t)got;
		n -= (size_t)got;
	}
	return f->len - before;
}

/* Reads the frames that were taken; *at moves past one. */
static struct agent_head next_frame(const struct fixture *f, size_t *at)
{
	struct agent_head h;

	assert_int_equal(agent_get_head(f->bytes + *at, f->len - *at, &h), 1);
	assert_true(AGENT_HEAD_LEN + h.size <= f->len - *at);
	*at += AGENT_HEAD_LEN + h.size;
	return h;
}

static void put_data(struct out *o, uint32_t channel, size_t n)
{
	size_t max;
	uint8_t *to = out_data_room(o, &max);

	assert_non_null(to);
	assert_true(max >= n);
	memset(to, (int)channel, n);
	out_data_commit(o, channel, AGENT_STDOUT, n);
}

static void test_order_is_kept(void **state)
{
	struct fixture *f = *state;
	size_t at = 0;

	assert_true(out_put(&f->out, AGENT_STARTED, 0, 1, "a", 1, "bc", 2));
	put_data(&f->out, 1, 100);
	assert_true(out_put(&f->out, AGENT_END, 0, 1, NULL, 0, NULL, 0));
	assert_int_equal(out_flush(&f->out), 0);
	assert_true(out_is_empty(&f->out));
	(void)take(f, sizeof(f->bytes));
	assert_memory_equal(f->bytes + AGENT_HEAD_LEN, "abc", 3);
	assert_int_equal(next_frame(f, &at).type, AGENT_STARTED);
	assert_int_equal(next_frame(f, &at).type, AGENT_DATA);
	assert_int_equal(next_frame(f, &at).type, AGENT_END);
	assert_int_equal(at, f->len);
}

/* A PONG overtakes data, but never within a frame, however the stream cuts it. */
static void test_quick_frames_overtake_at_borders(void **state)
{
	struct fixture *f = *state;
	size_t at = 0;
	int data = 0;
	int pongs = 0;
	int pong_at = -1;

	for (uint32_t i = 1; i <= OUT_FRAMES; i++)
		put_data(&f->out, i, AGENT_PAYLOAD_MAX);
	assert_int_equal(out_flush(&f->out), 0);
	assert_true(f->out.blocked);
	assert_null(out_data_room(&f->out, &(size_t){0}));
	assert_true(out_put_quick(&f->out, AGENT_PONG, 0, 0, "pong", 4));
	while (!out_is_empty(&f->out)) {
		(void)take(f, 5000);
		assert_int_equal(out_flush(&f->out), 0);
	}
	assert_false(f->out.blocked);
	(void)take(f, sizeof(f->bytes));
	while (at < f->len) {
		struct agent_head h = next_frame(f, &at);

		if (h.type == AGENT_PONG) {
			pongs++;
			pong_at = data;
			assert_memory_equal(f->bytes + at - 4, "pong", 4);
			continue;
		}
		assert_int_equal(h.type, AGENT_DATA);
		assert_int_equal(h.channel, ++data);
		assert_int_equal(f->bytes[at - 1], data);
		assert_int_equal(f->bytes[at - h.size], data);
	}
	assert_int_equal(data, OUT_FRAMES);
	assert_int_equal(pongs, 1);
	assert_true(pong_at < (int)OUT_FRAMES);
}

static void test_rooms_make_whole_frames(void **state)
{
	struct fixture *f = *state;
	struct iovec iov[OUT_FRAMES];
	size_t want = AGENT_PAYLOAD_MAX + 1000;
	size_t at = 0;

	assert_int_equal(out_data_rooms(&f->out, want, iov), 2);
	assert_int_equal(iov[0].iov_len, AGENT_PAYLOAD_MAX);
	assert_int_equal(iov[1].iov_len, 1000);
	memset(iov[0].iov_base, 'a', iov[0].iov_len);
	memset(iov[1].iov_base, 'b', iov[1].iov_len);
	out_data_commits(&f->out, 9, AGENT_STDOUT, AGENT_PAYLOAD_MAX + 10);
	assert_int_equal(out_data_rooms(&f->out, want, iov), 0); /* only into an empty batch */
	while (!out_is_empty(&f->out)) {
		assert_int_equal(out_flush(&f->out), 0);
		(void)take(f, sizeof(f->bytes) - f->len);
	}
	assert_int_equal(next_frame(f, &at).size, AGENT_PAYLOAD_MAX);
	assert_int_equal(f->bytes[at - 1], 'a');
	assert_int_equal(next_frame(f, &at).size, 10);
	assert_int_equal(f->bytes[at - 1], 'b');
	assert_int_equal(at, f->len);
	assert_int_equal(out_data_rooms(&f->out, SIZE_MAX, iov), OUT_FRAMES);
	assert_int_equal(out_data_rooms(&f->out, 0, iov), 0);
}

/* Every channel can still say its last when requests are no longer served. */
static void test_there_is_always_room_for_the_last_word(void **state)
{
	struct fixture *f = *state;
	static uint8_t largest[OUT_CHANNEL_MAX];
	unsigned int served = 0;

	for (uint32_t i = 1; i <= OUT_FRAMES; i++)
		put_data(&f->out, i, AGENT_PAYLOAD_MAX);
	assert_int_equal(out_flush(&f->out), 0);
	while (out_may_serve(&f->out)) {
		assert_true(out_put(&f->out, AGENT_ERROR, 0, 1, largest, 500, NULL, 0));
		served++;
		assert_true(out_put_quick(&f->out, AGENT_PONG, 0, 0, largest, 64));
	}
	assert_true(served > 10);
	for (unsigned int i = 0; i < AGENT_CHANNELS_MAX; i++) {
		assert_true(out_put(
		    &f->out, AGENT_END, 0, i, largest, OUT_CHANNEL_MAX - AGENT_HEAD_LEN, NULL, 0));
		for (unsigned int n = 0; n < 4; n++) /* a window in portions of credit */
			assert_true(out_put_quick(&f->out, AGENT_CREDIT, 0, i, largest, 4));
	}
}

static void test_a_closed_stream_is_told(void **state)
{
	struct fixture *f = *state;
	const struct sigaction ignore = {.sa_handler = SIG_IGN};
	struct sigaction before;

	assert_int_equal(sigaction(SIGPIPE, &ignore, &before), 0);
	close(f->pipe[0]);
	assert_true(out_put(&f->out, AGENT_END, 0, 1, NULL, 0, NULL, 0));
	assert_int_equal(out_flush(&f->out), -EPIPE);
	assert_int_equal(sigaction(SIGPIPE, &before, NULL), 0);
	f->pipe[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_order_is_kept, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_quick_frames_overtake_at_borders, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_rooms_make_whole_frames, setup, teardown),
	    cmocka_unit_test_setup_teardown(
		test_there_is_always_room_for_the_last_word, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_a_closed_stream_is_told, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
