/*
 * The real sbx-guest: reading files.
 */
#include "tests/unit/guest/scratch.h"

#define LINES_MAX UINT64_MAX

static void test_read_whole_file(void **state)
{
	struct drive *d = drive_of(state);
	struct scratch s;
	const size_t size = 5U << 20;
	uint8_t *data = malloc(size);
	struct agent_stat as;
	struct reply *r;

	assert_non_null(data);
	for (size_t i = 0; i < size; i++)
		data[i] = (uint8_t)(i * 2654435761U >> 9);
	scratch_make(&s);
	put(scratch_path(&s, "file"), data, size);
	assert_int_equal(chmod(s.path, 0640), 0);
	assert_int_equal(chown(s.path, 12, 13), 0);
	r = drive_read(d, s.path);
	assert_false(r->failed);
	assert_int_equal(r->started_len, sizeof(as));
	memcpy(&as, r->started_with, sizeof(as));
	assert_int_equal(as.size, size);
	assert_int_equal(as.mode, S_IFREG | 0640);
	assert_int_equal(as.uid, 12);
	assert_int_equal(as.gid, 13);
	assert_true(as.mtime_ns > 1500000000ULL * 1000000000ULL);
	assert_int_equal(r->end.bytes, size);
	assert_int_equal(r->len[1], size);
	assert_memory_equal(r->out[1], data, size);
	free(data);
	scratch_remove(&s);
}

static void test_read_ranges(void **state)
{
	struct drive *d = drive_of(state);
	static const struct {
		uint64_t offset;
		uint64_t limit;
		const char *want;
	} rows[] = {
	    {0, UINT64_MAX, "0123456789"},
	    {0, 0, ""},
	    {3, 4, "3456"},
	    {9, 1, "9"},
	    {9, 100, "9"},
	    {10, 1, ""},
	    {1000, UINT64_MAX, ""},
	    {INT64_MAX, UINT64_MAX, ""},
	};
	struct scratch s;

	scratch_make(&s);
	put(scratch_path(&s, "file"), "0123456789", 10);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct reply *r =
		    drive_wait(d, drive_read_start(d, s.path, rows[i].offset, rows[i].limit, 0));

		assert_false(r->failed);
		assert_int_equal(r->len[1], strlen(rows[i].want));
		assert_int_equal(r->end.bytes, r->len[1]);
		if (r->len[1] > 0)
			assert_string_equal((char *)r->out[1], rows[i].want);
	}
	assert_failed(
	    drive_wait(d, drive_read_start(d, s.path, UINT64_MAX, 1, 0)), AGENT_E_INVALID);
	scratch_remove(&s);
}

static void test_read_lines(void **state)
{
	struct drive *d = drive_of(state);
	static const struct {
		uint64_t first;
		uint64_t last;
		const char *want;
	} rows[] = {
	    {1, LINES_MAX, "one\ntwo\r\n\nfour\vx\nfive"},
	    {1, 1, "one\n"},
	    {2, 3, "two\r\n\n"},
	    {4, 4, "four\vx\n"},
	    {5, 5, "five"},
	    {5, 9, "five"},
	    {6, 9, ""},
	    {LINES_MAX, LINES_MAX, ""},
	};
	struct scratch s;

	scratch_make(&s);
	put(scratch_path(&s, "file"), rows[0].want, strlen(rows[0].want));
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct reply *r = drive_wait(
		    d, drive_read_start(d, s.path, rows[i].first, rows[i].last, AGENT_READ_LINES));

		assert_false(r->failed);
		assert_int_equal(r->len[1], strlen(rows[i].want));
		assert_int_equal(r->end.bytes, r->len[1]);
		if (r->len[1] > 0)
			assert_string_equal((char *)r->out[1], rows[i].want);
	}
	assert_failed(
	    drive_wait(d, drive_read_start(d, s.path, 0, 5, AGENT_READ_LINES)), AGENT_E_INVALID);
	assert_failed(
	    drive_wait(d, drive_read_start(d, s.path, 3, 2, AGENT_READ_LINES)), AGENT_E_INVALID);
	scratch_remove(&s);
}

/* Lines across chunks, and more of them than the credit. */
static void test_read_lines_of_a_large_file(void **state)
{
	struct drive *d = drive_of(state);
	const size_t lines = 300000;
	const size_t width = 16;
	char *data = malloc(lines * width + 1);
	struct scratch s;
	uint32_t channel;
	struct reply *r;

	assert_non_null(data);
	for (size_t i = 0; i < lines; i++)
		(void)snprintf(data + i * width, width + 1, "%015zu\n", i + 1);
	scratch_make(&s);
	put(scratch_path(&s, "file"), data, lines * width);
	channel = drive_read_start(d, s.path, 100001, 290000, AGENT_READ_LINES);
	r = drive_reply(d, channel);
	r->no_credit = true;
	while (r->len[1] < AGENT_WINDOW)
		assert_true(drive_pump(d));
	drive_ping(d);
	assert_int_equal(r->len[1], AGENT_WINDOW);
	r->no_credit = false;
	drive_credit(d, channel, 1, AGENT_WINDOW);
	(void)drive_wait(d, channel);
	assert_int_equal(r->len[1], 190000 * width);
	assert_memory_equal(r->out[1], data + 100000 * width, 190000 * width);
	free(data);
	scratch_remove(&s);
}

