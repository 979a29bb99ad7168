/* conn_ws: clients that break the rules of WebSockets, close, hang up, or give no sign of life; the
 * execution lives on. */
#include <signal.h>

#include "tests/unit/worker/exec_testing.h"

/* ---- breaking the rules of WebSockets; the execution lives on ---- */

static void test_protocol_errors(void **state)
{
	static const struct {
		const char *bytes;
		size_t n;
		unsigned int code;
	} cases[] = {
	    {"\x82\x01x", 3, WS_PROTOCOL_ERROR},		/* not masked */
	    {"\xc2\x80\1\2\3\4", 6, WS_PROTOCOL_ERROR},		/* a reserved bit */
	    {"\x80\x80\1\2\3\4", 6, WS_PROTOCOL_ERROR},		/* continues nothing */
	    {"\x81\x81\0\0\0\0\xff", 7, WS_BAD_DATA},		/* no UTF-8 */
	    {"\x88\x81\0\0\0\0\x03", 7, WS_PROTOCOL_ERROR},	/* a Close of one byte */
	    {"\x88\x82\0\0\0\0\x03\xed", 8, WS_PROTOCOL_ERROR}, /* 1005 */
	};
	struct harness *h = *state;
	struct running r;
	struct peer p;

	exec_run(h, EXEC_CAT, &r);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		ws_open(h, &p, r.id, "");
		ws_put(h, &p, cases[i].bytes, cases[i].n);
		ws_put(h, &p, "what follows means nothing", 26);
		ws_expect_close(h, &p, cases[i].code);
		PEER_UNTIL(h, &p, p.ended); /* it is told at once that there is no more */
		assert_null(exec_newest(h)->attach);
		peer_close(&p);
		H_UNTIL(h, h->s.conn_count == 0);
	}
	ws_open(h, &p, r.id, "");
	guest_out(h, &r, AGENT_STDOUT, "alive");
	ws_expect(h, &p, WS_BINARY, "\1alive", 6);
	peer_close(&p);
}

static void test_text_that_is_too_long(void **state)
{
	static uint8_t block[CONN_WS_TEXT_MAX];
	struct harness *h = *state;
	struct running r;
	struct peer p;

	memset(block, ' ', sizeof(block));
	exec_run(h, EXEC_CAT, &r);
	ws_open(h, &p, r.id, "");
	memcpy(block, "{\"type\":\"stdin_eof\"}", 20); /* as long as it may be, in two fragments */
	ws_put_frame(h, &p, WS_TEXT, block, 60000);
	ws_put_frame(h, &p, WS_FIN | WS_CONTINUATION, block + 60000, sizeof(block) - 60000);
	H_UNTIL(h, !exec_newest(h)->stdin_open);
	ws_put_frame(h, &p, WS_TEXT, block, sizeof(block));
	ws_put_frame(h, &p, WS_CONTINUATION, block, 1);
	ws_expect_close(h, &p, WS_TOO_BIG);
	ws_answer_close(h, &p);
	assert_int_equal(exec_newest(h)->state, EXEC_RUNNING);
}

/* ---- closing ---- */

/* Its Close is answered with its code, and what it sent before is used. */
static void test_client_closes(void **state)
{
	static uint8_t payload[AGENT_PAYLOAD_MAX];
	static const struct {
		const char *payload;
		size_t n;
	} cases[] = {{"\x03\xe9"
		      "bye",
			 5},
	    {"\x03\xe8", 2}, {"", 0}};
	struct harness *h = *state;
	struct running r;
	struct peer p;

	exec_run(h, EXEC_CAT, &r);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		ws_open(h, &p, r.id, "");
		ws_put_frame(h, &p, WS_FIN | WS_BINARY, "before", 6);
		ws_put_frame(h, &p, WS_FIN | WS_CLOSE, cases[i].payload, cases[i].n);
		ws_expect(h, &p, WS_CLOSE, cases[i].payload, cases[i].n < 2 ? 0 : 2);
		PEER_UNTIL(h, &p, p.ended);
		assert_int_equal(skip_to(h, AGENT_DATA, payload), 6);
		assert_int_equal(exec_newest(h)->state, EXEC_RUNNING);
		peer_close(&p);
	}
}

