/* fs/list, fs/glob, fs/grep and recursive DELETE fs, against a helper that the test plays. */
#include <sys/stat.h>

#include "tests/unit/worker/harness.h"
#include "wire/entry.h"
#include "worker/files_walk.h"

/* Asks; what the helper is to do goes to argv as "sbx-files\nlist\npath=/a\n...". */
static uint32_t ask(struct harness *h, const char *method, const char *rest, char argv[2048])
{
	uint8_t payload[8192];
	struct agent_head head;
	struct agent_exec_request *r;
	size_t len = 0;

	h_request(h, method, rest, "", "");
	head = guest_next(h, payload, sizeof(payload));
	assert_int_equal(head.type, AGENT_EXEC);
	assert_int_equal(agent_parse_exec(payload, head.size, &r), 0);
	assert_int_equal(r->head.flags, AGENT_EXEC_HELPER | AGENT_EXEC_NO_STDIN);
	assert_string_equal(r->user, "");
	assert_string_equal(r->cwd, "");
	argv[0] = '\0';
	for (char **a = r->argv; *a; a++)
		len += (size_t)snprintf(argv + len, 2048 - len, "%s\n", *a);
	free(r);
	guest_started(h, head.channel);
	return head.channel;
}

static uint32_t ask_glob(struct harness *h)
{
	char argv[2048];

	return ask(h, "GET", "fs/glob?path=/a&pattern=*", argv);
}

static void say_parts(struct harness *h, uint32_t id, enum entry_type type, const void *fixed,
    size_t n, const void *a, size_t a_len, const void *b, size_t b_len)
{
	static uint8_t bytes[ENTRY_HEAD_LEN + ENTRY_SIZE_MAX];
	const struct entry_head head = {
	    .type = (uint16_t)type,
	    .size = (uint32_t)(n + a_len + b_len),
	};

	memcpy(bytes, &head, sizeof(head));
	memcpy(bytes + sizeof(head), fixed, n);
	memcpy(bytes + sizeof(head) + n, a, a_len);
	memcpy(bytes + sizeof(head) + n + a_len, b, b_len);
	guest_send(h, AGENT_DATA, AGENT_STDOUT, id, bytes, sizeof(head) + head.size);
}

static void say_path(struct harness *h, uint32_t id, const char *path)
{
	const struct entry_path e = {.path_len = (uint32_t)strlen(path)};

	say_parts(h, id, ENTRY_PATH, &e, sizeof(e), path, strlen(path), "", 0);
}

static void say_problem(struct harness *h, uint32_t id, const char *path, const char *text)
{
	const struct entry_problem e = {
	    .code = AGENT_E_PERMISSION,
	    .path_len = (uint32_t)strlen(path),
	    .text_len = (uint32_t)strlen(text),
	};

	say_parts(h, id, ENTRY_PROBLEM, &e, sizeof(e), path, strlen(path), text, strlen(text));
}

static void say_done(struct harness *h, uint32_t id, uint32_t flags, uint64_t count)
{
	const struct entry_done e = {.version = AGENT_VERSION, .flags = flags, .count = count};

	say_parts(h, id, ENTRY_DONE, &e, sizeof(e), "", 0, "", 0);
}

static void expect_answer(struct harness *h, const char *body)
{
	char text[64];

	h_expect(h, body);
	(void)snprintf(text, sizeof(text), "Content-Length: %zu\r\n", strlen(body));
	assert_true(h_answer_has(h, "HTTP/1.1 200 OK\r\n"));
	assert_true(h_answer_has(h, text));
	H_UNTIL(h, h->report.in_flight == 0);
}

