/* conn and route: requests, keep-alive, hand-back, hang-ups, deadlines, words in the slot page. */
#include "tests/unit/worker/harness.h"

#define RUN_TRUE "{\"argv\":[\"true\"]}"

static void serve_run(struct harness *h, int code)
{
	uint32_t id = guest_expect(h, AGENT_EXEC);

	guest_started(h, id);
	guest_end(h, id, code, 0, 0);
}

static struct conn *only_conn(struct harness *h)
{
	assert_non_null(h->s.conns[0]);
	return h->s.conns[0];
}

static void test_one_request(void **state)
{
	struct harness *h = *state;

	h_request(h, "POST", "run", "X-Request-Id: mine\r\n", RUN_TRUE);
	assert_int_equal(h_word(h, 0), CONN_REQUEST);
	h_settle(h);
	assert_int_equal(h_word(h, 0), CONN_REQUEST);
	assert_int_equal(atomic_load(&h->page->in_flight), 1);
	serve_run(h, 0);
	h_expect(h, "\"exit_code\":0");
	h_settle(h);
	assert_true(h_answer_has(h, "HTTP/1.1 200 OK\r\n"));
	assert_true(h_answer_has(h, "X-Request-Id: mine\r\n"));
	assert_int_equal(h_word(h, 0), CONN_IDLE);
	assert_int_equal(atomic_load(&h->page->in_flight), 0);
	assert_int_equal(h->report.work.exec_total, 1);
	assert_int_not_equal(h->report.work.activity_ns, 0);
}

static void test_request_id_is_made(void **state)
{
	struct harness *h = *state;

	h_request(h, "POST", "run",
	    "traceparent: 00-0123456789abcdef0123456789abcdef-0123456789abcdef-01\r\n", RUN_TRUE);
	serve_run(h, 0);
	h_expect(h, "\"exit_code\":0");
	assert_true(h_answer_has(h, "X-Request-Id: req_"));
	assert_true(h_answer_has(
	    h, "traceparent: 00-0123456789abcdef0123456789abcdef-0123456789abcdef-01\r\n"));
}

static void test_keep_alive_and_pipelining(void **state)
{
	static const char two[] =
	    "POST " H_BOX "/run HTTP/1.1\r\nHost: x\r\nContent-Length: 17\r\n\r\n" RUN_TRUE
	    "POST " H_BOX "/run HTTP/1.1\r\nHost: x\r\nContent-Length: 17\r\n\r\n" RUN_TRUE;
	struct harness *h = *state;

	h_connect(h, two);
	serve_run(h, 1);
	h_expect(h, "\"exit_code\":1");
	assert_false(h_answer_has(h, "\"exit_code\":2"));
	serve_run(h, 2);
	h_expect(h, "\"exit_code\":2");
	h_settle(h);
	assert_int_equal(h_word(h, 0), CONN_IDLE);
	h_client_send(h, two);
	serve_run(h, 3);
	h_expect(h, "\"exit_code\":3");
	serve_run(h, 4);
	h_expect(h, "\"exit_code\":4");
	assert_int_equal(h->gone, 0);
	assert_int_equal(h->back, 0);
}

/* A request in pieces, body in chunks, over several reads. */
static void test_request_in_pieces(void **state)
{
	static const char text[] = "POST " H_BOX "/run HTTP/1.1\r\nHost: x\r\n"
				   "Transfer-Encoding: chunked\r\n\r\n"
				   "8\r\n{\"argv\":\r\n9\r\n[\"true\"]}\r\n0\r\n\r\n";
	struct harness *h = *state;

	h_connect(h, "");
	h_settle(h);
	assert_int_equal(h_word(h, 0), CONN_REQUEST);
	for (const char *p = text; *p; p++) {
		assert_int_equal(send(h->client, p, 1, MSG_NOSIGNAL), 1);
		h_settle(h);
	}
	serve_run(h, 0);
	h_expect(h, "\"exit_code\":0");
}

static void expect_back(struct harness *h, const char *bytes)
{
	H_UNTIL(h, h->back == 1);
	assert_int_equal(h->back_bytes.len, strlen(bytes));
	assert_memory_equal(buf_head(&h->back_bytes), bytes, strlen(bytes));
	assert_int_equal(h_word(h, 0), CONN_FREE);
	assert_int_equal(h->s.conn_count, 0);
	assert_false(h->answer_ended);
}

static const char *const elsewhere[] = {
    "GET /v1/pool HTTP/1.1\r\nHost: x\r\n\r\n",
    "GET /v1/boxes/fedcba9876543210/fs/read?path=/x HTTP/1.1\r\nHost: x\r\n\r\nrest",
    "DELETE " H_BOX " HTTP/1.1\r\nHost: x\r\n\r\n",
    "POST " H_BOX "/release HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}",
    "GET /v1/boxes/%ff%/run HTTP/1.1\r\nHost: x\r\n\r\n",
    "GET /v1/boxes/x:" H_TOKEN "/run HTTP/1.1\r\nHost: x\r\n\r\n",
    "GET " H_BOX "/fs/read/more/still HTTP/1.1\r\nHost: x\r\n\r\n",
};

