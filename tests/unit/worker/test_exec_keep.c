/* exec: timeouts, executions that nobody looks at, limits, the death of the box. The guest is the
 * test's. */
#include <signal.h>

#include "tests/unit/worker/exec_testing.h"

/* ---- time ---- */

static void test_timeout(void **state)
{
	struct harness *h = *state;
	struct running r;

	exec_run(h, "{\"command\":\"cat\",\"timeout_seconds\":0.001}", &r);
	assert_int_equal(guest_expect(h, AGENT_CLOSE), r.chan);
	expect_status(h, r.id, "running"); /* until its tree is gone */
	guest_end(h, r.chan, -1, 9, AGENT_END_KILLED);
	H_UNTIL(h, h->report.in_flight == 0);
	expect_status(h, r.id, "\"status\":\"timed_out\"");
	expect_status(h, r.id, "\"exit_code\":-9,\"signal\":9");
	expect_status(h, r.id, "\"error_message\":\"timed out after 0.001 s\"");
}

static void test_end_crosses_timeout(void **state)
{
	struct harness *h = *state;
	struct running r;

	exec_run(h, "{\"command\":\"cat\",\"timeout_seconds\":0.001}", &r);
	(void)guest_expect(h, AGENT_CLOSE);
	guest_end(h, r.chan, 4, 0, 0);
	H_UNTIL(h, h->report.in_flight == 0);
	expect_status(h, r.id, "\"status\":\"completed\"");
	expect_status(h, r.id, "\"exit_code\":4,\"signal\":null");
	expect_status(h, r.id, "\"error_message\":null");
}

static void test_no_timeout_after_the_end(void **state)
{
	struct harness *h = *state;
	struct running r;

	exec_run(h, "{\"command\":\"cat\",\"timeout_seconds\":1000}", &r);
	assert_int_not_equal(exec_newest(h)->timeout.pos, 0);
	guest_end(h, r.chan, 0, 0, 0);
	H_UNTIL(h, h->report.in_flight == 0);
	assert_int_equal(exec_newest(h)->timeout.pos, 0);
}

/* Nobody is attached: HUP, TERM, KILL. */
static void test_alone_for_too_long(void **state)
{
	struct harness *h = *state;
	struct running r;

	exec_run(h, EXEC_CAT, &r);
	let_time_pass(h, &exec_newest(h)->alone);
	expect_signal(h, r.chan, SIGHUP);
	let_time_pass(h, &exec_newest(h)->alone);
	expect_signal(h, r.chan, SIGTERM);
	let_time_pass(h, &exec_newest(h)->alone);
	assert_int_equal(guest_expect(h, AGENT_CLOSE), r.chan);
	assert_int_equal(exec_newest(h)->alone.pos, 0);
	guest_end(h, r.chan, -1, 9, AGENT_END_KILLED);
	H_UNTIL(h, h->report.in_flight == 0);
	expect_status(h, r.id, "\"status\":\"killed\"");
	expect_status(h, r.id, "\"ended: no client was attached for 300 s\"");
}

static void test_hup_is_enough(void **state)
{
	struct harness *h = *state;
	struct running r;

	exec_run(h, EXEC_CAT, &r);
	let_time_pass(h, &exec_newest(h)->alone);
	expect_signal(h, r.chan, SIGHUP);
	guest_end(h, r.chan, 2, 0, 0); /* it cleaned up */
	H_UNTIL(h, h->report.in_flight == 0);
	expect_status(h, r.id, "\"status\":\"completed\"");
	expect_status(h, r.id, "\"ended: no client was attached for 300 s\"");
}

/* A client comes back while it is being ended: it goes on. */
static void test_a_client_that_comes_stops_the_end(void **state)
{
	struct harness *h = *state;
	struct running r;
	struct peer p;

	exec_run(h, EXEC_CAT, &r);
	let_time_pass(h, &exec_newest(h)->alone);
	expect_signal(h, r.chan, SIGHUP);
	ws_open(h, &p, r.id, "");
	assert_int_equal(exec_newest(h)->alone.pos, 0);
	assert_int_equal(guest_expect(h, AGENT_CREDIT), r.chan);
	assert_int_equal(guest_expect(h, AGENT_CREDIT), r.chan);
	peer_close(&p);
	H_UNTIL(h, exec_newest(h)->alone.pos != 0); /* and from the beginning */
	let_time_pass(h, &exec_newest(h)->alone);
	expect_signal(h, r.chan, SIGHUP);
}

static void test_without_a_grace_it_is_never_alone(void **state)
{
	struct harness *h = *state;
	struct running r;

	h->limits.exec_detach_grace_ms = 0;
	exec_run(h, EXEC_CAT, &r);
	assert_int_equal(exec_newest(h)->alone.pos, 0);
}

