/*
 * The real sbx-guest, driven by frames: commands, their output, input, users and ends.
 */
#include "tests/unit/guest/drive.h"

#include <grp.h>
#include <sys/ioctl.h>

static void test_hello(void **state)
{
	struct drive *d = drive_of(state);

	assert_int_equal(d->hello.version, AGENT_VERSION);
	if (d->init)
		assert_int_equal(d->hello.pid, 1);
	else
		assert_int_equal(d->hello.pid, d->pid);
}

static void test_ping_is_echoed(void **state)
{
	struct drive *d = drive_of(state);
	char text[64];

	memset(text, 'x', sizeof(text));
	drive_send(d, AGENT_PING, 0, 0, 0, text, sizeof(text));
	while (d->pongs == 0)
		assert_true(drive_pump(d));
	assert_int_equal(d->pong_len, sizeof(text));
	assert_memory_equal(d->pong, text, sizeof(text));
	drive_send(d, AGENT_SYNC, 0, 0, 0, "s", 1);
	while (d->pongs == 1)
		assert_true(drive_pump(d));
	assert_int_equal(d->pong_len, 1);
}

static void test_exit_codes_and_signals(void **state)
{
	static const struct {
		const char *line;
		int code;
		int signal;
	} rows[] = {
	    {"true", 0, 0},
	    {"exit 7", 7, 0},
	    {"exit 255", 255, 0},
	    {"kill -9 $$", -1, SIGKILL},
	    {"kill -TERM $$", -1, SIGTERM},
	    {"kill -PIPE $$", -1, SIGPIPE},
	    {"kill -CHLD $$; exit 3", 3, 0},
	};
	struct drive *d = drive_of(state);

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct reply *r = drive_shell(d, rows[i].line);

		assert_false(r->failed);
		assert_true(r->started);
		assert_int_equal(r->end.exit_code, rows[i].code);
		assert_int_equal(r->end.signal, rows[i].signal);
		assert_int_equal(r->end.flags, 0);
	}
}

static void test_started_tells_the_pid(void **state)
{
	struct drive *d = drive_of(state);
	struct reply *r = drive_shell(d, "echo $$");
	uint32_t pid;

	assert_true(started_pid(r, &pid));
	assert_int_equal(pid, strtoul((char *)r->out[1], NULL, 10));
}

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

static void test_signal_reaches_the_group(void **state)
{
	struct drive *d = drive_of(state);
	const char *argv[] = {"sh", "-c",
	    "trap 'echo term; exit 5' TERM; sh -c 'echo ready; exec sleep 1000' & wait", NULL};
	uint32_t channel =
	    drive_exec(d, &(struct exec_spec){.argv = argv, .flags = AGENT_EXEC_NO_STDIN});
	uint32_t sig = SIGTERM;
	const struct reply *r;

	drive_await_output(d, channel, "ready");
	drive_send(d, AGENT_SIGNAL, 0, 0, channel, &sig, sizeof(sig));
	r = drive_wait(d, channel);
	assert_int_equal(r->end.exit_code, 5);
	assert_int_equal(r->end.flags, 0); /* the sleep was in the group, too */
	assert_string_equal((char *)r->out[1], "ready\nterm\n");
}

static void test_errors_to_start(void **state)
{
	static const struct {
		const char *file;
		const char *cwd;
		const char *user;
		uint32_t code;
		const char *text;
	} rows[] = {
	    {"no-such-program", NULL, NULL, AGENT_E_EXEC, "no such file: no-such-program"},
	    {"/no/such/program", NULL, NULL, AGENT_E_EXEC, "no such file: /no/such/program"},
	    {"/etc/passwd", NULL, NULL, AGENT_E_EXEC, "Permission denied: /etc/passwd"},
	    {"/etc", NULL, NULL, AGENT_E_EXEC, "Permission denied: /etc"},
	    {"true", "/no/such", NULL, AGENT_E_NOT_FOUND, "/no/such"},
	    {"true", "/etc/passwd", NULL, AGENT_E_NOT_A_DIRECTORY, "/etc/passwd"},
	    {"true", "tmp", NULL, AGENT_E_INVALID_PATH, "tmp"},
	    {"true", "/tmp/../etc", NULL, AGENT_E_INVALID_PATH, "/tmp/../etc"},
	    {"true", NULL, "nobody-at-all", AGENT_E_NO_USER, "nobody-at-all"},
	    {"true", NULL, "root:no-such-group", AGENT_E_NO_USER, "no-such-group"},
	    {"true", NULL, ":0", AGENT_E_INVALID, ":0"},
	    {"true", NULL, "4294967295", AGENT_E_NO_USER, "4294967295"},
	};
	struct drive *d = drive_of(state);
	int fds;

	(void)drive_shell(d, "true");
	fds = count_fds(d);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *argv[] = {rows[i].file, NULL};
		const struct reply *r = drive_wait(
		    d, drive_exec(d, &(struct exec_spec){
					 .argv = argv, .cwd = rows[i].cwd, .user = rows[i].user}));

		assert_true(r->failed);
		assert_false(r->started);
		if (r->error.code != rows[i].code || strstr(r->text, rows[i].text) == NULL)
			fail_msg("%s: code %u, %s", rows[i].text, r->error.code, r->text);
	}
	assert_int_equal(count_fds(d), fds);
}