#define ELSEWHERE (sizeof(elsewhere) / sizeof(elsewhere[0]))

/* A connection that has had its first answer. */
static void connect_served(struct harness *h)
{
	h_connect(h, "GET " H_BOX "/fs/nothing HTTP/1.1\r\nHost: x\r\n\r\n");
	h_expect(h, "}}");
	buf_clear(&h->answer);
}

static void test_other_paths_go_back(void **state)
{
	(void)state;
	for (size_t i = 0; i < ELSEWHERE; i++) {
		void *own = NULL;

		assert_int_equal(h_setup(&own), 0);
		connect_served(own);
		h_client_send(own, elsewhere[i]);
		expect_back(own, elsewhere[i]);
		(void)h_teardown(&own);
	}
}

static void test_first_request_never_goes_back(void **state)
{
	(void)state;
	for (size_t i = 0; i < ELSEWHERE; i++) {
		void *own = NULL;
		struct harness *h;

		assert_int_equal(h_setup(&own), 0);
		h = own;
		h_connect(h, elsewhere[i]);
		h_expect(h, "HTTP/1.1 404 ");
		assert_int_equal(h->back, 0);
		(void)h_teardown(&own);
	}
}

static void test_second_request_goes_back_whole(void **state)
{
	static const char second[] = "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\nand more";
	struct harness *h = *state;
	struct buf both;

	buf_init(&both, 4096);
	assert_int_equal(
	    buf_puts(&both,
		"POST " H_BOX "/run HTTP/1.1\r\nHost: x\r\nContent-Length: 17\r\n\r\n" RUN_TRUE),
	    0);
	assert_int_equal(buf_puts(&both, second), 0);
	h_connect_bytes(h, buf_head(&both), both.len);
	buf_free(&both);
	serve_run(h, 0);
	expect_back(h, second);
	h_expect(h, "\"exit_code\":0");
}

/* TOKEN and UID:TOKEN may be two boxes: only the spelling that sbxd has resolved is ours. */
static void test_other_spelling_goes_back(void **state)
{
	static const char other[] = "POST " H_BOX "/run HTTP/1.1\r\nHost: x\r\n\r\n";
	struct harness *h = *state;

	h_connect(h, "POST /v1/boxes/1000:" H_TOKEN
		     "/run HTTP/1.1\r\nHost: x\r\nContent-Length: 17\r\n\r\n" RUN_TRUE);
	serve_run(h, 0);
	h_expect(h, "\"exit_code\":0");
	h_client_send(h, other);
	expect_back(h, other);
}

static void test_orphan_answers_503(void **state)
{
	struct harness *h = *state;

	h->orphaned = true;
	connect_served(h);
	h_client_send(h, "GET /v1/pool HTTP/1.1\r\nHost: x\r\n\r\n");
	h_expect(h, "HTTP/1.1 503 ");
	H_UNTIL(h, h->answer_ended);
	assert_int_equal(h->gone, 1);
	assert_int_equal(h->gone_cookie, H_COOKIE);
}

static void test_method_and_unknown(void **state)
{
	struct harness *h = *state;

	h_request(h, "DELETE", "run", "", "");
	h_expect(h, "\r\n\r\n{");
	assert_true(h_answer_has(h, "HTTP/1.1 405 "));
	assert_true(h_answer_has(h, "Allow: POST\r\n"));
	buf_clear(&h->answer);
	h_client_send(h, "GET " H_BOX "/fs/nothing HTTP/1.1\r\nHost: x\r\n\r\n");
	h_expect(h, "HTTP/1.1 404 ");
	buf_clear(&h->answer);
	h_client_send(h, "POST " H_BOX "/fs/read HTTP/1.1\r\nHost: x\r\n\r\n");
	h_expect(h, "Allow: GET\r\n");
	assert_false(h->answer_ended); /* all of these leave the connection usable */
}

static void test_head_has_no_body(void **state)
{
	struct harness *h = *state;
	struct http_in *in = http_in_create(HTTP_RESPONSE);
	const uint8_t *body = NULL;
	size_t body_len = 0;
	size_t used = 0;
	struct err err;

	h_request(h, "HEAD", "fs/read", "", "");
	h_client_send(h, "GET " H_BOX "/fs/nothing HTTP/1.1\r\nHost: x\r\n\r\n");
	h_expect(h, "HTTP/1.1 404 ");
	assert_int_equal(
	    http_in_feed(in, buf_head(&h->answer), h->answer.len, &used, &body, &body_len, &err),
	    HTTP_HEAD_DONE);
	assert_int_equal(http_in_head(in)->status, 405);
	assert_true(http_in_head(in)->content_length > 0);
	/* The next answer begins right behind it. */
	assert_memory_equal(buf_head(&h->answer) + used, "HTTP/1.1 404 ", 13);
	http_in_free(in);
}

