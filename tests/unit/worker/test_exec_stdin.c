/* exec_attach: what an attached client may send: stdin and orders. The guest is the test's. */
#include <signal.h>

#include "tests/unit/worker/exec_testing.h"

/* ---- stdin ---- */

static void test_stdin(void **state)
{
	static uint8_t payload[AGENT_PAYLOAD_MAX];
	struct harness *h = *state;
	struct running r;
	struct peer p;

	exec_run(h, EXEC_CAT, &r);
	ws_open(h, &p, r.id, "");
	ws_put_frame(h, &p, WS_FIN | WS_BINARY, "one", 3);
	assert_int_equal(skip_to(h, AGENT_DATA, payload), 3);
	assert_memory_equal(payload, "one", 3);
	ws_put_frame(h, &p, WS_BINARY, "tw", 2); /* in fragments, a ping between them */
	ws_put_frame(h, &p, WS_FIN | WS_PING, "hi", 2);
	ws_put_frame(h, &p, WS_FIN | WS_CONTINUATION, "o", 1);
	assert_int_equal(skip_to(h, AGENT_DATA, payload), 2);
	assert_int_equal(skip_to(h, AGENT_DATA, payload), 1);
	ws_expect(h, &p, WS_PONG, "hi", 2);
	ws_put_text(h, &p, "{\"type\":\"stdin_eof\"}");
	(void)skip_to(h, AGENT_EOF, payload);
	ws_put_text(h, &p, "{\"type\":\"stdin_eof\"}"); /* clients repeat it */
	ws_put_frame(h, &p, WS_FIN | WS_BINARY, "late", 4);
	ws_put_frame(h, &p, WS_FIN | WS_BINARY, "late", 4);
	ws_expect_text(h, &p, "stdin of the execution is closed"); /* said once */
	ws_put_frame(h, &p, WS_FIN | WS_PING, "", 0);
	ws_expect(h, &p, WS_PONG, "", 0);
	assert_int_equal(h->from_worker.len, 0);
	assert_int_equal(h->report.work.bytes_in, 6);
	guest_end(h, r.chan, 0, 0, 0);
	ws_expect_exit(h, &p, 0);
}

/* Two windows of stdin, against the credit that the guest gives, in one frame: all of it arrives,
 * and what has no room stays in the socket. */
static void test_stdin_follows_credit(void **state)
{
	static uint8_t payload[AGENT_PAYLOAD_MAX];
	const size_t total = 2U * AGENT_WINDOW;
	const uint32_t credit = AGENT_WINDOW;
	uint8_t *data = malloc(total);
	struct harness *h = *state;
	size_t got = 0;
	size_t sent = 0;
	struct running r;
	struct peer p;
	uint8_t head[14] = {0x82, 0xff, 0, 0, 0, 0, 0, 0x20, 0, 0, 0, 0, 0, 0};

	assert_non_null(data);
	for (size_t i = 0; i < total; i++)
		data[i] = (uint8_t)(i * 31 >> 4);
	exec_run(h, EXEC_CAT, &r);
	ws_open(h, &p, r.id, "");
	ws_put(h, &p, head, sizeof(head)); /* a mask of zeros */
	while (got < total) {
		ssize_t n = sent < total
				? send(p.fd, data + sent, total - sent, MSG_DONTWAIT | MSG_NOSIGNAL)
				: 0;

		sent += n > 0 ? (size_t)n : 0;
		h_settle(h);
		while (h->from_worker.len >= AGENT_HEAD_LEN) {
			struct agent_head f = guest_next(h, payload, sizeof(payload));

			if (f.type != AGENT_DATA)
				continue;
			assert_memory_equal(payload, data + got, f.size);
			got += f.size;
		}
		if (got == AGENT_WINDOW) { /* nothing more without credit, however often we look */
			h_settle(h);
			h_settle(h);
			assert_int_equal(h->from_worker.len, 0);
			assert_true(sent < total);
			assert_false(ws_of_newest(h)->op.conn->watch.events & EPOLLIN);
			guest_send(h, AGENT_CREDIT, AGENT_STDIN, r.chan, &credit, sizeof(credit));
		}
	}
	assert_int_equal(h->report.work.bytes_in, total);
	guest_end(h, r.chan, 0, 0, 0);
	ws_expect_exit(h, &p, 0);
	free(data);
}

