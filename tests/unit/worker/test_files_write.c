/* fs/write against a guest that the test plays. */
#include "tests/unit/worker/harness.h"

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

static void test_a_name_that_is_no_text(void **state)
{
	struct harness *h = *state;
	struct agent_write w;
	uint32_t id = write_request(h, "path=/x%ff", "", &w);

	assert_int_equal(guest_expect(h, AGENT_EOF), id);
	guest_end(h, id, 0, 0, 0);
	h_expect(h, "{\"path\":\"/x\xef\xbf\xbd\",\"path_base64\":\"L3j/\",\"bytes\":5}");
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
	static uint8_t payload[AGENT_DATA_MAX];
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

#define BIG 400000U

/* A request whose body is there at once. Returns its channel. */
static uint32_t begin_big(struct harness *h, const uint8_t *body)
{
	char text[128];
	int big = 1 << 20;
	uint32_t id;

	(void)snprintf(text, sizeof(text),
	    "PUT " H_BOX "/fs/write?path=/x HTTP/1.1\r\nHost: x\r\nContent-Length: %u\r\n\r\n",
	    BIG);
	h_connect(h, text);
	id = guest_expect(h, AGENT_WRITE);
	assert_int_equal(setsockopt(h->client, SOL_SOCKET, SO_SNDBUF, &big, sizeof(big)), 0);
	assert_int_equal(send(h->client, body, BIG, MSG_DONTWAIT), BIG);
	return id;
}

static uint8_t *big_body(void)
{
	uint8_t *body = malloc(BIG);

	assert_non_null(body);
	for (size_t i = 0; i < BIG; i++)
		body[i] = (uint8_t)(i * 2654435761U >> 11);
	return body;
}

/* Frames of the body to its end, and `others` of another type between them. */
static void take_big(struct harness *h, uint32_t id, const uint8_t *body, enum agent_type other,
    unsigned int others, size_t most)
{
	static uint8_t payload[AGENT_DATA_MAX];
	size_t got = 0;

	while (got < BIG) {
		struct agent_head head = guest_next(h, payload, sizeof(payload));

		if (head.type == other) {
			assert_int_not_equal(others--, 0);
			continue;
		}
		assert_int_equal(head.type, AGENT_DATA);
		assert_int_equal(head.channel, id);
		assert_in_range(head.size, 1, most);
		assert_memory_equal(payload, body + got, head.size);
		got += head.size;
	}
	assert_int_equal(others, 0);
	assert_int_equal(guest_expect(h, AGENT_EOF), id);
}

/* Nothing that the guest reads: what it does not is in the stream, and in the pipe. */
static void fill_stream(struct harness *h)
{
	for (int i = 0; i < 10; i++)
		assert_int_equal(loop_step(h->s.loop, 0), 0);
	assert_int_not_equal(h->link.pour.left, 0);
	assert_int_equal(h->link.out.len, 0);
}

/* The guest stops reading within a frame, and goes on. */
static void test_frame_that_waits(void **state)
{
	struct harness *h = *state;
	uint8_t *body = big_body();
	int least = 1;
	uint32_t id;

	assert_int_equal(setsockopt(h->link.fd, SOL_SOCKET, SO_SNDBUF, &least, sizeof(least)), 0);
	id = begin_big(h, body);
	fill_stream(h);
	take_big(h, id, body, AGENT_NONE, 0, AGENT_DATA_MAX);
	guest_end(h, id, 0, 0, 0);
	h_expect(h, "\"bytes\":5");
	free(body);
}

/* What is sent meanwhile comes behind it. */
static void test_others_wait_behind_a_frame(void **state)
{
	struct harness *h = *state;
	uint8_t *body = big_body();
	int least = 1;
	uint32_t id;

	assert_int_equal(setsockopt(h->link.fd, SOL_SOCKET, SO_SNDBUF, &least, sizeof(least)), 0);
	id = begin_big(h, body);
	fill_stream(h);
	h_drain(h); /* there is room, but not for another frame */
	assert_int_equal(agent_link_send(&h->link, AGENT_PING, "ping", 4), 0);
	assert_int_equal(h->link.out.len, AGENT_HEAD_LEN + 4);
	take_big(h, id, body, AGENT_PING, 1, AGENT_DATA_MAX);
	guest_end(h, id, 0, 0, 0);
	h_expect(h, "\"bytes\":5");
	assert_int_equal(h->report.work.bytes_in, BIG);
	guest_send(h, AGENT_PONG, 0, 0, "ping", 4);
	H_UNTIL(h, h->pongs == 1);
	free(body);
}

/* So is the word that the client has gone, and the link lives on. */
static void test_client_goes_while_a_frame_waits(void **state)
{
	static uint8_t payload[AGENT_DATA_MAX];
	struct harness *h = *state;
	uint8_t *body = big_body();
	struct agent_head head;
	int least = 1;
	uint32_t id;

	assert_int_equal(setsockopt(h->link.fd, SOL_SOCKET, SO_SNDBUF, &least, sizeof(least)), 0);
	id = begin_big(h, body);
	fill_stream(h);
	fd_close(&h->client);
	for (int i = 0; i < 10; i++)
		assert_int_equal(loop_step(h->s.loop, 0), 0);
	assert_int_equal(h->s.conn_count, 0);
	head = guest_next(h, payload, sizeof(payload));
	assert_int_equal(head.type, AGENT_DATA);
	assert_memory_equal(payload, body, head.size);
	assert_int_equal(guest_expect(h, AGENT_CLOSE), id);
	guest_end(h, id, 0, 0, AGENT_END_KILLED);
	H_UNTIL(h, h->report.in_flight == 0);
	h_request(h, "PUT", "fs/write?path=/y", "", "hello");
	assert_int_equal(guest_expect(h, AGENT_WRITE), id + 1);
	assert_int_equal(guest_expect(h, AGENT_DATA), id + 1);
	assert_int_equal(guest_expect(h, AGENT_EOF), id + 1);
	guest_end(h, id + 1, 0, 0, 0);
	h_expect(h, "\"bytes\":5");
	free(body);
}

/* splice(2) from a TCP socket may wait: it is never used on one. */
static void test_tcp_is_copied(void **state)
{
	struct harness *h = *state;
	uint8_t *body = big_body();
	uint32_t id;

	h->client_flags = CTL_CONN_TCP;
	id = begin_big(h, body);
	take_big(h, id, body, AGENT_NONE, 0, AGENT_PAYLOAD_MAX);
	assert_int_equal(h->link.pour.pipe[0], -1);
	guest_end(h, id, 0, 0, 0);
	h_expect(h, "\"bytes\":5");
	free(body);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, h_setup, h_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_write),
	    TEST(test_a_name_that_is_no_text),
	    TEST(test_write_chunked),
	    TEST(test_write_follows_credit),
	    TEST(test_write_refused_early),
	    TEST(test_write_too_large),
	    TEST(test_write_client_goes),
	    TEST(test_frame_that_waits),
	    TEST(test_others_wait_behind_a_frame),
	    TEST(test_client_goes_while_a_frame_waits),
	    TEST(test_tcp_is_copied),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
