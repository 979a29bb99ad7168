/* run: one command, buffered and streamed, against a guest that the test plays. */
#include <jansson.h>

#include "tests/unit/worker/harness.h"

#define NDJSON "Accept: application/x-ndjson\r\n"

static uint32_t run_json(struct harness *h, const char *extra, const char *json)
{
	uint32_t id;

	h_request(h, "POST", "run", extra, json);
	id = guest_expect(h, AGENT_EXEC);
	guest_started(h, id);
	return id;
}

static uint32_t run_cat(struct harness *h, const char *extra)
{
	return run_json(h, extra, "{\"argv\":[\"cat\"]}");
}

/* The JSON of a buffered answer. */
static json_t *answer_json(struct harness *h)
{
	const char *body;
	json_t *o;

	h_expect(h, "\"duration_ms\":");
	h_settle(h);
	body = strstr(h_answer(h), "\r\n\r\n");
	assert_non_null(body);
	assert_true(h_answer_has(h, "HTTP/1.1 200 OK\r\n"));
	o = json_loads(body + 4, JSON_ALLOW_NUL, NULL);
	assert_non_null(o);
	return o;
}

static const char *text_of(json_t *o, const char *key)
{
	return json_string_value(json_object_get(o, key));
}

static void test_buffered_answer(void **state)
{
	struct harness *h = *state;
	uint32_t id = run_cat(h, "");
	json_t *o;

	guest_send(h, AGENT_DATA, AGENT_STDOUT, id, "h\xc3\xa9", 3);
	guest_send(h, AGENT_DATA, AGENT_STDOUT, id, "llo", 3);
	guest_send(h, AGENT_DATA, AGENT_STDERR, id, "\xff\x00", 2);
	guest_end(h, id, 3, 0, 0);
	o = answer_json(h);
	assert_int_equal(json_integer_value(json_object_get(o, "exit_code")), 3);
	assert_true(json_is_null(json_object_get(o, "signal")));
	assert_true(json_is_false(json_object_get(o, "timed_out")));
	assert_true(json_is_false(json_object_get(o, "truncated")));
	assert_string_equal(text_of(o, "stdout"), "h\xc3\xa9llo");
	assert_string_equal(text_of(o, "stdout_encoding"), "utf-8");
	assert_string_equal(text_of(o, "stderr"), "/wA=");
	assert_string_equal(text_of(o, "stderr_encoding"), "base64");
	assert_int_equal(h->report.work.bytes_out, 8);
	json_decref(o);
}

static void test_signalled(void **state)
{
	struct harness *h = *state;
	uint32_t id = run_cat(h, "");
	json_t *o;

	guest_end(h, id, -1, 11, 0);
	o = answer_json(h);
	assert_true(json_is_null(json_object_get(o, "exit_code")));
	assert_int_equal(json_integer_value(json_object_get(o, "signal")), 11);
	json_decref(o);
}

static void test_truncated(void **state)
{
	struct harness *h = *state;
	uint32_t id = run_json(h, "", "{\"argv\":[\"cat\"],\"max_output_bytes\":4}");
	json_t *o;

	guest_send(h, AGENT_DATA, AGENT_STDOUT, id, "abc\xc3\xa9\xc3", 6); /* cut in a character */
	guest_send(h, AGENT_DATA, AGENT_STDOUT, id, "more", 4);
	guest_send(h, AGENT_DATA, AGENT_STDERR, id, "four", 4);
	guest_end(h, id, 0, 0, 0);
	o = answer_json(h);
	assert_true(json_is_true(json_object_get(o, "truncated")));
	assert_string_equal(text_of(o, "stdout"), "abc");
	assert_string_equal(text_of(o, "stderr"), "four");
	json_decref(o);
}

/* Much more than a window, all of it granted: output beyond the bound is read and dropped. */
static void test_output_is_granted(void **state)
{
	static uint8_t block[AGENT_PAYLOAD_MAX];
	struct harness *h = *state;
	uint32_t id = run_json(h, "", "{\"argv\":[\"cat\"],\"max_output_bytes\":100}");
	size_t credit = AGENT_WINDOW;
	json_t *o;

	memset(block, 'x', sizeof(block));
	for (int i = 0; i < 100; i++) {
		while (credit < sizeof(block)) {
			uint8_t payload[64];
			struct agent_head head = guest_next(h, payload, sizeof(payload));
			uint32_t more;

			assert_int_equal(head.type, AGENT_CREDIT);
			memcpy(&more, payload, sizeof(more));
			credit += more;
		}
		guest_send(h, AGENT_DATA, AGENT_STDOUT, id, block, sizeof(block));
		credit -= sizeof(block);
		h_settle(h);
	}
	guest_end(h, id, 0, 0, 0);
	o = answer_json(h);
	assert_int_equal(json_string_length(json_object_get(o, "stdout")), 100);
	assert_int_equal(h->report.work.bytes_out, 100 * sizeof(block));
	json_decref(o);
}

