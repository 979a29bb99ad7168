/* fs/stat, fs/mkdir, DELETE fs and fs/rename, against a guest that the test plays. */
#include <limits.h>
#include <sys/stat.h>

#include "tests/unit/worker/harness.h"

/* What the guest is asked for: the request, and its paths one after the other. */
struct asked {
	uint32_t id;
	struct agent_path head;
	char paths[512];
};

static struct asked ask(struct harness *h, const char *method, const char *rest, const char *body)
{
	uint8_t payload[4096];
	struct agent_head head;
	struct asked a;

	h_request(h, method, rest, "", body);
	head = guest_next(h, payload, sizeof(payload));
	assert_int_equal(head.type, AGENT_PATH);
	memcpy(&a.head, payload, sizeof(a.head));
	assert_int_equal(head.size, sizeof(a.head) + a.head.path_len + a.head.other_len);
	assert_int_equal(a.head.reserved, 0);
	(void)snprintf(a.paths, sizeof(a.paths), "%.*s", (int)(head.size - sizeof(a.head)),
	    (const char *)payload + sizeof(a.head));
	a.id = head.channel;
	return a;
}

static void expect_asked(
    const struct asked *a, enum agent_path_op op, uint32_t flags, const char *paths)
{
	assert_int_equal(a->head.op, op);
	assert_int_equal(a->head.flags, flags);
	assert_string_equal(a->paths, paths);
}

static void end_with(struct harness *h, const struct asked *a, uint64_t bytes)
{
	const struct agent_end end = {.bytes = bytes};

	guest_send(h, AGENT_END, 0, a->id, &end, sizeof(end));
}

static void expect_answer(struct harness *h, const char *body)
{
	h_expect(h, body);
	assert_true(h_answer_has(h, "HTTP/1.1 200 OK\r\n"));
	H_UNTIL(h, h->report.in_flight == 0);
}

static void test_stat(void **state)
{
	struct harness *h = *state;
	struct agent_stat st = {.size = 3, .mtime_ns = 1, .mode = S_IFDIR | 01777, .uid = 5};
	uint8_t payload[sizeof(st) + 2];
	struct asked a = ask(h, "GET", "fs/stat?path=/a%20b/", "");

	expect_asked(&a, AGENT_PATH_STAT, 0, "/a b");
	guest_send(h, AGENT_STARTED, 0, a.id, &st, sizeof(st));
	end_with(h, &a, 0);
	expect_answer(h, "{\"path\":\"/a b\",\"type\":\"directory\",\"size\":3,\"mode\":\"1777\","
			 "\"uid\":5,\"gid\":0,\"modified_at\":\"1970-01-01T00:00:00.000000001Z\"}");

	a = ask(h, "GET", "fs/stat?path=/%FF&follow=1", "");
	expect_asked(&a, AGENT_PATH_STAT, AGENT_PATH_FOLLOW, "/\xff");
	st.mode = S_IFLNK | 0777;
	st.link_len = 2;
	memcpy(payload, &st, sizeof(st));
	memcpy(payload + sizeof(st), "a\xfe", 2);
	guest_send(h, AGENT_STARTED, 0, a.id, payload, sizeof(payload));
	end_with(h, &a, 0);
	expect_answer(h, "\"link_target\":\"a\xef\xbf\xbd\",\"link_target_base64\":\"Yf4=\"}");
	assert_true(h_answer_has(h, "{\"path\":\"/\xef\xbf\xbd\",\"path_base64\":\"L/8=\","));
}

static void test_mkdir(void **state)
{
	struct harness *h = *state;
	struct asked a = ask(h, "POST", "fs/mkdir", "{\"path\":\"/a/\"}");

	expect_asked(&a, AGENT_PATH_MKDIR, 0, "/a");
	end_with(h, &a, 1);
	expect_answer(h, "{\"path\":\"/a\",\"created\":true}");
	a = ask(h, "POST", "fs/mkdir", "{\"path\":\"/a\",\"parents\":true,\"mode\":\"0700\"}");
	expect_asked(&a, AGENT_PATH_MKDIR, AGENT_PATH_PARENTS | AGENT_PATH_MODE, "/a");
	assert_int_equal(a.head.mode, 0700);
	end_with(h, &a, 0);
	expect_answer(h, "\"created\":false}");
	/* All of it may stand in the query, and so any bytes. */
	a = ask(h, "POST", "fs/mkdir?path=/%FF&parents=1&mode=1777", "");
	expect_asked(&a, AGENT_PATH_MKDIR, AGENT_PATH_PARENTS | AGENT_PATH_MODE, "/\xff");
	assert_int_equal(a.head.mode, 01777);
	end_with(h, &a, 1);
	expect_answer(h, "\"created\":true}");
	a = ask(h, "POST", "fs/mkdir?parents=1", "{\"path\":\"/a\",\"parents\":false}");
	expect_asked(&a, AGENT_PATH_MKDIR, 0, "/a");
	end_with(h, &a, 1);
	expect_answer(h, "\"created\":true}");
}

