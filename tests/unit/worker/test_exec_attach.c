/* exec_attach: what an attached client is given: output, characters, the exit; and that it may go
 * and come. The guest is the test's. */
#include <signal.h>

#include "tests/unit/worker/exec_testing.h"

/* A frame of stdin from a client that does not read meanwhile; its mask is zero. */
static void ws_put_frame_quietly(
    struct harness *h, struct peer *p, const uint8_t *payload, size_t n)
{
	uint8_t head[14];
	size_t len = ws_put_head(head, WS_BINARY, n);
	struct iovec iov[2] = {{head, len + 4}, {(void *)(uintptr_t)payload, n}};

	head[1] |= 0x80;
	memset(head + len, 0, 4);
	for (int i = 0; i < 2; i++) {
		const uint8_t *at = iov[i].iov_base;

		for (size_t left = iov[i].iov_len; left > 0;) {
			ssize_t done = send(p->fd, at, left, MSG_DONTWAIT | MSG_NOSIGNAL);

			assert_int_equal(loop_step(h->s.loop, 0), 0);
			at += done > 0 ? done : 0;
			left -= done > 0 ? (size_t)done : 0;
		}
	}
}

/* ---- output and exit ---- */

static void test_output_and_exit(void **state)
{
	struct harness *h = *state;
	struct running r;
	struct peer p;

	exec_run(h, EXEC_CAT, &r);
	ws_open(h, &p, r.id, "");
	ws_expect(h, &p, WS_PING, "", 0); /* at once: clients wait for something to come */
	assert_int_equal(h->report.in_flight, 2);
	guest_out(h, &r, AGENT_STDOUT, "out");
	ws_expect(h, &p, WS_BINARY, "\1out", 4);
	guest_out(h, &r, AGENT_STDERR, "err");
	ws_expect(h, &p, WS_BINARY, "\2err", 4);
	guest_out(h, &r, AGENT_STDOUT, "last");
	guest_end(h, r.chan, 3, 0, 0);
	ws_expect(h, &p, WS_BINARY, "\1last", 5);
	ws_expect_exit(h, &p, 3);
	assert_int_equal(h->report.in_flight, 0);
	assert_int_equal(h->report.work.bytes_out, 10);
}

static void test_exit_says_how(void **state)
{
	struct harness *h = *state;
	struct running r;
	struct peer p;

	exec_run(h, EXEC_CAT, &r);
	ws_open(h, &p, r.id, "");
	guest_end(h, r.chan, -1, SIGSEGV, 0);
	ws_expect_text(h, &p,
	    "{\"type\":\"exit\",\"exit_code\":-11,\"status\":\"killed\","
	    "\"error_message\":\"killed by signal 11 (SIGSEGV)\"}");
	ws_expect_close(h, &p, WS_NORMAL);
	ws_answer_close(h, &p);
}

/* It was over before its client came: nothing is missing. */
static void test_attach_after_the_end(void **state)
{
	struct harness *h = *state;
	struct running r;
	struct peer p;

	exec_run(h, EXEC_CAT, &r);
	guest_out(h, &r, AGENT_STDOUT, "all of it");
	guest_out(h, &r, AGENT_STDERR, "and this");
	guest_end(h, r.chan, 0, 0, 0);
	H_UNTIL(h, h->report.in_flight == 0);
	ws_open(h, &p, r.id, "");
	ws_expect(h, &p, WS_BINARY, "\1all of it", 10);
	ws_expect(h, &p, WS_BINARY, "\2and this", 9);
	ws_expect_exit(h, &p, 0);
	ws_open(h, &p, r.id, ""); /* and once more */
	ws_expect_exit(h, &p, 0);
}

/* ---- refusals ---- */

