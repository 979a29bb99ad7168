/*
 * The real sbx-guest: AGENT_STOP: everything in the box ends, and the box stays.
 */
#include "tests/unit/guest/process.h"

#define STOP_UID 54397U
#define STOP_USER "54397"
#define LONG_MS 3600000U

static uint32_t start(struct drive *d, const char *line)
{
	const char *argv[] = {line, NULL};

	return drive_exec(d,
	    &(struct exec_spec){
		.argv = argv, .user = STOP_USER, .flags = AGENT_EXEC_SHELL | AGENT_EXEC_NO_STDIN});
}

static void ask(struct drive *d, uint64_t nonce, uint32_t timeout_ms, uint32_t flags)
{
	const struct agent_stop s = {.nonce = nonce, .timeout_ms = timeout_ms, .flags = flags};

	drive_send(d, AGENT_STOP, 0, 0, 0, &s, sizeof(s));
}

/* The next answer is that of `nonce`. */
static void await(struct drive *d, uint64_t nonce)
{
	unsigned int before = d->pongs;
	uint64_t got;

	while (d->pongs == before)
		assert_true(drive_pump(d));
	assert_int_equal(d->pong_len, sizeof(got));
	memcpy(&got, d->pong, sizeof(got));
	assert_int_equal(got, nonce);
}

static void stop(struct drive *d, uint32_t timeout_ms)
{
	static uint64_t nonce = 1000;

	ask(d, ++nonce, timeout_ms, 0);
	await(d, nonce);
}

static void test_a_process_may_end_by_itself(void **state)
{
	struct drive *d = drive_of(state);
	uint32_t channel =
	    start(d, "trap 'echo bye; exit 7' TERM; echo ready; while :; do sleep 0.01; done");
	const struct reply *r;

	drive_await_output(d, channel, "ready");
	stop(d, LONG_MS);
	assert_int_equal(count_uid(STOP_UID), 0);
	r = drive_wait(d, channel);
	assert_int_equal(r->end.exit_code, 7);
	assert_int_equal(r->end.flags, 0);
	assert_string_equal((char *)r->out[1], "ready\nbye\n");
}

static void test_whatever_it_is_it_ends(void **state)
{
	struct drive *d = drive_of(state);
	uint32_t front =
	    start(d, "sleep 1000 &"
		     "setsid sleep 1000 &"
		     "(setsid sh -c '(setsid sh -c \"sleep 1000 & exec sleep 1000\" &) ; exit' &) ;"
		     "nohup setsid sh -c 'trap \"\" TERM HUP INT; while :; do sleep 1000; done' &"
		     "while [ $(ps --no-headers -o comm -U " STOP_USER
		     " | grep -c sleep) -lt 5 ]; do :; done;"
		     "echo ready; sleep 1000");
	uint32_t deaf = start(d, "trap '' TERM; echo ready; while :; do sleep 1000; done");
	const struct reply *r;
	int zombies;

	drive_await_output(d, front, "ready");
	drive_await_output(d, deaf, "ready");
	(void)drive_wait(d, start(d, "sleep 1000 & exit 0")); /* of a command that is over */
	stop(d, 2000); /* long enough for one that ends when told */
	assert_int_equal(count_uid(STOP_UID), 0);
	assert_int_equal(drive_wait(d, front)->end.signal, SIGTERM);
	r = drive_wait(d, deaf);
	assert_int_equal(r->end.signal, SIGKILL);
	assert_int_equal(r->end.flags, 0);
	assert_string_equal((char *)drive_shell(d, "echo again")->out[1], "again\n");
	assert_true(count_children(d, &zombies) <= 2);
	assert_int_equal(zombies, 0);
}

static void test_without_time_everything_is_killed(void **state)
{
	struct drive *d = drive_of(state);
	uint32_t channel = start(d, "trap 'exit 7' TERM; echo ready; while :; do sleep 0.01; done");

	drive_await_output(d, channel, "ready");
	stop(d, 0);
	assert_int_equal(count_uid(STOP_UID), 0);
	assert_int_equal(drive_wait(d, channel)->end.signal, SIGKILL);
}

static void test_what_forks_without_end_is_killed(void **state)
{
	struct drive *d = drive_of(state);
	uint32_t channel =
	    start(d, "trap '' TERM; ulimit -u 100; echo ready; f() { f & f; }; f 2>/dev/null");

	drive_await_output(d, channel, "ready");
	stop(d, 20);
	assert_int_equal(count_uid(STOP_UID), 0);
	assert_true(drive_wait(d, channel)->done);
}