static void test_environment_is_clean(void **state)
{
	struct drive *d = drive_of(state);
	const char *argv[] = {"env", NULL};
	const char *env[] = {"A=1", "HOME=/somewhere", "B=", NULL};
	const char *none[] = {NULL};
	const struct reply *r;

	r = drive_wait(d, drive_exec(d, &(struct exec_spec){.argv = argv, .env = env}));
	assert_string_equal((char *)r->out[1],
	    "A=1\nHOME=/somewhere\nB=\nUSER=root\nLOGNAME=root\nSHELL=/bin/bash\n"
	    "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n");
	r = drive_wait(d, drive_exec(d, &(struct exec_spec){.argv = argv, .env = none}));
	assert_non_null(strstr((char *)r->out[1], "HOME=/root\n"));
}

static void test_search_uses_the_requests_path(void **state)
{
	struct drive *d = drive_of(state);
	char dir[] = "/tmp/sbx-guest-test-XXXXXX";
	char file[64];
	char path[128];
	const char *argv[] = {"only-here", "x", NULL};
	const char *env[] = {path, NULL};
	const struct reply *r;
	FILE *f;

	assert_non_null(mkdtemp(dir));
	(void)snprintf(file, sizeof(file), "%s/only-here", dir);
	f = fopen(file, "w");
	assert_non_null(f);
	fputs("#!/bin/sh\necho $0 $1\n", f);
	fclose(f);
	(void)snprintf(path, sizeof(path), "PATH=/no/such:/etc/passwd:%s", dir);
	/* Found, but not executable: that is what is told. */
	r = drive_wait(d, drive_exec(d, &(struct exec_spec){.argv = argv, .env = env}));
	assert_int_equal(r->error.code, AGENT_E_EXEC);
	assert_int_equal(r->error.sys_err, EACCES);
	assert_int_equal(chmod(file, 0755), 0);
	r = drive_wait(d, drive_exec(d, &(struct exec_spec){.argv = argv, .env = env}));
	assert_int_equal(r->end.exit_code, 0);
	assert_non_null(strstr((char *)r->out[1], "only-here x\n"));
	unlink(file);
	rmdir(dir);
}

