/* fs/read, and what is common to fs requests, against a guest that the test plays. */
#include <sys/stat.h>

#include "tests/unit/worker/harness.h"

static uint32_t read_request(struct harness *h, const char *query, struct agent_read *out)
{
	uint8_t payload[4096];
	struct agent_head head;
	char rest[512];

	(void)snprintf(rest, sizeof(rest), "fs/read?%s", query);
	h_request(h, "GET", rest, "", "");
	head = guest_next(h, payload, sizeof(payload));
	assert_int_equal(head.type, AGENT_READ);
	memcpy(out, payload, sizeof(*out));
	assert_int_equal(head.size, sizeof(*out) + out->path_len);
	assert_memory_equal(payload + sizeof(*out), "/a b", 4);
	return head.channel;
}

/* Clients that do not read are to be felt soon: a socket of a large transfer holds much. */
static void narrow_client(struct harness *h)
{
	static const int size = 100000;

	for (size_t i = 0; i < SHM_CONNS; i++) {
		if (h->s.conns[i])
			assert_int_equal(setsockopt(h->s.conns[i]->fd, SOL_SOCKET, SO_SNDBUF, &size,
					     sizeof(size)),
			    0);
	}
}

static void read_started(struct harness *h, uint32_t id, uint64_t size)
{
	const struct agent_stat st = {.size = size, .mode = S_IFREG | 0644};

	guest_send(h, AGENT_STARTED, 0, id, &st, sizeof(st));
	h_settle(h);
	narrow_client(h);
}

static void test_read_whole(void **state)
{
	struct harness *h = *state;
	struct agent_read r;
	uint32_t id = read_request(h, "path=/a%20b", &r);

	assert_int_equal(r.offset, 0);
	assert_int_equal(r.limit, UINT64_MAX);
	assert_int_equal(r.flags, 0);
	read_started(h, id, 6);
	guest_send(h, AGENT_DATA, AGENT_STDOUT, id, "abc", 3);
	guest_send(h, AGENT_DATA, AGENT_STDOUT, id, "\0\xff\n", 3);
	guest_end(h, id, 0, 0, 0);
	h_expect(h, "\r\n\r\n");
	H_UNTIL(h, h_word(h, 0) == CONN_IDLE);
	assert_true(h_answer_has(h, "Content-Length: 6\r\n"));
	assert_true(h_answer_has(h, "Content-Type: application/octet-stream\r\n"));
	assert_memory_equal(buf_head(&h->answer) + h->answer.len - 6, "abc\0\xff\n", 6);
	assert_int_equal(h->report.work.bytes_out, 6);
}

static void test_read_range(void **state)
{
	struct harness *h = *state;
	struct agent_read r;
	uint32_t id = read_request(h, "path=/a%20b&offset=10&limit=20", &r);

	assert_int_equal(r.offset, 10);
	assert_int_equal(r.limit, 20);
	read_started(h, id, 15);
	h_expect(h, "Content-Length: 5\r\n");
	guest_send(h, AGENT_DATA, AGENT_STDOUT, id, "54321", 5);
	guest_end(h, id, 0, 0, 0);
	h_expect(h, "54321");
	id = read_request(h, "path=/a+b&offset=100", &r);
	read_started(h, id, 15);
	guest_end(h, id, 0, 0, 0);
	h_expect(h, "Content-Length: 0\r\n");
}

static void test_read_lines(void **state)
{
	struct harness *h = *state;
	struct agent_read r;
	uint32_t id = read_request(h, "path=/a%20b&start_line=3&end_line=4", &r);

	assert_int_equal(r.flags, AGENT_READ_LINES);
	assert_int_equal(r.offset, 3);
	assert_int_equal(r.limit, 4);
	read_started(h, id, 1000); /* says nothing of the lines' length */
	guest_send(h, AGENT_DATA, AGENT_STDOUT, id, "three\nfour\n", 11);
	guest_end(h, id, 0, 0, 0);
	h_expect(h, "Transfer-Encoding: chunked\r\n");
	h_expect(h, "\r\n\r\nb\r\nthree\nfour\n\r\n0\r\n\r\n");
}