static void test_refused(void **state)
{
	static const struct {
		const char *query;
		const char *fields;
		const char *status;
		const char *text;
	} cases[] = {
#define UPGRADE "Upgrade: websocket\r\nConnection: Upgrade\r\n"
#define V13 "Sec-WebSocket-Version: 13\r\n"
#define KEY "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
	    {"", "", "426", "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"},
	    {"", UPGRADE KEY "Sec-WebSocket-Version: 12\r\n", "426", "upgrade_required"},
	    {"", UPGRADE V13 "Sec-WebSocket-Key: short\r\n", "400", "Sec-WebSocket-Key"},
	    {"", UPGRADE V13 KEY "Transfer-Encoding: chunked\r\n", "400", "has no body"},
	    {"?stdin=maybe", UPGRADE V13 KEY, "400", "\\\"stdin\\\" must be 0, 1, true or false"},
	    {"?replay=", UPGRADE V13 KEY, "400", "\\\"replay\\\" must be"},
	};
	struct harness *h = *state;
	struct running r;
	char path[96];
	char line[32];
	struct peer p;

	exec_run(h, EXEC_CAT, &r);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		exec_path(path, r.id, "/attach");
		strcat(path, cases[i].query);
		peer_request(h, &p, "GET", path, cases[i].fields, NULL);
		(void)snprintf(line, sizeof(line), "HTTP/1.1 %s ", cases[i].status);
		peer_expect(h, &p, line);
		peer_expect(h, &p, cases[i].text);
		peer_close(&p);
	}
	ws_ask(h, &p, "exec-0000000000000000", "");
	peer_expect(h, &p, "HTTP/1.1 404 ");
	peer_close(&p);
	assert_null(exec_newest(h)->attach);
	assert_false(exec_newest(h)->attached_once);
}

static void test_one_client_at_a_time(void **state)
{
	struct harness *h = *state;
	struct running r;
	struct peer first;
	struct peer second;

	exec_run(h, EXEC_CAT, &r);
	ws_open(h, &first, r.id, "");
	ws_ask(h, &second, r.id, "");
	peer_expect(h, &second, "HTTP/1.1 409 ");
	peer_expect(h, &second, "\"attached\"");
	peer_close(&second);
	guest_out(h, &r, AGENT_STDOUT, "goes on");
	ws_expect(h, &first, WS_BINARY, "\1goes on", 8);
	ws_put_frame(h, &first, WS_FIN | WS_CLOSE, "\x03\xe8", 2);
	ws_expect_close(h, &first, WS_NORMAL);
	PEER_UNTIL(h, &first, first.ended);
	peer_close(&first);
	ws_open(h, &second, r.id, "");
	peer_close(&second);
}

/* ---- characters ---- */

/* REPORTS 10: a client that decodes each message by itself gets whole characters. */
static void test_report_10_characters_are_not_split(void **state)
{
	struct harness *h = *state;
	struct running r;
	struct peer p;

	exec_run(h, EXEC_CAT, &r);
	ws_open(h, &p, r.id, "");
	guest_out(h, &r, AGENT_STDOUT, "ab\xe2");
	ws_expect(h, &p, WS_BINARY, "\1ab", 3);
	guest_out(h, &r, AGENT_STDOUT, "\x9c");
	guest_out(h, &r, AGENT_STDERR, "\xc3");
	guest_out(h, &r, AGENT_STDOUT, "\x93 and \xf0\x9f");
	ws_expect(h, &p, WS_BINARY, "\1\xe2\x9c\x93 and ", 9);
	guest_out(h, &r, AGENT_STDERR, "\xa9");
	ws_expect(h, &p, WS_BINARY, "\2\xc3\xa9", 3);
	guest_end(h, r.chan, 0, 0, 0); /* with what never became a character */
	ws_expect(h, &p, WS_BINARY, "\1\xf0\x9f", 3);
	ws_expect_exit(h, &p, 0);
}

/* Bytes that are no text do not wait for ever. */
static void test_a_lone_byte_comes_soon(void **state)
{
	struct harness *h = *state;
	struct running r;
	struct peer p;

	exec_run(h, EXEC_CAT, &r);
	ws_open(h, &p, r.id, "");
	guest_out(h, &r, AGENT_STDOUT, "\xe2");
	ws_expect(h, &p, WS_BINARY, "\1\xe2", 2);
	guest_out(h, &r, AGENT_STDOUT, "\xff\xfe");
	ws_expect(h, &p, WS_BINARY, "\1\xff\xfe", 3);
	peer_close(&p);
}

/* ---- coming and going ---- */