static void test_list(void **state)
{
	struct harness *h = *state;
	char argv[2048];
	uint32_t id = ask(h, "GET", "fs/list?path=/a%20b/&depth=3&max_results=7", argv);
	struct entry_item e = {
	    .size = 5,
	    .mtime_ns = 1500000000123456789,
	    .mode = S_IFREG | 04755,
	    .uid = 1,
	    .gid = 2,
	    .path_len = 5,
	};

	assert_string_equal(argv, "sbx-files\nlist\npath=/a b\ndepth=3\nmax=7\n");
	say_parts(h, id, ENTRY_ITEM, &e, sizeof(e), "d/\xc3\xaf\n", 5, "", 0);
	e.mode = S_IFLNK | 0777;
	e.mtime_ns = -1;
	e.path_len = 2;
	e.link_len = 3;
	say_parts(h, id, ENTRY_ITEM, &e, sizeof(e), "x\xff", 2, "to\xfe", 3);
	say_done(h, id, 0, 0);
	guest_end(h, id, 0, 0, 0);
	expect_answer(h,
	    "{\"entries\":["
	    "{\"path\":\"d/\xc3\xaf\\n\",\"type\":\"file\",\"size\":5,\"mode\":\"4755\",\"uid\":1,"
	    "\"gid\":2,\"modified_at\":\"2017-07-14T02:40:00.123456789Z\"},"
	    "{\"path\":\"x\xef\xbf\xbd\",\"path_base64\":\"eP8=\",\"type\":\"symlink\",\"size\":5,"
	    "\"mode\":\"0777\",\"uid\":1,\"gid\":2,"
	    "\"modified_at\":\"1969-12-31T23:59:59.999999999Z\","
	    "\"link_target\":\"to\xef\xbf\xbd\",\"link_target_base64\":\"dG/+\"}],"
	    "\"truncated\":false}");
}

static void test_glob(void **state)
{
	struct harness *h = *state;
	char argv[2048];
	uint32_t id =
	    ask(h, "GET", "fs/glob?path=/&pattern=*.%FF&include_dirs=true&max_results=2", argv);

	assert_string_equal(argv, "sbx-files\nglob\npath=/\npattern=*.\xff\nmax=2\ndirs=1\n");
	say_path(h, id, "one:two \"\\");
	say_path(h, id, "\xff.\xff");
	say_problem(h, id, "closed", "Permission denied");
	say_done(h, id, ENTRY_DONE_TRUNCATED, 3);
	guest_end(h, id, 0, 0, 0);
	expect_answer(h, "{\"matches\":[\"one:two \\\"\\\\\",\"\xef\xbf\xbd.\xef\xbf\xbd\"],"
			 "\"encoded\":[{\"index\":1,\"path_base64\":\"/y7/\"}],"
			 "\"truncated\":true,"
			 "\"errors\":[{\"path\":\"closed\",\"reason\":\"permission_denied\","
			 "\"message\":\"Permission denied\"}],\"error_count\":3}");
	id = ask_glob(h);
	say_done(h, id, 0, 0);
	guest_end(h, id, 0, 0, 0);
	expect_answer(h, "{\"matches\":[],\"truncated\":false}");
}

static void test_grep(void **state)
{
	struct harness *h = *state;
	const struct entry_line e = {.number = 7, .path_len = 3, .text_len = 4};
	char argv[2048];
	uint32_t id = ask(
	    h, "GET", "fs/grep?path=/a&pattern=a%2Bb&glob=*.py&literal=1&case_sensitive=1", argv);

	assert_string_equal(argv, "sbx-files\ngrep\npath=/a\nmax=100\npattern=a+b\nglob=*.py\n"
				  "literal=1\ncase=1\n");
	say_parts(h, id, ENTRY_LINE, &e, sizeof(e), "a:b", 3, "\ta+b", 4);
	say_done(h, id, 0, 0);
	guest_end(h, id, 0, 0, 0);
	expect_answer(h, "{\"matches\":[{\"path\":\"a:b\",\"line_number\":7,\"line\":\"\\ta+b\"}],"
			 "\"truncated\":false}");
	id = ask(h, "GET", "fs/grep?path=/a&pattern=x&literal=0&case_sensitive=false", argv);
	assert_string_equal(argv, "sbx-files\ngrep\npath=/a\nmax=100\npattern=x\n");
	say_done(h, id, 0, 0);
	guest_end(h, id, 0, 0, 0);
	expect_answer(h, "{\"matches\":[],\"truncated\":false}");
}

