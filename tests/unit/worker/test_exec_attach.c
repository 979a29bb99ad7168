/* exec_attach and conn_ws: the client of an execution, by a WebSocket. The guest is the test's. */
#include <signal.h>

#include "tests/unit/worker/exec_testing.h"
#include "worker/conn_ws.h"

static struct conn_ws *ws_of_newest(struct harness *h)
{
	return (struct conn_ws *)(void *)exec_newest(h)->attach;
}

/* Takes frames from the worker until one of `type` comes; its payload into out. */
static size_t skip_to(struct harness *h, enum agent_type type, uint8_t out[AGENT_PAYLOAD_MAX])
{
	struct agent_head head;

	do {
		head = guest_next(h, out, AGENT_PAYLOAD_MAX);
	} while (head.type != type);
	return head.size;
}

static void let_time_pass(struct harness *h, struct loop_timer *t)
{
	assert_int_not_equal(t->pos, 0);
	assert_int_equal(loop_timer_set(h->s.loop, t, 1, t->fn), 0);
	h_settle(h);
}

static void guest_out(
    struct harness *h, const struct running *r, unsigned int stream, const char *text)
{
	guest_send(h, AGENT_DATA, stream, r->chan, text, strlen(text));
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
	    {"?stdin=maybe", UPGRADE V13 KEY, "400", "stdin must be 0, 1, false or true"},
	    {"?replay=", UPGRADE V13 KEY, "400", "replay must be"},
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

/* Sends n bytes on stdout, never more than the worker has given credit for; false: it is used up.
 */
static bool guest_write(struct harness *h, const struct running *r, size_t n, size_t *credit)
{
	static uint8_t payload[AGENT_PAYLOAD_MAX];
	static uint8_t block[32768];

	memset(block, 'x', sizeof(block));
	while (n) {
		size_t part = n < sizeof(block) ? n : sizeof(block);

		h_settle(h);
		while (h->from_worker.len >= AGENT_HEAD_LEN) {
			struct agent_head head = guest_next(h, payload, sizeof(payload));
			uint32_t more;

			if (head.type != AGENT_CREDIT || head.arg != AGENT_STDOUT)
				continue;
			memcpy(&more, payload, sizeof(more));
			*credit += more;
		}
		if (*credit < part)
			return false;
		guest_send(h, AGENT_DATA, AGENT_STDOUT, r->chan, block, part);
		*credit -= part;
		n -= part;
	}
	h_settle(h);
	return true;
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
	    TEST(test_stdin),
	    TEST(test_stdin_follows_credit),
	    TEST(test_unread_stdin_does_not_block_the_exit),
	    TEST(test_no_stdin),
	    TEST(test_read_only),
	    TEST(test_orders),
	    TEST(test_resize_without_a_terminal),
	    TEST(test_report_10_characters_are_not_split),
	    TEST(test_a_lone_byte_comes_soon),
	    TEST(test_detach_and_resume),
	    TEST(test_nothing_is_lost_before_the_first_client),
	    TEST(test_detached_output_is_bounded),
	    TEST(test_a_reader_that_stops),
	    TEST(test_a_client_that_writes_before_it_reads),
	    TEST(test_protocol_errors),
	    TEST(test_text_that_is_too_long),
	    TEST(test_client_closes),
	    TEST(test_exit_while_the_client_sends),
	    TEST(test_client_does_not_answer_the_close),
	    TEST(test_client_goes_on_the_exit),
	    TEST(test_stdin_of_a_client_that_hangs_up),
	    TEST(test_hang_up_with_a_full_stdin),
	    TEST(test_pings),
	    TEST(test_a_silent_client_is_gone),
	    TEST(test_not_listened_to_is_not_silent),
	    TEST(test_answers_that_nobody_reads_are_bounded),
	    TEST(test_box_dies),
	    TEST(test_box_closes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
