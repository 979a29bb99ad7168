/* PUT files against a guest that the test plays: records go there as they are made. */
#include "tests/unit/worker/tar_serving.h"

#define ARGS "unpack\npath=/dest\noverwrite=1\ndirectory=0\n"

static void make_archive(struct buf *b, size_t members)
{
	static uint8_t data[5000];

	buf_init(b, T_ARCHIVE_MAX);
	for (size_t i = 0; i < members; i++)
		t_member(b, "member", '0', "", data, sizeof(data));
	t_finish(b);
}

/* Everything that was sent on the channel until its end, heard; gives credit for it. */
static void hear(struct harness *h, uint32_t id, struct t_heard *heard)
{
	static uint8_t payload[AGENT_PAYLOAD_MAX];
	struct agent_head head;
	uint32_t n;

	while ((head = guest_next(h, payload, sizeof(payload))).type == AGENT_DATA) {
		assert_int_equal(head.channel, id);
		assert_int_equal(head.arg, AGENT_STDIN);
		assert_int_equal(entry_feed(&heard->reader, payload, head.size, t_hear, heard), 0);
		n = head.size;
		guest_send(h, AGENT_CREDIT, AGENT_STDIN, id, &n, sizeof(n));
	}
	assert_int_equal(head.type, AGENT_EOF);
	assert_int_equal(head.channel, id);
}

static void test_upload(void **state)
{
	struct harness *h = *state;
	struct t_heard *heard = t_heard_new();
	struct buf b;
	uint32_t id;

	make_archive(&b, 50);
	h_put(h, "path=/dest", &b, b.len);
	id = guest_expect_helper(h, ARGS);
	hear(h, id, heard);
	assert_true(heard->done);
	assert_int_equal(heard->count, 50);
	assert_int_equal(heard->all[49].data.len, 5000);
	assert_false(h_answer_has(h, "HTTP/1.1"));
	guest_end(h, id, 0, 0, 0);
	h_expect(h, "HTTP/1.1 204 No Content\r\n");
	H_UNTIL(h, h_word(h, 0) == CONN_IDLE);
	assert_false(h_answer_has(h, "chunked"));
	assert_memory_equal(buf_head(&h->answer) + h->answer.len - 4, "\r\n\r\n", 4);
	assert_int_equal(h->report.work.bytes_in, b.len);
	assert_int_equal(h->report.in_flight, 0);
	buf_free(&b);
	t_heard_free(heard);
}

static const struct {
	const char *query;
	const char *args;
} queries[] = {
    {"path=/dest&overwrite=false", "unpack\npath=/dest\noverwrite=0\ndirectory=0\n"},
    {"path=/dest&overwrite=1", ARGS},
    {"path=/dest/", "unpack\npath=/dest\noverwrite=1\ndirectory=1\n"},
    {"path=//dest/.", "unpack\npath=/dest\noverwrite=1\ndirectory=1\n"},
    {"path=/./a//b/./c%20d", "unpack\npath=/a/b/c d\noverwrite=1\ndirectory=0\n"},
    {"path=/", "unpack\npath=/\noverwrite=1\ndirectory=1\n"},
    {"path=/.", "unpack\npath=/\noverwrite=1\ndirectory=1\n"},
    {"path=/...", "unpack\npath=/...\noverwrite=1\ndirectory=0\n"},
    {"path=/%ff", "unpack\npath=/\xff\noverwrite=1\ndirectory=0\n"},
};

static void test_queries(void **state)
{
	struct harness *h = *state;
	struct buf b;

	make_archive(&b, 0);
	for (size_t i = 0; i < sizeof(queries) / sizeof(queries[0]); i++) {
		uint32_t id;

		h_put(h, queries[i].query, &b, b.len);
		id = guest_expect_helper(h, queries[i].args);
		assert_int_equal(guest_expect(h, AGENT_DATA), id);
		assert_int_equal(guest_expect(h, AGENT_EOF), id);
		guest_end(h, id, 0, 0, 0);
		h_expect(h, "HTTP/1.1 204");
	}
	h_put(h, "path=/dest&overwrite=yes", &b, 0);
	h_expect(h, "\"reason\":\"invalid_argument\"");
	h_put(h, "path=/a/../b", &b, 0);
	h_expect(h, "\"reason\":\"invalid_path\"");
	assert_int_equal(h->from_worker.len, 0);
	buf_free(&b);
}

