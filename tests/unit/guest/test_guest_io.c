/*
 * The real sbx-guest, driven by frames: what goes in and out of commands.
 */
#include "tests/unit/guest/process.h"

/* Report 10: bytes stay bytes, and 8 MiB are 8 MiB. */
static void test_report_10_output_is_intact(void **state)
{
	struct drive *d = drive_of(state);
	const size_t size = 8U << 20;
	char path[] = "/tmp/sbx-guest-test-XXXXXX";
	const char *argv[] = {"cat", path, NULL};
	uint8_t *want = malloc(size);
	int fd = mkstemp(path);
	struct reply *r;

	assert_non_null(want);
	assert_true(fd >= 0);
	for (size_t i = 0; i < size; i++)
		want[i] = (uint8_t)(i * 2654435761U >> 13);
	assert_int_equal(write(fd, want, size), size);
	close(fd);
	r = drive_wait(d, drive_exec(d, &(struct exec_spec){.argv = argv}));
	unlink(path);
	assert_int_equal(r->end.exit_code, 0);
	assert_int_equal(r->len[1], size);
	assert_memory_equal(r->out[1], want, size);
	assert_int_equal(r->len[2], 0);
	free(want);
}

static void test_stdout_and_stderr_are_apart(void **state)
{
	struct drive *d = drive_of(state);
	const struct reply *r = drive_shell(d, "printf out; printf '\\377\\0err' >&2");

	assert_int_equal(r->len[1], 3);
	assert_memory_equal(r->out[1], "out", 3);
	assert_int_equal(r->len[2], 5);
	assert_memory_equal(r->out[2], "\377\0err", 5);
}

/* Report 9: a full stdin queue must drop nothing. */
static void test_report_09_stdin_is_intact(void **state)
{
	struct drive *d = drive_of(state);
	const char *argv[] = {"sh", "-c", "read first; echo got; read second; exec cat", NULL};
	const size_t size = 3U << 20;
	uint8_t *data = malloc(size);
	uint32_t channel;
	struct reply *r;

	assert_non_null(data);
	for (size_t i = 0; i < size; i++)
		data[i] = (uint8_t)(i * 2246822519U >> 11);
	memcpy(data, "x\ny\n", 4);
	channel = drive_exec(d, &(struct exec_spec){.argv = argv});
	drive_feed(d, channel, data, size);
	drive_eof(d, channel);
	r = drive_wait(d, channel);
	assert_int_equal(r->end.exit_code, 0);
	assert_int_equal(r->len[1], 4 + size - 4);
	assert_memory_equal(r->out[1], "got\n", 4);
	assert_memory_equal(r->out[1] + 4, data + 4, size - 4);
	free(data);
}

/* Report 9, too: what is sent before anybody reads waits, a whole window of it. */
static void test_report_09_stdin_waits_for_its_reader(void **state)
{
	struct drive *d = drive_of(state);
	const char *argv[] = {"sh", "-c", "kill -STOP $$; exec wc -c", NULL};
	uint8_t *data = calloc(1, AGENT_WINDOW);
	uint32_t channel = drive_exec(d, &(struct exec_spec){.argv = argv});
	struct reply *r = drive_reply(d, channel);
	uint32_t sig = SIGCONT;
	uint32_t pid;

	assert_non_null(data);
	drive_feed(d, channel, data, AGENT_WINDOW);
	drive_ping(d);
	assert_false(r->done);
	while (!started_pid(r, &pid))
		assert_true(drive_pump(d));
	drive_eof(d, channel);
	/* It may not have stopped yet: continue it until it ends. */
	while (!r->done) {
		drive_send(d, AGENT_SIGNAL, 0, 0, channel, &sig, sizeof(sig));
		drive_ping(d);
	}
	assert_int_equal(strtoul((char *)r->out[1], NULL, 10), AGENT_WINDOW);
	free(data);
}

static void test_unread_stdin_does_not_hold_the_end(void **state)
{
	struct drive *d = drive_of(state);
	const char *argv[] = {"true", NULL};
	uint8_t *data = calloc(1, AGENT_WINDOW);
	uint32_t channel = drive_exec(d, &(struct exec_spec){.argv = argv});

	assert_non_null(data);
	drive_feed(d, channel, data, AGENT_WINDOW);
	assert_int_equal(drive_wait(d, channel)->end.exit_code, 0);
	free(data);
}

