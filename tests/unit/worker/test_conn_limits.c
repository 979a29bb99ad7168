/* conn: connections that are handed over for one request, idle ones, and what is past a limit. */
#include "tests/unit/worker/harness.h"

#define RUN_TRUE "{\"argv\":[\"true\"]}"
#define RUN_REQUEST "POST " H_BOX "/run HTTP/1.1\r\nHost: x\r\nContent-Length: 17\r\n\r\n" RUN_TRUE

static void serve_run(struct harness *h, int code)
{
	uint32_t id = guest_expect(h, AGENT_EXEC);

	guest_started(h, id);
	guest_end(h, id, code, 0, 0);
}

static void expect_back(struct harness *h, int times, const char *bytes)
{
	H_UNTIL(h, h->back == times);
	assert_int_equal(h->back_bytes.len, strlen(bytes));
	if (*bytes)
		assert_memory_equal(buf_head(&h->back_bytes), bytes, strlen(bytes));
	assert_int_equal(h_word(h, 0), CONN_FREE);
	assert_int_equal(h->s.conn_count, 0);
	assert_false(h->answer_ended);
}

static void test_back_after_one(void **state)
{
	struct harness *h = *state;

	h->client_flags = CTL_CONN_ONCE;
	h_connect(h, RUN_REQUEST);
	serve_run(h, 3);
	h_expect(h, "\"exit_code\":3");
	expect_back(h, 1, "");
	assert_int_equal(h->back_flags, CTL_CONN_ONCE);
	assert_int_equal(h->gone, 0);
}

/* Nothing of the next request is served here, and no byte of it is lost. */
static void test_back_with_what_came_after_it(void **state)
{
	struct harness *h = *state;

	h->client_flags = CTL_CONN_ONCE;
	h_connect(h, RUN_REQUEST RUN_REQUEST);
	serve_run(h, 0);
	h_expect(h, "\"exit_code\":0");
	expect_back(h, 1, RUN_REQUEST);
	h_connect(h, "GET " H_BOX "/nothing HTTP/1.1\r\nHost: x\r\n\r\nGET ");
	h_expect(h, "HTTP/1.1 404 ");
	expect_back(h, 2, "GET ");
}

/* Only sbxd knows what has become of the box of another generation. */
static void test_back_for_another_generation(void **state)
{
	static const char other[] = "GET " H_BOX "/fs/stat?path=/ HTTP/1.1\r\nHost: x\r\n"
				    "X-Box-Generation: 2\r\n\r\n";
	struct harness *h = *state;

	h_connect(h, "POST " H_BOX "/run HTTP/1.1\r\nHost: x\r\nX-Box-Generation: 1\r\n"
		     "Content-Length: 17\r\n\r\n" RUN_TRUE);
	serve_run(h, 3);
	h_expect(h, "\"exit_code\":3");
	h_client_send(h, other);
	expect_back(h, 1, other);
}

static void test_what_is_cut_does_not_come_back(void **state)
{
	struct harness *h = *state;

	h->client_flags = CTL_CONN_ONCE;
	h_connect(h, "POST " H_BOX "/run HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
		     "Content-Length: 17\r\n\r\n" RUN_TRUE);
	serve_run(h, 0);
	H_UNTIL(h, h->answer_ended);
	assert_int_equal(h->back, 0);
	assert_int_equal(h->gone, 1);
}

/* Without sbxd its answer comes, whole, and then its end: nobody is there to look at another. */
static void test_once_without_sbxd(void **state)
{
	struct harness *h = *state;

	h->client_flags = CTL_CONN_ONCE;
	h_connect(h, RUN_REQUEST);
	h->orphaned = true;
	serve_run(h, 5);
	h_expect(h, "\"exit_code\":5");
	H_UNTIL(h, h->answer_ended);
	assert_int_equal(h->gone, 1);
	h_connect(h, RUN_REQUEST "GET " H_BOX);
	serve_run(h, 6);
	h_expect(h, "\"exit_code\":6");
	h_expect(h, "HTTP/1.1 503 ");
	H_UNTIL(h, h->answer_ended);
}

static void test_idle(void **state)
{
	struct harness *h = *state;

	h->limits.idle_ms = 1;
	h_connect(h, RUN_REQUEST);
	serve_run(h, 0);
	h_expect(h, "\"exit_code\":0");
	expect_back(h, 1, "");
	assert_int_equal(h->back_flags, CTL_CONN_IDLE);
}

static void test_idle_without_sbxd(void **state)
{
	struct harness *h = *state;

	h->limits.idle_ms = 1;
	h->orphaned = true;
	h_connect(h, RUN_REQUEST);
	serve_run(h, 0);
	h_expect(h, "\"exit_code\":0");
	H_UNTIL(h, h->answer_ended);
	assert_int_equal(h->gone, 1);
}