static const struct {
	int code;
	int signal;
	const char *status;
	const char *reason;
} ends[] = {
    {AGENT_E_EXISTS, 0, "409", "already_exists"},
    {AGENT_E_INVALID_PATH, 0, "400", "invalid_path"},
    {AGENT_E_NO_SPACE, 0, "507", "no_space"},
    {AGENT_E_PERMISSION, 0, "403", "permission_denied"},
    {-1, SIGKILL, "429", "box_resources"},
    {99, 0, "422", "execution_failed"},
};

/* It fails before it has read the archive. */
static void test_helper_fails(void **state)
{
	struct harness *h = *state;
	struct buf b;

	make_archive(&b, 1);
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		uint32_t id;

		h_put(h, "path=/dest", &b, 1000);
		id = guest_expect_helper(h, ARGS);
		guest_stderr(h, id, "cannot unpack \"member\": why");
		guest_end(h, id, ends[i].code, ends[i].signal, 0);
		h_expect(h, ends[i].reason);
		assert_true(h_answer_has(h, ends[i].status));
		if (ends[i].code != 99 && !ends[i].signal)
			assert_true(h_answer_has(h, "cannot unpack \\\"member\\\": why"));
		/* The rest of the body is read past. */
		h_send_all(h, buf_head(&b) + 1000, b.len - 1000);
		buf_clear(&h->from_worker);
	}
	/* It says that all is well, and has not even heard all of it. */
	h_put(h, "path=/dest", &b, 1000);
	guest_end(h, guest_expect_helper(h, ARGS), 0, 0, 0);
	h_expect(h, "\"reason\":\"io\"");
	/* It was ended with everything else in the box. */
	for (int i = 0; i < 2; i++) {
		uint32_t id;

		buf_clear(&h->from_worker);
		h_put(h, "path=/dest", &b, b.len);
		id = guest_expect_helper(h, ARGS);
		h->s.resting = true;
		guest_end(h, id, -1, i ? SIGKILL : SIGTERM, 0);
		h_expect(h, "\"reason\":\"invalid_state\"");
		assert_true(h_answer_has(h, "the box was stopped"));
		h->s.resting = false;
	}
	/* It cannot be started. */
	buf_clear(&h->from_worker);
	h_put(h, "path=/dest", &b, 0);
	guest_error(h, guest_expect(h, AGENT_EXEC), AGENT_E_RESOURCES, "no process left");
	h_expect(h, "\"reason\":\"box_resources\"");
	buf_free(&b);
}

/* The helper is not told that the archive is complete, and the answer says what is wrong with it.
 */
static void test_damaged_archive(void **state)
{
	struct harness *h = *state;
	struct t_heard *heard = t_heard_new();
	struct buf b;
	uint32_t id;

	make_archive(&b, 3);
	((uint8_t *)b.data)[b.off + 2 * 5632 + 5] ^= 1;
	h_put(h, "path=/dest", &b, b.len);
	id = guest_expect_helper(h, ARGS);
	hear(h, id, heard);
	assert_false(heard->done);
	assert_int_equal(heard->count, 2);
	assert_false(h_answer_has(h, "HTTP/1.1"));
	guest_stderr(h, id, "the upload was broken off");
	guest_end(h, id, AGENT_E_SHORT, 0, 0);
	h_expect(h, "HTTP/1.1 400 ");
	h_expect(h, "the archive is damaged after \\\"member\\\"");
	buf_free(&b);
	t_heard_free(heard);
}

/* The body ends before its length is reached: the client is gone, the helper cleans up. */
static void test_client_goes_away(void **state)
{
	struct harness *h = *state;
	struct t_heard *heard = t_heard_new();
	struct buf b;
	uint32_t id;

	make_archive(&b, 20);
	h_put(h, "path=/dest", &b, 30000);
	id = guest_expect_helper(h, ARGS);
	H_UNTIL(h, h->from_worker.len > 20000);
	fd_close(&h->client);
	hear(h, id, heard);
	assert_false(heard->done);
	assert_int_equal(h->report.in_flight, 1);
	h_settle(h);
	assert_int_equal(h->from_worker.len, 0); /* it is not killed */
	guest_end(h, id, AGENT_E_SHORT, 0, 0);
	H_UNTIL(h, h->report.in_flight == 0);
	buf_free(&b);
	t_heard_free(heard);
}