static void test_stdin_follows_credit(void **state)
{
	static uint8_t payload[AGENT_PAYLOAD_MAX];
	struct harness *h = *state;
	const uint32_t credit = AGENT_WINDOW;
	size_t want = AGENT_WINDOW + 1000;
	struct buf b;
	size_t got = 0;
	struct agent_head head;
	uint32_t id;
	json_t *o;

	buf_init(&b, 4U << 20);
	assert_int_equal(buf_printf(&b,
			     "POST " H_BOX "/run HTTP/1.1\r\nHost: x\r\nContent-Length: %zu\r\n\r\n"
			     "{\"argv\":[\"cat\"],\"stdin\":\"",
			     want + 27),
	    0);
	h_connect_bytes(h, buf_head(&b), b.len);
	buf_free(&b);
	for (size_t i = 0; i < want; i += 1000) {
		char text[1001];

		memset(text, 'a' + (int)(i / 1000 % 26), 1000);
		text[want - i < 1000 ? want - i : 1000] = '\0';
		h_client_send(h, text);
		h_settle(h);
	}
	h_client_send(h, "\"}");
	id = guest_expect(h, AGENT_EXEC);
	while (got < AGENT_WINDOW) {
		head = guest_next(h, payload, sizeof(payload));
		assert_int_equal(head.type, AGENT_DATA);
		for (size_t i = 0; i < head.size; i++)
			assert_int_equal(payload[i], 'a' + (int)((got + i) / 1000 % 26));
		got += head.size;
	}
	h_settle(h);
	assert_int_equal(h->from_worker.len, 0);
	guest_send(h, AGENT_CREDIT, AGENT_STDIN, id, &credit, sizeof(credit));
	head = guest_next(h, payload, sizeof(payload));
	assert_int_equal(head.type, AGENT_DATA);
	assert_int_equal(head.size, 1000);
	assert_int_equal(guest_expect(h, AGENT_EOF), id);
	guest_end(h, id, 0, 0, 0);
	o = answer_json(h);
	assert_int_equal(h->report.work.bytes_in, want);
	json_decref(o);
}

static void test_timeout(void **state)
{
	struct harness *h = *state;
	uint32_t id = run_json(h, "", "{\"argv\":[\"cat\"],\"timeout_seconds\":0.001}");
	json_t *o;

	guest_send(h, AGENT_DATA, AGENT_STDOUT, id, "part", 4);
	assert_int_equal(guest_expect(h, AGENT_CLOSE), id);
	h_settle(h);
	assert_int_equal(h->answer.len, 0); /* not before the tree is seen gone */
	guest_end(h, id, -1, 9, AGENT_END_KILLED);
	o = answer_json(h);
	assert_true(json_is_true(json_object_get(o, "timed_out")));
	assert_true(json_is_null(json_object_get(o, "exit_code")));
	assert_int_equal(json_integer_value(json_object_get(o, "signal")), 9);
	assert_string_equal(text_of(o, "stdout"), "part");
	json_decref(o);
}

/* It ended by itself while the guest was being told of the timeout. */
static void test_end_crosses_timeout(void **state)
{
	struct harness *h = *state;
	uint32_t id = run_json(h, "", "{\"argv\":[\"cat\"],\"timeout_seconds\":0.001}");
	json_t *o;

	assert_int_equal(guest_expect(h, AGENT_CLOSE), id);
	guest_end(h, id, 4, 0, 0);
	o = answer_json(h);
	assert_true(json_is_false(json_object_get(o, "timed_out")));
	assert_int_equal(json_integer_value(json_object_get(o, "exit_code")), 4);
	json_decref(o);
}

static const struct {
	uint32_t code;
	const char *status;
	const char *reason;
} errors[] = {
    {AGENT_E_EXEC, "HTTP/1.1 422 ", "execution_failed"},
    {AGENT_E_NO_USER, "HTTP/1.1 422 ", "execution_failed"},
    {AGENT_E_RESOURCES, "HTTP/1.1 429 ", "box_resources"},
    {AGENT_E_NOT_FOUND, "HTTP/1.1 422 ", "execution_failed"},
    {AGENT_E_INVALID_PATH, "HTTP/1.1 400 ", "invalid_path"},
    {99, "HTTP/1.1 422 ", "execution_failed"},
};