/* Over TCP the end of input is all that tells of a client that left. */
static void test_a_tcp_client_leaves(void **state)
{
	struct harness *h = *state;
	uint32_t id;

	h->client_flags = CTL_CONN_ONCE | CTL_CONN_TCP;
	h_connect(h, RUN_REQUEST);
	id = guest_expect(h, AGENT_EXEC);
	guest_started(h, id);
	assert_int_equal(shutdown(h->client, SHUT_WR), 0);
	assert_int_equal(guest_expect(h, AGENT_CLOSE), id);
	guest_end(h, id, -1, 9, AGENT_END_KILLED);
	H_UNTIL(h, h->gone == 1);
}

/* On the socket it is none: the answer is still read. */
static void test_a_client_that_only_reads_on(void **state)
{
	struct harness *h = *state;

	h_connect(h, RUN_REQUEST);
	assert_int_equal(shutdown(h->client, SHUT_WR), 0);
	serve_run(h, 0);
	h_expect(h, "\"exit_code\":0");
}

static void test_connections(void **state)
{
	struct harness *h = *state;
	int first;
	int second;

	h->limits.connections = 2;
	h_connect(h, "");
	first = h->client;
	h->client = -1;
	h_connect(h, "");
	second = h->client;
	h->client = -1;
	h_connect(h, RUN_REQUEST);
	h_expect(h, "HTTP/1.1 429 ");
	h_expect(h, "the box has 2 connections, and takes no more");
	assert_true(h_answer_has(h, "Retry-After: 1\r\n"));
	H_UNTIL(h, h->answer_ended);
	fd_close(&first);
	H_UNTIL(h, h->s.conn_count == 1);
	h_connect(h, RUN_REQUEST);
	serve_run(h, 0);
	h_expect(h, "\"exit_code\":0");
	fd_close(&second);
}

static void test_heads_and_bodies(void **state)
{
	struct harness *h = *state;
	char text[400];

	h->limits.head_bytes = 200;
	h->limits.run_body_bytes = 17;
	h_connect(h, RUN_REQUEST);
	serve_run(h, 0);
	h_expect(h, "\"exit_code\":0");
	(void)snprintf(
	    text, sizeof(text), "GET " H_BOX "/run HTTP/1.1\r\nHost: x\r\nX: %0*d\r\n\r\n", 180, 0);
	h_connect(h, text);
	h_expect(h, "HTTP/1.1 431 ");
	h_expect(h, "the head is longer than 200 bytes");
	h_request(h, "POST", "run", "", RUN_TRUE " ");
	h_expect(h, "HTTP/1.1 413 ");
	h_expect(h, "the request body is longer than 17 bytes");
	h_connect(h, "POST " H_BOX "/run HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
		     "12\r\n" RUN_TRUE " \r\n0\r\n\r\n");
	h_expect(h, "the request body is longer than 17 bytes");
	h->limits.exec_body_bytes = 20;
	h_request(h, "POST", "exec", "", "{\"command\":\"/bin/true\"}");
	h_expect(h, "the request body is longer than 20 bytes");
	h->limits.file_bytes = 3;
	h_request(h, "PUT", "fs/write?path=/x", "", "four");
	h_expect(h, "the request body is longer than 3 bytes");
}

static void test_depth_and_output(void **state)
{
	struct harness *h = *state;

	h->limits.json_depth = 2;
	h->limits.run_output_bytes = 5;
	h_request(h, "POST", "run", "", "{\"argv\":[\"true\"],\"x\":[[]]}");
	h_expect(h, "HTTP/1.1 400 ");
	h_expect(h, "nested deeper than 2 levels");
	h_request(h, "POST", "run", "", "{\"argv\":[\"true\"],\"max_output_bytes\":6}");
	h_expect(h, "from 0 to 5");
}

#define with_harness(fn) cmocka_unit_test_setup_teardown(fn, h_setup, h_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    with_harness(test_back_after_one),
	    with_harness(test_back_with_what_came_after_it),
	    with_harness(test_back_for_another_generation),
	    with_harness(test_what_is_cut_does_not_come_back),
	    with_harness(test_once_without_sbxd),
	    with_harness(test_idle),
	    with_harness(test_idle_without_sbxd),
	    with_harness(test_a_tcp_client_leaves),
	    with_harness(test_a_client_that_only_reads_on),
	    with_harness(test_connections),
	    with_harness(test_heads_and_bodies),
	    with_harness(test_depth_and_output),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