static void test_detach_and_resume(void **state)
{
	struct harness *h = *state;
	struct running r;
	struct peer p;

	exec_run(h, EXEC_CAT, &r);
	ws_open(h, &p, r.id, "");
	guest_out(h, &r, AGENT_STDOUT, "one ");
	ws_expect(h, &p, WS_BINARY, "\1one ", 5);
	peer_close(&p);
	H_UNTIL(h, !exec_newest(h)->attach);
	guest_out(h, &r, AGENT_STDOUT, "two ");
	guest_out(h, &r, AGENT_STDERR, "err");
	h_settle(h);
	ws_open(h, &p, r.id, ""); /* what it has not had */
	ws_expect(h, &p, WS_BINARY, "\1two ", 5);
	ws_expect(h, &p, WS_BINARY, "\2err", 4);
	guest_out(h, &r, AGENT_STDOUT, "three");
	ws_expect(h, &p, WS_BINARY, "\1three", 6);
	peer_close(&p);
	H_UNTIL(h, !exec_newest(h)->attach);
	ws_open(h, &p, r.id, "?replay=1"); /* all that is kept */
	ws_expect(h, &p, WS_BINARY, "\1one two three", 14);
	ws_expect(h, &p, WS_BINARY, "\2err", 4);
	guest_end(h, r.chan, 0, 0, 0);
	ws_expect_exit(h, &p, 0);
}

/* Nobody was there yet: all of it is kept, and the guest is held back after 256 KiB. */
static void test_nothing_is_lost_before_the_first_client(void **state)
{
	struct harness *h = *state;
	size_t credit = AGENT_WINDOW_NARROW;
	size_t total = 0;
	struct running r;
	struct peer p;
	struct buf got;

	exec_run(h, EXEC_CAT, &r);
	assert_true(guest_write(h, &r, AGENT_WINDOW_NARROW, &credit));
	assert_int_equal(credit, 0); /* none was given */
	assert_false(guest_write(h, &r, 1, &credit));
	ws_open(h, &p, r.id, "");
	buf_init(&got, 1U << 20);
	while (total < AGENT_WINDOW_NARROW) {
		if (ws_next(h, &p, &got) == WS_BINARY)
			total += got.len - 1;
	}
	assert_int_equal(total, AGENT_WINDOW_NARROW);
	assert_true(guest_write(h, &r, 100000, &credit)); /* it goes on */
	buf_free(&got);
	peer_close(&p);
}

/* A client was there and went: the newest 256 KiB stay, the guest is never held back, and the next
 * client is told what is missing. */
static void test_detached_output_is_bounded(void **state)
{
	struct harness *h = *state;
	size_t credit = AGENT_WINDOW_NARROW;
	struct running r;
	struct peer p;
	struct buf got;
	size_t total = 0;

	exec_run(h, EXEC_CAT, &r);
	ws_open(h, &p, r.id, "");
	peer_close(&p);
	H_UNTIL(h, !exec_newest(h)->attach);
	assert_true(guest_write(h, &r, 4U << 20, &credit));
	assert_true(exec_newest(h)->out[0].kept.len <= EXEC_KEEP);
	ws_open(h, &p, r.id, "");
	ws_expect_text(h, &p, "stdout: 3932160 bytes were dropped while no client was attached");
	buf_init(&got, 1U << 20);
	while (total < EXEC_KEEP) {
		if (ws_next(h, &p, &got) == WS_BINARY)
			total += got.len - 1;
	}
	assert_int_equal(total, EXEC_KEEP);
	buf_free(&got);
	guest_end(h, r.chan, 0, 0, 0);
	ws_expect_exit(h, &p, 0);
	ws_open(h, &p, r.id, ""); /* it is said once */
	ws_expect_exit(h, &p, 0);
}

/* A client that does not read stops its execution, and nothing else. */
static void test_a_reader_that_stops(void **state)
{
	struct harness *h = *state;
	size_t credit = AGENT_WINDOW_NARROW;
	size_t written = 0;
	struct running r;
	struct running other;
	struct peer slow;
	struct peer p;

	exec_run(h, EXEC_CAT, &r);
	ws_open(h, &slow, r.id, "");
	peer_drain(h, &slow);
	while (guest_write(h, &r, 32768, &credit))
		written += 32768;
	assert_true(written >= AGENT_WINDOW);
	assert_true(written < AGENT_WINDOW + (4U << 20)); /* and what the socket holds */
	assert_true(exec_newest(h)->out[0].kept.len <= AGENT_WINDOW);
	assert_true(conn_queued(ws_of_newest(h)->op.conn) <= 2 * EXEC_PIECE);
	exec_run(h, EXEC_CAT, &other);
	ws_open(h, &p, other.id, "");
	guest_out(h, &other, AGENT_STDOUT, "lives");
	ws_expect(h, &p, WS_BINARY, "\1lives", 6);
	peer_close(&p);
	guest_end(h, r.chan, 0, 0, 0); /* it reads at last: all of it, then the exit */
	for (size_t total = 0; total < written;) {
		struct buf got;

		buf_init(&got, 1U << 20);
		if (ws_next(h, &slow, &got) == WS_BINARY)
			total += got.len - 1;
		buf_free(&got);
	}
	ws_expect_exit(h, &slow, 0);
}