static void test_what_is_stopped_hears_it(void **state)
{
	struct drive *d = drive_of(state);
	uint32_t channel = start(d, "trap 'exit 7' TERM; echo ready; kill -STOP $$; echo on");

	drive_await_output(d, channel, "ready");
	stop(d, LONG_MS);
	assert_int_equal(drive_wait(d, channel)->end.exit_code, 7);
}

/* Our own processes are not meant. */
static void test_files_go_on(void **state)
{
	struct drive *d = drive_of(state);
	char path[64];
	uint32_t channel;

	(void)snprintf(path, sizeof(path), "/tmp/sbx-stop-%d", d->pid);
	channel = drive_write_start(d, path, 4, 0, 0644);
	drive_feed(d, channel, "ab", 2);
	stop(d, 0);
	drive_feed(d, channel, "cd", 2);
	drive_eof(d, channel);
	assert_int_equal(drive_wait(d, channel)->end.bytes, 4);
	(void)unlink(path);
}

static void test_nothing_to_stop(void **state)
{
	struct drive *d = drive_of(state);

	stop(d, LONG_MS);
	stop(d, 0);
	assert_int_equal(drive_shell(d, "exit 3")->end.exit_code, 3);
	stop(d, LONG_MS);
}

/* What is left is left: it has heard, and is not killed. */
static void test_cancel(void **state)
{
	struct drive *d = drive_of(state);
	char line[256];
	char go[64];
	uint32_t channel;
	const struct reply *r;

	(void)snprintf(go, sizeof(go), "/tmp/sbx-go-%d", d->pid);
	(void)snprintf(line, sizeof(line),
	    "trap 'echo heard' TERM; echo ready; while [ ! -e %s ]; do sleep 0.01; done; exit 5",
	    go);
	channel = start(d, line);
	drive_await_output(d, channel, "ready");
	ask(d, 1, LONG_MS, 0);
	drive_await_output(d, channel, "heard");
	ask(d, 2, 0, AGENT_STOP_CANCEL);
	await(d, 1);
	await(d, 2);
	close(open(go, O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
	r = drive_wait(d, channel);
	assert_int_equal(r->end.exit_code, 5);
	(void)unlink(go);
}

static void test_another_takes_over(void **state)
{
	struct drive *d = drive_of(state);
	uint32_t channel = start(d, "trap '' TERM; echo ready; while :; do sleep 1000; done");

	drive_await_output(d, channel, "ready");
	ask(d, 1, LONG_MS, 0);
	ask(d, 2, 0, 0);
	await(d, 1);
	await(d, 2);
	assert_int_equal(count_uid(STOP_UID), 0);
	assert_int_equal(drive_wait(d, channel)->end.signal, SIGKILL);
}

/* A command that is closed meanwhile is killed though the stop leaves it time. */
static void test_closing_goes_on(void **state)
{
	struct drive *d = drive_of(state);
	uint32_t one = start(d, "trap '' TERM; echo ready; while :; do sleep 1000; done");
	uint32_t two = start(d, "trap '' TERM; echo ready; while :; do sleep 1000; done");

	drive_await_output(d, one, "ready");
	drive_await_output(d, two, "ready");
	ask(d, 1, LONG_MS, 0);
	drive_close(d, one);
	assert_int_equal(drive_wait(d, one)->end.flags, AGENT_END_KILLED);
	assert_false(drive_reply(d, two)->done);
	ask(d, 2, 0, 0);
	await(d, 1);
	await(d, 2);
	assert_int_equal(drive_wait(d, two)->end.signal, SIGKILL);
}

static void test_a_stop_that_breaks_the_rules(void **state)
{
	struct drive *d = drive_of(state);
	const struct agent_stop s = {.flags = 2};
	struct agent_head h;
	const uint8_t *p;

	drive_send(d, AGENT_STOP, 0, 0, 0, &s, sizeof(s));
	assert_false(drive_recv(d, &h, &p));
	assert_int_not_equal(drive_await_end(d), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    GUEST_TEST(test_a_process_may_end_by_itself),
	    GUEST_TEST(test_whatever_it_is_it_ends),
	    GUEST_TEST(test_without_time_everything_is_killed),
	    GUEST_TEST(test_what_forks_without_end_is_killed),
	    GUEST_TEST(test_what_is_stopped_hears_it),
	    GUEST_TEST(test_files_go_on),
	    GUEST_TEST(test_nothing_to_stop),
	    GUEST_TEST(test_cancel),
	    GUEST_TEST(test_another_takes_over),
	    GUEST_TEST(test_closing_goes_on),
	    GUEST_TEST(test_a_stop_that_breaks_the_rules),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