static void test_remove(void **state)
{
	struct harness *h = *state;
	char argv[2048];
	uint32_t id = ask(h, "DELETE", "fs?path=/a%FFb/&recursive=1", argv);

	assert_string_equal(argv, "sbx-files\nremove\npath=/a\xff"
				  "b\n");
	say_done(h, id, 0, 12);
	guest_end(h, id, 0, 0, 0);
	expect_answer(h, "{\"path\":\"/a\xef\xbf\xbd"
			 "b\",\"path_base64\":\"L2H/Yg==\",\"removed\":12}");
}

/* The helper's word and its exit status are the client's error. */
static void test_failures(void **state)
{
	static const struct {
		int code;
		int sig;
		const char *says;
		const char *status;
		const char *reason;
		const char *message;
	} rows[] = {
	    {AGENT_E_NOT_FOUND, 0, "cannot read /a", "404", "not_found", "cannot read /a"},
	    {AGENT_E_NOT_A_DIRECTORY, 0, "x", "400", "not_a_directory", "x"},
	    {AGENT_E_PERMISSION, 0, "x", "403", "permission_denied", "x"},
	    {AGENT_E_INVALID_PATTERN, 0, "at offset 3", "400", "invalid_pattern", "at offset 3"},
	    {AGENT_E_NO_SPACE, 0, "x", "507", "no_space", "x"},
	    {AGENT_E_BUSY, 0, "x", "409", "busy", "x"},
	    {AGENT_E_IO, 0, "", "500", "io", "status"},
	    {AGENT_E_IO, 0, "\xff\n\"", "500", "io", "\xef\xbf\xbd\\n\\\""},
	    {AGENT_CODES, 0, "x", "422", "execution_failed", "status"},
	    {-1, SIGKILL, "", "429", "box_resources", "signal 9"},
	    {-1, SIGSEGV, "", "422", "execution_failed", "signal 11"},
	    {0, 0, "", "500", "io", "not complete"},
	};
	struct harness *h = *state;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint32_t id = ask_glob(h);

		say_path(h, id, "found before it failed");
		if (*rows[i].says)
			guest_send(h, AGENT_DATA, AGENT_STDERR, id, rows[i].says,
			    (uint32_t)strlen(rows[i].says));
		guest_end(h, id, rows[i].code, rows[i].sig, 0);
		h_expect(h, rows[i].reason);
		if (!h_answer_has(h, rows[i].status) || !h_answer_has(h, rows[i].message))
			fail_msg("row %zu: %s", i, h_answer(h));
		H_UNTIL(h, h->report.in_flight == 0);
	}
	guest_error(h, ask_glob(h), AGENT_E_EXEC, "no sbx-files");
	h_expect(h, "execution_failed");
	assert_true(h_answer_has(h, "HTTP/1.1 422 "));
}

/* The helper's answer is its box's: what makes no sense is refused, and it is ended. */
static void test_nonsense_from_the_box(void **state)
{
	struct harness *h = *state;
	const struct entry_item item = {.path_len = 1};

	for (int i = 0; i < 3; i++) {
		uint32_t id = ask_glob(h);

		if (i == 0) {
			guest_send(h, AGENT_DATA, AGENT_STDOUT, id, "no record at all", 16);
		} else if (i == 1) { /* what was not asked for */
			say_parts(h, id, ENTRY_ITEM, &item, sizeof(item), "x", 1, "", 0);
		} else { /* after the last */
			say_done(h, id, 0, 0);
			say_path(h, id, "x");
		}
		h_expect(h, "makes no sense");
		assert_true(h_answer_has(h, "HTTP/1.1 500 "));
		assert_int_equal(guest_expect(h, AGENT_CLOSE), id);
		say_path(h, id, "it goes on for a while");
		guest_end(h, id, -1, SIGKILL, AGENT_END_KILLED);
		H_UNTIL(h, h->report.in_flight == 0);
	}
	assert_int_equal(h->broken, 0);
}