static void test_read_proc_and_empty(void **state)
{
	struct drive *d = drive_of(state);
	const struct reply *r;
	struct scratch s;

	r = drive_read(d, "/proc/version");
	assert_false(r->failed);
	assert_true(r->len[1] > 5);
	assert_memory_equal(r->out[1], "Linux", 5);
	r = drive_wait(d, drive_read_start(d, "/proc/version", 0, 5, 0));
	assert_int_equal(r->len[1], 5);
	r = drive_wait(d, drive_read_start(d, "/proc/meminfo", 2, 2, AGENT_READ_LINES));
	assert_memory_equal(r->out[1], "MemFree", 7);
	scratch_make(&s);
	put(scratch_path(&s, "empty"), "", 0);
	r = drive_read(d, s.path);
	assert_false(r->failed);
	assert_int_equal(r->len[1], 0);
	assert_int_equal(r->end.bytes, 0);
	scratch_remove(&s);
}

static void test_read_errors(void **state)
{
	struct drive *d = drive_of(state);
	char deep[5000];
	struct scratch s;
	int fds;

	scratch_make(&s);
	(void)drive_shell(d, "true");
	fds = count_fds(d);
	assert_failed(drive_read(d, "/no/such/file"), AGENT_E_NOT_FOUND);
	assert_failed(drive_read(d, "/etc"), AGENT_E_IS_DIRECTORY);
	assert_failed(drive_read(d, "/"), AGENT_E_IS_DIRECTORY);
	assert_failed(drive_read(d, "/etc/passwd/x"), AGENT_E_NOT_A_DIRECTORY);
	assert_failed(drive_read(d, "/dev/zero"), AGENT_E_INVALID);
	assert_failed(drive_read(d, ""), AGENT_E_INVALID_PATH);
	assert_failed(drive_read(d, "etc/passwd"), AGENT_E_INVALID_PATH);
	assert_failed(drive_read(d, "/etc/../etc/passwd"), AGENT_E_INVALID_PATH);
	assert_failed(drive_read(d, "/etc/.."), AGENT_E_INVALID_PATH);
	assert_failed(drive_read(d, "/etc//passwd"), AGENT_E_INVALID_PATH);
	assert_failed(drive_read(d, "/etc/passwd/"), AGENT_E_INVALID_PATH);
	memset(deep, 'a', sizeof(deep) - 1);
	deep[sizeof(deep) - 1] = '\0';
	deep[0] = '/';
	assert_failed(drive_read(d, deep), AGENT_E_INVALID_PATH);
	deep[300] = '\0';
	assert_failed(drive_read(d, deep), AGENT_E_INVALID_PATH);
	assert_int_equal(mkfifo(scratch_path(&s, "fifo"), 0644), 0);
	assert_failed(drive_read(d, s.path), AGENT_E_INVALID);
	assert_int_equal(symlink("loop", scratch_path(&s, "loop")), 0);
	assert_failed(drive_read(d, s.path), AGENT_E_INVALID_PATH);
	assert_int_equal(symlink("/proc/self/exe", scratch_path(&s, "magic")), 0);
	assert_failed(drive_read(d, s.path), AGENT_E_INVALID_PATH);
	assert_int_equal(count_fds(d), fds);
	scratch_remove(&s);
}

/* Report 15: names are bytes; a colon or invalid UTF-8 in one is nothing special. */
static void test_report_15_names_are_bytes(void **state)
{
	struct drive *d = drive_of(state);
	struct scratch s;

	scratch_make(&s);
	assert_false(
	    drive_write_file(d, scratch_path(&s, "a:b \xff\xfe\n'\"$(x)"), "ok", 2, 0)->failed);
	assert_content(s.path, "ok", 2);
	assert_string_equal((char *)drive_read(d, s.path)->out[1], "ok");
	scratch_remove(&s);
}

static void test_read_can_be_closed(void **state)
{
	struct drive *d = drive_of(state);
	struct scratch s;
	uint8_t *data = calloc(1, 3U << 20);
	uint32_t channel;
	struct reply *r;

	assert_non_null(data);
	scratch_make(&s);
	put(scratch_path(&s, "file"), data, 3U << 20);
	channel = drive_read_start(d, s.path, 0, UINT64_MAX, 0);
	r = drive_reply(d, channel);
	r->no_credit = true;
	while (r->len[1] < AGENT_WINDOW)
		assert_true(drive_pump(d));
	drive_close(d, channel);
	(void)drive_wait(d, channel);
	assert_int_equal(r->end.flags, AGENT_END_KILLED);
	assert_int_equal(r->end.bytes, AGENT_WINDOW);
	free(data);
	scratch_remove(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    GUEST_TEST(test_read_whole_file),
	    GUEST_TEST(test_read_ranges),
	    GUEST_TEST(test_read_lines),
	    GUEST_TEST(test_read_lines_of_a_large_file),
	    GUEST_TEST(test_read_proc_and_empty),
	    GUEST_TEST(test_read_errors),
	    GUEST_TEST(test_report_15_names_are_bytes),
	    GUEST_TEST(test_read_can_be_closed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
