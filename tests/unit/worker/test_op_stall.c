/* An operation that the guest leaves as it is while its client waits ends. Time is in beats. */
#include "tests/unit/worker/harness.h"

#define STALL_BEATS 5U
#define START_BEATS 30U

static void beat(struct harness *h, unsigned int n)
{
	h_settle(h);
	for (unsigned int i = 0; i < n; i++) {
		op_beat(&h->s);
		h_settle(h);
	}
}

static int setup(void **state)
{
	int rc = h_setup(state);
	struct harness *h = *state;

	h->limits.op_stall_ms = STALL_BEATS * 1000U;
	return rc;
}

/* What comes next on the channel that is not data is AGENT_CLOSE; the guest obeys. */
static void expect_close(struct harness *h, uint32_t id)
{
	static uint8_t payload[AGENT_DATA_MAX];
	struct agent_head head;

	do {
		head = guest_next(h, payload, sizeof(payload));
	} while (head.type == AGENT_DATA);
	assert_int_equal(head.type, AGENT_CLOSE);
	assert_int_equal(head.channel, id);
	guest_end(h, id, 0, 0, AGENT_END_KILLED);
	H_UNTIL(h, h->report.in_flight == 0);
	assert_int_equal(h->broken, 0);
}

static void expect_timeout(struct harness *h, uint32_t id)
{
	h_expect(h, "HTTP/1.1 408 ");
	h_expect(h, "the operation made no progress within 5 s");
	expect_close(h, id);
}

static void test_a_question_that_is_not_answered(void **state)
{
	struct harness *h = *state;
	uint32_t id;

	h_request(h, "GET", "fs/stat?path=/x", "", "");
	id = guest_expect(h, AGENT_PATH);
	beat(h, STALL_BEATS);
	assert_int_equal(h->answer.len, 0);
	beat(h, 2);
	expect_timeout(h, id);
	h_client_send(h, "GET " H_BOX "/fs/stat?path=/y HTTP/1.1\r\nHost: x\r\n\r\n");
	(void)guest_expect(h, AGENT_PATH); /* the connection is kept */
}

static void test_a_helper_that_says_nothing(void **state)
{
	struct harness *h = *state;
	uint32_t id;

	h_request(h, "GET", "fs/list?path=/x", "", "");
	id = guest_expect(h, AGENT_EXEC);
	guest_started(h, id);
	beat(h, STALL_BEATS + 2);
	expect_timeout(h, id);
}

static void test_a_file_that_is_never_done(void **state)
{
	struct harness *h = *state;
	uint32_t id;

	h_request(h, "PUT", "fs/write?path=/x", "", "hello");
	id = guest_expect(h, AGENT_WRITE);
	assert_int_equal(guest_expect(h, AGENT_DATA), id);
	assert_int_equal(guest_expect(h, AGENT_EOF), id);
	beat(h, STALL_BEATS + 2);
	expect_timeout(h, id);
}

/* Sends as much of a body as the worker takes. */
static void send_some(struct harness *h)
{
	static const uint8_t block[65536];
	ssize_t n;

	do {
		n = send(h->client, block, sizeof(block), MSG_DONTWAIT | MSG_NOSIGNAL);
		h_settle(h);
	} while (n > 0);
}

static uint32_t begin_large(struct harness *h)
{
	h_connect(h, "PUT " H_BOX "/fs/write?path=/x HTTP/1.1\r\nHost: x\r\n"
		     "Content-Length: 100000000\r\n\r\n");
	return guest_expect(h, AGENT_WRITE);
}

/* As long as it takes anything it has its time; then no more. */
static void test_a_body_that_is_not_taken(void **state)
{
	static const uint32_t more = 300000;
	struct harness *h = *state;
	uint32_t id = begin_large(h);

	for (int i = 0; i < 4; i++) {
		send_some(h);
		beat(h, STALL_BEATS);
		assert_int_equal(h->answer.len, 0);
		guest_send(h, AGENT_CREDIT, AGENT_STDIN, id, &more, sizeof(more));
	}
	send_some(h);
	beat(h, STALL_BEATS + 2);
	expect_timeout(h, id);
}

static void test_a_client_that_does_not_send(void **state)
{
	struct harness *h = *state;
	uint32_t id = begin_large(h);

	beat(h, 10 * STALL_BEATS);
	assert_int_equal(h->answer.len, 0);
	assert_int_equal(h->from_worker.len, 0);
	fd_close(&h->client);
	expect_close(h, id);
}