static void test_errors(void **state)
{
	struct harness *h = *state;

	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		for (int stream = 0; stream < 2; stream++) {
			h_request(h, "POST", "run", stream ? NDJSON : "", "{\"argv\":[\"cat\"]}");
			guest_error(h, guest_expect(h, AGENT_EXEC), errors[i].code, "because");
			h_expect(h, errors[i].reason);
			assert_true(h_answer_has(h, errors[i].status));
			assert_true(h_answer_has(h, "because"));
		}
	}
	assert_int_equal(h->report.work.exec_failed, 2 * sizeof(errors) / sizeof(errors[0]));
}

/* What all operations keep together is bounded: input is refused, output is cut. */
static void test_kept_bytes_are_bounded(void **state)
{
	struct harness *h = *state;
	uint32_t id = run_cat(h, "");
	json_t *o;

	h->s.buffered = SERVICE_BUFFER_MAX;
	guest_send(h, AGENT_DATA, AGENT_STDOUT, id, "out", 3);
	guest_end(h, id, 0, 0, 0);
	o = answer_json(h);
	assert_true(json_is_true(json_object_get(o, "truncated")));
	assert_string_equal(text_of(o, "stdout"), "");
	json_decref(o);
	h->s.buffered = SERVICE_BUFFER_MAX;
	h_request(h, "POST", "run", "", "{\"argv\":[\"cat\"]}");
	h_expect(h, "\"reason\":\"box_resources\"");
	assert_true(h_answer_has(h, "HTTP/1.1 429 "));
	h->s.buffered = 0;
	id = run_cat(h, "");
	assert_int_not_equal(h->s.buffered, 0);
	guest_end(h, id, 0, 0, 0);
	json_decref(answer_json(h));
	assert_int_equal(h->s.buffered, 0);
}

/* A client that does not read keeps a long answer in memory, which counts. */
static void test_unread_answers_are_bounded(void **state)
{
	static const size_t part = AGENT_PAYLOAD_MAX;
	struct harness *h = *state;
	uint8_t *out = malloc(part);
	uint32_t id;
	json_t *o;

	assert_non_null(out);
	memset(out, 1, part); /* each is six bytes of JSON */
	for (int i = 0; i < 2; i++) {
		h->s.buffered = i ? SERVICE_BUFFER_MAX - 5 * part : 0;
		id = run_cat(h, "");
		guest_send(h, AGENT_DATA, AGENT_STDOUT, id, out, part);
		guest_end(h, id, 0, 0, 0);
		if (i == 0)
			H_UNTIL(h, h->s.buffered > 6 * part); /* it is the answer that counts */
		o = answer_json(h);
		assert_int_equal(strlen(text_of(o, "stdout")), i ? 0 : part);
		assert_int_equal(json_is_true(json_object_get(o, "truncated")), i);
		json_decref(o);
		assert_int_equal(h->s.buffered, i ? SERVICE_BUFFER_MAX - 5 * part : 0);
	}
	h->s.buffered = 0;
	free(out);
}

/* A client that goes leaves nothing that counts. */
static void test_an_answer_that_nobody_takes(void **state)
{
	static const size_t part = AGENT_PAYLOAD_MAX;
	struct harness *h = *state;
	uint8_t *out = calloc(1, part);
	uint32_t id = run_cat(h, "");

	assert_non_null(out);
	guest_send(h, AGENT_DATA, AGENT_STDOUT, id, out, part);
	guest_end(h, id, 0, 0, 0);
	H_UNTIL(h, h->s.buffered > 6 * part);
	fd_close(&h->client);
	H_UNTIL(h, h->s.conn_count == 0);
	assert_int_equal(h->s.buffered, 0);
	free(out);
}

/* ---- streamed ---- */

static void test_stream(void **state)
{
	struct harness *h = *state;
	uint32_t id = run_cat(h, NDJSON);

	h_expect(h, "Transfer-Encoding: chunked\r\n");
	assert_true(h_answer_has(h, "Content-Type: application/x-ndjson\r\n"));
	h_settle(h);
	assert_int_equal(h_word(h, 0), CONN_RESPONDING);
	guest_send(h, AGENT_DATA, AGENT_STDOUT, id, "one\n", 4);
	h_expect(h, "{\"stream\":\"stdout\",\"data\":\"one\\n\",\"encoding\":\"utf-8\"}\n\r\n");
	guest_send(h, AGENT_DATA, AGENT_STDERR, id, "two", 3);
	h_expect(h, "{\"stream\":\"stderr\",\"data\":\"two\",\"encoding\":\"utf-8\"}\n\r\n");
	guest_end(h, id, 7, 0, 0);
	h_expect(h, "{\"exit_code\":7,\"signal\":null,\"timed_out\":false,\"truncated\":false,"
		    "\"duration_ms\":");
	h_expect(h, "}\n\r\n0\r\n\r\n");
	h_settle(h);
	assert_int_equal(h_word(h, 0), CONN_IDLE);
}

