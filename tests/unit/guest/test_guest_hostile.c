/*
 * The real sbx-guest: frames that break the rules end the connection, and nothing else.
 */
#include "tests/unit/guest/process.h"

/* Sends a frame as it is, whatever it says. */
static void send_raw(struct drive *d, struct agent_head h, const void *payload, size_t n)
{
	uint8_t frame[AGENT_HEAD_LEN + 1024];

	assert_true(n <= 1024);
	memcpy(frame, &h, sizeof(h));
	if (n > 0)
		memcpy(frame + sizeof(h), payload, n);
	/* It may be gone before all is sent. */
	(void)!send(d->fd, frame, sizeof(h) + n, MSG_NOSIGNAL);
}

static struct agent_head head_of(uint8_t type, uint32_t channel, uint32_t size)
{
	return (struct agent_head){
	    .size = size, .type = type, .channel = channel, .check = AGENT_CHECK ^ size ^ channel};
}

/* The guest ends by itself, cleanly, and with it what it ran. */
static void assert_ended(struct drive *d)
{
	int status = drive_await_end(d);

	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 1);
}

struct bad {
	const char *name;
	struct agent_head head;
	const char *payload;
	size_t size; /* bytes sent */
};

#define BAD(text, type_, channel_, payload_, size_)               \
	{                                                         \
		.name = text,                                     \
		.head = {.size = (size_),                         \
		    .type = (type_),                              \
		    .channel = (channel_),                        \
		    .check = AGENT_CHECK ^ (size_) ^ (channel_)}, \
		.payload = payload_, .size = size_                \
	}

