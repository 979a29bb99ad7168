/* files: fs/read and fs/write against a guest that the test plays. */
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

static void read_started(struct harness *h, uint32_t id, uint64_t size)
{
	const struct agent_stat st = {.size = size, .mode = S_IFREG | 0644};

	guest_send(h, AGENT_STARTED, 0, id, &st, sizeof(st));
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
	h_expect(h, "HTTP/1.1 400 ");
	h_request(h, "PUT", "fs/write?path=/a&append=2", "", "");
	h_expect(h, "HTTP/1.1 400 ");
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

/* ---- write ---- */

static uint32_t write_request(
    struct harness *h, const char *query, const char *body, struct agent_write *out)
{
	uint8_t payload[4096];
	struct agent_head head;
	char rest[512];

	(void)snprintf(rest, sizeof(rest), "fs/write?%s", query);
	h_request(h, "PUT", rest, "", body);
	head = guest_next(h, payload, sizeof(payload));
	assert_int_equal(head.type, AGENT_WRITE);
	memcpy(out, payload, sizeof(*out));
	return head.channel;
}

static void test_write(void **state)
{
	uint8_t payload[64];
	struct harness *h = *state;
	struct agent_write w;
	uint32_t id = write_request(h, "path=/x&mode=0750&append=1", "hello", &w);
	struct agent_head head;

	assert_int_equal(w.size, 5);
	assert_int_equal(w.flags, AGENT_WRITE_APPEND | AGENT_WRITE_MODE);
	assert_int_equal(w.mode, 0750);
	head = guest_next(h, payload, sizeof(payload));
	assert_int_equal(head.type, AGENT_DATA);
	assert_int_equal(head.size, 5);
	assert_memory_equal(payload, "hello", 5);
	assert_int_equal(guest_expect(h, AGENT_EOF), id);
	guest_end(h, id, 0, 0, 0);
	h_expect(h, "{\"path\":\"/x\",\"bytes\":5}");
	assert_true(h_answer_has(h, "HTTP/1.1 200 OK\r\n"));
	assert_int_equal(h->report.work.bytes_in, 5);
}

static void test_write_chunked(void **state)
{
	uint8_t payload[4096];
	struct harness *h = *state;
	struct agent_write w;
	struct agent_head head;

	h_connect(h, "PUT " H_BOX "/fs/write?path=/x HTTP/1.1\r\nHost: x\r\n"
		     "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n");
	head = guest_next(h, payload, sizeof(payload));
	memcpy(&w, payload, sizeof(w));
	assert_int_equal(w.size, UINT64_MAX);
	assert_int_equal(w.mode, 0644);
	assert_int_equal(w.flags, 0);
	assert_int_equal(guest_expect(h, AGENT_DATA), head.channel);
	h_client_send(h, "1\r\nd\r\n0\r\n\r\n");
	assert_int_equal(guest_expect(h, AGENT_DATA), head.channel);
	assert_int_equal(guest_expect(h, AGENT_EOF), head.channel);
	guest_end(h, head.channel, 0, 0, 0);
	h_expect(h, "\"bytes\":5");
}

/* Many windows of body: the client is read only as the guest takes it. */
static void test_write_follows_credit(void **state)
{
	static uint8_t payload[AGENT_PAYLOAD_MAX];
	static char block[100001];
	struct harness *h = *state;
	size_t total = 30 * 100000;
	size_t sent = 0;
	size_t got = 0;
	size_t given = AGENT_WINDOW;
	struct agent_head head;
	char text[256];
	uint32_t id;

	memset(block, 'w', 100000);
	(void)snprintf(text, sizeof(text),
	    "PUT " H_BOX "/fs/write?path=/x HTTP/1.1\r\nHost: x\r\nContent-Length: %zu\r\n\r\n",
	    total);
	h_connect(h, text);
	id = guest_expect(h, AGENT_WRITE);
	while (got < total) {
		if (sent < total) {
			ssize_t n = send(h->client, block, 100000 - sent % 100000, MSG_DONTWAIT);

			if (n > 0)
				sent += (size_t)n;
		}
		h_settle(h);
		while (agent_get_head(buf_head(&h->from_worker), h->from_worker.len, &head) == 1) {
			head = guest_next(h, payload, sizeof(payload));
			if (head.type == AGENT_EOF)
				break;
			assert_int_equal(head.type, AGENT_DATA);
			got += head.size;
		}
		assert_true(got <= given);
		if (got == given) {
			const uint32_t more = 300000;

			guest_send(h, AGENT_CREDIT, AGENT_STDIN, id, &more, sizeof(more));
			given += more;
		}
	}
	guest_end(h, id, 0, 0, 0);
	h_expect(h, "\"bytes\":5");
}

/* The guest refuses before the body is there: the answer comes, and the connection stays usable. */
static void test_write_refused_early(void **state)
{
	struct harness *h = *state;
	uint32_t id;

	h_connect(h,
	    "PUT " H_BOX "/fs/write?path=/x HTTP/1.1\r\nHost: x\r\nContent-Length: 6\r\n\r\n123");
	id = guest_expect(h, AGENT_WRITE);
	guest_error(h, id, AGENT_E_NO_SPACE, "the disk is full");
	h_expect(h, "HTTP/1.1 507 ");
	h_client_send(h, "456GET " H_BOX "/fs/no HTTP/1.1\r\nHost: x\r\n\r\n");
	h_expect(h, "HTTP/1.1 404 ");
}

static void test_write_too_large(void **state)
{
	struct harness *h = *state;

	h_connect(h, "PUT " H_BOX "/fs/write?path=/x HTTP/1.1\r\nHost: x\r\n"
		     "Content-Length: 1073741825\r\n\r\n");
	h_expect(h, "HTTP/1.1 413 ");
	assert_int_equal(h->from_worker.len, 0);
}

/* A body that ends early is no file. */
static void test_write_client_goes(void **state)
{
	struct harness *h = *state;
	uint32_t id;

	h_connect(h,
	    "PUT " H_BOX "/fs/write?path=/x HTTP/1.1\r\nHost: x\r\nContent-Length: 6\r\n\r\n123");
	id = guest_expect(h, AGENT_WRITE);
	assert_int_equal(guest_expect(h, AGENT_DATA), id);
	assert_int_equal(shutdown(h->client, SHUT_WR), 0);
	assert_int_equal(guest_expect(h, AGENT_CLOSE), id);
	h_expect(h, "the request's body ended early");
	guest_error(h, id, AGENT_E_SHORT, "cancelled");
	H_UNTIL(h, h->report.in_flight == 0);
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
	    TEST(test_guest_goes_while_held),
	    TEST(test_read_stalled_client),
	    TEST(test_write),
	    TEST(test_write_chunked),
	    TEST(test_write_follows_credit),
	    TEST(test_write_refused_early),
	    TEST(test_write_too_large),
	    TEST(test_write_client_goes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
