/*
 * The real sbx-guest: large files, of which it sends payloads without copying them, over a stream
 * that takes little at once.
 */
#include "tests/unit/guest/scratch.h"

#define BUFFER 1 /* the least that the kernel gives */
#define FILES 5U
#define SIZE (3U * AGENT_WINDOW + 12345U)

static int setup_narrow(void **state)
{
	*state = drive_start_with(false, BUFFER);
	return 0;
}

static uint8_t *pattern(size_t n, uint32_t seed)
{
	uint8_t *data = malloc(n);

	assert_non_null(data);
	for (size_t i = 0; i < n; i++)
		data[i] = (uint8_t)((i + seed) * 2654435761U >> 13);
	return data;
}

/* Reads the file up to the end of the first window. */
static struct reply *read_a_window(struct drive *d, uint32_t channel)
{
	struct reply *r = drive_reply(d, channel);

	r->no_credit = true;
	while (r->len[1] < AGENT_WINDOW)
		assert_true(drive_pump(d));
	assert_int_equal(r->len[1], AGENT_WINDOW);
	return r;
}

/* Cut in the middle of what is to come: every frame of it is whole, and no end is claimed. */
static void test_file_cut_while_it_is_read(void **state)
{
	static const size_t rest[] = {0, 1, 4096, 70000, AGENT_WINDOW - 1};
	struct drive *d = *state;
	uint8_t *data = pattern(SIZE, 0);
	struct scratch s;

	scratch_make(&s);
	for (size_t i = 0; i < sizeof(rest) / sizeof(rest[0]); i++) {
		const size_t cut = AGENT_WINDOW + rest[i];
		uint32_t channel;
		struct reply *r;

		put(scratch_path(&s, "file"), data, SIZE);
		channel = drive_read_start(d, s.path, 0, UINT64_MAX, 0);
		r = read_a_window(d, channel);
		assert_int_equal(truncate(s.path, (off_t)cut), 0);
		drive_credit(d, channel, AGENT_STDOUT, AGENT_WINDOW);
		(void)drive_wait(d, channel);
		assert_failed(r, AGENT_E_IO);
		assert_string_equal(r->text, "the file was cut short while it was read");
		assert_true(r->len[1] >= cut);
		assert_true(r->len[1] <= cut + AGENT_DATA_MAX);
		assert_memory_equal(r->out[1], data, cut);
		for (size_t k = cut; k < r->len[1]; k++)
			assert_int_equal(r->out[1][k], 0);
	}
	free(data);
	scratch_remove(&s);
}

/* So it is also when so little is left that it is copied. */
static void test_small_rest_is_cut(void **state)
{
	struct drive *d = *state;
	uint8_t *data = pattern(AGENT_WINDOW + 100, 0);
	struct scratch s;
	uint32_t channel;
	struct reply *r;

	scratch_make(&s);
	put(scratch_path(&s, "file"), data, AGENT_WINDOW + 100);
	channel = drive_read_start(d, s.path, 0, UINT64_MAX, 0);
	r = read_a_window(d, channel);
	assert_int_equal(truncate(s.path, AGENT_WINDOW), 0);
	drive_credit(d, channel, AGENT_STDOUT, AGENT_WINDOW);
	assert_failed(drive_wait(d, channel), AGENT_E_IO);
	assert_int_equal(r->len[1], AGENT_WINDOW);
	free(data);
	scratch_remove(&s);
}

static void test_file_grows_while_it_is_read(void **state)
{
	struct drive *d = *state;
	uint8_t *data = pattern(SIZE, 0);
	struct scratch s;
	uint32_t channel;
	struct reply *r;

	scratch_make(&s);
	put(scratch_path(&s, "file"), data, SIZE);
	channel = drive_read_start(d, s.path, 0, UINT64_MAX, 0);
	r = read_a_window(d, channel);
	assert_int_equal(truncate(s.path, 2 * SIZE), 0);
	r->no_credit = false;
	drive_credit(d, channel, AGENT_STDOUT, AGENT_WINDOW);
	(void)drive_wait(d, channel);
	assert_false(r->failed);
	assert_int_equal(r->end.bytes, SIZE);
	assert_int_equal(r->len[1], SIZE);
	assert_memory_equal(r->out[1], data, SIZE);
	free(data);
	scratch_remove(&s);
}