static void test_client_goes_away(void **state)
{
	struct harness *h = *state;
	uint32_t id = ask_glob(h);

	say_path(h, id, "x");
	h_settle(h);
	fd_close(&h->client);
	assert_int_equal(guest_expect(h, AGENT_CLOSE), id);
	say_path(h, id, "x");
	h_settle(h);
	assert_int_equal(h->report.in_flight, 1); /* until the guest has ended it */
	guest_end(h, id, -1, SIGKILL, AGENT_END_KILLED);
	H_UNTIL(h, h->report.in_flight == 0);
}

/* How many names of 100 bytes make it long. */
#define LONG_NAMES 3000U

static size_t say_names(struct harness *h, uint32_t id, size_t count)
{
	char name[101];

	memset(name, 'n', 100);
	name[100] = '\0';
	for (size_t i = 0; i < count; i++) {
		say_path(h, id, name);
		h_settle(h);
	}
	return count * (ENTRY_HEAD_LEN + sizeof(struct entry_path) + 100);
}

static size_t count_of(struct harness *h, const char *text)
{
	const char *at = h_answer(h);
	size_t n = 0;

	while ((at = strstr(at, text)) != NULL) {
		n++;
		at += strlen(text);
	}
	return n;
}

static void test_long_answer(void **state)
{
	struct harness *h = *state;
	uint32_t id = ask_glob(h);

	(void)say_names(h, id, LONG_NAMES);
	say_done(h, id, 0, 0);
	guest_end(h, id, 0, 0, 0);
	h_expect(h, "],\"truncated\":false}");
	h_expect(h, "\r\n0\r\n\r\n");
	H_UNTIL(h, h->report.in_flight == 0);
	assert_true(h_answer_has(h, "Transfer-Encoding: chunked\r\n"));
	assert_true(h_answer_has(h, "{\"matches\":[\"nnn"));
	assert_true(h->answer.len > LONG_NAMES * 103);
}

/* What was begun cannot become an error: it is cut, so that nobody takes it for all. */
static void test_long_answer_fails(void **state)
{
	struct harness *h = *state;
	uint32_t id = ask_glob(h);

	(void)say_names(h, id, LONG_NAMES);
	h_expect(h, "Transfer-Encoding: chunked\r\n");
	guest_end(h, id, -1, SIGKILL, 0);
	H_UNTIL(h, h->answer_ended);
	assert_false(h_answer_has(h, "truncated"));
	assert_false(h_answer_has(h, "\r\n0\r\n\r\n"));
}

/* A client that takes nothing: little is kept for it, and the guest may not send more. */
static void test_slow_client(void **state)
{
	struct harness *h = *state;
	uint32_t id = ask_glob(h);
	const struct walk *w;
	int client = h->client;
	size_t sent = 0;

	H_UNTIL(h, h->report.in_flight == 1);
	w = (const struct walk *)(const void *)LIST_FIRST(&h->s.ops_running);
	h->client = -1;
	while (w->kept.len == 0) {
		assert_true(sent < 2 * AGENT_WINDOW);
		sent += say_names(h, id, 1);
	}
	assert_true(conn_queued(h->s.conns[0]) < CONN_OUT_HIGH + 2 * WALK_WHOLE);
	while (w->kept.len < AGENT_WINDOW / 2)
		(void)say_names(h, id, 1);
	assert_int_equal(conn_queued(h->s.conns[0]) > 0, 1);
	say_done(h, id, 0, 0);
	guest_end(h, id, 0, 0, 0);
	h_settle(h);
	assert_int_equal(h->report.in_flight, 1); /* there is still something to be told */
	h->client = client;
	h_expect(h, "],\"truncated\":false}");
	H_UNTIL(h, h->report.in_flight == 0);
}

