/*
 * The real sbx-guest, driven by frames: how commands start and end, as whom, and how many.
 */
#include "tests/unit/guest/process.h"

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

/* A signal may come as soon as the request is sent: it waits for the command. */
static void test_early_signal_is_kept(void **state)
{
	struct drive *d = drive_of(state);
	const char *argv[] = {"sleep", "1000", NULL};
	uint32_t sig = SIGTERM;

	for (int i = 0; i < 20; i++) {
		uint32_t channel =
		    drive_exec(d, &(struct exec_spec){.argv = argv, .flags = AGENT_EXEC_NO_STDIN});

		drive_send(d, AGENT_SIGNAL, 0, 0, channel, &sig, sizeof(sig));
		assert_int_equal(drive_wait(d, channel)->end.signal, SIGTERM);
	}
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

static void test_helper_is_run_as_we_are(void **state)
{
	static const struct {
		const char *user;
		const char *cwd;
		uint32_t code; /* of the guest; 0: it runs */
	} rows[] = {
	    {NULL, NULL, 0},
	    {"root", NULL, AGENT_E_INVALID},
	    {NULL, "/tmp", AGENT_E_INVALID},
	};
	struct drive *d = drive_of(state);
	const char *argv[] = {"sbx-files", "version", NULL};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct reply *r = drive_wait(
		    d, drive_exec(d, &(struct exec_spec){.argv = argv,
					 .user = rows[i].user,
					 .cwd = rows[i].cwd,
					 .flags = AGENT_EXEC_HELPER | AGENT_EXEC_NO_STDIN}));

		assert_int_equal(r->failed ? r->error.code : 0, rows[i].code);
		if (rows[i].code)
			continue;
		assert_int_equal(r->end.exit_code, 0);
		assert_true(r->len[AGENT_STDOUT] > 0);
		assert_int_equal(r->len[AGENT_STDERR], 0);
	}
	/* Nobody else gets at the program. */
	assert_int_equal(drive_shell(d, "test -e /proc/self/fd/3")->end.exit_code, 1);
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

/* Nobody in the box, root included, may look into the guest or take its descriptors. */
static void test_guest_is_not_dumpable(void **state)
{
	struct drive *d = drive_of(state);
	const char *argv[] = {"true", NULL};
	const struct exec_spec other_user = {.argv = argv, .user = "54321"};
	char line[300];

	(void)snprintf(line, sizeof(line),
	    "readlink /proc/$$/exe || exit 5;"
	    "for p in %u $(pgrep -x -P %u sbx-shim); do"
	    " readlink /proc/$p/exe /proc/$p/fd/0 && exit 4; done; exit 0",
	    d->hello.pid, d->hello.pid);
	assert_int_equal(drive_shell(d, line)->end.exit_code, 0);
	/* Nor after a command that became another user in memory that was ours. */
	assert_int_equal(drive_wait(d, drive_exec(d, &other_user))->end.exit_code, 0);
	assert_int_equal(drive_shell(d, line)->end.exit_code, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    GUEST_TEST(test_hello),
	    GUEST_TEST(test_ping_is_echoed),
	    GUEST_TEST(test_exit_codes_and_signals),
	    GUEST_TEST(test_started_tells_the_pid),
	    GUEST_TEST(test_signal_reaches_the_group),
	    GUEST_TEST(test_early_signal_is_kept),
	    GUEST_TEST(test_errors_to_start),
	    GUEST_TEST(test_helper_is_run_as_we_are),
	    GUEST_TEST(test_environment_is_clean),
	    GUEST_TEST(test_search_uses_the_requests_path),
	    GUEST_TEST(test_users_and_directories),
	    GUEST_TEST(test_a_command_starts_clean),
	    GUEST_TEST(test_large_request),
	    GUEST_TEST(test_report_11_nothing_is_left_of_many_commands),
	    GUEST_TEST(test_many_commands_at_once),
	    GUEST_TEST(test_report_11_init_reaps_orphans),
	    GUEST_TEST(test_too_many_channels_are_refused),
	    GUEST_TEST(test_large_requests_are_bounded_together),
	    GUEST_TEST(test_guest_is_not_dumpable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