static void test_remove(void **state)
{
	struct harness *h = *state;
	struct asked a = ask(h, "DELETE", "fs?path=/a&recursive=0", "");

	expect_asked(&a, AGENT_PATH_REMOVE, 0, "/a");
	end_with(h, &a, 1);
	expect_answer(h, "{\"path\":\"/a\",\"removed\":1}");
}

static void test_rename(void **state)
{
	struct harness *h = *state;
	struct asked a = ask(h, "POST", "fs/rename", "{\"from\":\"/a\",\"to\":\"/b\\u00ef\"}");

	expect_asked(&a, AGENT_PATH_RENAME, 0, "/a/b\xc3\xaf");
	assert_int_equal(a.head.path_len, 2);
	end_with(h, &a, 1);
	expect_answer(h, "{\"from\":\"/a\",\"to\":\"/b\xc3\xaf\"}");
	a = ask(h, "POST", "fs/rename?from=/%FE", "{\"to\":\"/b\",\"overwrite\":true}");
	expect_asked(&a, AGENT_PATH_RENAME, AGENT_PATH_OVERWRITE, "/\xfe/b");
	end_with(h, &a, 1);
	expect_answer(h, "\"to\":\"/b\"}");
	a = ask(h, "POST", "fs/rename?from=/a&to=/b&overwrite=true", "{}");
	expect_asked(&a, AGENT_PATH_RENAME, AGENT_PATH_OVERWRITE, "/a/b");
	end_with(h, &a, 1);
	expect_answer(h, "\"to\":\"/b\"}");
}

static void test_errors(void **state)
{
	static const struct {
		uint32_t code;
		const char *status;
		const char *reason;
	} rows[] = {
	    {AGENT_E_NOT_FOUND, " 404 ", "not_found"},
	    {AGENT_E_PERMISSION, " 403 ", "permission_denied"},
	    {AGENT_E_IS_DIRECTORY, " 400 ", "is_directory"},
	    {AGENT_E_NOT_A_DIRECTORY, " 400 ", "not_a_directory"},
	    {AGENT_E_INVALID_PATH, " 400 ", "invalid_path"},
	    {AGENT_E_EXISTS, " 409 ", "already_exists"},
	    {AGENT_E_NOT_EMPTY, " 409 ", "not_empty"},
	    {AGENT_E_BUSY, " 409 ", "busy"},
	    {AGENT_E_CROSS_DEVICE, " 400 ", "cross_device"},
	    {AGENT_E_NO_SPACE, " 507 ", "no_space"},
	    {AGENT_E_IO, " 500 ", "io"},
	};
	struct harness *h = *state;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct asked a = ask(h, "DELETE", "fs?path=/a", "");

		guest_error(h, a.id, rows[i].code, "why not");
		h_expect(h, rows[i].reason);
		assert_true(h_answer_has(h, rows[i].status));
		assert_true(h_answer_has(h, "why not"));
	}
}

