/* GET files against a guest that the test plays: its records become an archive. */
#include "tests/unit/worker/tar_serving.h"

#define ARGS "pack\npath=/src\nfollow=0\ncontents=0\ndirectory=0\n"

static uint32_t get(struct harness *h, const char *query, const char *args)
{
	char rest[256];

	(void)snprintf(rest, sizeof(rest), "files?%s", query);
	h_request(h, "GET", rest, "", "");
	return guest_expect_helper(h, args);
}

static void say(
    struct buf *b, enum entry_type type, const void *p, size_t n, const void *q, size_t m)
{
	const struct entry_head head = {.size = (uint32_t)(n + m), .type = (uint16_t)type};

	assert_int_equal(buf_append(b, &head, sizeof(head)), 0);
	assert_int_equal(buf_append(b, p, n), 0);
	assert_int_equal(buf_append(b, q, m), 0);
}

static void say_file(struct buf *b, const char *path, const void *data, size_t n)
{
	const struct entry_member m = {
	    .kind = ENTRY_FILE, .size = n, .mode = 0644, .path_len = (uint32_t)strlen(path)};
	struct entry_piece piece = {.offset = 0};

	say(b, ENTRY_MEMBER, &m, sizeof(m), path, m.path_len);
	while (piece.offset < n) {
		size_t part =
		    n - piece.offset < ENTRY_PIECE_MAX ? n - piece.offset : ENTRY_PIECE_MAX;

		say(b, ENTRY_PIECE, &piece, sizeof(piece), (const uint8_t *)data + piece.offset,
		    part);
		piece.offset += part;
	}
	say(b, ENTRY_PIECE, &piece, sizeof(piece), NULL, 0);
}

static void say_done(struct buf *b)
{
	const struct entry_done done = {.version = AGENT_VERSION, .count = 1};

	say(b, ENTRY_DONE, &done, sizeof(done), NULL, 0);
}

static void guest_stdout(struct harness *h, uint32_t id, const void *p, size_t n)
{
	guest_send(h, AGENT_DATA, AGENT_STDOUT, id, p, n);
}

/* The body of the answer, which must be complete, without its chunks. */
static void dechunk(struct harness *h, struct buf *body)
{
	const uint8_t *p = memmem(buf_head(&h->answer), h->answer.len, "\r\n\r\n", 4);
	const uint8_t *end = buf_head(&h->answer) + h->answer.len;
	size_t n = 1;

	assert_non_null(p);
	assert_true(h_answer_has(h, "Transfer-Encoding: chunked\r\n"));
	for (p += 4; n > 0; p += n + 2) {
		char *after;

		n = strtoul((const char *)p, &after, 16);
		p = (const uint8_t *)after + 2;
		assert_true(p + n + 2 <= end);
		assert_int_equal(buf_append(body, p, n), 0);
	}
}

static void test_download(void **state)
{
	struct harness *h = *state;
	struct t_heard *heard;
	struct buf r;
	struct buf body;
	uint32_t id = get(h, "path=/src", ARGS);

	buf_init(&r, T_ARCHIVE_MAX);
	buf_init(&body, T_ARCHIVE_MAX);
	say_file(&r, "src", "content", 7);
	h_settle(h);
	assert_int_equal(h->answer.len, 0); /* there may still be an error to tell */
	guest_stdout(h, id, buf_head(&r), 20);
	h_settle(h);
	assert_int_equal(h->answer.len, 0);
	guest_stdout(h, id, buf_head(&r) + 20, r.len - 20);
	h_expect(h, "HTTP/1.1 200 OK\r\n");
	h_expect(h, "Content-Type: application/x-tar\r\n");
	h_expect(h, "content");
	buf_clear(&r);
	say_done(&r);
	guest_stdout(h, id, buf_head(&r), r.len);
	guest_end(h, id, 0, 0, 0);
	h_expect(h, "\r\n0\r\n\r\n");
	H_UNTIL(h, h_word(h, 0) == CONN_IDLE);
	dechunk(h, &body);
	assert_int_equal(h->report.work.bytes_out, body.len);
	heard = t_read_all(&body, 1000);
	assert_int_equal(heard->count, 1);
	assert_memory_equal(buf_head(&heard->all[0].data), "content", 7);
	t_heard_free(heard);
	buf_free(&body);
	buf_free(&r);
}

