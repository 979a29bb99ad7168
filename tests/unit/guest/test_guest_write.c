/*
 * The real sbx-guest: writing files.
 */
#include "tests/unit/guest/scratch.h"

/* Report 14: an upload of any size arrives whole, and only when it is whole does it appear. */
static void test_report_14_write_is_whole_or_nothing(void **state)
{
	struct drive *d = drive_of(state);
	struct scratch s;
	const size_t size = 5U << 20;
	uint8_t *data = malloc(size);
	const struct reply *r;
	struct stat st;
	uint32_t channel;

	assert_non_null(data);
	for (size_t i = 0; i < size; i++)
		data[i] = (uint8_t)(i * 2654435761U >> 9);
	scratch_make(&s);
	channel = drive_write_start(d, scratch_path(&s, "file"), size, 0, 0600);
	drive_feed(d, channel, data, size);
	drive_ping(d);
	assert_int_equal(stat(s.path, &st), -1); /* not before it is complete */
	drive_eof(d, channel);
	r = drive_wait(d, channel);
	assert_false(r->failed);
	assert_int_equal(r->end.bytes, size);
	assert_content(s.path, data, size);
	assert_int_equal(stat(s.path, &st), 0);
	assert_int_equal(st.st_mode, S_IFREG | 0600);
	assert_int_equal(scratch_count(&s), 1);

	/* Fewer bytes than announced: the old content stays. */
	channel = drive_write_start(d, s.path, 100, 0, 0644);
	drive_feed(d, channel, data, 99);
	drive_eof(d, channel);
	assert_failed(drive_wait(d, channel), AGENT_E_SHORT);
	/* More of them. */
	channel = drive_write_start(d, s.path, 100, 0, 0644);
	drive_feed(d, channel, data, 101);
	assert_failed(drive_wait(d, channel), AGENT_E_INVALID);
	/* Cancelled. */
	channel = drive_write_start(d, s.path, 100, 0, 0644);
	drive_feed(d, channel, data, 50);
	drive_close(d, channel);
	r = drive_wait(d, channel);
	assert_int_equal(r->end.flags, AGENT_END_KILLED);
	assert_int_equal(r->end.bytes, 50);
	assert_content(s.path, data, size);
	assert_int_equal(scratch_count(&s), 1);

	/* A size that is not known, and none at all. */
	channel = drive_write_start(d, s.path, UINT64_MAX, 0, 0644);
	drive_feed(d, channel, data, 77);
	drive_eof(d, channel);
	assert_int_equal(drive_wait(d, channel)->end.bytes, 77);
	assert_content(s.path, data, 77);
	assert_false(drive_write_file(d, s.path, "", 0, 0)->failed);
	assert_content(s.path, "", 0);
	free(data);
	scratch_remove(&s);
}

static void test_write_keeps_mode_and_owner(void **state)
{
	struct drive *d = drive_of(state);
	struct scratch s;
	struct stat st;
	uint32_t channel;

	scratch_make(&s);
	put(scratch_path(&s, "file"), "old", 3);
	assert_int_equal(chown(s.path, 12, 13), 0);
	assert_int_equal(chmod(s.path, 0751), 0);
	assert_false(drive_write_file(d, s.path, "new!", 4, 0)->failed);
	assert_content(s.path, "new!", 4);
	assert_int_equal(stat(s.path, &st), 0);
	assert_int_equal(st.st_mode, S_IFREG | 0751);
	assert_int_equal(st.st_uid, 12);
	assert_int_equal(st.st_gid, 13);
	channel = drive_write_start(d, s.path, 1, AGENT_WRITE_MODE, 0604);
	drive_feed(d, channel, "x", 1);
	drive_eof(d, channel);
	assert_false(drive_wait(d, channel)->failed);
	assert_int_equal(stat(s.path, &st), 0);
	assert_int_equal(st.st_mode, S_IFREG | 0604);
	scratch_remove(&s);
}

