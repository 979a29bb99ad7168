/*
 * The real sbx-guest: large files, whose content goes from the stream to them without being copied.
 */
#include <sched.h>
#include <sys/ioctl.h>

#include "tests/unit/guest/scratch.h"

#define SIZE (5U * AGENT_WINDOW + 12345U)

static uint8_t *pattern(size_t n, uint32_t seed)
{
	uint8_t *data = malloc(n);

	assert_non_null(data);
	for (size_t i = 0; i < n; i++)
		data[i] = (uint8_t)((i + seed) * 2654435761U >> 13);
	return data;
}

static void assert_written(
    struct drive *d, uint32_t channel, const char *path, const void *data, size_t n)
{
	const struct reply *r = drive_wait(d, channel);

	assert_false(r->failed);
	assert_int_equal(r->end.bytes, n);
	assert_content(path, data, n);
}

/* Frames of any length, down to those of which the pipe takes only so many. */
static void test_frames_of_any_length(void **state)
{
	static const size_t most[] = {3, 4095, 65536, AGENT_DATA_MAX - 1, AGENT_DATA_MAX};
	struct drive *d = drive_of(state);
	uint8_t *data = pattern(SIZE, 0);
	struct scratch s;

	scratch_make(&s);
	(void)scratch_path(&s, "file");
	for (size_t i = 0; i < sizeof(most) / sizeof(most[0]); i++) {
		const size_t n = most[i] < 100 ? 300000 : SIZE;
		uint32_t channel = drive_write_start(d, s.path, n, 0, 0644);

		drive_feed_by(d, channel, data, n, most[i]);
		drive_eof(d, channel);
		assert_written(d, channel, s.path, data, n);
	}
	free(data);
	scratch_remove(&s);
}

/* Others come and go meanwhile: what came before them and what comes after keeps its order. */
static void test_others_come_between(void **state)
{
	struct drive *d = drive_of(state);
	uint8_t *one = pattern(SIZE, 1);
	uint8_t *two = pattern(SIZE, 2);
	uint32_t channels[2] = {0, 0};
	struct scratch s;
	size_t at = 0;

	scratch_make(&s);
	channels[0] = drive_write_start(d, scratch_path(&s, "one"), SIZE, 0, 0644);
	for (unsigned int i = 0; at < SIZE; i++) {
		size_t n = 1 + (i * 77777U) % 200000U;

		if (n > SIZE - at)
			n = SIZE - at;
		drive_feed_by(d, channels[0], one + at, n, AGENT_DATA_MAX);
		if (i % 3 == 0)
			drive_ping(d);
		if (i == 5)
			channels[1] = drive_write_start(d, scratch_path(&s, "two"), SIZE, 0, 0644);
		if (i == 9)
			drive_close(d, channels[1]);
		if (i >= 5 && i < 9)
			drive_feed_by(d, channels[1], two, n, AGENT_DATA_MAX);
		at += n;
	}
	drive_eof(d, channels[0]);
	assert_written(d, channels[0], scratch_path(&s, "one"), one, SIZE);
	assert_int_equal(drive_wait(d, channels[1])->end.flags, AGENT_END_KILLED);
	assert_int_equal(scratch_count(&s), 1);
	free(one);
	free(two);
	scratch_remove(&s);
}

/* What was poured and then written along with what was copied has been consumed, too. */
static void test_credit_comes_back_when_others_come_between(void **state)
{
	struct drive *d = drive_of(state);
	uint8_t *data = pattern(SIZE, 5);
	struct scratch s;
	uint32_t channel;
	size_t at = 0;

	scratch_make(&s);
	channel = drive_write_start(d, scratch_path(&s, "file"), SIZE, 0, 0644);
	while (at + 200001 < SIZE) {
		uint32_t other;

		drive_feed_by(d, channel, data + at, 200000, AGENT_DATA_MAX);
		drive_ping(d);
		other = drive_write_start(d, scratch_path(&s, "other"), 1, 0, 0644);
		drive_feed_by(d, channel, data + at + 200000, 1, 1);
		drive_close(d, other);
		(void)drive_wait(d, other);
		at += 200001;
		/* Less than a portion of it, a half, may wait for more. */
		assert_true(drive_reply(d, channel)->allowance > AGENT_WINDOW / 2);
	}
	drive_feed_by(d, channel, data + at, SIZE - at, AGENT_DATA_MAX);
	drive_eof(d, channel);
	assert_written(d, channel, scratch_path(&s, "file"), data, SIZE);
	free(data);
	scratch_remove(&s);
}

