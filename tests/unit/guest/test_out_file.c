/*
 * guest/out.c: data frames whose payload comes straight from a file: never another frame between
 * head and payload, never a frame that is not whole.
 *
 * The stream is a pipe of one page, so it is known where it stalls.
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
#include <sys/mman.h>
#include <unistd.h>

#include "guest/out.h"

#define PAGE 4096U
#define FILE_SIZE (2U * AGENT_PAYLOAD_MAX)
#define CHANNEL 7U

struct fixture {
	struct out out;
	struct out_told told;
	int pipe[2];
	int file;
	uint8_t data[FILE_SIZE];
	size_t len;
	uint8_t bytes[1U << 20];
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	assert_int_equal(pipe2(f->pipe, O_NONBLOCK | O_CLOEXEC), 0);
	assert_int_equal(fcntl(f->pipe[1], F_SETPIPE_SZ, PAGE), PAGE);
	f->file = memfd_create("test", MFD_CLOEXEC);
	assert_true(f->file >= 0);
	for (size_t i = 0; i < FILE_SIZE; i++)
		f->data[i] = (uint8_t)(i * 2654435761U >> 11);
	assert_int_equal(write(f->file, f->data, FILE_SIZE), FILE_SIZE);
	out_init(&f->out, f->pipe[1]);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	close(f->pipe[0]);
	close(f->pipe[1]);
	if (f->file >= 0)
		close(f->file);
	free(f);
	return 0;
}

/* Takes at most n bytes from the stream. */
static void take(struct fixture *f, size_t n)
{
	while (n > 0) {
		ssize_t got = read(f->pipe[0], f->bytes + f->len, n);

		if (got <= 0)
			return;
		f->len += (size_t)got;
		n -= (size_t)got;
	}
}

/* Takes n bytes in all, whatever the stream holds at once. */
static void take_exactly(struct fixture *f, size_t n)
{
	const size_t until = f->len + n;

	while (f->len < until) {
		const size_t before = f->len;

		take(f, until - f->len);
		assert_true(f->len > before);
		assert_int_equal(out_flush(&f->out), 0);
	}
}

static void take_all(struct fixture *f)
{
	while (!out_is_empty(&f->out)) {
		take(f, 3001);
		assert_int_equal(out_flush(&f->out), 0);
	}
	assert_false(f->out.blocked);
	take(f, sizeof(f->bytes) - f->len);
}

/* The next of the frames that were taken is this one. */
static void assert_frame(const struct fixture *f, size_t *at, enum agent_type type,
    uint32_t channel, const void *payload, size_t n)
{
	struct agent_head h;

	assert_int_equal(agent_get_head(f->bytes + *at, f->len - *at, &h), 1);
	assert_int_equal(h.type, type);
	assert_int_equal(h.channel, channel);
	assert_int_equal(h.size, n);
	assert_true(AGENT_HEAD_LEN + n <= f->len - *at);
	assert_memory_equal(f->bytes + *at + AGENT_HEAD_LEN, payload, n);
	*at += AGENT_HEAD_LEN + n;
}

static bool send_from(struct fixture *f, uint64_t offset, size_t n)
{
	return out_send_file(&f->out, CHANNEL, AGENT_STDOUT, f->file, offset, n, &f->told);
}