static void test_write_appends(void **state)
{
	struct drive *d = drive_of(state);
	struct scratch s;
	uint32_t channel;

	scratch_make(&s);
	assert_false(
	    drive_write_file(d, scratch_path(&s, "log"), "one\n", 4, AGENT_WRITE_APPEND)->failed);
	assert_false(drive_write_file(d, s.path, "two\n", 4, AGENT_WRITE_APPEND)->failed);
	assert_content(s.path, "one\ntwo\n", 8);
	/* A cut append leaves nothing. */
	channel = drive_write_start(d, s.path, 100, AGENT_WRITE_APPEND, 0644);
	drive_feed(d, channel, "three\n", 6);
	drive_ping(d);
	assert_content(s.path, "one\ntwo\nthree\n", 14);
	drive_close(d, channel);
	(void)drive_wait(d, channel);
	assert_content(s.path, "one\ntwo\n", 8);
	/* Unless somebody else has appended meanwhile. */
	channel = drive_write_start(d, s.path, 100, AGENT_WRITE_APPEND, 0644);
	drive_feed(d, channel, "three\n", 6);
	drive_ping(d);
	assert_int_equal(drive_shell(d, "true")->end.exit_code, 0);
	{
		int fd = open(s.path, O_WRONLY | O_APPEND | O_CLOEXEC);

		assert_int_equal(write(fd, "other\n", 6), 6);
		close(fd);
	}
	drive_eof(d, channel);
	assert_failed(drive_wait(d, channel), AGENT_E_SHORT);
	assert_content(s.path, "one\ntwo\nthree\nother\n", 20);
	scratch_remove(&s);
}