/* A full stdin is no reason not to end. */
static void test_unread_stdin_does_not_block_the_exit(void **state)
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
	assert_int_equal(send(p.fd, block, 1000, MSG_NOSIGNAL), 1000); /* nobody reads it */
	guest_end(h, r.chan, 7, 0, 0);
	ws_expect_text(h, &p, "\"exit_code\":7,");
	ws_expect_close(h, &p, WS_NORMAL);
	peer_close(&p);
	H_UNTIL(h, h->s.conn_count == 0);
}

static void test_no_stdin(void **state)
{
	struct harness *h = *state;
	struct running r;
	struct peer p;

	exec_run(h, "{\"command\":\"cat\",\"stdin\":false}", &r);
	ws_open(h, &p, r.id, "");
	ws_put_frame(h, &p, WS_FIN | WS_BINARY, "x", 1);
	ws_expect_text(h, &p, "stdin of the execution is closed");
	assert_int_equal(h->report.work.bytes_in, 0);
	peer_close(&p);
}

static void test_read_only(void **state)
{
	struct harness *h = *state;
	struct running r;
	struct peer p;

	exec_run(h, EXEC_CAT, &r);
	ws_open(h, &p, r.id, "?stdin=false");
	ws_put_frame(h, &p, WS_FIN | WS_BINARY, "x", 1);
	ws_expect_text(h, &p, "may not write to stdin");
	ws_put_text(h, &p, "{\"type\":\"stdin_eof\"}");
	ws_expect_text(h, &p, "may only read");
	ws_put_text(h, &p, "{\"type\":\"signal\",\"sig\":15}");
	ws_expect_text(h, &p, "may only read");
	guest_out(h, &r, AGENT_STDOUT, "reads");
	ws_expect(h, &p, WS_BINARY, "\1reads", 6);
	assert_int_equal(h->report.work.bytes_in, 0);
	assert_true(exec_newest(h)->stdin_open);
	peer_close(&p);
}

/* ---- orders ---- */

static void test_orders(void **state)
{
	static uint8_t payload[AGENT_PAYLOAD_MAX];
	static const uint16_t size[2] = {100, 50};
	static const uint32_t sig = SIGINT;
	struct harness *h = *state;
	struct running r;
	struct peer p;

	exec_run(h, EXEC_TTY, &r);
	ws_open(h, &p, r.id, "");
	ws_put_text(h, &p, "{\"type\":\"resize\",\"cols\":100,\"rows\":50}");
	(void)skip_to(h, AGENT_RESIZE, payload);
	assert_memory_equal(payload, size, sizeof(size));
	ws_put_text(h, &p, "{\"type\":\"signal\",\"sig\":2}");
	(void)skip_to(h, AGENT_SIGNAL, payload);
	assert_memory_equal(payload, &sig, sizeof(sig));
	ws_put_text(h, &p, "{\"type\":\"signal\",\"sig\":9}");
	ws_expect_text(h, &p, "\\\"sig\\\": 9 is not allowed");
	ws_put_text(h, &p, "no json");
	ws_expect_text(h, &p, "{\"type\":\"error\",\"message\":\"line 1");
	ws_put_text(h, &p, "");
	ws_expect_text(h, &p, "\\\"type\\\" must be");
	assert_int_equal(h->from_worker.len, 0);
	guest_end(h, r.chan, 0, 0, 0);
	ws_expect_exit(h, &p, 0);
}

static void test_resize_without_a_terminal(void **state)
{
	struct harness *h = *state;
	struct running r;
	struct peer p;

	exec_run(h, EXEC_CAT, &r);
	ws_open(h, &p, r.id, "");
	ws_put_text(h, &p, "{\"type\":\"resize\",\"cols\":100,\"rows\":50}");
	ws_expect_text(h, &p, "no terminal");
	peer_close(&p);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, h_setup, h_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_stdin),
	    TEST(test_stdin_follows_credit),
	    TEST(test_unread_stdin_does_not_block_the_exit),
	    TEST(test_no_stdin),
	    TEST(test_read_only),
	    TEST(test_orders),
	    TEST(test_resize_without_a_terminal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