/* A helper that does not end by itself is killed. */
static void test_helper_hangs(void **state)
{
	struct harness *h = *state;
	struct op *op;
	struct buf b;
	uint32_t id;

	make_archive(&b, 20);
	h_put(h, "path=/dest", &b, 30000);
	id = guest_expect_helper(h, ARGS);
	H_UNTIL(h, h->from_worker.len > 20000);
	fd_close(&h->client);
	H_UNTIL(h, h->s.conn_count == 0);
	op = LIST_FIRST(&h->s.ops_running);
	assert_non_null(op);
	op->patience.fn(h->s.loop, &op->patience); /* its time is up */
	buf_consume(&h->from_worker, h->from_worker.len);
	h_settle(h);
	guest_end(h, id, -1, SIGKILL, AGENT_END_KILLED);
	H_UNTIL(h, h->report.in_flight == 0);
	assert_int_equal(h->broken, 0);
	buf_free(&b);
}

/*
 * Over TCP nothing but the end of its bytes tells that a client is gone: it is seen also while the
 * helper takes nothing, and most of the body is unread.
 */
static void test_client_goes_away_unheard(void **state)
{
	struct harness *h = *state;
	struct buf b;
	uint32_t id;
	ssize_t n;

	h->client_flags = CTL_CONN_TCP;
	make_archive(&b, 2000);
	h_put(h, "path=/dest", &b, 0);
	id = guest_expect_helper(h, ARGS);
	for (int i = 0; i < 3; i++) {
		while (
		    (n = send(h->client, buf_head(&b), b.len, MSG_DONTWAIT | MSG_NOSIGNAL)) > 0) {
			buf_consume(&b, (size_t)n);
			h_settle(h);
		}
		h_settle(h);
	}
	assert_true(h->from_worker.len >= AGENT_WINDOW);
	assert_int_equal(h->s.conn_count, 1);
	assert_int_equal(shutdown(h->client, SHUT_WR), 0);
	H_UNTIL(h, h->s.conn_count == 0);
	guest_end(h, id, AGENT_E_SHORT, 0, 0);
	H_UNTIL(h, h->report.in_flight == 0);
	buf_free(&b);
}

/* A guest that gives no credit stops the client, and nothing piles up here. */
static void test_backpressure(void **state)
{
	static uint8_t payload[AGENT_PAYLOAD_MAX];
	struct harness *h = *state;
	size_t before = 0;
	size_t heard = 0;
	ssize_t n;
	struct buf b;
	uint32_t id;

	make_archive(&b, 2000);
	h_put(h, "path=/dest", &b, 0);
	id = guest_expect_helper(h, ARGS);
	do {
		before = heard;
		while (
		    (n = send(h->client, buf_head(&b), b.len, MSG_DONTWAIT | MSG_NOSIGNAL)) > 0) {
			buf_consume(&b, (size_t)n);
			h_settle(h);
		}
		h_settle(h);
		while (h->from_worker.len) {
			struct agent_head head = guest_next(h, payload, sizeof(payload));

			assert_int_equal(head.type, AGENT_DATA);
			assert_int_equal(head.channel, id);
			heard += head.size;
		}
	} while (heard > before);
	assert_int_equal(heard, AGENT_WINDOW);
	assert_true(b.len > 5U << 20); /* most of it is still with the client */
	service_set_state(&h->s, SERVICE_DEAD, API_BOX_DIED, "the box died");
	h_expect(h, "HTTP/1.1 410 ");
	buf_free(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_upload, h_setup, h_teardown),
	    cmocka_unit_test_setup_teardown(test_queries, h_setup, h_teardown),
	    cmocka_unit_test_setup_teardown(test_helper_fails, h_setup, h_teardown),
	    cmocka_unit_test_setup_teardown(test_damaged_archive, h_setup, h_teardown),
	    cmocka_unit_test_setup_teardown(test_client_goes_away, h_setup, h_teardown),
	    cmocka_unit_test_setup_teardown(test_helper_hangs, h_setup, h_teardown),
	    cmocka_unit_test_setup_teardown(test_client_goes_away_unheard, h_setup, h_teardown),
	    cmocka_unit_test_setup_teardown(test_backpressure, h_setup, h_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