/* Files of /proc say that they are empty, and are not. */
static void test_read_of_unknown_size(void **state)
{
	struct harness *h = *state;
	struct agent_read r;
	uint32_t id = read_request(h, "path=/a%20b", &r);

	read_started(h, id, 0);
	guest_send(h, AGENT_DATA, AGENT_STDOUT, id, "data", 4);
	guest_end(h, id, 0, 0, 0);
	h_expect(h, "\r\n\r\n4\r\ndata\r\n0\r\n\r\n");
}

static void test_read_of_shrinking_file(void **state)
{
	struct harness *h = *state;
	struct agent_read r;
	uint32_t id = read_request(h, "path=/a%20b", &r);

	read_started(h, id, 100);
	guest_send(h, AGENT_DATA, AGENT_STDOUT, id, "half", 4);
	guest_end(h, id, 0, 0, 0);
	H_UNTIL(h, h->answer_ended);
	assert_true(h_answer_has(h, "half"));
}

static void test_read_of_growing_file(void **state)
{
	struct harness *h = *state;
	struct agent_read r;
	uint32_t id = read_request(h, "path=/a%20b", &r);

	read_started(h, id, 4);
	guest_send(h, AGENT_DATA, AGENT_STDOUT, id, "four and more", 13);
	assert_int_equal(guest_expect(h, AGENT_CLOSE), id);
	guest_end(h, id, 0, 0, AGENT_END_KILLED);
	H_UNTIL(h, h_word(h, 0) == CONN_IDLE);
	assert_true(h_answer_has(h, "\r\n\r\nfour"));
	assert_false(h_answer_has(h, "four and"));
}

static const struct {
	const char *query;
	const char *reason;
} bad_queries[] = {
    {"", "invalid_path"},
    {"path=", "invalid_path"},
    {"path=relative", "invalid_path"},
    {"path=/a/../b", "invalid_path"},
    {"path=/..", "invalid_path"},
    {"path=/a%0", "invalid_path"},
    {"path=/a&path=/b", "invalid_path"},
    {"path=/a&offset=-1", "invalid_argument"},
    {"path=/a&offset=x", "invalid_argument"},
    {"path=/a&limit=1.5", "invalid_argument"},
    {"path=/a&limit=99999999999999999999", "invalid_argument"},
    {"path=/a&start_line=0", "invalid_argument"},
    {"path=/a&start_line=5&end_line=4", "invalid_argument"},
    {"path=/a&offset=1&start_line=1", "invalid_argument"},
};

static void test_bad_queries(void **state)
{
	struct harness *h = *state;
	char rest[256];

	for (size_t i = 0; i < sizeof(bad_queries) / sizeof(bad_queries[0]); i++) {
		(void)snprintf(rest, sizeof(rest), "fs/read?%s", bad_queries[i].query);
		h_request(h, "GET", rest, "", "");
		h_expect(h, bad_queries[i].reason);
		assert_true(h_answer_has(h, "HTTP/1.1 400 "));
	}
	h_request(h, "PUT", "fs/write?path=/a&mode=888", "", "");
	h_expect(h, "\\\"mode\\\" must be an octal number from 0 to 7777");
	h_request(h, "PUT", "fs/write?path=/a&append=2", "", "");
	h_expect(h, "\\\"append\\\" must be 0, 1, true or false");
	h_request(h, "GET", "fs/read?path=/a&start_line=3&end_line=2", "", "");
	h_expect(h, "\\\"end_line\\\" must be a decimal number, at least 3");
	h_request(h, "GET", "fs/list?path=/a&depth=0", "", "");
	h_expect(h, "\\\"depth\\\" must be a decimal number from 1 to 2048");
	h_request(h, "GET", "fs/read?path=/a&offset=x", "", "");
	h_expect(h, "\\\"offset\\\" must be a decimal number\"");
	assert_int_equal(h->from_worker.len, 0); /* the guest was bothered with none of it */
}