/* What a client sends while it closes is read to its end: else it might not see the exit. */
static void test_exit_while_the_client_sends(void **state)
{
	static uint8_t block[65536];
	struct harness *h = *state;
	struct running r;
	struct peer p;

	exec_run(h, EXEC_CAT, &r);
	ws_open(h, &p, r.id, "");
	guest_end(h, r.chan, 5, 0, 0);
	H_UNTIL(h, h->report.in_flight == 1); /* its connection */
	for (int i = 0; i < 50; i++)
		ws_put_frame(h, &p, WS_FIN | WS_BINARY, block, sizeof(block));
	ws_put_text(h, &p, "{\"type\":\"signal\",\"sig\":15}");
	ws_expect_exit(h, &p, 5);
	assert_int_equal(h->report.in_flight, 0);
}

/* It never answers our Close: the connection ends all the same, and before that the execution is
 * free for another client. */
static void test_client_does_not_answer_the_close(void **state)
{
	struct harness *h = *state;
	struct conn_ws *w;
	struct running r;
	struct peer p;

	exec_run(h, EXEC_CAT, &r);
	ws_open(h, &p, r.id, "");
	w = ws_of_newest(h);
	guest_end(h, r.chan, 0, 0, 0);
	ws_expect_text(h, &p, "exit");
	ws_expect_close(h, &p, WS_NORMAL);
	assert_null(exec_newest(h)->attach);
	h_settle(h);
	assert_false(p.ended);
	let_time_pass(h, &w->timer);
	PEER_UNTIL(h, &p, p.ended);
	peer_close(&p);
	H_UNTIL(h, h->report.in_flight == 0);
}

/* As some clients do: on the exit they just go. */
static void test_client_goes_on_the_exit(void **state)
{
	struct harness *h = *state;
	struct running r;
	struct peer p;

	exec_run(h, EXEC_CAT, &r);
	ws_open(h, &p, r.id, "");
	guest_end(h, r.chan, 0, 0, 0);
	ws_expect_text(h, &p, "exit");
	peer_close(&p);
	H_UNTIL(h, h->s.conn_count == 0);
	assert_int_equal(h->report.in_flight, 0);
}

/* What a client has sent before it hung up is its stdin. */
static void test_stdin_of_a_client_that_hangs_up(void **state)
{
	static uint8_t payload[AGENT_PAYLOAD_MAX];
	struct harness *h = *state;
	struct running r;
	struct peer p;

	exec_run(h, EXEC_CAT, &r);
	ws_open(h, &p, r.id, "");
	h_settle(h);
	ws_put_frame(h, &p, WS_FIN | WS_BINARY, "last words", 10);
	peer_close(&p);
	assert_int_equal(skip_to(h, AGENT_DATA, payload), 10);
	H_UNTIL(h, h->s.conn_count == 0);
	assert_int_equal(exec_newest(h)->state, EXEC_RUNNING);
}

/* It hangs up while nothing of it is read: we are not woken for ever. */
static void test_hang_up_with_a_full_stdin(void **state)
{
	static uint8_t block[65536];
	struct harness *h = *state;
	struct running r;
	struct peer p;

	exec_run(h, EXEC_CAT, &r);
	ws_open(h, &p, r.id, "");
	for (size_t i = 0; i < AGENT_WINDOW / sizeof(block); i++)
		ws_put_frame(h, &p, WS_FIN | WS_BINARY, block, sizeof(block));
	h_settle(h);
	assert_int_equal(send(p.fd, block, 1000, MSG_NOSIGNAL), 1000);
	peer_close(&p);
	H_UNTIL(h, h->s.conn_count == 0);
	assert_int_equal(exec_newest(h)->state, EXEC_RUNNING);
	assert_null(exec_newest(h)->attach);
}

/* Over TCP the end of what it sends is all that there is to see of that. */
static void test_tcp_client_leaves_with_a_full_stdin(void **state)
{
	static uint8_t block[65536];
	struct harness *h = *state;
	struct running r;
	struct peer p;

	exec_run(h, EXEC_CAT, &r);
	h->client_flags = CTL_CONN_TCP;
	ws_open(h, &p, r.id, "");
	for (size_t i = 0; i < AGENT_WINDOW / sizeof(block); i++)
		ws_put_frame(h, &p, WS_FIN | WS_BINARY, block, sizeof(block));
	h_settle(h);
	assert_int_equal(send(p.fd, block, 1000, MSG_NOSIGNAL), 1000);
	assert_int_equal(shutdown(p.fd, SHUT_WR), 0);
	H_UNTIL(h, h->s.conn_count == 0);
	assert_int_equal(exec_newest(h)->state, EXEC_RUNNING);
	assert_null(exec_newest(h)->attach);
	peer_close(&p);
}

