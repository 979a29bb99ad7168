/*
 * The real sbx-guest: ending commands with everything they started, and its own end.
 */
#include "tests/unit/guest/process.h"

#include <sys/resource.h>

#define BOMB_UID 54399U
#define TREE_UID 54398U

/* In a shell: the guest that it runs below, and no other that may run on this host. */
#define GUEST_OF_SHELL "$(($(ps -o ppid= -p $PPID)))"

static uint32_t start_as(struct drive *d, const char *line, const char *user)
{
	const char *argv[] = {line, NULL};

	return drive_exec(
	    d, &(struct exec_spec){
		   .argv = argv, .user = user, .flags = AGENT_EXEC_SHELL | AGENT_EXEC_NO_STDIN});
}

/* Ends the process whose pid stands in `text`, as the box counts them. The exit status of kill. */
static int shell_kill(struct drive *d, const char *text, const char *how)
{
	const char *digits = strpbrk(text, "0123456789");
	char line[64];

	assert_non_null(digits);
	(void)snprintf(line, sizeof(line), "kill %s %lu", how, strtoul(digits, NULL, 10));
	return drive_shell(d, line)->end.exit_code;
}

/* Report 8: a timeout must not kill only the leader. */
static void test_report_08_close_kills_the_whole_tree(void **state)
{
	struct drive *d = drive_of(state);
	uint32_t channel = start_as(d,
	    "sleep 1000 &"
	    "setsid sleep 1000 &"
	    "(setsid sh -c '(setsid sh -c \"sleep 1000 & exec sleep 1000\" &) ; exit' &) ;"
	    "nohup setsid sh -c 'trap \"\" TERM HUP INT; while :; do sleep 1000; done' &"
	    "while [ $(ps --no-headers -o comm -U 54398 | grep -c sleep) -lt 5 ]; do :; done;"
	    "echo ready; sleep 1000",
	    "54398");
	const struct reply *r;
	int zombies;

	drive_await_output(d, channel, "ready");
	assert_true(count_uid(TREE_UID) >= 7);
	drive_close(d, channel);
	r = drive_wait(d, channel);
	/* The answer comes when all of it is gone, not before. */
	assert_int_equal(count_uid(TREE_UID), 0);
	assert_int_equal(r->end.flags, AGENT_END_KILLED);
	assert_int_equal(r->end.exit_code, -1);
	assert_int_equal(r->end.signal, SIGKILL);
	assert_non_null(strstr((char *)r->out[1], "ready\n"));
	assert_int_equal(drive_shell(d, "true")->end.exit_code, 0);
	assert_true(count_children(d, &zombies) <= 2);
	assert_int_equal(zombies, 0);
}

/* The tree also dies when its command is gone already and only the pipe's holders are left. */
static void test_report_08_close_in_the_drain(void **state)
{
	struct drive *d = drive_of(state);
	uint32_t channel = start_as(d,
	    "(while kill -0 $$; do :; done 2>/dev/null; while :; do echo x; sleep 0.01; done) &"
	    "echo $!; exit 9",
	    "54398");
	const struct reply *r;

	drive_await_output(d, channel, "x");
	drive_close(d, channel);
	r = drive_wait(d, channel);
	if (r->end.flags == AGENT_END_KILLED) {
		assert_int_equal(count_uid(TREE_UID), 0);
	} else { /* END had been sent before: the background process lives on */
		assert_int_equal(r->end.flags, AGENT_END_LEFT_OPEN);
		assert_int_equal(shell_kill(d, (char *)r->out[1], "-9"), 0);
	}
	assert_int_equal(r->end.exit_code, 9);
}