/* The stream stalls after so many bytes of the frame: what is said then comes after all of it. */
static void test_nothing_gets_between_head_and_payload(void **state)
{
	static const size_t stalls[] = {0, 1, AGENT_HEAD_LEN, AGENT_HEAD_LEN + 1,
	    AGENT_HEAD_LEN + PAGE, AGENT_HEAD_LEN + AGENT_PAYLOAD_MAX / 2,
	    AGENT_HEAD_LEN + AGENT_PAYLOAD_MAX - PAGE - 1};
	static const uint64_t offsets[] = {0, PAGE, 100, AGENT_PAYLOAD_MAX};
	struct fixture *f = *state;

	for (size_t i = 0; i < sizeof(stalls) / sizeof(stalls[0]) * 4; i++) {
		const uint64_t offset = offsets[i % 4];
		size_t at = 0;

		f->len = 0;
		assert_true(send_from(f, offset, AGENT_PAYLOAD_MAX));
		take_exactly(f, stalls[i / 4]);
		assert_true(f->out.blocked);
		assert_true(f->out.file.left > 0);
		assert_false(send_from(f, 0, 1));
		assert_null(out_data_room(&f->out, &(size_t){0}));
		assert_int_equal(out_data_rooms(&f->out, 1, (struct iovec[OUT_FRAMES]){0}), 0);
		assert_true(out_put(&f->out, AGENT_END, 0, 3, "end", 3, NULL, 0));
		assert_true(out_put_quick(&f->out, AGENT_PONG, 0, 0, "pong", 4));
		assert_true(out_put(&f->out, AGENT_END, 0, 4, "END", 3, NULL, 0));
		take_all(f);
		assert_frame(f, &at, AGENT_DATA, CHANNEL, f->data + offset, AGENT_PAYLOAD_MAX);
		assert_frame(f, &at, AGENT_PONG, 0, "pong", 4);
		assert_frame(f, &at, AGENT_END, 3, "end", 3);
		assert_frame(f, &at, AGENT_END, 4, "END", 3);
		assert_int_equal(at, f->len);
	}
	assert_false(f->told.cut);
	assert_false(f->told.copied);
}

/* A stream that was full before: the head waits, too. */
static void test_a_full_stream_takes_not_even_the_head(void **state)
{
	struct fixture *f = *state;
	size_t at = PAGE;

	assert_int_equal(write(f->pipe[1], f->data, PAGE), PAGE);
	assert_true(send_from(f, 5, 1000));
	assert_true(f->out.blocked);
	assert_true(out_put(&f->out, AGENT_END, 0, CHANNEL, "end", 3, NULL, 0));
	take_all(f);
	assert_frame(f, &at, AGENT_DATA, CHANNEL, f->data + 5, 1000);
	assert_frame(f, &at, AGENT_END, CHANNEL, "end", 3);
	assert_int_equal(at, f->len);
}

/* The file loses its end at some point: the frame is whole, and it is said. */
static void test_a_file_that_is_cut(void **state)
{
	static const size_t sizes[] = {0, 1, PAGE - 1, PAGE, 5 * PAGE + 7, AGENT_PAYLOAD_MAX - 1};
	struct fixture *f = *state;
	uint8_t *want = malloc(AGENT_PAYLOAD_MAX);

	assert_non_null(want);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		size_t at = 0;

		assert_int_equal(ftruncate(f->file, 0), 0);
		assert_int_equal(pwrite(f->file, f->data, FILE_SIZE, 0), FILE_SIZE);
		f->told = (struct out_told){0};
		f->len = 0;
		assert_true(send_from(f, 0, AGENT_PAYLOAD_MAX));
		assert_int_equal(ftruncate(f->file, (off_t)sizes[i]), 0);
		assert_true(out_put(&f->out, AGENT_PONG, 0, 0, "after", 5, NULL, 0));
		take_all(f);
		memcpy(want, f->data, sizes[i]);
		memset(want + sizes[i], 0, AGENT_PAYLOAD_MAX - sizes[i]);
		assert_frame(f, &at, AGENT_DATA, CHANNEL, want, AGENT_PAYLOAD_MAX);
		assert_frame(f, &at, AGENT_PONG, 0, "after", 5);
		assert_int_equal(at, f->len);
		assert_true(f->told.cut);
		assert_int_equal(f->told.err, 0);
		assert_false(f->told.copied);
	}
	free(want);
}

/* Neither sendfile(2) nor read(2) likes it. */
static void test_a_file_that_cannot_be_read(void **state)
{
	struct fixture *f = *state;
	size_t at = 0;

	close(f->file);
	f->file = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(send_from(f, 0, 3 * PAGE));
	take_all(f);
	memset(f->data, 0, 3 * PAGE);
	assert_frame(f, &at, AGENT_DATA, CHANNEL, f->data, 3 * PAGE);
	assert_int_equal(at, f->len);
	assert_true(f->told.cut);
	assert_true(f->told.copied);
	assert_int_equal(f->told.err, EISDIR);
}