/* ---- signs of life ---- */

static void test_pings(void **state)
{
	struct harness *h = *state;
	struct conn_ws *w;
	struct running r;
	struct peer p;

	exec_run(h, EXEC_CAT, &r);
	ws_open(h, &p, r.id, "");
	ws_expect(h, &p, WS_PING, "", 0);
	w = ws_of_newest(h);
	assert_true(w->timer.at <= w->pinged_ns + CONN_WS_PING_NS);
	let_time_pass(h, &w->timer); /* nothing is due yet */
	peer_drain(h, &p);
	assert_int_equal(p.in.len, 0);
	w->pinged_ns -= CONN_WS_PING_NS;
	let_time_pass(h, &w->timer);
	ws_expect(h, &p, WS_PING, "", 0);
	assert_false(w->closing);
	peer_close(&p);
}

static void test_a_silent_client_is_gone(void **state)
{
	struct harness *h = *state;
	struct conn_ws *w;
	struct running r;
	struct peer p;

	exec_run(h, EXEC_CAT, &r);
	ws_open(h, &p, r.id, "");
	w = ws_of_newest(h);
	w->heard_ns -= CONN_WS_DEAD_NS;
	ws_put_frame(h, &p, WS_FIN | WS_PONG, "", 0); /* any frame is a sign of life */
	h_settle(h);
	let_time_pass(h, &w->timer);
	assert_false(w->closing);
	w->heard_ns -= CONN_WS_DEAD_NS;
	let_time_pass(h, &w->timer);
	ws_expect_close(h, &p, WS_POLICY);
	assert_null(exec_newest(h)->attach);
	assert_int_equal(exec_newest(h)->state, EXEC_RUNNING);
	peer_close(&p);
}

/* A client whose stdin is full cannot be heard, and is not held to be gone. */
static void test_not_listened_to_is_not_silent(void **state)
{
	static uint8_t block[65536];
	struct harness *h = *state;
	struct conn_ws *w;
	struct running r;
	struct peer p;

	exec_run(h, EXEC_CAT, &r);
	ws_open(h, &p, r.id, "");
	for (size_t i = 0; i < AGENT_WINDOW / sizeof(block); i++)
		ws_put_frame(h, &p, WS_FIN | WS_BINARY, block, sizeof(block));
	h_settle(h);
	w = ws_of_newest(h);
	w->heard_ns -= CONN_WS_DEAD_NS;
	let_time_pass(h, &w->timer);
	assert_false(w->closing);
	peer_close(&p);
}

/* A client that floods us with what must be answered, and reads no answer. */
static void test_answers_that_nobody_reads_are_bounded(void **state)
{
	struct harness *h = *state;
	uint8_t frame[6 + 125] = {0x89, 0x80 | 125};
	struct running r;
	struct peer p;
	size_t sent = 0;
	int idle = 0;

	exec_run(h, EXEC_CAT, &r);
	ws_open(h, &p, r.id, "");
	while (idle < 3) {
		ssize_t n = send(p.fd, frame, sizeof(frame), MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n == (ssize_t)sizeof(frame)) {
			sent += sizeof(frame);
			idle = 0;
		} else {
			assert_true(n < 0);
			assert_int_equal(loop_step(h->s.loop, 0), 0);
			idle++;
		}
		assert_true(sent < 64U << 20);
	}
	assert_true(conn_queued(ws_of_newest(h)->op.conn) <= CONN_WS_QUEUED_MAX + SERVICE_SCRATCH);
	peer_close(&p);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, h_setup, h_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_protocol_errors),
	    TEST(test_text_that_is_too_long),
	    TEST(test_client_closes),
	    TEST(test_exit_while_the_client_sends),
	    TEST(test_client_does_not_answer_the_close),
	    TEST(test_client_goes_on_the_exit),
	    TEST(test_stdin_of_a_client_that_hangs_up),
	    TEST(test_hang_up_with_a_full_stdin),
	    TEST(test_tcp_client_leaves_with_a_full_stdin),
	    TEST(test_pings),
	    TEST(test_a_silent_client_is_gone),
	    TEST(test_not_listened_to_is_not_silent),
	    TEST(test_answers_that_nobody_reads_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