static void test_closed_stdin_is_discarded(void **state)
{
	struct drive *d = drive_of(state);
	const char *argv[] = {"sh", "-c", "exec <&-; echo closed; read x <&2; exit 4", NULL};
	const size_t size = 4U << 20;
	uint8_t *data = calloc(1, size);
	uint32_t channel = drive_exec(d, &(struct exec_spec){.argv = argv});

	assert_non_null(data);
	drive_await_output(d, channel, "closed");
	drive_feed(d, channel, data, size); /* would stop for want of credit */
	assert_int_equal(drive_wait(d, channel)->end.exit_code, 4);
	free(data);
}

static void test_no_stdin_is_empty(void **state)
{
	struct drive *d = drive_of(state);
	const struct reply *r = drive_shell(d, "cat; readlink /proc/self/fd/0");

	assert_string_equal((char *)r->out[1], "/dev/null\n");
}

static void test_output_stops_without_credit(void **state)
{
	struct drive *d = drive_of(state);
	const char *argv[] = {"sh", "-c", "head -c 3000000 /dev/zero; echo end >&2", NULL};
	uint32_t channel =
	    drive_exec(d, &(struct exec_spec){.argv = argv, .flags = AGENT_EXEC_NO_STDIN});
	struct reply *r = drive_reply(d, channel);

	r->no_credit = true;
	while (r->len[1] < AGENT_WINDOW)
		assert_true(drive_pump(d));
	/* Others go on meanwhile. */
	for (int i = 0; i < 5; i++)
		assert_int_equal(drive_shell(d, "echo other")->end.exit_code, 0);
	assert_int_equal(r->len[1], AGENT_WINDOW);
	assert_int_equal(r->len[2], 0);
	r->no_credit = false;
	drive_credit(d, channel, 1, AGENT_WINDOW);
	assert_int_equal(drive_wait(d, channel)->end.exit_code, 0);
	assert_int_equal(r->len[1], 3000000);
	assert_string_equal((char *)r->out[2], "end\n");
}

/* What was written before the exit is sent, however late the credit comes. */
static void test_output_before_exit_is_never_lost(void **state)
{
	struct drive *d = drive_of(state);
	const size_t size = AGENT_WINDOW + 60000;
	const char *argv[] = {"head", "-c", "1108576", "/dev/zero", NULL};
	uint32_t channel =
	    drive_exec(d, &(struct exec_spec){.argv = argv, .flags = AGENT_EXEC_NO_STDIN});
	struct reply *r = drive_reply(d, channel);
	uint64_t until;

	r->no_credit = true;
	while (r->len[1] < AGENT_WINDOW)
		assert_true(drive_pump(d));
	/* Longer than any drain bound. */
	for (until = drive_now_ms() + 600; drive_now_ms() < until;)
		assert_int_equal(drive_shell(d, "sleep 0.1")->end.exit_code, 0);
	assert_false(r->done);
	r->no_credit = false;
	drive_credit(d, channel, 1, AGENT_WINDOW);
	(void)drive_wait(d, channel);
	assert_int_equal(r->len[1], size);
	assert_int_equal(r->end.flags, 0);
}

static void test_background_child_lets_the_command_return(void **state)
{
	struct drive *d = drive_of(state);
	uint64_t before = drive_now_ms();
	const struct reply *r = drive_shell(d, "sleep 1000 & echo $!");
	char line[100];
	long pid = strtol((char *)r->out[1], NULL, 10);

	assert_int_equal(r->end.exit_code, 0);
	assert_int_equal(r->end.flags, AGENT_END_LEFT_OPEN);
	assert_true(drive_now_ms() - before < 10000);
	/* It lives on with the box, and is reaped when it ends. */
	(void)snprintf(line, sizeof(line), "kill -0 %ld && kill %ld", pid, pid);
	assert_int_equal(drive_shell(d, line)->end.exit_code, 0);
	(void)snprintf(line, sizeof(line), "while kill -0 %ld 2>&-; do sleep 0.01; done", pid);
	assert_int_equal(drive_shell(d, line)->end.exit_code, 0);
}

/* A background server that logs to the pipe of the command that started it is neither killed by
 * SIGPIPE nor blocked. */
