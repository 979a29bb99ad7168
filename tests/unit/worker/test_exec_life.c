/* exec: starts and failures to start, status, signals, sizes, kills. The guest is the test's. */
#include <signal.h>

#include "tests/unit/worker/exec_testing.h"

/* ---- starting ---- */

static void test_start(void **state)
{
	struct harness *h = *state;
	struct running r;
	struct peer p;

	peer_request(h, &p, "POST", "exec", "X-Request-Id: mine\r\n", EXEC_CAT);
	r.chan = guest_expect(h, AGENT_EXEC);
	h_settle(h);
	assert_int_equal(h->report.in_flight, 2); /* the request, and the execution */
	peer_drain(h, &p);
	assert_int_equal(p.in.len, 0); /* not before it runs */
	peer_once(h, "GET", "executions", NULL, "200", "\r\n\r\n[]");
	guest_started(h, r.chan);
	peer_expect(h, &p, "HTTP/1.1 201 Created\r\n");
	peer_expect(h, &p, "Location: /v1/boxes/" H_TOKEN "/executions/exec-");
	peer_expect(h, &p, "X-Request-Id: mine\r\n");
	peer_expect(h, &p, "{\"execution_id\":\"exec-");
	assert_int_equal(h->report.in_flight, 1);
	assert_int_equal(h->report.work.exec_total, 1);
	expect_status(h, exec_newest(h)->id,
	    "\"status\":\"running\",\"attached\":false,\"tty\":false,"
	    "\"exit_code\":null,\"signal\":null,\"started_at\":\"2");
	expect_status(h, exec_newest(h)->id, "Z\",\"duration_ms\":null,\"error_message\":null}");
	guest_end(h, r.chan, 3, 0, 0);
	H_UNTIL(h, h->report.in_flight == 0);
	expect_status(h, exec_newest(h)->id,
	    "\"status\":\"completed\",\"attached\":false,\"tty\":false,\"exit_code\":3,");
	peer_once(h, "GET", "executions", NULL, "200", "[{\"execution_id\":\"exec-");
	peer_close(&p);
}

static const struct {
	uint32_t code;
	const char *status;
	const char *reason;
} failures[] = {
    {AGENT_E_EXEC, "422", "execution_failed"},
    {AGENT_E_NO_USER, "422", "execution_failed"},
    {AGENT_E_NOT_FOUND, "422", "execution_failed"}, /* the working directory: never 404 */
    {AGENT_E_NOT_A_DIRECTORY, "422", "execution_failed"},
    {AGENT_E_PERMISSION, "422", "execution_failed"},
    {AGENT_E_IO, "422", "execution_failed"},
    {AGENT_E_INVALID_PATH, "400", "invalid_path"},
    {AGENT_E_INVALID, "400", "invalid_argument"},
    {AGENT_E_TOO_LARGE, "413", "too_large"},
    {AGENT_E_RESOURCES, "429", "box_resources"},
    {AGENT_E_NO_SPACE, "507", "no_space"},
    {77, "422", "execution_failed"},
};

static void test_failures_to_start(void **state)
{
	struct harness *h = *state;

	for (size_t i = 0; i < sizeof(failures) / sizeof(failures[0]); i++) {
		char status[16];
		struct peer p;

		peer_request(h, &p, "POST", "exec", "", EXEC_CAT);
		guest_error(h, guest_expect(h, AGENT_EXEC), failures[i].code, "because");
		(void)snprintf(status, sizeof(status), "HTTP/1.1 %s ", failures[i].status);
		peer_expect(h, &p, status);
		peer_expect(h, &p, failures[i].reason);
		peer_expect(h, &p, "because");
		peer_close(&p);
		h_settle(h);
		assert_true(LIST_EMPTY(&h->s.executions));
		assert_int_equal(h->s.executions_running, 0);
		assert_int_equal(h->report.in_flight, 0);
	}
	assert_int_equal(h->report.work.exec_failed, sizeof(failures) / sizeof(failures[0]));
}

static void test_requests_that_make_no_sense(void **state)
{
	struct harness *h = *state;

	peer_once(h, "POST", "exec", "{\"command\":1}", "400", "\\\"command\\\" must be a string");
	peer_once(h, "POST", "exec", "{\"command\":\"a\",\"cwd\":\"/\"}", "400", "\\\"cwd\\\"");
	peer_once(h, "POST", "exec", "[]", "400", "malformed_request");
	peer_once(h, "GET", "exec", NULL, "405", "Allow: POST");
	peer_once(h, "PUT", "executions", "{}", "405", "Allow: GET");
	peer_once(h, "POST", "executions/x", "{}", "405", "Allow: GET, DELETE");
	peer_once(h, "GET", "executions/x", NULL, "404", "execution not found: x");
	peer_once(h, "DELETE", "executions/x", NULL, "404", "execution not found: x");
	peer_once(h, "GET", "executions/x/y", NULL, "404", "no such endpoint");
	peer_once(
	    h, "POST", "executions/x/signal", "{\"signal\":15}", "404", "execution not found");
	peer_once(h, "GET",
	    "executions/0123456789012345678901234567890123456789012345678901234567890123", NULL,
	    "404", "execution not found: ");
	assert_int_equal(h->from_worker.len, 0);
}