static void test_close_kills_only_its_own_tree(void **state)
{
	struct drive *d = drive_of(state);
	const char *argv[] = {"cat", NULL};
	uint32_t other = drive_exec(d, &(struct exec_spec){.argv = argv});
	uint32_t channel = drive_shell_start(d, "sleep 1000 & sleep 1000 & echo ready; wait");
	const struct reply *r;
	char left[32];

	(void)snprintf(left, sizeof(left), "%s",
	    (char *)drive_shell(d, "sleep 1001 >&- 2>&- & echo $!")->out[1]);
	drive_await_output(d, channel, "ready");
	drive_close(d, channel);
	assert_int_equal(drive_wait(d, channel)->end.flags, AGENT_END_KILLED);
	drive_feed(d, other, "alive\n", 6);
	drive_eof(d, other);
	r = drive_wait(d, other);
	assert_int_equal(r->end.exit_code, 0);
	assert_string_equal((char *)r->out[1], "alive\n");
	assert_int_equal(shell_kill(d, left, "-TERM"), 0);
}

static void test_close_sends_what_was_written(void **state)
{
	struct drive *d = drive_of(state);
	uint32_t channel = drive_shell_start(d, "printf partial; kill -STOP $$");
	const struct reply *r;

	drive_await_output(d, channel, "partial");
	drive_close(d, channel);
	r = drive_wait(d, channel);
	assert_int_equal(r->end.flags, AGENT_END_KILLED);
	assert_string_equal((char *)r->out[1], "partial");
}

/* A reader that gives no credit does not hold up the end of a command that is to die. */
static void test_close_does_not_wait_for_credit(void **state)
{
	struct drive *d = drive_of(state);
	uint32_t channel = drive_shell_start(d, "cat /dev/zero");
	struct reply *r = drive_reply(d, channel);

	r->no_credit = true;
	while (r->len[1] < AGENT_WINDOW)
		assert_true(drive_pump(d));
	drive_close(d, channel);
	(void)drive_wait(d, channel);
	assert_int_equal(r->len[1], AGENT_WINDOW);
	assert_int_equal(r->end.flags, AGENT_END_KILLED);
}

static void test_close_at_once(void **state)
{
	struct drive *d = drive_of(state);

	/* In every phase of a start: whatever comes of it, it is answered and gone. */
	for (int i = 0; i < 100; i++) {
		uint32_t channel = start_as(d, "sleep 1000 & sleep 1000", "54398");
		const struct reply *r;

		if (i % 4 == 1)
			drive_ping(d);
		drive_close(d, channel);
		r = drive_wait(d, channel);
		assert_false(r->failed);
		assert_int_equal(r->end.flags, AGENT_END_KILLED);
		assert_int_equal(count_uid(TREE_UID), 0);
	}
}

static void test_report_08_fork_bomb_is_killed(void **state)
{
	struct drive *d = drive_of(state);
	/* The limit keeps this machine alive; the bomb is at it within a moment. */
	uint32_t channel = start_as(d,
	    "ulimit -u 150; bomb() { bomb 2>&- | bomb 2>&- & }; trap '' TERM; bomb; echo lit; "
	    "exec sleep 1000",
	    "54399");
	const struct reply *r;

	drive_await_output(d, channel, "lit");
	drive_ping(d);
	drive_close(d, channel);
	r = drive_wait(d, channel);
	assert_int_equal(count_uid(BOMB_UID), 0);
	assert_int_equal(r->end.flags, AGENT_END_KILLED);
	assert_int_equal(drive_shell(d, "exit 3")->end.exit_code, 3);
}

/* Many short-lived processes in a chain that runs from its killer: each dies right after it forked.
 */
static void test_report_08_runaway_chain_is_killed(void **state)
{
	struct drive *d = drive_of(state);
	uint32_t channel = start_as(d,
	    "echo 'sh $0 & sh $0 & exit' > /dev/null; ulimit -u 60;"
	    "run() { setsid sh -c \"$1\" sh \"$1\" & }; "
	    "for i in 1 2 3 4; do run 'setsid sh -c \"$1\" sh \"$1\" & exit'; done; echo lit; "
	    "sleep 1000",
	    "54399");
	const struct reply *r;

	drive_await_output(d, channel, "lit");
	drive_ping(d);
	drive_close(d, channel);
	r = drive_wait(d, channel);
	assert_int_equal(count_uid(BOMB_UID), 0);
	assert_int_equal(r->end.flags, AGENT_END_KILLED);
}