static void test_background_child_can_write_on(void **state)
{
	struct drive *d = drive_of(state);
	char dir[] = "/tmp/sbx-guest-test-XXXXXX";
	char line[300];
	const struct reply *r;

	assert_non_null(mkdtemp(dir));
	(void)snprintf(line, sizeof(line),
	    "(sleep 0.3; head -c 200000 /dev/zero && echo ok > %s/done) &", dir);
	r = drive_shell(d, line);
	assert_int_equal(r->end.flags, AGENT_END_LEFT_OPEN);
	(void)snprintf(
	    line, sizeof(line), "while ! [ -s %s/done ]; do sleep 0.02; done; rm -r %s", dir, dir);
	assert_int_equal(drive_shell(d, line)->end.exit_code, 0);
}

static void test_terminal(void **state)
{
	struct drive *d = drive_of(state);
	const char *size_argv[] = {"stty", "size", NULL};
	const char *argv[] = {
	    "sh", "-c", "tty >/dev/null && echo tty; read x; stty size; cat", NULL};
	uint16_t bigger[2] = {132, 50};
	uint32_t channel;
	const struct reply *r;

	r = drive_wait(d,
	    drive_exec(d, &(struct exec_spec){
			      .argv = size_argv, .flags = AGENT_EXEC_TTY, .cols = 97, .rows = 31}));
	assert_string_equal((char *)r->out[1], "31 97\r\n");
	channel = drive_exec(
	    d, &(struct exec_spec){.argv = argv, .flags = AGENT_EXEC_TTY, .cols = 80, .rows = 24});
	drive_await_output(d, channel, "tty\r\n");
	drive_send(d, AGENT_RESIZE, 0, 0, channel, bigger, sizeof(bigger));
	drive_feed(d, channel, "\n", 1);
	drive_await_output(d, channel, "50 132\r\n");
	drive_eof(d, channel); /* end of file as a person types it */
	r = drive_wait(d, channel);
	assert_int_equal(r->end.exit_code, 0);
	assert_int_equal(r->len[2], 0);
}

static void test_terminal_output_is_complete(void **state)
{
	struct drive *d = drive_of(state);
	const char *argv[] = {"seq", "1", "20000", NULL};
	const struct reply *r = drive_wait(
	    d, drive_exec(d, &(struct exec_spec){
				 .argv = argv, .flags = AGENT_EXEC_TTY, .cols = 80, .rows = 24}));

	assert_int_equal(r->len[1], 108894 + 20000);
	assert_string_equal((char *)r->out[1] + r->len[1] - 7, "20000\r\n");
}

static uint32_t start_on_terminal(struct drive *d, const char *line)
{
	const char *argv[] = {"sh", "-c", line, NULL};

	return drive_exec(
	    d, &(struct exec_spec){.argv = argv, .flags = AGENT_EXEC_TTY, .cols = 80, .rows = 24});
}

/* A program that closes the terminal before it exits, as cat does, is not hung up on. */
static void test_a_terminal_that_nobody_has_open_stays(void **state)
{
	struct drive *d = drive_of(state);
	const struct reply *r = drive_wait(
	    d, start_on_terminal(d, "echo said; exec 0<&- 1>&- 2>&-; sleep 0.2; exit 5"));

	assert_int_equal(r->end.exit_code, 5);
	assert_int_equal(r->end.signal, 0);
	assert_string_equal((char *)r->out[1], "said\r\n");
	r = drive_wait(
	    d, start_on_terminal(d, "exec 0<&- 1>&- 2>&-; sleep 0.1; echo back >/dev/tty; "
				    "sleep 0.1; echo last >/dev/tty"));
	assert_int_equal(r->end.exit_code, 0);
	assert_string_equal((char *)r->out[1], "back\r\nlast\r\n");
}

/* The end of input is one also behind a line that has no end. */
static void test_end_of_a_terminals_input(void **state)
{
	static const char *const inputs[] = {
	    "", "a line\n", "half a line", "a line\nand half a line"};
	struct drive *d = drive_of(state);

	for (size_t i = 0; i < sizeof(inputs) / sizeof(inputs[0]); i++) {
		uint32_t channel = start_on_terminal(d, "stty -echo; echo ready; exec cat");
		const struct reply *r;

		drive_await_output(d, channel, "ready\r\n");
		if (*inputs[i])
			drive_feed(d, channel, inputs[i], strlen(inputs[i]));
		drive_eof(d, channel);
		r = drive_wait(d, channel);
		assert_int_equal(r->end.exit_code, 0);
		assert_int_equal(r->len[1],
		    strlen("ready\r\n") + strlen(inputs[i]) + (strchr(inputs[i], '\n') ? 1U : 0U));
	}
}