/* Who asked is gone before it runs: nobody knows of it, and it goes too. */
static void test_client_gone_before_it_runs(void **state)
{
	struct harness *h = *state;
	struct peer p;
	uint32_t chan;

	peer_request(h, &p, "POST", "exec", "", EXEC_CAT);
	chan = guest_expect(h, AGENT_EXEC);
	peer_close(&p);
	assert_int_equal(guest_expect(h, AGENT_CLOSE), chan);
	guest_started(h, chan); /* it crossed */
	guest_end(h, chan, -1, 9, AGENT_END_KILLED);
	H_UNTIL(h, h->report.in_flight == 0);
	peer_once(h, "GET", "executions", NULL, "200", "\r\n\r\n[]");
}

/* The guest says nothing about it: whoever waits is told, and it is ended. */
static void test_one_that_does_not_begin(void **state)
{
	struct harness *h = *state;
	struct peer p;
	uint32_t chan;

	peer_request(h, &p, "POST", "exec", "", EXEC_CAT);
	chan = guest_expect(h, AGENT_EXEC);
	let_time_pass(h, &LIST_FIRST(&h->s.executions)->alone);
	peer_expect(h, &p, "HTTP/1.1 408 ");
	peer_expect(h, &p, "the command did not begin within 30 s");
	peer_close(&p);
	assert_int_equal(guest_expect(h, AGENT_CLOSE), chan);
	assert_int_equal(h->s.executions_running, 1);
	guest_end(h, chan, -1, 9, AGENT_END_KILLED);
	H_UNTIL(h, h->report.in_flight == 0);
	assert_true(LIST_EMPTY(&h->s.executions));
	assert_int_equal(h->report.work.exec_failed, 1);
	assert_int_equal(h->broken, 0);
}

static void test_one_that_has_begun_has_time(void **state)
{
	struct harness *h = *state;
	struct running r;

	h->limits.exec_detach_grace_ms = 0;
	exec_run(h, EXEC_CAT, &r);
	assert_int_equal(exec_newest(h)->alone.pos, 0);
}

static void test_a_guest_that_starts_it_twice_is_broken(void **state)
{
	struct harness *h = *state;
	struct running r;

	exec_run(h, EXEC_CAT, &r);
	guest_started(h, r.chan);
	H_UNTIL(h, h->broken == 1);
}

/* ---- orders ---- */

static void test_signal_and_resize(void **state)
{
	static uint8_t payload[AGENT_PAYLOAD_MAX];
	static const uint16_t size[2] = {120, 40};
	struct harness *h = *state;
	struct agent_head head;
	struct running r;
	char path[96];

	exec_run(h, EXEC_TTY, &r);
	exec_path(path, r.id, "/signal");
	peer_once(h, "POST", path, "{\"signal\":15}", "204", "\r\n\r\n");
	expect_signal(h, r.chan, SIGTERM);
	peer_once(h, "POST", path, "{\"signal\":9}", "400", "\\\"signal\\\": 9 is not allowed");
	peer_once(h, "POST", path, "{\"signal\":15,\"x\":1}", "400", "\\\"x\\\" is not known");
	peer_once(h, "POST", path, "", "400", "\\\"signal\\\"");
	exec_path(path, r.id, "/resize");
	peer_once(h, "POST", path, "{\"cols\":120,\"rows\":40}", "204", "\r\n\r\n");
	head = next_frame(h, payload);
	assert_int_equal(head.type, AGENT_RESIZE);
	assert_memory_equal(payload, size, sizeof(size));
	peer_once(h, "POST", path, "{\"cols\":120}", "400", "\\\"rows\\\" is missing");
	guest_end(h, r.chan, -1, 15, 0);
	H_UNTIL(h, h->report.in_flight == 0);
	peer_once(h, "POST", path, "{\"cols\":1,\"rows\":1}", "409", "invalid_state");
	exec_path(path, r.id, "/signal");
	peer_once(h, "POST", path, "{\"signal\":15}", "409", "the execution is over");
	expect_status(h, r.id, "\"status\":\"killed\"");
	expect_status(h, r.id, "\"exit_code\":-15,\"signal\":15");
	expect_status(h, r.id, "\"error_message\":\"killed by signal 15 (SIGTERM)\"");
	assert_int_equal(h->from_worker.len, 0);
}

static void test_resize_without_a_terminal(void **state)
{
	struct harness *h = *state;
	struct running r;
	char path[96];

	exec_run(h, EXEC_CAT, &r);
	exec_path(path, r.id, "/resize");
	peer_once(h, "POST", path, "{\"cols\":120,\"rows\":40}", "409", "not_a_tty");
	assert_int_equal(h->from_worker.len, 0);
}

/* ---- the kill ---- */