static const struct {
	const char *query;
	const char *args;
} queries[] = {
    {"path=/src&follow_symlinks=true", "pack\npath=/src\nfollow=1\ncontents=0\ndirectory=0\n"},
    {"path=/src&follow_symlinks=0", ARGS},
    {"path=/src/", "pack\npath=/src\nfollow=0\ncontents=0\ndirectory=1\n"},
    {"path=/src/.", "pack\npath=/src\nfollow=0\ncontents=1\ndirectory=1\n"},
    {"path=/", "pack\npath=/\nfollow=0\ncontents=1\ndirectory=1\n"},
};

static void test_queries(void **state)
{
	struct harness *h = *state;

	for (size_t i = 0; i < sizeof(queries) / sizeof(queries[0]); i++) {
		uint32_t id = get(h, queries[i].query, queries[i].args);

		guest_stderr(h, id, "cannot read /src: No such file or directory");
		guest_end(h, id, AGENT_E_NOT_FOUND, 0, 0);
		h_expect(h, "HTTP/1.1 404 ");
		h_expect(h, "cannot read /src: No such file");
	}
	h_request(h, "GET", "files?path=/src&follow_symlinks=maybe", "", "");
	h_expect(h, "\"reason\":\"invalid_argument\"");
	assert_int_equal(h->from_worker.len, 0);
}

/* After the first bytes there is no other way to say it. */
static void test_failure_cuts_the_answer(void **state)
{
	static const int codes[] = {AGENT_E_PERMISSION, AGENT_OK};
	struct harness *h = *state;
	struct buf r;

	buf_init(&r, T_ARCHIVE_MAX);
	say_file(&r, "src", "content", 7); /* and no last record */
	for (size_t i = 0; i < 2; i++) {
		uint32_t id = get(h, "path=/src", ARGS);

		guest_stdout(h, id, buf_head(&r), r.len);
		h_expect(h, "content");
		guest_end(h, id, codes[i], 0, 0);
		H_UNTIL(h, h->answer_ended);
		assert_false(h_answer_has(h, "\r\n0\r\n\r\n"));
	}
	/* All is well, it says, and it has said nothing. */
	guest_end(h, get(h, "path=/src", ARGS), 0, 0, 0);
	h_expect(h, "\"reason\":\"io\"");
	guest_error(h, get(h, "path=/src", ARGS), AGENT_E_EXEC, "there is no helper");
	h_expect(h, "there is no helper");
	buf_free(&r);
}

static void test_records_that_make_no_sense(void **state)
{
	struct harness *h = *state;
	struct buf r;
	uint32_t id;

	buf_init(&r, T_ARCHIVE_MAX);
	id = get(h, "path=/src", ARGS);
	guest_stdout(h, id, "this is no record at all", 24);
	assert_int_equal(guest_expect(h, AGENT_CLOSE), id);
	guest_stdout(h, id, "and goes on", 11);
	guest_end(h, id, -1, SIGKILL, AGENT_END_KILLED);
	h_expect(h, "HTTP/1.1 ");
	assert_false(h_answer_has(h, "200 OK"));
	say_file(&r, "src", "content", 7);
	id = get(h, "path=/src", ARGS);
	guest_stdout(h, id, buf_head(&r), r.len);
	h_expect(h, "content");
	guest_stdout(h, id, buf_head(&r) + r.len - 16, 16); /* a piece of no file */
	assert_int_equal(guest_expect(h, AGENT_CLOSE), id);
	guest_end(h, id, -1, SIGKILL, AGENT_END_KILLED);
	H_UNTIL(h, h->answer_ended);
	assert_false(h_answer_has(h, "\r\n0\r\n\r\n"));
	assert_int_equal(h->broken, 0);
	buf_free(&r);
}

static void test_client_goes_away(void **state)
{
	struct harness *h = *state;
	uint32_t id = get(h, "path=/src", ARGS);

	fd_close(&h->client);
	assert_int_equal(guest_expect(h, AGENT_CLOSE), id);
	guest_stdout(h, id, "whatever", 8);
	assert_int_equal(h->report.in_flight, 1);
	guest_end(h, id, -1, SIGKILL, AGENT_END_KILLED);
	H_UNTIL(h, h->report.in_flight == 0);
}