static void test_bad_requests(void **state)
{
	static const struct {
		const char *method;
		const char *rest;
		const char *body;
		const char *reason;
	} rows[] = {
	    {"GET", "fs/stat", "", "invalid_path"},
	    {"GET", "fs/stat?path=a", "", "invalid_path"},
	    {"GET", "fs/stat?path=/a/..", "", "invalid_path"},
	    {"GET", "fs/stat?path=/a&follow=x", "", "invalid_argument"},
	    {"POST", "fs/mkdir", "", "invalid_path"},
	    {"POST", "fs/mkdir", "{}", "invalid_path"},
	    {"POST", "fs/mkdir", "[]", "malformed_request"},
	    {"POST", "fs/mkdir", "{\"path\":1}", "invalid_argument"},
	    {"POST", "fs/mkdir", "{\"path\":\"a\"}", "invalid_path"},
	    {"POST", "fs/mkdir", "{\"path\":\"\"}", "invalid_path"},
	    {"POST", "fs/mkdir?path=/b", "{\"path\":\"/a\"}", "invalid_path"},
	    {"POST", "fs/mkdir", "{\"path\":\"/a\",\"mode\":493}", "invalid_argument"},
	    {"POST", "fs/mkdir", "{\"path\":\"/a\",\"mode\":\"rwx\"}", "invalid_argument"},
	    {"POST", "fs/mkdir", "{\"path\":\"/a\",\"mode\":\"10000\"}", "invalid_argument"},
	    {"POST", "fs/mkdir", "{\"path\":\"/a\",\"mode\":\"\"}", "invalid_argument"},
	    {"POST", "fs/mkdir", "{\"path\":\"/a\",\"parents\":1}", "invalid_argument"},
	    {"POST", "fs/mkdir?path=/a&mode=9", "", "invalid_argument"},
	    {"POST", "fs/rename", "{\"from\":\"/a\"}", "invalid_path"},
	    {"POST", "fs/rename", "{\"to\":\"/a\"}", "invalid_path"},
	    {"POST", "fs/rename", "{\"from\":\"/a\",\"to\":\"/b/../c\"}", "invalid_path"},
	    {"POST", "fs/rename?to=/a&to=/b", "{\"from\":\"/a\"}", "invalid_path"},
	    {"DELETE", "fs", "", "invalid_path"},
	    {"DELETE", "fs?path=", "", "invalid_path"},
	};
	struct harness *h = *state;
	char body[5000];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		h_request(h, rows[i].method, rows[i].rest, "", rows[i].body);
		h_expect(h, rows[i].reason);
		if (!h_answer_has(h, "HTTP/1.1 400 "))
			fail_msg("row %zu: %s", i, h_answer(h));
	}
	(void)snprintf(body, sizeof(body), "{\"path\":\"/%04500d\"}", 0);
	h_request(h, "POST", "fs/mkdir", "", body);
	h_expect(h, "invalid_path");
	h_request(h, "DELETE", "fs?path=/a", "", "a body");
	h_expect(h, "HTTP/1.1 413 ");
	assert_int_equal(h->from_worker.len, 0); /* the guest was bothered with none of it */
	assert_int_equal(h->report.in_flight, 0);
}

/* A guest that says what it cannot: its link ends. */
static void test_nonsense_from_the_guest(void **state)
{
	static const struct {
		uint32_t link_len;
		size_t follows;
	} rows[] = {{1, 0}, {0, 1}, {UINT32_MAX, 4}, {PATH_MAX, PATH_MAX}};
	uint8_t payload[sizeof(struct agent_stat) + PATH_MAX];
	size_t i = (size_t)(uintptr_t)*state;
	struct agent_stat st = {.mode = S_IFLNK, .link_len = rows[i].link_len};
	struct harness *h;
	struct asked a;

	assert_int_equal(h_setup(state), 0);
	h = *state;
	a = ask(h, "GET", "fs/stat?path=/a", "");
	memset(payload, 'x', sizeof(payload));
	memcpy(payload, &st, sizeof(st));
	guest_send(h, AGENT_STARTED, 0, a.id, payload, (uint32_t)(sizeof(st) + rows[i].follows));
	H_UNTIL(h, h->broken == 1);
	assert_int_equal(h_teardown(state), 0);
}

/* No answer is no answer of zeros. */
static void test_stat_without_answer(void **state)
{
	struct harness *h = *state;
	struct asked a = ask(h, "GET", "fs/stat?path=/a", "");

	end_with(h, &a, 0);
	h_expect(h, "HTTP/1.1 500 ");
}

static void test_client_goes_away(void **state)
{
	struct harness *h = *state;
	struct asked a = ask(h, "GET", "fs/stat?path=/a", "");

	fd_close(&h->client);
	assert_int_equal(guest_expect(h, AGENT_CLOSE), a.id);
	end_with(h, &a, 0);
	H_UNTIL(h, h->report.in_flight == 0);
}

#define H_TEST(f) cmocka_unit_test_setup_teardown(f, h_setup, h_teardown)
#define ROW_TEST(i)                                                                           \
	{                                                                                     \
		"test_nonsense_from_the_guest " #i, test_nonsense_from_the_guest, NULL, NULL, \
		    (void *)(i)                                                               \
	}

int main(void)
{
	static const struct CMUnitTest tests[] = {
	    H_TEST(test_stat),
	    H_TEST(test_mkdir),
	    H_TEST(test_remove),
	    H_TEST(test_rename),
	    H_TEST(test_errors),
	    H_TEST(test_bad_requests),
	    ROW_TEST(0),
	    ROW_TEST(1),
	    ROW_TEST(2),
	    ROW_TEST(3),
	    H_TEST(test_stat_without_answer),
	    H_TEST(test_client_goes_away),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