/* sendfile(2) refuses a file that is only appended to. */
static void test_a_stream_that_must_be_copied_to(void **state)
{
	struct fixture *f = *state;
	size_t at = 0;

	close(f->pipe[0]);
	close(f->pipe[1]);
	f->pipe[1] = open("/tmp", O_TMPFILE | O_RDWR | O_APPEND | O_CLOEXEC, 0600);
	assert_true(f->pipe[1] >= 0);
	f->pipe[0] = dup(f->pipe[1]);
	out_init(&f->out, f->pipe[1]);
	assert_true(send_from(f, 77, AGENT_PAYLOAD_MAX));
	assert_true(out_is_empty(&f->out));
	assert_true(f->told.copied);
	assert_false(f->told.cut);
	assert_int_equal(lseek(f->pipe[0], 0, SEEK_SET), 0);
	take(f, sizeof(f->bytes));
	assert_frame(f, &at, AGENT_DATA, CHANNEL, f->data + 77, AGENT_PAYLOAD_MAX);
	assert_int_equal(at, f->len);
}

/* The owner goes in the middle: the frame is still whole, and the file is closed then. */
static void test_an_owner_that_goes(void **state)
{
	struct fixture *f = *state;
	size_t at = 0;

	assert_false(out_take_file(&f->out, f->file));
	assert_true(send_from(f, 0, AGENT_PAYLOAD_MAX));
	assert_true(f->out.blocked);
	assert_false(out_take_file(&f->out, f->file + 1));
	assert_true(out_take_file(&f->out, f->file));
	assert_int_equal(ftruncate(f->file, PAGE), 0);
	take_all(f);
	memset(f->data + PAGE, 0, AGENT_PAYLOAD_MAX - PAGE);
	assert_frame(f, &at, AGENT_DATA, CHANNEL, f->data, AGENT_PAYLOAD_MAX);
	assert_false(f->told.cut); /* nobody asks */
	assert_int_equal(fcntl(f->file, F_GETFD), -1);
	f->file = -1;
}

/* However much was said while the payload had to wait, there is room to copy it after all. */
static void test_there_is_room_to_copy(void **state)
{
	static uint8_t largest[OUT_CHANNEL_MAX];
	struct fixture *f = *state;
	size_t at = 0;

	assert_true(send_from(f, 0, AGENT_PAYLOAD_MAX));
	while (out_may_serve(&f->out))
		assert_true(out_put(&f->out, AGENT_ERROR, 0, 1, largest, 500, NULL, 0));
	for (unsigned int i = 0; i < AGENT_CHANNELS_MAX; i++)
		assert_true(out_put(
		    &f->out, AGENT_END, 0, 2, largest, OUT_CHANNEL_MAX - AGENT_HEAD_LEN, NULL, 0));
	assert_int_equal(ftruncate(f->file, 0), 0);
	take_all(f);
	memset(f->data, 0, AGENT_PAYLOAD_MAX);
	assert_frame(f, &at, AGENT_DATA, CHANNEL, f->data, AGENT_PAYLOAD_MAX);
	while (at < f->len - AGENT_CHANNELS_MAX * OUT_CHANNEL_MAX)
		assert_frame(f, &at, AGENT_ERROR, 1, largest, 500);
	assert_true(f->told.cut);
}

static void test_a_closed_stream_is_told(void **state)
{
	struct fixture *f = *state;
	const struct sigaction ignore = {.sa_handler = SIG_IGN};
	struct sigaction before;

	assert_int_equal(sigaction(SIGPIPE, &ignore, &before), 0);
	assert_true(send_from(f, 0, AGENT_PAYLOAD_MAX));
	close(f->pipe[0]);
	assert_int_equal(out_flush(&f->out), -EPIPE);
	assert_int_equal(sigaction(SIGPIPE, &before, NULL), 0);
	f->pipe[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_nothing_gets_between_head_and_payload),
	    TEST(test_a_full_stream_takes_not_even_the_head),
	    TEST(test_a_file_that_is_cut),
	    TEST(test_a_file_that_cannot_be_read),
	    TEST(test_a_stream_that_must_be_copied_to),
	    TEST(test_an_owner_that_goes),
	    TEST(test_there_is_room_to_copy),
	    TEST(test_a_closed_stream_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
