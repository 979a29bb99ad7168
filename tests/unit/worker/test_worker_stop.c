/* sbx-worker as a process: a box is stopped, and what its clients see of it; its own name and
 * defaults. */
#include "tests/unit/worker/stage.h"

#define FOREVER "{\"command\":\"sleep 1000\"}"
#define LONG_MS 60000U

/* As stage_catch_up(), when clients have come and gone. */
static void catch_up(struct stage *t)
{
	stage_send(t, CTL_CHECK, NULL);
	do {
		assert_int_equal(stage_recv(t), 1);
		fd_close(&t->msg.fd);
	} while (t->msg.head.type != CTL_CHECKED);
}

static uint32_t orders;

static void order_stop(struct stage *t, uint32_t timeout_ms)
{
	const struct ctl_stop stop = {.timeout_ms = timeout_ms, .number = ++orders};

	stage_send(t, CTL_STOP, &stop);
}

/* Other messages may come first. */
static void await_stopped(struct stage *t)
{
	do {
		if (stage_recv(t) != 1)
			fail_msg("the worker ended before a stopped");
		fd_close(&t->msg.fd);
	} while (t->msg.head.type != CTL_STOPPED);
	assert_int_equal(t->msg.head.gen, STAGE_GEN);
	assert_int_equal(t->msg.head.seq, orders);
	assert_int_equal(t->msg.body.failed.code, 0);
}

static void stop(struct stage *t, uint32_t timeout_ms)
{
	order_stop(t, timeout_ms);
	await_stopped(t);
}

static void run(struct stage *t, const char *body, const char *expected)
{
	stage_request(t, STAGE_RUN, body);
	stage_expect_text(t, "\"duration_ms\"");
	stage_expect_text(t, expected);
}

static void test_stop_and_start(void **state)
{
	struct stage *t = stage_boot(state);

	run(t, "{\"command\":\"echo kept > /tmp/f; nohup sleep 1000 >/dev/null 2>&1 &\"}",
	    "\"exit_code\":0");
	stage_request(t, STAGE_RUN, FOREVER);
	catch_up(t);
	stop(t, LONG_MS);
	stage_expect_text(t, "\"signal\":15");
	stage_expect_text(t, "\"duration_ms\"");
	stop(t, LONG_MS); /* again: nothing to do */
	run(t, "{\"command\":\"cat /tmp/f; pgrep sleep\"}", "\"stdout\":\"kept\\n\"");
	stage_close(t);
}

static void test_what_does_not_end_is_killed(void **state)
{
	struct stage *t = stage_boot(state);

	stage_request(t, STAGE_RUN,
	    "{\"command\":\"trap '' TERM; touch /tmp/up; while :; do sleep 1000; done\"}");
	catch_up(t);
	{
		int first = t->client;

		t->client = -1;
		run(t, "{\"command\":\"while [ ! -e /tmp/up ]; do :; done\"}", "\"exit_code\":0");
		stop(t, 50);
		fd_close(&t->client);
		t->client = first;
		buf_clear(&t->answer);
	}
	stage_expect_text(t, "\"signal\":9");
	stage_close(t);
}

/* An idle connection goes back at once: its next request is for sbxd, which starts the box. */
static void test_connections_go_back(void **state)
{
	struct stage *t = stage_boot(state);

	run(t, "{\"argv\":[\"true\"]}", "\"exit_code\":0");
	order_stop(t, LONG_MS);
	stage_expect(t, CTL_HANDBACK);
	assert_int_equal(t->msg.tail_len, 0);
	fd_close(&t->msg.fd);
	stage_expect(t, CTL_STOPPED);
	stage_close(t);
}

/* Half a head goes back, too, with what there is of it. */
static void test_half_a_request_goes_back(void **state)
{
	static const char half[] = STAGE_RUN " HTTP/1.1\r\nHost";
	struct stage *t = stage_boot(state);

	run(t, "{\"argv\":[\"true\"]}", "\"exit_code\":0");
	assert_int_equal(send(t->client, half, strlen(half), 0), strlen(half));
	catch_up(t);
	order_stop(t, LONG_MS);
	stage_expect(t, CTL_HANDBACK);
	assert_int_equal(t->msg.tail_len, strlen(half));
	assert_memory_equal(t->msg.tail, half, strlen(half));
	fd_close(&t->msg.fd);
	stage_expect(t, CTL_STOPPED);
	stage_close(t);
}