static uint32_t begin_read(struct harness *h, uint64_t size)
{
	const struct agent_stat st = {.size = size, .mode = 0100644};
	uint32_t id;

	h_request(h, "GET", "fs/read?path=/x", "", "");
	id = guest_expect(h, AGENT_READ);
	guest_send(h, AGENT_STARTED, 0, id, &st, sizeof(st));
	return id;
}

static void test_a_response_that_does_not_go_on(void **state)
{
	struct harness *h = *state;
	uint32_t id = begin_read(h, 100000000);

	h_expect(h, "HTTP/1.1 200 ");
	beat(h, STALL_BEATS + 2);
	H_UNTIL(h, h->answer_ended);
	expect_close(h, id);
}

static void test_a_client_that_does_not_read(void **state)
{
	static const uint8_t block[65536];
	struct harness *h = *state;
	uint32_t id = begin_read(h, 0); /* a socket of the usual size */
	int client;

	h_expect(h, "HTTP/1.1 200 ");
	client = h->client;
	h->client = -1; /* h_drain() would read */
	for (int i = 0; i < 15; i++) {
		guest_send(h, AGENT_DATA, AGENT_STDOUT, id, block, sizeof(block));
		h_settle(h);
	}
	beat(h, 10 * STALL_BEATS);
	assert_int_equal(h->s.conn_count, 1);
	assert_non_null(LIST_FIRST(&h->s.ops_running)->conn);
	h->client = client;
	fd_close(&h->client);
	H_UNTIL(h, h->s.conn_count == 0);
	guest_end(h, id, 0, 0, AGENT_END_KILLED);
	H_UNTIL(h, h->report.in_flight == 0);
}

static void test_a_command_that_does_not_begin(void **state)
{
	struct harness *h = *state;
	uint32_t id;

	h_request(h, "POST", "run", "", "{\"argv\":[\"true\"]}");
	id = guest_expect(h, AGENT_EXEC);
	beat(h, START_BEATS);
	assert_int_equal(h->answer.len, 0);
	beat(h, 2);
	h_expect(h, "HTTP/1.1 408 ");
	h_expect(h, "the command did not begin within 30 s");
	expect_close(h, id);
}

static void test_a_command_that_is_silent(void **state)
{
	struct harness *h = *state;
	uint32_t id;

	h_request(h, "POST", "run", "", "{\"argv\":[\"sleep\",\"1d\"]}");
	id = guest_expect(h, AGENT_EXEC);
	guest_started(h, id);
	beat(h, 10 * START_BEATS);
	guest_end(h, id, 3, 0, 0);
	h_expect(h, "\"exit_code\":3");
}

static void test_for_ever(void **state)
{
	struct harness *h = *state;
	uint32_t id;

	h->limits.op_stall_ms = 0;
	h_request(h, "DELETE", "fs?path=/x", "", "");
	id = guest_expect(h, AGENT_PATH);
	beat(h, 10 * STALL_BEATS);
	assert_int_equal(h->answer.len, 0);
	guest_end(h, id, 0, 0, 0);
	h_expect(h, "\"removed\":1");
}

/* Twice what a health check has, and ten seconds at least. */
static void test_the_time_to_end(void **state)
{
	struct harness *h = *state;
	struct op *op;
	uint64_t now = clock_now_ns();
	uint32_t id;

	assert_int_equal(service_patience_ns(&h->s), 10 * NS_PER_S);
	h->s.check_ns = 5 * NS_PER_S;
	assert_int_equal(service_patience_ns(&h->s), 10 * NS_PER_S);
	h->s.check_ns = 600 * NS_PER_S;
	h_request(h, "GET", "fs/stat?path=/x", "", "");
	id = guest_expect(h, AGENT_PATH);
	op = LIST_FIRST(&h->s.ops_running);
	beat(h, STALL_BEATS + 2);
	assert_in_range(op->patience.at, now + 1200 * NS_PER_S, clock_now_ns() + 1200 * NS_PER_S);
	expect_timeout(h, id);
}

#define STALL_TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, h_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    STALL_TEST(test_a_question_that_is_not_answered),
	    STALL_TEST(test_a_helper_that_says_nothing),
	    STALL_TEST(test_a_file_that_is_never_done),
	    STALL_TEST(test_a_body_that_is_not_taken),
	    STALL_TEST(test_a_client_that_does_not_send),
	    STALL_TEST(test_a_response_that_does_not_go_on),
	    STALL_TEST(test_a_client_that_does_not_read),
	    STALL_TEST(test_a_command_that_does_not_begin),
	    STALL_TEST(test_a_command_that_is_silent),
	    STALL_TEST(test_for_ever),
	    STALL_TEST(test_the_time_to_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