/*
 * A client that does not read while it writes, as BoxLite's: what the command writes meanwhile is
 * kept for it, within bounds, so that both go on.
 */
static void test_a_client_that_writes_before_it_reads(void **state)
{
	static uint8_t block[65536];
	const size_t other = SERVICE_BUFFER_MAX / 2 - (2U << 20); /* what others keep */
	struct harness *h = *state;
	size_t credit = AGENT_WINDOW_NARROW;
	size_t written = 0;
	struct running r;
	struct peer p;

	exec_run(h, EXEC_CAT, &r);
	ws_open(h, &p, r.id, "");
	peer_drain(h, &p);
	h->s.buffered = other;
	while (guest_write(h, &r, 32768, &credit)) /* it does not read */
		written += 32768;
	assert_int_equal(h->s.buffered, other);
	for (size_t i = 0; i < AGENT_WINDOW / sizeof(block); i++) /* and stdin is full */
		ws_put_frame_quietly(h, &p, block, sizeof(block));
	H_UNTIL(h, h->s.buffered > other);
	while (guest_write(h, &r, 32768, &credit))
		written += 32768;
	assert_true(h->s.buffered <= SERVICE_BUFFER_MAX / 2);
	assert_true(written > 3U << 20);
	guest_end(h, r.chan, 0, 0, 0);
	for (size_t total = 0; total < written;) {
		struct buf got;

		buf_init(&got, 1U << 20);
		if (ws_next(h, &p, &got) == WS_BINARY)
			total += got.len - 1;
		buf_free(&got);
	}
	ws_expect_exit(h, &p, 0);
	assert_int_equal(h->s.buffered, other);
	h->s.buffered = 0;
}

/* ---- the box dies ---- */

static void test_box_dies(void **state)
{
	struct harness *h = *state;
	struct running r;
	struct peer p;

	exec_run(h, EXEC_CAT, &r);
	ws_open(h, &p, r.id, "");
	guest_out(h, &r, AGENT_STDOUT, "last");
	ws_expect(h, &p, WS_BINARY, "\1last", 5);
	service_set_state(&h->s, SERVICE_DEAD, API_BOX_DIED, "the box died");
	ws_expect_text(h, &p, "{\"type\":\"error\",\"message\":\"the box died\"}");
	ws_expect_text(h, &p, "{\"type\":\"exit\",\"exit_code\":-9,\"status\":\"killed\",");
	ws_expect_close(h, &p, WS_INTERNAL);
	PEER_UNTIL(h, &p, p.ended);
	assert_int_equal(h->report.in_flight, 0);
	assert_true(LIST_EMPTY(&h->s.executions));
	peer_close(&p);
}

/* While the box is being closed, what runs may end. */
static void test_box_closes(void **state)
{
	struct harness *h = *state;
	struct running r;
	struct peer p;

	exec_run(h, EXEC_CAT, &r);
	ws_open(h, &p, r.id, "");
	service_set_state(&h->s, SERVICE_CLOSING, API_BOX_DIED, "the box is being stopped");
	h_settle(h);
	guest_end(h, r.chan, 0, 0, 0);
	ws_expect_exit(h, &p, 0);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, h_setup, h_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_output_and_exit),
	    TEST(test_exit_says_how),
	    TEST(test_attach_after_the_end),
	    TEST(test_refused),
	    TEST(test_one_client_at_a_time),
	    TEST(test_report_10_characters_are_not_split),
	    TEST(test_a_lone_byte_comes_soon),
	    TEST(test_detach_and_resume),
	    TEST(test_nothing_is_lost_before_the_first_client),
	    TEST(test_detached_output_is_bounded),
	    TEST(test_a_reader_that_stops),
	    TEST(test_a_client_that_writes_before_it_reads),
	    TEST(test_box_dies),
	    TEST(test_box_closes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