/* The answer of what ran is sent, and then the connection goes back. */
static void test_a_busy_connection_goes_back_after_its_answer(void **state)
{
	struct stage *t = stage_boot(state);
	bool back = false;
	bool stopped = false;

	stage_request(t, STAGE_RUN, FOREVER);
	catch_up(t);
	order_stop(t, LONG_MS);
	while (!back || !stopped) {
		assert_int_equal(stage_recv(t), 1);
		back |= t->msg.head.type == CTL_HANDBACK;
		stopped |= t->msg.head.type == CTL_STOPPED;
		fd_close(&t->msg.fd);
	}
	stage_expect_text(t, "\"signal\":15");
	stage_close(t);
}

/* What was not asked in full is not begun; a half-written file is none. */
static void test_half_a_body_is_refused(void **state)
{
	static const char half[] =
	    "PUT " STAGE_BOX "/fs/write?path=/tmp/half HTTP/1.1\r\nHost: x\r\n"
	    "Content-Length: 100\r\n\r\nonly this";
	struct stage *t = stage_boot(state);

	stage_hand_over(t, half, strlen(half));
	catch_up(t);
	order_stop(t, LONG_MS);
	stage_expect_text(t, "\"reason\":\"invalid_state\"");
	assert_true(stage_has(t, "HTTP/1.1 409 "));
	await_stopped(t);
	run(t, "{\"command\":\"ls -A /tmp | grep -c .\"}", "\"stdout\":\"0\\n\"");
	stage_close(t);
}

/* One that was handed over just before is served as a whole, or given back as a whole. */
static void test_a_request_that_crosses_the_stop(void **state)
{
	static const char request[] =
	    "GET " STAGE_BOX "/fs/read?path=/etc/passwd HTTP/1.1\r\nHost: x\r\n\r\n";
	struct stage *t = stage_boot(state);
	bool back = false;
	bool stopped = false;
	bool whole = false;

	assert_int_equal(kill(t->pid, SIGSTOP), 0); /* so that it sees both at once */
	stage_hand_over(t, request, strlen(request));
	order_stop(t, LONG_MS);
	assert_int_equal(kill(t->pid, SIGCONT), 0);
	while (!back || !stopped) {
		assert_int_equal(stage_recv(t), 1);
		stopped |= t->msg.head.type == CTL_STOPPED;
		if (t->msg.head.type == CTL_HANDBACK) {
			back = true;
			whole = t->msg.tail_len == strlen(request);
			assert_true(whole || t->msg.tail_len == 0);
		}
		fd_close(&t->msg.fd);
	}
	if (!whole) /* it was served before */
		stage_expect_text(t, "HTTP/1.1 200 OK");
	stage_close(t);
}

static void test_stop_twice_is_answered_once(void **state)
{
	struct stage *t = stage_boot(state);

	stage_request(t, STAGE_RUN, FOREVER);
	catch_up(t);
	order_stop(t, LONG_MS);
	order_stop(t, LONG_MS);
	await_stopped(t);
	catch_up(t); /* CTL_CHECKED is next, maybe after the connection */
	stage_close(t);
}

static void test_close_ends_a_stop(void **state)
{
	struct stage *t = stage_boot(state);

	stage_request(t, STAGE_RUN, "{\"command\":\"trap '' TERM; while :; do sleep 1; done\"}");
	catch_up(t);
	order_stop(t, LONG_MS);
	stage_close(t); /* fails on any other answer than CTL_CLOSED after what is handed back */
}

/* sbxd dies meanwhile: the stop goes on, and the next sbxd, which asks again, is answered. */
static void test_the_next_sbxd_asks_again(void **state)
{
	struct stage *t = stage_new(*state);
	pid_t listener;

	t->orphan_grace_ms = 60000;
	stage_start(t);
	stage_request(t, STAGE_RUN, FOREVER);
	catch_up(t);
	order_stop(t, LONG_MS);
	fd_close(&t->ctl);
	t->ctl = rendezvous_connect(t->site->dir, 0, &listener);
	assert_true(t->ctl >= 0);
	assert_int_equal(listener, t->pid);
	order_stop(t, LONG_MS);
	await_stopped(t);
	stage_close(t);
}