static const struct bad frames[] = {
    {.name = "wrong check", .head = {.type = AGENT_PING, .check = AGENT_CHECK + 1}},
    {.name = "too large",
	.head = {.type = AGENT_PING,
	    .size = AGENT_PAYLOAD_MAX + 1,
	    .check = AGENT_CHECK ^ (AGENT_PAYLOAD_MAX + 1)}},
    {.name = "no stream 3",
	.head = {.type = AGENT_DATA, .arg = 3, .channel = 1, .check = AGENT_CHECK ^ 1}},
    {.name = "unknown flag", .head = {.type = AGENT_PING, .flags = 2, .check = AGENT_CHECK}},
    {.name = "reserved", .head = {.type = AGENT_PING, .reserved = 1, .check = AGENT_CHECK}},
    {.name = "more of a ping",
	.head = {.type = AGENT_PING, .flags = AGENT_F_MORE, .check = AGENT_CHECK}},
    BAD("type 0", 0, 0, "", 0),
    BAD("type 200", 200, 0, "", 0),
    BAD("ping on a channel", AGENT_PING, 5, "", 0),
    BAD("ping too long", AGENT_PING, 0,
	"01234567890123456789012345678901234567890123456789012345678901234", 65),
    BAD("exec on channel 0", AGENT_EXEC, 0, "", 0),
    BAD("data on channel 0", AGENT_DATA, 0, "", 0),
    BAD("empty exec", AGENT_EXEC, 1, "", 0),
    BAD("exec without argv", AGENT_EXEC, 1, "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 24),
    BAD("exec with too many", AGENT_EXEC, 1,
	"\0\0\0\0\0\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff\0\0\0\0\0\0\0\0", 24),
    BAD("exec with unknown flag", AGENT_EXEC, 1,
	"\x80\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1\0\0\0x", 29),
    BAD("exec with bytes behind", AGENT_EXEC, 1,
	"\0\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1\0\0\0xy", 30),
    BAD("exec with NUL", AGENT_EXEC, 1,
	"\0\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1\0\0\0\0", 29),
    BAD("short read", AGENT_READ, 1, "x", 1),
    BAD("short write", AGENT_WRITE, 1, "x", 1),
    BAD("a wake where nothing sleeps", AGENT_WAKE, 0, "01234567", 8),
    BAD("a HELLO from the worker", AGENT_HELLO, 1, "01234567", 8),
};

static void test_bad_frames(void **state)
{
	struct drive *d = drive_of(state);

	for (size_t i = 0; i < sizeof(frames) / sizeof(frames[0]); i++) {
		const char *argv[] = {"sleep", "1000", NULL};
		bool init = d->init;
		uint32_t channel;

		/* For a HELLO the channel must be open. */
		d->next = 0;
		channel =
		    drive_exec(d, &(struct exec_spec){.argv = argv, .flags = AGENT_EXEC_NO_STDIN});
		assert_int_equal(channel, 1);
		drive_ping(d);
		print_message("%s\n", frames[i].name);
		send_raw(d, frames[i].head, frames[i].payload, frames[i].size);
		assert_ended(d);
		drive_free(d);
		d = drive_start(init);
		*state = d;
	}
}

/* Rules that hold for the state a channel is in. */
static void test_bad_order(void **state)
{
	enum order {
		DATA_AFTER_EOF,
		TWO_EOFS,
		BEYOND_WINDOW,
		TOO_MUCH_CREDIT,
		CREDIT_ON_STDIN,
		SIGNAL_TO_A_FILE,
		SIGNAL_ZERO,
		SIGNAL_65,
		OTHER_TYPE,
		ID_IN_USE,
		REQUEST_TOO_LONG,
		ORDERS
	};
	struct drive *d = drive_of(state);
	static uint8_t part[AGENT_PAYLOAD_MAX];

	for (int i = 0; i < ORDERS; i++) {
		const char *argv[] = {"sleep", "1000", NULL};
		bool init = d->init;
		uint32_t one = 1;
		uint32_t channel = drive_exec(d, &(struct exec_spec){.argv = argv});

		drive_ping(d);
		print_message("order %d\n", i);
		switch ((enum order)i) {
		case DATA_AFTER_EOF:
			drive_eof(d, channel);
			send_raw(d, head_of(AGENT_DATA, channel, 1), "x", 1);
			break;
		case TWO_EOFS:
			drive_eof(d, channel);
			drive_eof(d, channel);
			break;
		case BEYOND_WINDOW:
			for (unsigned int n = 0; n < AGENT_WINDOW / AGENT_PAYLOAD_MAX; n++)
				drive_send(d, AGENT_DATA, 0, 0, channel, part, sizeof(part));
			drive_ping(
			    d); /* a whole window is fine, what the pipe took is not back yet */
			send_raw(d, head_of(AGENT_DATA, channel, 1), "x", 1);
			break;
		case TOO_MUCH_CREDIT:
			drive_credit(d, channel, 1, 1);
			break;
		case CREDIT_ON_STDIN:
			drive_credit(d, channel, 0, 1);
			break;
		case SIGNAL_TO_A_FILE:
			channel = drive_write_start(d, "/tmp/sbx-guest-test-never", 10, 0, 0644);
			send_raw(d, head_of(AGENT_SIGNAL, channel, 4), &one, 4);
			break;
		case SIGNAL_ZERO:
			send_raw(d, head_of(AGENT_SIGNAL, channel, 4), "\0\0\0\0", 4);
			break;
		case SIGNAL_65:
			send_raw(d, head_of(AGENT_SIGNAL, channel, 4), "A\0\0\0", 4);
			break;
		case OTHER_TYPE:
			channel = drive_new_channel(d);
			drive_send(d, AGENT_EXEC, AGENT_F_MORE, 0, channel, part, 100);
			send_raw(d, head_of(AGENT_READ, channel, 1), "x", 1);
			break;
		case ID_IN_USE:
			send_raw(d, head_of(AGENT_READ, channel, 1), "x", 1);
			break;
		case REQUEST_TOO_LONG:
			channel = drive_new_channel(d);
			for (unsigned int n = 0; n < AGENT_REQUEST_MAX / AGENT_PAYLOAD_MAX; n++)
				drive_send(
				    d, AGENT_EXEC, AGENT_F_MORE, 0, channel, part, sizeof(part));
			send_raw(d, head_of(AGENT_EXEC, channel, 1), "x", 1);
			break;
		case ORDERS:
			break;
		}
		assert_ended(d);
		drive_free(d);
		d = drive_start(init);
		*state = d;
	}
}

static void test_frames_for_closed_channels_are_ignored(void **state)
{
	struct drive *d = drive_of(state);
	uint32_t n = 5;

	drive_send(d, AGENT_DATA, 0, 0, 77, "x", 1);
	drive_send(d, AGENT_EOF, 0, 0, 77, NULL, 0);
	drive_send(d, AGENT_CREDIT, 0, 1, 77, &n, sizeof(n));
	drive_send(d, AGENT_SIGNAL, 0, 0, 77, &n, sizeof(n));
	drive_send(d, AGENT_RESIZE, 0, 0, 77, &n, sizeof(n));
	drive_send(d, AGENT_CLOSE, 0, 0, 77, NULL, 0);
	drive_ping(d);
	assert_int_equal(drive_shell(d, "exit 3")->end.exit_code, 3);
}

/* Frames arrive in whatever pieces the stream makes of them. */
static void test_frames_in_pieces(void **state)
{
	struct drive *d = drive_of(state);
	uint8_t frame[AGENT_HEAD_LEN + 4];

	agent_put_head(frame, AGENT_PING, 0, 0, 0, 4);
	memcpy(frame + AGENT_HEAD_LEN, "abcd", 4);
	for (size_t cut = 1; cut < sizeof(frame); cut++) {
		unsigned int before = d->pongs;

		drive_write(d, frame, cut);
		/* So that the pieces are read one by one. */
		(void)sched_yield();
		drive_write(d, frame + cut, sizeof(frame) - cut);
		while (d->pongs == before)
			assert_true(drive_pump(d));
		assert_memory_equal(d->pong, "abcd", 4);
	}
}

/* Bytes that are no frames at all, from many seeds. */
static void test_noise(void **state)
{
	struct drive *d = drive_of(state);

	for (uint32_t seed = 1; seed <= 20; seed++) {
		bool init = d->init;
		uint8_t noise[4096];
		uint32_t x = seed * 2654435761U;

		for (size_t i = 0; i < sizeof(noise); i++) {
			x = x * 1664525U + 1013904223U;
			noise[i] = (uint8_t)(x >> 24);
		}
		(void)!send(d->fd, noise, sizeof(noise), MSG_NOSIGNAL);
		assert_ended(d);
		drive_free(d);
		d = drive_start(init);
		*state = d;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    GUEST_TEST(test_bad_frames),
	    GUEST_TEST(test_bad_order),
	    GUEST_TEST(test_frames_for_closed_channels_are_ignored),
	    GUEST_TEST(test_frames_in_pieces),
	    GUEST_TEST(test_noise),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