#define PIDS_ROOT "/sys/fs/cgroup/pids"

static void write_file(const char *dir, const char *name, const char *text)
{
	char path[300];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

/* The directory of our own pids cgroup. False when there is no such controller. */
static bool own_cgroup(char *dir, size_t size)
{
	FILE *f = fopen("/proc/self/cgroup", "re");
	char line[300];
	bool found = false;

	assert_non_null(f);
	while (!found && fgets(line, sizeof(line), f) != NULL) {
		char *path = strstr(line, ":pids:");

		found = path != NULL;
		if (!found)
			continue;
		line[strcspn(line, "\n")] = '\0';
		(void)snprintf(dir, size, PIDS_ROOT "%s", path + 6);
	}
	fclose(f);
	return found;
}

/* With no pid left in the box commands are refused, and the tree that took them all still dies. */
static void test_no_pid_left(void **state)
{
	struct drive *d = drive_of(state);
	bool init = d->init;
	char home[300];
	char dir[100];
	uint32_t channel;
	const struct reply *r;

	(void)snprintf(dir, sizeof(dir), PIDS_ROOT "/sbx-guest-test-%d", (int)d->pid);
	if (!own_cgroup(home, sizeof(home)) || mkdir(dir, 0755) != 0)
		skip(); /* no cgroup v1 pids controller here */
	/* Another guest, born in the cgroup. */
	(void)teardown(state);
	write_file(dir, "cgroup.procs", "0");
	*state = drive_start(init);
	write_file(home, "cgroup.procs", "0");
	write_file(dir, "pids.max", "40");
	d = *state;

	/* The shell tries again for seconds when it cannot fork; the rest we take ourselves. */
	channel = drive_shell_start(d, "trap '' TERM; while :; do sleep 1000 & done");
	do {
		r = drive_reply(d, drive_shell_start(d, "exec sleep 1000"));
		while (!r->started && !r->done)
			assert_true(drive_pump(d));
	} while (r->started && d->next < 60);
	assert_true(r->failed);
	assert_int_equal(r->error.code, AGENT_E_RESOURCES);
	drive_ping(d);
	drive_close(d, channel);
	r = drive_wait(d, channel);
	assert_int_equal(r->end.flags, AGENT_END_KILLED);
	assert_int_equal(drive_shell(d, "exit 3")->end.exit_code, 3);

	(void)shutdown(d->fd, SHUT_RDWR);
	assert_int_equal(drive_await_end(d), 0);
	assert_int_equal(rmdir(dir), 0);
}

/* Somebody in the box kills what he can, shims included: the guest goes on, commands are answered.
 */
static void test_shims_may_be_killed(void **state)
{
	struct drive *d = drive_of(state);
	const char *line = d->init ? "kill -9 -1; echo alone; exit 5"
				   : "pkill -9 -x -P " GUEST_OF_SHELL
				     " sbx-shim; echo alone; exit 5";
	uint32_t other = drive_shell_start(d, "echo ready; sleep 1000");
	const struct reply *r;

	drive_await_output(d, other, "ready");
	r = drive_shell(d, line);
	/* Its own shim went with the others: what it was is still known. */
	assert_int_equal(r->end.exit_code, 5);
	assert_string_equal((char *)r->out[1], "alone\n");
	if (!d->init)
		drive_close(d, other);
	r = drive_wait(d, other);
	assert_int_equal(r->end.signal, SIGKILL);
	for (int i = 0; i < 5; i++)
		assert_int_equal(drive_shell(d, "exit 3")->end.exit_code, 3);
}

/* Its own, while it waits for the command. */
static void test_stopped_shim_is_continued(void **state)
{
	struct drive *d = drive_of(state);
	const char *argv[] = {"sh", "-c", "read x; kill -STOP $PPID; echo stopped; exit 4", NULL};
	uint32_t channel = drive_exec(d, &(struct exec_spec){.argv = argv});
	const struct reply *r;

	while (!drive_reply(d, channel)->started) /* the shim says so */
		assert_true(drive_pump(d));
	drive_feed(d, channel, "\n", 1);
	r = drive_wait(d, channel);
	assert_int_equal(r->end.exit_code, 4);
	assert_int_equal(r->end.flags, 0);
	assert_string_equal((char *)r->out[1], "stopped\n");
}

/* All there are, those too that wait for a command. */
static void test_stopped_shims_take_commands(void **state)
{
	struct drive *d = drive_of(state);

	const char *line = d->init ? "kill -STOP -1; exit 5"
				   : "pkill -STOP -x -P " GUEST_OF_SHELL " sbx-shim; exit 5";

	for (int i = 0; i < 5; i++) {
		assert_int_equal(drive_shell(d, line)->end.exit_code, 5);
		assert_int_equal(drive_shell(d, "exit 3")->end.exit_code, 3);
	}
}

/* Report 7: after a command was reaped nothing is signalled. */
static void test_report_07_no_signal_after_the_end(void **state)
{
	struct drive *d = drive_of(state);
	uint32_t sig = SIGKILL;

	for (int i = 0; i < 50; i++) {
		uint32_t channel = drive_shell_start(d, "exit 0");

		for (int j = 0; j < i % 8; j++)
			drive_ping(d);
		drive_send(d, AGENT_SIGNAL, 0, 0, channel, &sig, sizeof(sig));
		(void)drive_wait(d, channel);
		/* For a channel that is closed: ignored. */
		drive_send(d, AGENT_SIGNAL, 0, 0, channel, &sig, sizeof(sig));
	}
	assert_int_equal(drive_shell(d, "exit 3")->end.exit_code, 3);
}

/* The worker goes: everything dies, what was set apart included. */
static void test_end_of_the_worker_ends_everything(void **state)
{
	struct drive *d = drive_of(state);
	uint32_t channel = start_as(
	    d, "setsid sleep 1000 & (setsid sleep 1000 &) ; echo ready; sleep 1000", "54398");

	(void)drive_wait(d, start_as(d, "setsid sleep 1000 &", "54398"));
	drive_await_output(d, channel, "ready");
	close(d->fd);
	d->fd = -1;
	assert_int_equal(drive_await_end(d), 0);
	assert_int_equal(count_uid(TREE_UID), 0);
}

static void test_worker_killed_in_mid_output(void **state)
{
	struct drive *d = drive_of(state);
	uint32_t channel = start_as(d, "cat /dev/zero", "54398");
	struct reply *r = drive_reply(d, channel);

	while (r->len[1] < 3U << 20)
		assert_true(drive_pump(d));
	close(d->fd); /* with unread bytes in it: a reset, not an end of file */
	d->fd = -1;
	assert_int_equal(drive_await_end(d), 0);
	assert_int_equal(count_uid(TREE_UID), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    GUEST_TEST(test_report_08_close_kills_the_whole_tree),
	    GUEST_TEST(test_report_08_close_in_the_drain),
	    GUEST_TEST(test_close_kills_only_its_own_tree),
	    GUEST_TEST(test_close_sends_what_was_written),
	    GUEST_TEST(test_close_does_not_wait_for_credit),
	    GUEST_TEST(test_close_at_once),
	    GUEST_TEST(test_report_08_fork_bomb_is_killed),
	    GUEST_TEST(test_report_08_runaway_chain_is_killed),
	    GUEST_TEST(test_no_pid_left),
	    GUEST_TEST(test_shims_may_be_killed),
	    GUEST_TEST(test_stopped_shim_is_continued),
	    GUEST_TEST(test_stopped_shims_take_commands),
	    GUEST_TEST(test_report_07_no_signal_after_the_end),
	    GUEST_TEST(test_end_of_the_worker_ends_everything),
	    GUEST_TEST(test_worker_killed_in_mid_output),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