/* What the one before ordered is done, and the next one hears nothing of it. */
static void test_the_next_sbxd_hears_only_what_it_asked(void **state)
{
	struct stage *t = stage_new(*state);
	pid_t listener;

	t->orphan_grace_ms = 60000;
	stage_start(t);
	stage_request(t, STAGE_RUN,
	    "{\"command\":\"trap 'while [ ! -e /tmp/go ]; do sleep 0.01; done; exit' TERM;"
	    "touch /tmp/up; while :; do sleep 0.01; done\"}");
	catch_up(t);
	order_stop(t, LONG_MS);
	fd_close(&t->ctl);
	t->ctl = rendezvous_connect(t->site->dir, 0, &listener);
	assert_true(t->ctl >= 0);
	stage_expect(t, CTL_HELLO);
	stage_expect(t, CTL_BOOTED);
	stage_expect(t, CTL_HELD);
	fd_close(&t->msg.fd);
	stage_request(t, "PUT " STAGE_BOX "/fs/write?path=/tmp/go", "x");
	stage_expect_text(t, "\"bytes\":1");
	stage_send(t, CTL_CHECK, NULL);
	do { /* the clients go, or come back; nothing is said of the stop */
		assert_int_equal(stage_recv(t), 1);
		assert_int_not_equal(t->msg.head.type, CTL_STOPPED);
		fd_close(&t->msg.fd);
	} while (t->msg.head.type != CTL_CHECKED);
	stop(t, LONG_MS);
	stage_close(t);
}

static void test_a_box_that_dies_of_it(void **state)
{
	struct stage *t = stage_boot(state);
	struct slot_work work;

	assert_int_equal(slot_read_work(t->page, &work), 0);
	assert_int_equal(kill(work.box_pid, SIGSTOP), 0); /* it hears nothing */
	order_stop(t, LONG_MS);
	assert_int_equal(kill(work.box_pid, SIGKILL), 0);
	stage_expect(t, CTL_BOX_DIED);
	(void)stage_wait(t);
	stage_free(t);
}

static void test_dies_while_stopping(void **state)
{
	static const char *const faults[] = {
	    "worker.stop.begun=kill", "worker.stop.gone=kill", "worker.stop.told=kill"};

	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		struct stage *t = stage_new(*state);

		t->fault = faults[i];
		stage_start(t);
		order_stop(t, LONG_MS);
		assert_int_equal(stage_wait(t), SIGKILL);
		assert_int_equal(pthread_mutex_trylock(&t->page->scope_lock), 0);
		assert_int_equal(pthread_mutex_unlock(&t->page->scope_lock), 0);
		stage_free(t);
	}
}

static void test_the_box_has_a_name(void **state)
{
	struct stage *t = stage_boot(state);
	static const char other[] =
	    "GET /v1/boxes/my.box/fs/read?path=/ HTTP/1.1\r\nHost: x\r\n\r\n";

	stage_request(t, "POST /v1/boxes/" STAGE_NAME "/run", "{\"argv\":[\"echo\",\"named\"]}");
	stage_expect_text(t, "\"stdout\":\"named\\n\"");
	assert_int_equal(send(t->client, other, strlen(other), 0), strlen(other));
	stage_expect(t, CTL_HANDBACK);
	fd_close(&t->msg.fd);
	stage_request(
	    t, "POST /v1/boxes/1234:" STAGE_NAME "/run", "{\"argv\":[\"echo\",\"admin\"]}");
	stage_expect_text(t, "\"stdout\":\"admin\\n\"");
	stage_close(t);
}

static void test_defaults_of_its_commands(void **state)
{
	struct stage *t = stage_new(*state);

	t->user = "1234:4321";
	t->working_dir = "/usr/lib";
	stage_start(t);
	run(t, "{\"command\":\"echo $(id -u):$(id -g) $PWD $FROM_BOX\"}",
	    "\"stdout\":\"1234:4321 /usr/lib yes\\n\"");
	run(t, "{\"command\":\"echo $(id -u) $PWD\",\"user\":\"0\",\"cwd\":\"/tmp\"}",
	    "\"stdout\":\"0 /tmp\\n\"");
	stage_close(t);
}

#define TEST(f) cmocka_unit_test_teardown(f, stage_after)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_stop_and_start),
	    TEST(test_what_does_not_end_is_killed),
	    TEST(test_connections_go_back),
	    TEST(test_half_a_request_goes_back),
	    TEST(test_a_busy_connection_goes_back_after_its_answer),
	    TEST(test_half_a_body_is_refused),
	    TEST(test_a_request_that_crosses_the_stop),
	    TEST(test_stop_twice_is_answered_once),
	    TEST(test_close_ends_a_stop),
	    TEST(test_the_next_sbxd_asks_again),
	    TEST(test_the_next_sbxd_hears_only_what_it_asked),
	    TEST(test_a_box_that_dies_of_it),
	    TEST(test_dies_while_stopping),
	    TEST(test_the_box_has_a_name),
	    TEST(test_defaults_of_its_commands),
	};

	return cmocka_run_group_tests(tests, stage_setup, stage_teardown);
}