static const struct {
	uint32_t code;
	const char *status;
	const char *reason;
} errors[] = {
    {AGENT_E_NOT_FOUND, "404", "not_found"},
    {AGENT_E_PERMISSION, "403", "permission_denied"},
    {AGENT_E_IS_DIRECTORY, "400", "is_directory"},
    {AGENT_E_NOT_A_DIRECTORY, "400", "not_a_directory"},
    {AGENT_E_NO_SPACE, "507", "no_space"},
    {AGENT_E_TOO_LARGE, "413", "too_large"},
};

static void test_errors(void **state)
{
	struct harness *h = *state;
	struct agent_read r;

	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		guest_error(h, read_request(h, "path=/a%20b", &r), errors[i].code, "why not");
		h_expect(h, errors[i].reason);
		assert_true(h_answer_has(h, errors[i].status));
	}
	guest_error(h, read_request(h, "path=/a%20b", &r), AGENT_E_IO, "broken disk");
	h_expect(h, "HTTP/1.1 500 ");
}

/* A client that stalls, and nobody else who waits for the guest: nothing is copied here. */
static void test_read_holds_the_guest(void **state)
{
	static uint8_t block[AGENT_HEAD_LEN + AGENT_PAYLOAD_MAX];
	struct harness *h = *state;
	struct agent_read r;
	uint32_t id = read_request(h, "path=/a%20b", &r);
	int client = h->client;
	size_t sent = 0;
	size_t total = AGENT_WINDOW / AGENT_PAYLOAD_MAX * sizeof(block);

	read_started(h, id, AGENT_WINDOW);
	h->client = -1;
	agent_put_head(block, AGENT_DATA, 0, AGENT_STDOUT, id, AGENT_PAYLOAD_MAX);
	while (sent < total) {
		ssize_t n = send(h->guest, block + sent % sizeof(block),
		    sizeof(block) - sent % sizeof(block), MSG_DONTWAIT);

		if (n > 0)
			sent += (size_t)n;
		h_settle(h);
		if (n < 0)
			break;
	}
	assert_true(sent < total);
	assert_true(h->link.held);
	assert_int_equal(h->s.conns[0]->out.len, 0);
	/* Somebody else waits now: what the client does not take is kept for it. */
	assert_int_equal(agent_link_send(&h->link, AGENT_PING, "x", 1), 0);
	h_settle(h);
	assert_false(h->link.held);
	assert_true(h->s.conns[0]->out.len > 0);
	while (sent < total) {
		ssize_t n = send(h->guest, block + sent % sizeof(block),
		    sizeof(block) - sent % sizeof(block), MSG_DONTWAIT);

		if (n > 0)
			sent += (size_t)n;
		h_settle(h);
	}
	guest_send(h, AGENT_PONG, 0, 0, "x", 1);
	H_UNTIL(h, h->pongs == 1);
	guest_end(h, id, 0, 0, 0);
	h->client = client;
	H_UNTIL(h, h_word(h, 0) == CONN_IDLE);
	assert_true(h->answer.len > AGENT_WINDOW);
}

/* What the guest has sent of a large file, and may send. */
struct sender {
	uint32_t id;
	size_t total;
	size_t sent; /* payload */
	size_t credit;
	uint8_t frame[AGENT_HEAD_LEN + AGENT_PAYLOAD_MAX];
	size_t frame_len;
	size_t frame_off;
};

static uint8_t pattern(size_t i)
{
	return (uint8_t)(i * 2654435761U >> 11);
}