static void test_users_and_directories(void **state)
{
	struct drive *d = drive_of(state);
	static const struct {
		const char *user;
		const char *want;
	} rows[] = {
	    {"", "0 0 0\n"},
	    {"root", "0 0 0\n"},
	    {"nobody", "65534 65534 65534\n"},
	    {"54321", "54321 0 0\n"},
	    {"54321:54322", "54321 54322 54322\n"},
	    {"nobody:tty", "65534 5 5\n"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *argv[] = {"echo $(id -u) $(id -g) $(id -G)", NULL};
		const struct reply *r =
		    drive_wait(d, drive_exec(d, &(struct exec_spec){.argv = argv,
						    .user = rows[i].user,
						    .flags = AGENT_EXEC_SHELL}));

		assert_false(r->failed);
		assert_string_equal((char *)r->out[1], rows[i].want);
	}
	{
		const char *argv[] = {"pwd", NULL};
		const struct reply *r = drive_wait(
		    d, drive_exec(d, &(struct exec_spec){.argv = argv, .cwd = "/usr/bin"}));

		assert_string_equal((char *)r->out[1], "/usr/bin\n");
	}
}

/* A command has three descriptors, no blocked or ignored signal, its own session, no core dump. */
static void test_a_command_starts_clean(void **state)
{
	struct drive *d = drive_of(state);
	const char *fds[] = {"ls", "/proc/self/fd", NULL};
	const char *signals[] = {"grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status", NULL};
	const char *stat[] = {"cut", "-d ", "-f1,5,6", "/proc/self/stat", NULL};
	const struct reply *r;
	unsigned long pid;
	unsigned long group;
	unsigned long session;

	r = drive_wait(d, drive_exec(d, &(struct exec_spec){.argv = fds}));
	assert_string_equal((char *)r->out[1], "0\n1\n2\n3\n"); /* 3 is ls's own */
	r = drive_wait(d, drive_exec(d, &(struct exec_spec){.argv = signals}));
	assert_string_equal(
	    (char *)r->out[1], "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
	r = drive_wait(d, drive_exec(d, &(struct exec_spec){.argv = stat}));
	assert_int_equal(sscanf((char *)r->out[1], "%lu %lu %lu", &pid, &group, &session), 3);
	assert_int_equal(group, pid);
	assert_int_equal(session, pid);
	r = drive_shell(d, "ulimit -c");
	assert_string_equal((char *)r->out[1], "0\n");
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

static void test_large_request(void **state)
{
	struct drive *d = drive_of(state);
	const size_t size = 100000;
	char *big = malloc(size + 1);
	const char *argv[20] = {"sh", "-c", "echo $#; echo ${#1}", "sh"};
	const struct reply *r;

	assert_non_null(big);
	memset(big, 'a', size);
	big[size] = '\0';
	for (int i = 4; i < 19; i++)
		argv[i] = big;
	r = drive_wait(d, drive_exec(d, &(struct exec_spec){.argv = argv}));
	assert_string_equal((char *)r->out[1], "15\n100000\n");
	free(big);
	/* One string longer than the kernel takes. */
	big = malloc(200001);
	assert_non_null(big);
	memset(big, 'a', 200000);
	big[200000] = '\0';
	argv[4] = big;
	argv[5] = NULL;
	r = drive_wait(d, drive_exec(d, &(struct exec_spec){.argv = argv}));
	assert_true(r->failed);
	assert_int_equal(r->error.code, AGENT_E_TOO_LARGE);
	free(big);
}

/* Report 11 and 16: a thousand commands leave neither a zombie nor a descriptor. */
static void test_report_11_nothing_is_left_of_many_commands(void **state)
{
	struct drive *d = drive_of(state);
	const char *argv[] = {"true", NULL};
	int zombies;
	int fds;

	(void)drive_shell(d, "true");
	fds = count_fds(d);
	for (int i = 0; i < 1000; i++) {
		const struct reply *r =
		    drive_wait(d, drive_exec(d, &(struct exec_spec){.argv = argv}));

		assert_false(r->failed);
		assert_int_equal(r->end.exit_code, 0);
	}
	assert_int_equal(count_fds(d), fds);
	assert_true(count_children(d, &zombies) <= 2);
	assert_int_equal(zombies, 0);
}

static void test_many_commands_at_once(void **state)
{
	struct drive *d = drive_of(state);
	const char *argv[] = {"sh", "-c", "read x; echo $x; exit 3", NULL};
	uint32_t channels[64];
	int zombies;
	int fds;

	(void)drive_shell(d, "true");
	fds = count_fds(d);
	for (int i = 0; i < 64; i++)
		channels[i] = drive_exec(d, &(struct exec_spec){.argv = argv});
	for (int i = 0; i < 64; i++) {
		drive_feed(d, channels[i], "hello\n", 6);
		drive_eof(d, channels[i]);
	}
	for (int i = 0; i < 64; i++) {
		const struct reply *r = drive_wait(d, channels[i]);

		assert_int_equal(r->end.exit_code, 3);
		assert_string_equal((char *)r->out[1], "hello\n");
	}
	drive_ping(d);
	assert_int_equal(count_fds(d), fds);
	assert_true(count_children(d, &zombies) <= 64);
	/* The shims that are not kept are gone when they were reaped; the next command shows it. */
	(void)drive_shell(d, "sleep 0.1");
	assert_true(count_children(d, &zombies) <= 2);
	assert_int_equal(zombies, 0);
}

/* Report 11: as PID 1 the guest inherits every orphan of the box, and reaps it. */
static void test_report_11_init_reaps_orphans(void **state)
{
	struct drive *d = drive_of(state);
	int zombies;

	(void)drive_shell(d, "for i in $(seq 100); do (setsid sh -c 'sleep 0.2; exit 1' &) ; done");
	(void)drive_shell(
	    d, "while pgrep -x sleep -s 0 >/dev/null; do sleep 0.05; done; sleep 0.5");
	assert_true(count_children(d, &zombies) <= 2);
	assert_int_equal(zombies, 0);
}

static void test_too_many_channels_are_refused(void **state)
{
	struct drive *d = drive_of(state);
	const char *argv[] = {"sleep", "1000", NULL};
	uint32_t first = 0;
	uint32_t last = 0;
	const struct reply *r;

	for (unsigned int i = 0; i < 40; i++) {
		last =
		    drive_exec(d, &(struct exec_spec){.argv = argv, .flags = AGENT_EXEC_NO_STDIN});
		first = first == 0 ? last : first;
	}
	/* The others are requests that never become whole: they cost a channel, too. */
	for (unsigned int i = 40; i < AGENT_CHANNELS_MAX; i++) {
		last = drive_new_channel(d);
		drive_send(d, AGENT_EXEC, AGENT_F_MORE, 0, last, NULL, 0);
	}
	last = drive_new_channel(d);
	drive_send(d, AGENT_EXEC, AGENT_F_MORE, 0, last, "xx", 2);
	r = drive_wait(d, last);
	assert_int_equal(r->error.code, AGENT_E_RESOURCES);
	/* What still comes of it is thrown away. */
	drive_send(d, AGENT_EXEC, AGENT_F_MORE, 0, last, "yy", 2);
	drive_send(d, AGENT_EXEC, 0, 0, last, "zz", 2);
	drive_ping(d);
	for (uint32_t c = first; c < last; c++)
		drive_close(d, c);
	for (uint32_t c = first; c < last; c++)
		(void)drive_wait(d, c);
	assert_int_equal(drive_shell(d, "exit 6")->end.exit_code, 6);
}

static void test_large_requests_are_bounded_together(void **state)
{
	struct drive *d = drive_of(state);
	static uint8_t part[AGENT_PAYLOAD_MAX];
	uint32_t first = d->next + 1;
	bool refused = false;

	for (int i = 0; i < 8; i++) {
		uint32_t channel = drive_new_channel(d);

		for (int j = 0; j < 60; j++)
			drive_send(d, AGENT_EXEC, AGENT_F_MORE, 0, channel, part, sizeof(part));
		drive_ping(d);
		refused = refused || drive_reply(d, channel)->failed;
	}
	assert_true(refused);
	for (uint32_t c = first; c <= d->next; c++) {
		if (!drive_reply(d, c)->done)
			drive_close(d, c);
		(void)drive_wait(d, c);
	}
	assert_int_equal(drive_shell(d, "exit 6")->end.exit_code, 6);
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

/* Nobody in the box may look into the guest or take its descriptors. */
static void test_guest_is_not_dumpable(void **state)
{
	struct drive *d = drive_of(state);
	char line[200];
	const char *argv[] = {line, NULL};
	const struct reply *r;

	(void)snprintf(line, sizeof(line), "ls /proc/%u/fd", d->hello.pid);
	r = drive_wait(
	    d, drive_exec(d, &(struct exec_spec){
				 .argv = argv, .flags = AGENT_EXEC_SHELL, .user = "54321:54321"}));
	assert_int_not_equal(r->end.exit_code, 0);
	/* Still so after commands of other users: setuid resets the mark of shared memory. */
	(void)snprintf(line, sizeof(line), "/proc/%d/fd", d->pid);
	{
		struct stat st;

		assert_int_equal(stat(line, &st), 0);
		assert_int_equal(st.st_uid, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    GUEST_TEST(test_hello),
	    GUEST_TEST(test_ping_is_echoed),
	    GUEST_TEST(test_exit_codes_and_signals),
	    GUEST_TEST(test_started_tells_the_pid),
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
	    GUEST_TEST(test_signal_reaches_the_group),
	    GUEST_TEST(test_errors_to_start),
	    GUEST_TEST(test_environment_is_clean),
	    GUEST_TEST(test_search_uses_the_requests_path),
	    GUEST_TEST(test_users_and_directories),
	    GUEST_TEST(test_a_command_starts_clean),
	    GUEST_TEST(test_terminal),
	    GUEST_TEST(test_terminal_output_is_complete),
	    GUEST_TEST(test_large_request),
	    GUEST_TEST(test_report_11_nothing_is_left_of_many_commands),
	    GUEST_TEST(test_many_commands_at_once),
	    GUEST_TEST(test_report_11_init_reaps_orphans),
	    GUEST_TEST(test_too_many_channels_are_refused),
	    GUEST_TEST(test_large_requests_are_bounded_together),
	    GUEST_TEST(test_worker_that_does_not_read),
	    GUEST_TEST(test_guest_is_not_dumpable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