static void test_kill(void **state)
{
	struct harness *h = *state;
	struct running r;
	struct peer first;
	struct peer second;
	char path[96];

	exec_run(h, EXEC_CAT, &r);
	exec_path(path, r.id, "");
	peer_request(h, &first, "DELETE", path, "", NULL);
	assert_int_equal(guest_expect(h, AGENT_CLOSE), r.chan);
	peer_request(h, &second, "DELETE", path, "", NULL);
	h_settle(h);
	peer_drain(h, &first);
	assert_int_equal(first.in.len, 0); /* not before the tree is seen gone */
	expect_status(h, r.id, "running");
	guest_end(h, r.chan, -1, 9, AGENT_END_KILLED);
	peer_expect(h, &first, "HTTP/1.1 204 No Content\r\n");
	peer_expect(h, &second, "HTTP/1.1 204 No Content\r\n");
	assert_false(peer_has(&first, "Content-Length"));
	expect_none(h, r.id);
	peer_once(h, "DELETE", path, NULL, "404", "not_found");
	peer_once(h, "GET", "executions", NULL, "200", "\r\n\r\n[]");
	assert_int_equal(h->report.in_flight, 0);
	peer_close(&first);
	peer_close(&second);
}

static void test_kill_of_one_that_is_over(void **state)
{
	struct harness *h = *state;
	struct running r;
	char path[96];

	exec_run(h, EXEC_CAT, &r);
	guest_end(h, r.chan, 0, 0, 0);
	exec_path(path, r.id, "");
	peer_once(h, "DELETE", path, NULL, "204", "\r\n\r\n");
	expect_none(h, r.id);
	assert_int_equal(h->from_worker.len, 0);
}

/* The client of the kill goes away: it is killed all the same. */
static void test_kill_whose_client_goes(void **state)
{
	struct harness *h = *state;
	struct running r;
	struct peer p;
	char path[96];

	exec_run(h, EXEC_CAT, &r);
	exec_path(path, r.id, "");
	peer_request(h, &p, "DELETE", path, "", NULL);
	(void)guest_expect(h, AGENT_CLOSE);
	peer_close(&p);
	h_settle(h);
	guest_end(h, r.chan, -1, 9, AGENT_END_KILLED);
	H_UNTIL(h, h->report.in_flight == 0);
	expect_none(h, r.id);
}

/* A client that was about to attach when it was killed learns how it ended, once. */
static void test_killed_before_the_first_client(void **state)
{
	struct harness *h = *state;
	struct running r;
	struct peer p;
	char path[96];

	exec_run(h, EXEC_CAT, &r);
	guest_send(h, AGENT_DATA, AGENT_STDOUT, r.chan, "so far", 6);
	exec_path(path, r.id, "");
	peer_request(h, &p, "DELETE", path, "", NULL);
	(void)guest_expect(h, AGENT_CLOSE);
	guest_end(h, r.chan, -1, 9, AGENT_END_KILLED);
	peer_expect(h, &p, "204");
	peer_close(&p);
	expect_none(h, r.id);
	ws_open(h, &p, r.id, "");
	ws_expect(h, &p, WS_BINARY, "\1so far", 7);
	ws_expect_exit(h, &p, -9);
	assert_true(LIST_EMPTY(&h->s.executions));
	ws_ask(h, &p, r.id, "");
	peer_expect(h, &p, "404");
	peer_close(&p);
}

static void test_killed_and_nobody_attaches(void **state)
{
	struct harness *h = *state;
	struct running r;
	struct peer p;
	char path[96];

	exec_run(h, EXEC_CAT, &r);
	exec_path(path, r.id, "");
	peer_request(h, &p, "DELETE", path, "", NULL);
	(void)guest_expect(h, AGENT_CLOSE);
	guest_end(h, r.chan, -1, 9, AGENT_END_KILLED);
	peer_expect(h, &p, "204");
	peer_close(&p);
	let_time_pass(h, &exec_newest(h)->alone);
	assert_true(LIST_EMPTY(&h->s.executions));
}

/* The guest does not end it: it cannot be trusted to have. */
static void test_a_guest_that_does_not_kill_is_broken(void **state)
{
	struct harness *h = *state;
	struct running r;
	struct peer p;
	char path[96];

	exec_run(h, EXEC_CAT, &r);
	exec_path(path, r.id, "");
	peer_request(h, &p, "DELETE", path, "", NULL);
	(void)guest_expect(h, AGENT_CLOSE);
	let_time_pass(h, &exec_newest(h)->patience);
	assert_int_equal(h->broken, 1);
	peer_drain(h, &p);
	assert_int_equal(p.in.len, 0);
	peer_close(&p);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, h_setup, h_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_start),
	    TEST(test_failures_to_start),
	    TEST(test_requests_that_make_no_sense),
	    TEST(test_client_gone_before_it_runs),
	    TEST(test_one_that_does_not_begin),
	    TEST(test_one_that_has_begun_has_time),
	    TEST(test_a_guest_that_starts_it_twice_is_broken),
	    TEST(test_signal_and_resize),
	    TEST(test_resize_without_a_terminal),
	    TEST(test_kill),
	    TEST(test_kill_of_one_that_is_over),
	    TEST(test_kill_whose_client_goes),
	    TEST(test_killed_before_the_first_client),
	    TEST(test_killed_and_nobody_attaches),
	    TEST(test_a_guest_that_does_not_kill_is_broken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