static void test_stream_holds_back_split_characters(void **state)
{
	struct harness *h = *state;
	uint32_t id = run_cat(h, NDJSON);

	h_expect(h, "\r\n\r\n");
	buf_clear(&h->answer);
	guest_send(h, AGENT_DATA, AGENT_STDOUT, id, "\xf0\x9f", 2);
	h_settle(h);
	assert_int_equal(h->answer.len, 0);
	guest_send(h, AGENT_DATA, AGENT_STDOUT, id, "\x98\x80!\xc3", 4);
	h_expect(h, "\"data\":\"\xf0\x9f\x98\x80!\",\"encoding\":\"utf-8\"");
	buf_clear(&h->answer);
	guest_end(h, id, 0, 0, 0); /* what is incomplete at the end is binary */
	h_expect(h, "\"data\":\"ww==\",\"encoding\":\"base64\"");
	h_expect(h, "exit_code");
}

static void test_stream_invalid_is_base64(void **state)
{
	struct harness *h = *state;
	uint32_t id = run_cat(h, NDJSON);

	guest_send(h, AGENT_DATA, AGENT_STDOUT, id, "ok\xff\xfe", 4);
	h_expect(h, "\"data\":\"ok\",\"encoding\":\"utf-8\"");
	h_expect(h, "\"data\":\"//4=\",\"encoding\":\"base64\"");
	guest_end(h, id, 0, 0, 0);
	h_expect(h, "exit_code");
}

/* A client that reads nothing: its own channel stalls, what is kept is bounded, nothing is lost. */
static void test_stream_stalled_reader(void **state)
{
	static uint8_t block[AGENT_PAYLOAD_MAX];
	struct harness *h = *state;
	uint32_t id = run_cat(h, NDJSON);
	size_t sent = 0;
	size_t credit = AGENT_WINDOW;
	int client;

	h_expect(h, "\r\n\r\n");
	buf_clear(&h->answer);
	client = h->client;
	h->client = -1; /* the harness does not read it */
	memset(block, 'y', sizeof(block));
	/* Until no more credit comes. */
	for (int quiet = 0; quiet < 3;) {
		struct agent_head head;

		while (credit >= sizeof(block)) {
			guest_send(h, AGENT_DATA, AGENT_STDOUT, id, block, sizeof(block));
			credit -= sizeof(block);
			sent += sizeof(block);
			h_settle(h);
		}
		quiet++;
		while (agent_get_head(buf_head(&h->from_worker), h->from_worker.len, &head) == 1) {
			uint8_t payload[64];
			uint32_t more;

			assert_int_equal(
			    guest_next(h, payload, sizeof(payload)).type, AGENT_CREDIT);
			memcpy(&more, payload, sizeof(more));
			credit += more;
			quiet = 0;
		}
		h_settle(h);
	}
	assert_true(sent < 4 * AGENT_WINDOW);
	assert_true(h->s.conns[0]->out.len < 2 * CONN_OUT_HIGH);
	/* Another client is served meanwhile. */
	assert_int_equal(agent_link_send(&h->link, AGENT_PING, "x", 1), 0);
	guest_send(h, AGENT_PONG, 0, 0, "x", 1);
	H_UNTIL(h, h->pongs == 1);
	h->client = client;
	guest_end(h, id, 0, 0, 0);
	h_expect(h, "\"exit_code\":0");
	{
		size_t count = 0;

		for (size_t i = 0; i < h->answer.len; i++)
			count += buf_head(&h->answer)[i] == 'y';
		assert_int_equal(count, sent);
	}
}

static void test_stream_box_dies(void **state)
{
	struct harness *h = *state;

	(void)run_cat(h, NDJSON);
	h_expect(h, "\r\n\r\n");
	service_set_state(&h->s, SERVICE_DEAD, API_BOX_DIED, "the box died");
	h_expect(h, "{\"error\":{\"message\":\"the box died\"");
	H_UNTIL(h, h->answer_ended);
	assert_false(h_answer_has(h, "\r\n0\r\n\r\n")); /* cut, not complete */
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, h_setup, h_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_buffered_answer),
	    TEST(test_unread_answers_are_bounded),
	    TEST(test_an_answer_that_nobody_takes),
	    TEST(test_signalled),
	    TEST(test_truncated),
	    TEST(test_output_is_granted),
	    TEST(test_stdin_follows_credit),
	    TEST(test_timeout),
	    TEST(test_end_crosses_timeout),
	    TEST(test_errors),
	    TEST(test_kept_bytes_are_bounded),
	    TEST(test_stream),
	    TEST(test_stream_holds_back_split_characters),
	    TEST(test_stream_invalid_is_base64),
	    TEST(test_stream_stalled_reader),
	    TEST(test_stream_box_dies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