/* A client that does not read: no more comes here than the stream's window, and it is not lost. */
static void test_slow_client(void **state)
{
	static uint8_t data[4 << 20];
	struct harness *h = *state;
	int client;
	uint32_t id = get(h, "path=/src", ARGS);
	size_t credit = AGENT_WINDOW;
	size_t sent = 0;
	struct t_heard *heard;
	struct buf r;
	struct buf body;

	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 31 + i / 4096);
	buf_init(&r, T_ARCHIVE_MAX);
	buf_init(&body, T_ARCHIVE_MAX);
	say_file(&r, "src", data, sizeof(data));
	say_done(&r);
	client = h->client;
	h->client = -1; /* h_step() does not read */
	for (int idle = 0; sent < r.len;) {
		size_t n = r.len - sent < AGENT_PAYLOAD_MAX ? r.len - sent : AGENT_PAYLOAD_MAX;
		uint8_t payload[64];

		if (n <= credit) {
			guest_stdout(h, id, buf_head(&r) + sent, n);
			sent += n;
			credit -= n;
			idle = 0;
		}
		h_settle(h);
		while (h->from_worker.len) {
			struct agent_head head = guest_next(h, payload, sizeof(payload));
			uint32_t more;

			assert_int_equal(head.type, AGENT_CREDIT);
			memcpy(&more, payload, sizeof(more));
			credit += more;
		}
		if (n > credit && idle++ == 20) {
			/* What it has not read lies in the socket and here, within bounds. */
			assert_true(h->client >= 0 || sent < (3U << 20));
			h->client = client;
		}
	}
	guest_end(h, id, 0, 0, 0);
	h_expect(h, "\r\n0\r\n\r\n");
	dechunk(h, &body);
	heard = t_read_all(&body, 100000);
	assert_int_equal(heard->all[0].data.len, sizeof(data));
	assert_memory_equal(buf_head(&heard->all[0].data), data, sizeof(data));
	assert_int_equal(h->report.in_flight, 0);
	t_heard_free(heard);
	buf_free(&body);
	buf_free(&r);
}

/* The helper is done before the client has read. */
static void test_end_before_the_client_has_all(void **state)
{
	static uint8_t data[900000];
	struct harness *h = *state;
	int client;
	uint32_t id = get(h, "path=/src", ARGS);
	struct buf r;
	struct buf body;

	buf_init(&r, T_ARCHIVE_MAX);
	buf_init(&body, T_ARCHIVE_MAX);
	say_file(&r, "src", data, sizeof(data));
	say_done(&r);
	client = h->client;
	h->client = -1;
	for (size_t at = 0; at < r.len; at += AGENT_PAYLOAD_MAX) {
		guest_stdout(h, id, buf_head(&r) + at,
		    r.len - at < AGENT_PAYLOAD_MAX ? r.len - at : AGENT_PAYLOAD_MAX);
		h_settle(h);
	}
	guest_end(h, id, 0, 0, 0);
	h_settle(h);
	assert_int_equal(h->report.in_flight, 1);
	h->client = client;
	h_expect(h, "\r\n0\r\n\r\n");
	dechunk(h, &body);
	assert_int_equal(body.len, 512 + 900096 + 1024);
	assert_int_equal(h->report.in_flight, 0);
	buf_free(&body);
	buf_free(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_download, h_setup, h_teardown),
	    cmocka_unit_test_setup_teardown(test_queries, h_setup, h_teardown),
	    cmocka_unit_test_setup_teardown(test_failure_cuts_the_answer, h_setup, h_teardown),
	    cmocka_unit_test_setup_teardown(test_records_that_make_no_sense, h_setup, h_teardown),
	    cmocka_unit_test_setup_teardown(test_client_goes_away, h_setup, h_teardown),
	    cmocka_unit_test_setup_teardown(test_slow_client, h_setup, h_teardown),
	    cmocka_unit_test_setup_teardown(
		test_end_before_the_client_has_all, h_setup, h_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