static void test_kept_for_a_while(void **state)
{
	struct harness *h = *state;
	struct running r;

	exec_run(h, EXEC_CAT, &r);
	guest_end(h, r.chan, 0, 0, 0);
	H_UNTIL(h, h->report.in_flight == 0);
	expect_status(h, r.id, "completed");
	let_time_pass(h, &exec_newest(h)->alone);
	expect_none(h, r.id);
	assert_true(LIST_EMPTY(&h->s.executions));
}

/* ---- limits ---- */

static void test_limit(void **state)
{
	struct harness *h = *state;
	struct running r[4];
	struct peer p;

	for (size_t i = 0; i < 4; i++)
		exec_run(h, EXEC_CAT, &r[i]);
	peer_once(h, "POST", "exec", EXEC_CAT, "429", "execution_limit");
	assert_int_equal(h->from_worker.len, 0);
	guest_end(h, r[1].chan, 0, 0, 0);
	H_UNTIL(h, h->s.executions_running == 3);
	peer_request(h, &p, "POST", "exec", "", EXEC_CAT);
	guest_started(h, guest_expect(h, AGENT_EXEC));
	peer_expect(h, &p, "201");
	peer_close(&p);
}

/* As many as may run are kept; the one that ended first goes first. */
static void test_kept_in_number(void **state)
{
	struct harness *h = *state;
	struct running r[8];

	for (size_t i = 0; i < 8; i += 2) {
		exec_run(h, EXEC_CAT, &r[i]);
		exec_run(h, EXEC_CAT, &r[i + 1]);
		guest_end(h, r[i + 1].chan, 0, 0, 0);
		H_UNTIL(h, h->s.executions_running == 1);
		guest_end(h, r[i].chan, 0, 0, 0);
		H_UNTIL(h, h->s.executions_running == 0);
	}
	expect_none(h, r[0].id);
	expect_none(h, r[1].id);
	expect_none(h, r[2].id);
	expect_none(h, r[3].id);
	for (size_t i = 4; i < 8; i++)
		expect_status(h, r[i].id, "completed");
}

/* A body of many requests at once is bounded together with everything else that is kept. */
static void test_kept_bytes_are_bounded(void **state)
{
	static const char *const paths[] = {
	    "exec", "executions/x/signal", "executions/x/resize", "fs/mkdir", "fs/rename", "run"};
	struct harness *h = *state;

	h->s.buffered = SERVICE_BUFFER_MAX;
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		peer_once(h, "POST", paths[i], EXEC_CAT, "429", "box_resources");
	assert_int_equal(h->s.buffered, SERVICE_BUFFER_MAX);
	h->s.buffered = 0;
	for (size_t i = 1; i < 3; i++)
		peer_once(h, "POST", paths[i], EXEC_CAT, "404", "execution not found");
	assert_int_equal(h->s.buffered, 0);
}

/* ---- the box dies ---- */

static void test_box_dies(void **state)
{
	struct harness *h = *state;
	struct running r;
	struct peer starting;
	struct peer killing;
	char path[96];

	exec_run(h, EXEC_CAT, &r);
	guest_end(h, r.chan, 0, 0, 0);
	exec_run(h, EXEC_CAT, &r);
	exec_path(path, r.id, "");
	peer_request(h, &killing, "DELETE", path, "", NULL);
	peer_request(h, &starting, "POST", "exec", "", EXEC_CAT);
	h_settle(h);
	service_set_state(&h->s, SERVICE_DEAD, API_BOX_DIED, "the box died");
	peer_expect(h, &killing, "HTTP/1.1 410 ");
	peer_expect(h, &starting, "HTTP/1.1 410 ");
	peer_expect(h, &starting, "box_died");
	assert_true(LIST_EMPTY(&h->s.executions));
	assert_int_equal(h->s.executions_running, 0);
	assert_int_equal(h->report.in_flight, 0);
	peer_close(&killing);
	peer_close(&starting);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, h_setup, h_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_timeout),
	    TEST(test_end_crosses_timeout),
	    TEST(test_no_timeout_after_the_end),
	    TEST(test_alone_for_too_long),
	    TEST(test_hup_is_enough),
	    TEST(test_a_client_that_comes_stops_the_end),
	    TEST(test_without_a_grace_it_is_never_alone),
	    TEST(test_kept_for_a_while),
	    TEST(test_limit),
	    TEST(test_kept_in_number),
	    TEST(test_kept_bytes_are_bounded),
	    TEST(test_box_dies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