/* So many names are no text that they cannot all be told: the answer ends, and says so. */
static void test_too_much_that_is_no_text(void **state)
{
	struct harness *h = *state;
	uint32_t id = ask_glob(h);
	char name[ENTRY_PATH_MAX + 1];

	memset(name, 0xff, sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	for (int i = 0; i < 100 && h->report.in_flight; i++) {
		say_path(h, id, name);
		h_settle(h);
	}
	h_expect(h, "\"truncated\":true}");
	assert_true(count_of(h, "path_base64") > 20);
	assert_int_equal(guest_expect(h, AGENT_CLOSE), id);
	guest_end(h, id, -1, SIGKILL, AGENT_END_KILLED);
	H_UNTIL(h, h->report.in_flight == 0);
}

static void test_bad_queries(void **state)
{
	static const struct {
		const char *rest;
		const char *reason;
	} rows[] = {
	    {"fs/list", "invalid_path"},
	    {"fs/list?path=a", "invalid_path"},
	    {"fs/list?path=/a/../b", "invalid_path"},
	    {"fs/list?path=/a&depth=0", "invalid_argument"},
	    {"fs/list?path=/a&depth=x", "invalid_argument"},
	    {"fs/list?path=/a&depth=9999", "invalid_argument"},
	    {"fs/list?path=/a&max_results=0", "invalid_argument"},
	    {"fs/list?path=/a&max_results=100001", "invalid_argument"},
	    {"fs/glob?path=/a", "invalid_pattern"},
	    {"fs/glob?path=/a&pattern=", "invalid_pattern"},
	    {"fs/glob?path=/a&pattern=a%00", "invalid_pattern"},
	    {"fs/glob?pattern=a", "invalid_path"},
	    {"fs/glob?path=/a&pattern=a&include_dirs=yes", "invalid_argument"},
	    {"fs/glob?path=/a&pattern=a&include_dirs=", "invalid_argument"},
	    {"fs/glob?path=/a&pattern=a&max_results=10001", "invalid_argument"},
	    {"fs/grep?path=/a", "invalid_pattern"},
	    {"fs/grep?path=/a&pattern=a&glob=", "invalid_pattern"},
	    {"fs/grep?path=/a&pattern=a&literal=2", "invalid_argument"},
	    {"fs/grep?path=/a&pattern=a&case_sensitive=-1", "invalid_argument"},
	    {"fs/grep?path=/a&pattern=a&max_results=-1", "invalid_argument"},
	};
	struct harness *h = *state;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		h_request(h, "GET", rows[i].rest, "", "");
		h_expect(h, rows[i].reason);
		if (!h_answer_has(h, "HTTP/1.1 400 "))
			fail_msg("%s: %s", rows[i].rest, h_answer(h));
	}
	h_request(h, "DELETE", "fs?path=/a&recursive=maybe", "", "");
	h_expect(h, "invalid_argument");
	h_request(h, "DELETE", "fs?recursive=1", "", "");
	h_expect(h, "invalid_path");
	h_request(h, "POST", "fs/list?path=/a", "", "");
	h_expect(h, "HTTP/1.1 405 ");
	assert_true(h_answer_has(h, "Allow: GET\r\n"));
	h_request(h, "GET", "fs?path=/a", "", "");
	h_expect(h, "Allow: DELETE\r\n");
	assert_int_equal(h->from_worker.len, 0); /* the guest was bothered with none of it */
}

#define H_TEST(f) cmocka_unit_test_setup_teardown(f, h_setup, h_teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
	    H_TEST(test_list),
	    H_TEST(test_glob),
	    H_TEST(test_grep),
	    H_TEST(test_remove),
	    H_TEST(test_failures),
	    H_TEST(test_nonsense_from_the_box),
	    H_TEST(test_client_goes_away),
	    H_TEST(test_long_answer),
	    H_TEST(test_long_answer_fails),
	    H_TEST(test_slow_client),
	    H_TEST(test_too_much_that_is_no_text),
	    H_TEST(test_bad_queries),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