/* Nobody reads yet: less may come than a whole window, until there is credit. */
static void test_narrow_window(void **state)
{
	struct drive *d = drive_of(state);
	const char *argv[] = {"head", "-c", "2000000", "/dev/zero", NULL};
	uint32_t channel = drive_exec(
	    d, &(struct exec_spec){.argv = argv, .flags = AGENT_EXEC_NO_STDIN | AGENT_EXEC_NARROW});
	struct reply *r = drive_reply(d, channel);

	r->no_credit = true;
	while (r->len[1] < AGENT_WINDOW_NARROW)
		assert_true(drive_pump(d));
	for (int i = 0; i < 20; i++)
		assert_int_equal(drive_shell(d, "true")->end.exit_code, 0);
	assert_int_equal(r->len[1], AGENT_WINDOW_NARROW);
	assert_false(r->done);
	r->no_credit = false;
	drive_credit(d, channel, 1, AGENT_WINDOW);
	(void)drive_wait(d, channel);
	assert_int_equal(r->len[1], 2000000);
	assert_int_equal(r->end.exit_code, 0);
}

/* The guest's memory is bounded and its loop alive while the worker does not read. */
static void test_worker_that_does_not_read(void **state)
{
	struct drive *d = drive_of(state);
	const char *argv[] = {"cat", "/dev/zero", NULL};
	uint32_t channels[8];
	uint8_t ping[64] = {0};
	uint8_t frame[AGENT_HEAD_LEN + 64];
	size_t sent = 0;
	ssize_t n;
	struct pollfd p = {.fd = d->fd, .events = POLLOUT};

	for (int i = 0; i < 8; i++) {
		channels[i] =
		    drive_exec(d, &(struct exec_spec){.argv = argv, .flags = AGENT_EXEC_NO_STDIN});
		drive_reply(d, channels[i])->no_credit = true;
	}
	/* Pings until the guest stops to take them: it does not keep their answers for ever. */
	agent_put_head(frame, AGENT_PING, 0, 0, 0, sizeof(ping));
	memcpy(frame + AGENT_HEAD_LEN, ping, sizeof(ping));
	while (poll(&p, 1, 300) == 1) {
		n = send(d->fd, frame, sizeof(frame), MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n < 0)
			break;
		assert_int_equal(n, sizeof(frame));
		sent++;
		assert_true(sent < 1000000);
	}
	/* Now everything is read: as many answers as pings, and a window of each stream. */
	while (d->pongs < sent)
		assert_true(drive_pump(d));
	for (int i = 0; i < 8; i++)
		while (drive_reply(d, channels[i])->len[1] < AGENT_WINDOW)
			assert_true(drive_pump(d));
	for (int i = 0; i < 8; i++)
		drive_close(d, channels[i]);
	for (int i = 0; i < 8; i++)
		assert_int_equal(drive_wait(d, channels[i])->end.flags, AGENT_END_KILLED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    GUEST_TEST(test_report_10_output_is_intact),
	    GUEST_TEST(test_stdout_and_stderr_are_apart),
	    GUEST_TEST(test_report_09_stdin_is_intact),
	    GUEST_TEST(test_report_09_stdin_waits_for_its_reader),
	    GUEST_TEST(test_unread_stdin_does_not_hold_the_end),
	    GUEST_TEST(test_closed_stdin_is_discarded),
	    GUEST_TEST(test_no_stdin_is_empty),
	    GUEST_TEST(test_output_stops_without_credit),
	    GUEST_TEST(test_output_before_exit_is_never_lost),
	    GUEST_TEST(test_background_child_lets_the_command_return),
	    GUEST_TEST(test_background_child_can_write_on),
	    GUEST_TEST(test_terminal),
	    GUEST_TEST(test_terminal_output_is_complete),
	    GUEST_TEST(test_a_terminal_that_nobody_has_open_stays),
	    GUEST_TEST(test_end_of_a_terminals_input),
	    GUEST_TEST(test_narrow_window),
	    GUEST_TEST(test_worker_that_does_not_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