/* Files from offsets of every kind, a command, and pings, while the stream stalls all the time. */
static void test_several_at_once(void **state)
{
	static const uint64_t offsets[FILES] = {0, 4096, 100, 65535, 1};
	struct drive *d = *state;
	uint8_t *data[FILES];
	uint32_t channels[FILES];
	unsigned int pings = 0;
	const unsigned int before = d->pongs;
	struct scratch s;
	uint32_t command;
	bool done = false;

	scratch_make(&s);
	for (uint32_t i = 0; i < FILES; i++) {
		char name[] = "0";

		name[0] = (char)(name[0] + (char)i);
		data[i] = pattern(SIZE, i * 1000);
		put(scratch_path(&s, name), data[i], SIZE);
		channels[i] = drive_read_start(d, s.path, offsets[i], UINT64_MAX, 0);
	}
	command = drive_shell_start(d, "head -c 300000 /dev/zero; echo end");
	while (!done) {
		/* Answered in the midst of all that, though never within a frame. */
		if (pings - (d->pongs - before) < 8) {
			drive_send(d, AGENT_PING, 0, 0, 0, "ping", 4);
			pings++;
		}
		assert_true(drive_pump(d));
		done = drive_reply(d, command)->done;
		for (uint32_t i = 0; i < FILES; i++)
			done = done && drive_reply(d, channels[i])->done;
	}
	assert_true(d->pongs - before > 8);
	while (d->pongs - before < pings)
		assert_true(drive_pump(d));
	for (uint32_t i = 0; i < FILES; i++) {
		const struct reply *r = drive_reply(d, channels[i]);

		assert_false(r->failed);
		assert_int_equal(r->end.bytes, SIZE - offsets[i]);
		assert_int_equal(r->len[1], SIZE - offsets[i]);
		assert_memory_equal(r->out[1], data[i] + offsets[i], r->len[1]);
		free(data[i]);
	}
	assert_int_equal(drive_reply(d, command)->len[1], 300004);
	scratch_remove(&s);
}

/* A reader that stops in the middle of a payload; what it asked meanwhile is answered after it. */
static void test_reader_stalls_within_a_payload(void **state)
{
	struct drive *d = *state;
	uint8_t *data = pattern(SIZE, 0);
	struct scratch s;
	uint32_t channel;
	struct reply *r;
	size_t frames;

	scratch_make(&s);
	put(scratch_path(&s, "file"), data, SIZE);
	/* Not at a page's begin: so a payload is more pages than the kernel moves at once. */
	channel = drive_read_start(d, s.path, 100, UINT64_MAX, 0);
	r = drive_reply(d, channel);
	while (r->len[1] == 0)
		assert_true(drive_pump(d));
	for (unsigned int i = 0; i < 20; i++) {
		const unsigned int before = d->pongs;
		struct pollfd p = {.fd = d->fd, .events = POLLIN};
		ssize_t n = 0;

		/* Some bytes of a frame, and no more before the guest was asked. What is there
		 * already may be all. */
		if (d->have < sizeof(d->in) &&
		    poll(&p, 1, d->have > 0 ? 0 : DRIVE_PATIENCE_MS) == 1) {
			n = recv(d->fd, d->in + d->have, (sizeof(d->in) - d->have) / 2 + 1, 0);
			assert_true(n > 0);
		}
		d->have += (size_t)n;
		drive_send(d, AGENT_PING, 0, 0, 0, "ping", 4);
		frames = r->frames;
		while (d->pongs == before && !r->done)
			assert_true(drive_pump(d));
		assert_true(d->pongs > before || r->done); /* done: it came behind the last frame */
		/* What was on its way, and a payload or two: not the whole window. */
		assert_true(r->frames - frames < AGENT_WINDOW / AGENT_DATA_MAX);
		if (r->done)
			break;
	}
	(void)drive_wait(d, channel);
	assert_int_equal(r->len[1], SIZE - 100);
	assert_memory_equal(r->out[1], data + 100, SIZE - 100);
	free(data);
	scratch_remove(&s);
}

/* Closed while a payload is on its way: the frame is whole, and no descriptor stays. */
static void test_closed_within_a_payload(void **state)
{
	struct drive *d = *state;
	uint8_t *data = pattern(SIZE, 0);
	struct scratch s;
	int fds;

	scratch_make(&s);
	put(scratch_path(&s, "file"), data, SIZE);
	(void)drive_shell(d, "true");
	fds = count_fds(d);
	for (unsigned int i = 0; i < 20; i++) {
		uint32_t channel = drive_read_start(d, s.path, 100 * i, UINT64_MAX, 0);
		struct reply *r = drive_reply(d, channel);

		while (r->frames < 1 + i % 4)
			assert_true(drive_pump(d));
		drive_close(d, channel);
		(void)drive_wait(d, channel);
		assert_false(r->failed);
		assert_int_equal(r->end.flags, AGENT_END_KILLED);
		assert_int_equal(r->end.bytes, r->len[1]);
		assert_memory_equal(r->out[1], data + 100 * i, r->len[1]);
	}
	drive_ping(d);
	assert_int_equal(count_fds(d), fds);
	free(data);
	scratch_remove(&s);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup_narrow, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_file_cut_while_it_is_read),
	    TEST(test_small_rest_is_cut),
	    TEST(test_file_grows_while_it_is_read),
	    TEST(test_several_at_once),
	    TEST(test_reader_stalls_within_a_payload),
	    TEST(test_closed_within_a_payload),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