/* Report 13: a link is followed within the box, and it is its target that is replaced. */
static void test_report_13_write_through_links(void **state)
{
	struct drive *d = drive_of(state);
	struct scratch s;
	char target[200];
	struct stat st;

	scratch_make(&s);
	assert_int_equal(mkdir(scratch_path(&s, "sub"), 0755), 0);
	put(scratch_path(&s, "sub/real"), "old", 3);
	assert_int_equal(chmod(s.path, 0640), 0);
	assert_int_equal(symlink("sub/real", scratch_path(&s, "relative")), 0);
	assert_int_equal(symlink("../relative", scratch_path(&s, "sub/twice")), 0);
	(void)snprintf(target, sizeof(target), "%s/sub/twice", s.dir);
	assert_int_equal(symlink(target, scratch_path(&s, "absolute")), 0);
	assert_false(drive_write_file(d, scratch_path(&s, "absolute"), "new", 3, 0)->failed);
	assert_int_equal(lstat(s.path, &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	assert_content(scratch_path(&s, "sub/real"), "new", 3);
	assert_int_equal(lstat(s.path, &st), 0);
	assert_int_equal(st.st_mode, S_IFREG | 0640);
	/* A dangling one makes the file it names. */
	assert_int_equal(symlink("sub/fresh", scratch_path(&s, "dangling")), 0);
	assert_false(drive_write_file(d, s.path, "fresh", 5, 0)->failed);
	assert_content(scratch_path(&s, "sub/fresh"), "fresh", 5);
	assert_int_equal(symlink("loop", scratch_path(&s, "loop")), 0);
	assert_failed(drive_write_file(d, s.path, "x", 1, 0), AGENT_E_INVALID_PATH);
	assert_int_equal(symlink("nowhere/file", scratch_path(&s, "lost")), 0);
	assert_failed(drive_write_file(d, s.path, "x", 1, 0), AGENT_E_NOT_FOUND);
	assert_int_equal(symlink(".", scratch_path(&s, "dot")), 0);
	assert_failed(drive_write_file(d, s.path, "x", 1, 0), AGENT_E_IS_DIRECTORY);
	scratch_remove(&s);
}

static void test_write_errors(void **state)
{
	struct drive *d = drive_of(state);
	struct scratch s;
	int fds;

	scratch_make(&s);
	(void)drive_shell(d, "true");
	fds = count_fds(d);
	assert_failed(
	    drive_write_file(d, scratch_path(&s, "no/file"), "x", 1, 0), AGENT_E_NOT_FOUND);
	assert_failed(drive_write_file(d, s.dir, "x", 1, 0), AGENT_E_IS_DIRECTORY);
	assert_failed(drive_write_file(d, s.dir, "x", 1, AGENT_WRITE_APPEND), AGENT_E_IS_DIRECTORY);
	assert_failed(drive_write_file(d, "/", "x", 1, 0), AGENT_E_IS_DIRECTORY);
	assert_failed(drive_write_file(d, "/etc/passwd/x", "x", 1, 0), AGENT_E_NOT_A_DIRECTORY);
	assert_failed(drive_write_file(d, "/tmp/../x", "x", 1, 0), AGENT_E_INVALID_PATH);
	assert_failed(drive_write_file(d, "/dev/null", "x", 1, 0), AGENT_E_INVALID);
	assert_int_equal(mkfifo(scratch_path(&s, "fifo"), 0644), 0);
	assert_failed(drive_write_file(d, s.path, "x", 1, 0), AGENT_E_INVALID);
	assert_failed(drive_write_file(d, s.path, "x", 1, AGENT_WRITE_APPEND), AGENT_E_INVALID);
	/* The guest's own memory and settings are no files to write. */
	assert_failed(
	    drive_write_file(d, "/proc/self/comm", "x", 1, AGENT_WRITE_APPEND), AGENT_E_INVALID);
	assert_true(drive_write_file(d, "/proc/self/comm", "x", 1, 0)->failed);
	assert_int_equal(count_fds(d), fds);
	assert_int_equal(scratch_count(&s), 1);
	scratch_remove(&s);
}

static void test_write_without_space(void **state)
{
	struct drive *d = drive_of(state);
	struct scratch s;
	const size_t size = 2U << 20;
	uint8_t *data = calloc(1, size);
	const struct reply *r;

	assert_non_null(data);
	if (geteuid() != 0)
		skip(); /* mounts */
	scratch_make(&s);
	/* The guest sees it through /proc/PID/root only if it is mounted in its namespace. */
	{
		char line[200];

		(void)snprintf(line, sizeof(line), "mount -t tmpfs -o size=1m none %s", s.dir);
		assert_int_equal(drive_shell(d, line)->end.exit_code, 0);
	}
	r = drive_write_file(d, scratch_path(&s, "file"), "old", 3, 0);
	assert_false(r->failed);
	assert_failed(drive_write_file(d, s.path, data, size, 0), AGENT_E_NO_SPACE);
	assert_failed(
	    drive_write_file(d, s.path, data, size, AGENT_WRITE_APPEND), AGENT_E_NO_SPACE);
	/* Old content kept, nothing left: there is room again. */
	assert_string_equal((char *)drive_read(d, s.path)->out[1], "old");
	assert_false(drive_write_file(d, scratch_path(&s, "other"), data, 500000, 0)->failed);
	{
		char line[200];

		(void)snprintf(line, sizeof(line), "ls -A %s | wc -l; umount %s", s.dir, s.dir);
		r = drive_shell(d, line);
		assert_int_equal(r->end.exit_code, 0);
		assert_string_equal((char *)r->out[1], "2\n");
	}
	free(data);
	scratch_remove(&s);
}

static void test_write_over_a_running_program(void **state)
{
	struct drive *d = drive_of(state);
	struct scratch s;
	const char *argv[] = {s.path, "1000", NULL};
	char line[400];
	uint32_t channel;

	scratch_make(&s);
	(void)snprintf(line, sizeof(line), "cp $(command -v sleep) %s/program", s.dir);
	assert_int_equal(drive_shell(d, line)->end.exit_code, 0);
	(void)scratch_path(&s, "program");
	channel = drive_exec(d, &(struct exec_spec){.argv = argv, .flags = AGENT_EXEC_NO_STDIN});
	while (!drive_reply(d, channel)->started)
		assert_true(drive_pump(d));
	assert_false(drive_write_file(d, s.path, "new", 3, 0)->failed);
	assert_content(s.path, "new", 3);
	drive_close(d, channel);
	(void)drive_wait(d, channel);
	scratch_remove(&s);
}

/* The worker goes in the middle of a write: no temporary name is left. */
static void test_write_cut_by_the_end(void **state)
{
	struct drive *d = drive_of(state);
	struct scratch s;
	uint32_t channel;

	scratch_make(&s);
	put(scratch_path(&s, "file"), "old", 3);
	channel = drive_write_start(d, s.path, 100, 0, 0644);
	drive_feed(d, channel, "new", 3);
	drive_ping(d);
	assert_int_equal(scratch_count(&s), 2);
	(void)shutdown(d->fd, SHUT_RDWR);
	assert_int_equal(drive_await_end(d), 0);
	assert_int_equal(scratch_count(&s), 1);
	assert_content(s.path, "old", 3);
	scratch_remove(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    GUEST_TEST(test_report_14_write_is_whole_or_nothing),
	    GUEST_TEST(test_write_keeps_mode_and_owner),
	    GUEST_TEST(test_write_appends),
	    GUEST_TEST(test_report_13_write_through_links),
	    GUEST_TEST(test_write_errors),
	    GUEST_TEST(test_write_without_space),
	    GUEST_TEST(test_write_over_a_running_program),
	    GUEST_TEST(test_write_cut_by_the_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