/* Sends on as far as credit and socket allow; odd sizes, so that nothing is aligned. */
static void sender_go_on(struct harness *h, struct sender *s)
{
	for (;;) {
		ssize_t n;

		if (s->frame_off == s->frame_len) {
			size_t size = 1 + (s->sent * 7919 + 31) % AGENT_PAYLOAD_MAX;

			if (size > s->total - s->sent)
				size = s->total - s->sent;
			if (size == 0 || size > s->credit)
				return;
			agent_put_head(
			    s->frame, AGENT_DATA, 0, AGENT_STDOUT, s->id, (uint32_t)size);
			for (size_t i = 0; i < size; i++)
				s->frame[AGENT_HEAD_LEN + i] = pattern(s->sent + i);
			s->frame_len = AGENT_HEAD_LEN + size;
			s->frame_off = 0;
			s->sent += size;
			s->credit -= size;
		}
		n = send(h->guest, s->frame + s->frame_off, s->frame_len - s->frame_off,
		    MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n < 0)
			return;
		s->frame_off += (size_t)n;
	}
}

static void sender_take_credit(struct harness *h, struct sender *s)
{
	struct agent_head head;
	uint8_t payload[64];
	uint32_t more;

	while (agent_get_head(buf_head(&h->from_worker), h->from_worker.len, &head) == 1) {
		head = guest_next(h, payload, sizeof(payload));
		if (head.type == AGENT_PING) {
			if (s->frame_off == s->frame_len)
				guest_send(h, AGENT_PONG, 0, 0, "x", 1);
			continue;
		}
		assert_int_equal(head.type, AGENT_CREDIT);
		memcpy(&more, payload, sizeof(more));
		s->credit += more;
	}
}

static void assert_content(struct harness *h, size_t total)
{
	const uint8_t *body = memmem(buf_head(&h->answer), h->answer.len, "\r\n\r\n", 4);
	size_t wrong = 0;

	assert_non_null(body);
	body += 4;
	assert_int_equal(h->answer.len - (size_t)(body - buf_head(&h->answer)), total);
	for (size_t i = 0; i < total; i++)
		wrong += body[i] != pattern(i);
	assert_int_equal(wrong, 0);
}

/* A client that reads by fits and starts, and sometimes somebody else who waits for the guest: held
 * and released, through the pipe and around it, every byte arrives in its place. */
static void test_read_through_the_pipe(void **state)
{
	struct harness *h = *state;
	struct agent_read r;
	struct sender s = {.total = 5 * AGENT_WINDOW + 12345, .credit = AGENT_WINDOW};
	int client;

	s.id = read_request(h, "path=/a%20b", &r);
	read_started(h, s.id, s.total);
	client = h->client;
	for (unsigned int round = 0; s.sent < s.total || s.frame_off < s.frame_len; round++) {
		h->client = -1;
		for (unsigned int i = 0; i < 1 + round % 5; i++) {
			sender_go_on(h, &s);
			h_settle(h);
		}
		/* Only between frames, so that the answer can be sent. */
		if (round % 7 == 3 && h->link.unanswered == 0 && s.frame_off == s.frame_len)
			assert_int_equal(agent_link_send(&h->link, AGENT_PING, "x", 1), 0);
		h_settle(h);
		h->client = client;
		if (round % 3) {
			uint8_t bytes[50000];
			ssize_t n = recv(client, bytes, sizeof(bytes), MSG_DONTWAIT);

			if (n > 0)
				assert_int_equal(buf_append(&h->answer, bytes, (size_t)n), 0);
			h->client = -1;
			h_settle(h);
			h->client = client;
		} else {
			h_drain(h);
		}
		sender_take_credit(h, &s);
	}
	guest_end(h, s.id, 0, 0, 0);
	H_UNTIL(h, h_word(h, 0) == CONN_IDLE);
	h_drain(h);
	assert_content(h, s.total);
	assert_int_equal(h->broken, 0);
}