static void test_malformed_and_oversized_heads(void **state)
{
	struct harness *h = *state;
	char *big = malloc(20000);

	h_connect(h, "GARBAGE\r\n\r\n");
	h_expect(h, "HTTP/1.1 400 ");
	H_UNTIL(h, h->answer_ended);
	assert_true(h_answer_has(h, "malformed_request"));
	assert_non_null(big);
	memset(big, 'a', 20000);
	memcpy(big, "GET /", 5);
	h_connect_bytes(h, big, 20000);
	h_expect(h, "HTTP/1.1 431 ");
	H_UNTIL(h, h->answer_ended);
	assert_int_equal(h->gone, 2);
	free(big);
}

static void test_too_large_body(void **state)
{
	struct harness *h = *state;

	h_connect(h, "POST " H_BOX "/run HTTP/1.1\r\nHost: x\r\nContent-Length: 33554433\r\n\r\n");
	h_expect(h, "HTTP/1.1 413 ");
	assert_true(h_answer_has(h, "Connection: close\r\n"));
	assert_int_equal(h->report.in_flight, 0);
	fd_close(&h->client);
	H_UNTIL(h, h->gone == 1);
}

/* An error before a small body was read leaves the connection usable. */
static void test_body_is_drained(void **state)
{
	struct harness *h = *state;

	h_connect(h, "PUT " H_BOX "/fs/write?path=relative HTTP/1.1\r\nHost: x\r\n"
		     "Content-Length: 10\r\n\r\n12345");
	h_expect(h, "HTTP/1.1 400 ");
	assert_false(h_answer_has(h, "Connection: close"));
	h_client_send(h, "67890");
	h_client_send(h, "GET " H_BOX "/fs/nothing HTTP/1.1\r\nHost: x\r\n\r\n");
	h_expect(h, "HTTP/1.1 404 ");
}

static void test_expect_continue(void **state)
{
	struct harness *h = *state;

	h_connect(h, "POST " H_BOX "/run HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n"
		     "Content-Length: 17\r\n\r\n");
	h_expect(h, "HTTP/1.1 100 Continue\r\n\r\n");
	assert_int_equal(h_word(h, 0), CONN_REQUEST); /* a final answer is still owed */
	h_client_send(h, RUN_TRUE);
	serve_run(h, 0);
	h_expect(h, "\"exit_code\":0");
	/* A client that is told no does not send its body: the connection ends. */
	h_connect(h, "PUT " H_BOX "/fs/write?path=x HTTP/1.1\r\nHost: x\r\n"
		     "Expect: 100-continue\r\nContent-Length: 17\r\n\r\n");
	h_expect(h, "HTTP/1.1 400 ");
	H_UNTIL(h, h->answer_ended);
	assert_false(h_answer_has(h, "100 Continue"));
}

static void test_hang_up_cancels(void **state)
{
	struct harness *h = *state;
	uint32_t id;

	h_request(h, "POST", "run", "", RUN_TRUE);
	id = guest_expect(h, AGENT_EXEC);
	guest_started(h, id);
	h_settle(h);
	fd_close(&h->client);
	assert_int_equal(guest_expect(h, AGENT_CLOSE), id);
	H_UNTIL(h, h->gone == 1);
	assert_int_equal(h_word(h, 0), CONN_FREE);
	/* The tree is not gone yet: the operation still pins the box. */
	assert_int_equal(atomic_load(&h->page->in_flight), 1);
	guest_end(h, id, -1, 9, AGENT_END_KILLED);
	H_UNTIL(h, atomic_load(&h->page->in_flight) == 0);
	assert_int_equal(h->broken, 0);
}

static void test_half_close_does_not_cancel(void **state)
{
	struct harness *h = *state;

	h_request(h, "POST", "run", "", RUN_TRUE);
	assert_int_equal(shutdown(h->client, SHUT_WR), 0);
	h_settle(h);
	serve_run(h, 5);
	h_expect(h, "\"exit_code\":5");
	H_UNTIL(h, h->answer_ended);
	assert_int_equal(h->gone, 1);
}