/* The rest of a frame whose file could not be written is not the next one's. */
static void test_rest_of_a_failed_file_is_nobodys(void **state)
{
	struct drive *d = drive_of(state);
	uint8_t *data = pattern(SIZE, 6);
	uint8_t head[AGENT_HEAD_LEN];
	uint32_t channels[2];
	struct scratch s;

	scratch_make(&s);
	channels[0] = drive_write_start(d, scratch_path(&s, "short"), 10, 0, 0644);
	channels[1] = drive_write_start(d, scratch_path(&s, "file"), UINT64_MAX, 0, 0644);
	agent_put_head(head, AGENT_DATA, 0, AGENT_STDIN, channels[0], 200000);
	drive_write(d, head, sizeof(head));
	drive_write(d, data, 1000);
	assert_failed(drive_wait(d, channels[0]), AGENT_E_INVALID);
	drive_write(d, data + 1000, 199000);
	drive_feed_by(d, channels[1], data, SIZE, AGENT_DATA_MAX);
	drive_eof(d, channels[1]);
	assert_written(d, channels[1], scratch_path(&s, "file"), data, SIZE);
	free(data);
	scratch_remove(&s);
}

/* Until the guest has read all that was sent: TIOCOUTQ counts what it has not. */
static void drive_await_read(const struct drive *d)
{
	const uint64_t until = drive_now_ms() + DRIVE_PATIENCE_MS;
	int left = 1;

	while (left > 0) {
		assert_int_equal(ioctl(d->fd, TIOCOUTQ, &left), 0);
		assert_true(drive_now_ms() < until);
		(void)sched_yield();
	}
}

/* A head and a payload of which only a part is there. */
static void test_frame_that_comes_in_pieces(void **state)
{
	struct drive *d = drive_of(state);
	uint8_t *data = pattern(SIZE, 3);
	uint8_t head[AGENT_HEAD_LEN];
	struct scratch s;
	uint32_t channel;

	scratch_make(&s);
	channel = drive_write_start(d, scratch_path(&s, "file"), SIZE, 0, 0644);
	agent_put_head(head, AGENT_DATA, 0, AGENT_STDIN, channel, 100000);
	drive_ping(d);
	drive_write(d, head, 7);
	drive_await_read(d);
	drive_write(d, head + 7, AGENT_HEAD_LEN - 7);
	drive_await_read(d);
	drive_write(d, data, 50001);
	drive_await_read(d);
	drive_write(d, data + 50001, 49999);
	drive_reply(d, channel)->allowance -= 100000;
	drive_feed_by(d, channel, data + 100000, SIZE - 100000, AGENT_DATA_MAX);
	drive_eof(d, channel);
	assert_written(d, channel, s.path, data, SIZE);
	free(data);
	scratch_remove(&s);
}

/* Too much, too little, closed, and a worker that goes: nothing is left, and the old file stays. */
static void test_what_is_not_whole_is_nothing(void **state)
{
	struct drive *d = drive_of(state);
	uint8_t *data = pattern(SIZE, 4);
	struct scratch s;
	uint32_t channel;
	int fds;

	scratch_make(&s);
	put(scratch_path(&s, "file"), "old", 3);
	(void)drive_shell(d, "true");
	fds = count_fds(d);
	channel = drive_write_start(d, s.path, 700000, 0, 0644);
	drive_feed_by(d, channel, data, 700001, AGENT_DATA_MAX);
	assert_failed(drive_wait(d, channel), AGENT_E_INVALID);
	channel = drive_write_start(d, s.path, 700000, 0, 0644);
	drive_feed_by(d, channel, data, 699999, AGENT_DATA_MAX);
	drive_eof(d, channel);
	assert_failed(drive_wait(d, channel), AGENT_E_SHORT);
	channel = drive_write_start(d, s.path, SIZE, 0, 0644);
	drive_feed_by(d, channel, data, 300000, 100000);
	drive_close(d, channel);
	assert_int_equal(drive_wait(d, channel)->end.flags, AGENT_END_KILLED);
	drive_ping(d);
	assert_int_equal(count_fds(d), fds);
	assert_int_equal(scratch_count(&s), 1);

	channel = drive_write_start(d, s.path, SIZE, 0, 0644);
	drive_feed_by(d, channel, data, 300000, 100000);
	drive_ping(d);
	assert_int_equal(scratch_count(&s), 2);
	(void)shutdown(d->fd, SHUT_RDWR);
	assert_int_equal(drive_await_end(d), 0);
	assert_int_equal(scratch_count(&s), 1);
	assert_content(s.path, "old", 3);
	free(data);
	scratch_remove(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    GUEST_TEST(test_frames_of_any_length),
	    GUEST_TEST(test_others_come_between),
	    GUEST_TEST(test_credit_comes_back_when_others_come_between),
	    GUEST_TEST(test_rest_of_a_failed_file_is_nobodys),
	    GUEST_TEST(test_frame_that_comes_in_pieces),
	    GUEST_TEST(test_what_is_not_whole_is_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