/* The client goes while the pipe holds what it did not take: that is dropped, the rest too. */
static void test_client_goes_while_held(void **state)
{
	struct harness *h = *state;
	struct agent_read r;
	struct sender s = {.total = 4 * AGENT_WINDOW, .credit = AGENT_WINDOW};

	s.id = read_request(h, "path=/a%20b", &r);
	read_started(h, s.id, s.total);
	h->client = -h->client;
	while (!h->link.held) {
		sender_go_on(h, &s);
		h_settle(h);
	}
	h->client = -h->client;
	fd_close(&h->client);
	H_UNTIL(h, h->gone == 1);
	while (s.frame_off < s.frame_len) {
		sender_go_on(h, &s);
		h_settle(h);
	}
	guest_end(h, s.id, 0, 0, AGENT_END_KILLED);
	H_UNTIL(h, h->report.in_flight == 0);
	assert_int_equal(h->link.pipe_len, 0);
	assert_int_equal(h->broken, 0);
}

static void test_guest_goes_while_held(void **state)
{
	static uint8_t block[AGENT_PAYLOAD_MAX];
	struct harness *h = *state;
	struct agent_read r;
	uint32_t id = read_request(h, "path=/a%20b", &r);

	read_started(h, id, AGENT_WINDOW);
	h->client = -h->client;
	while (!h->link.held) {
		guest_send(h, AGENT_DATA, AGENT_STDOUT, id, block, sizeof(block));
		h_settle(h);
	}
	h->client = -h->client;
	fd_close(&h->guest);
	for (int i = 0; i < 100 && !h->broken; i++)
		assert_int_equal(loop_step(h->s.loop, NS_PER_MS), 0);
	assert_int_equal(h->broken, 1);
}

static void test_read_stalled_client(void **state)
{
	static uint8_t block[AGENT_PAYLOAD_MAX];
	struct harness *h = *state;
	struct agent_read r;
	uint32_t id = read_request(h, "path=/a%20b", &r);
	size_t total = 8 * AGENT_WINDOW;
	size_t credit = AGENT_WINDOW;
	size_t sent = 0;
	int client = h->client;

	read_started(h, id, total);
	h->client = -1;
	assert_int_equal(agent_link_send(&h->link, AGENT_PING, "x", 1), 0);
	assert_int_equal(guest_expect(h, AGENT_PING), 0);
	/* Nobody reads, and the guest cannot be held: one window is all that comes. */
	while (credit >= sizeof(block)) {
		guest_send(h, AGENT_DATA, AGENT_STDOUT, id, block, sizeof(block));
		credit -= sizeof(block);
		sent += sizeof(block);
		h_settle(h);
	}
	assert_true(h->s.conns[0]->out.len < AGENT_WINDOW + 4096);
	h->client = client;
	while (sent < total) {
		uint8_t payload[64];
		uint32_t more;

		while (credit < sizeof(block)) {
			assert_int_equal(
			    guest_next(h, payload, sizeof(payload)).type, AGENT_CREDIT);
			memcpy(&more, payload, sizeof(more));
			credit += more;
			assert_true(credit <= AGENT_WINDOW);
		}
		guest_send(h, AGENT_DATA, AGENT_STDOUT, id, block, sizeof(block));
		credit -= sizeof(block);
		sent += sizeof(block);
		h_settle(h);
	}
	guest_end(h, id, 0, 0, 0);
	H_UNTIL(h, h_word(h, 0) == CONN_IDLE);
	assert_true(h->answer.len > total);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, h_setup, h_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_read_whole),
	    TEST(test_read_range),
	    TEST(test_read_lines),
	    TEST(test_read_of_unknown_size),
	    TEST(test_read_of_shrinking_file),
	    TEST(test_read_of_growing_file),
	    TEST(test_bad_queries),
	    TEST(test_errors),
	    TEST(test_read_holds_the_guest),
	    TEST(test_read_through_the_pipe),
	    TEST(test_client_goes_while_held),
	    TEST(test_guest_goes_while_held),
	    TEST(test_read_stalled_client),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