static void test_guest_that_does_not_end_is_broken(void **state)
{
	struct harness *h = *state;
	struct op *op;

	h_request(h, "POST", "run", "", RUN_TRUE);
	(void)guest_expect(h, AGENT_EXEC);
	fd_close(&h->client);
	(void)guest_expect(h, AGENT_CLOSE);
	op = LIST_FIRST(&h->s.ops_running);
	assert_non_null(op);
	assert_int_not_equal(op->patience.pos, 0);
	/* Ten seconds later. */
	assert_int_equal(loop_timer_set(h->s.loop, &op->patience, 1, op->patience.fn), 0);
	H_UNTIL(h, h->broken == 1);
}

static void test_deadlines(void **state)
{
	struct harness *h = *state;

	h_connect(h, "POST " H_BOX "/ru");
	h_settle(h);
	assert_int_not_equal(only_conn(h)->timer.pos, 0);
	only_conn(h)->since_ns -= CONN_HEAD_NS;
	conn_wake(only_conn(h));
	h_expect(h, "HTTP/1.1 408 ");
	H_UNTIL(h, h->answer_ended);

	h_connect(h, "POST " H_BOX "/run HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n123");
	h_settle(h);
	only_conn(h)->since_ns -= CONN_BODY_NS;
	conn_wake(only_conn(h));
	h_expect(h, "HTTP/1.1 408 ");
	H_UNTIL(h, h->answer_ended);
	assert_int_equal(h->report.in_flight, 0);

	/* Waiting for a command, or between requests, takes as long as it takes. */
	h_request(h, "POST", "run", "", RUN_TRUE);
	h_settle(h);
	assert_int_equal(only_conn(h)->timer.pos, 0);
	serve_run(h, 0);
	h_expect(h, "\"exit_code\":0");
	h_settle(h);
	assert_int_equal(only_conn(h)->timer.pos, 0);
}

static void test_too_many_connections(void **state)
{
	struct harness *h = *state;
	int clients[SHM_CONNS];

	for (size_t i = 0; i < SHM_CONNS; i++) {
		h_connect(h, "");
		clients[i] = h->client;
		h->client = -1;
	}
	h_connect(h, "GET / HTTP/1.1\r\n\r\n");
	h_expect(h, "HTTP/1.1 429 ");
	H_UNTIL(h, h->answer_ended);
	assert_true(h_answer_has(h, "too_many_connections"));
	assert_int_equal(h->gone, 1);
	for (size_t i = 0; i < SHM_CONNS; i++)
		fd_close(&clients[i]);
	H_UNTIL(h, h->gone == 1 + SHM_CONNS);
}

static void test_box_dies(void **state)
{
	struct harness *h = *state;

	h_request(h, "POST", "run", "", RUN_TRUE);
	(void)guest_expect(h, AGENT_EXEC);
	service_set_state(&h->s, SERVICE_DEAD, API_BOX_DIED, "the box died");
	h_expect(h, "HTTP/1.1 410 ");
	assert_true(h_answer_has(h, "\"reason\":\"box_died\""));
	H_UNTIL(h, h->back == 1); /* answered; what its client asks next is for sbxd */
	assert_int_equal(h->report.work.exec_failed, 1);
}

static void test_closing_box_takes_no_requests(void **state)
{
	struct harness *h = *state;

	service_set_state(&h->s, SERVICE_CLOSING, API_BOX_DIED, "the box is being stopped");
	h_request(h, "POST", "run", "", RUN_TRUE);
	h_expect(h, "HTTP/1.1 410 ");
	H_UNTIL(h, h->back == 1);
	assert_int_equal(h->back_bytes.len, 0);
}

static void test_idle_connections_go_back_when_the_box_closes(void **state)
{
	struct harness *h = *state;

	h_connect(h, "");
	h_settle(h);
	service_set_state(&h->s, SERVICE_CLOSING, API_BOX_DIED, "the box is being stopped");
	expect_back(h, "");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, h_setup, h_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_one_request),
	    TEST(test_request_id_is_made),
	    TEST(test_keep_alive_and_pipelining),
	    TEST(test_request_in_pieces),
	    cmocka_unit_test(test_other_paths_go_back),
	    cmocka_unit_test(test_first_request_never_goes_back),
	    TEST(test_second_request_goes_back_whole),
	    TEST(test_other_spelling_goes_back),
	    TEST(test_orphan_answers_503),
	    TEST(test_method_and_unknown),
	    TEST(test_head_has_no_body),
	    TEST(test_malformed_and_oversized_heads),
	    TEST(test_too_large_body),
	    TEST(test_body_is_drained),
	    TEST(test_expect_continue),
	    TEST(test_hang_up_cancels),
	    TEST(test_half_close_does_not_cancel),
	    TEST(test_guest_that_does_not_end_is_broken),
	    TEST(test_deadlines),
	    TEST(test_too_many_connections),
	    TEST(test_box_dies),
	    TEST(test_closing_box_takes_no_requests),
	    TEST(test_idle_connections_go_back_when_the_box_closes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
