/*
 * The real sbx-guest: what is done to names.
 */
#include "tests/unit/guest/scratch.h"

static struct reply *ask2(
    struct drive *d, uint32_t op, uint32_t flags, uint32_t mode, const char *path, const char *to)
{
	struct agent_path ap = {
	    .op = op,
	    .flags = flags,
	    .mode = mode,
	    .path_len = (uint32_t)strlen(path),
	    .other_len = (uint32_t)strlen(to),
	};
	uint8_t p[sizeof(ap) + 16384];
	uint32_t channel = drive_new_channel(d);

	assert_true(ap.path_len + ap.other_len <= 16384);
	memcpy(p, &ap, sizeof(ap));
	memcpy(p + sizeof(ap), path, ap.path_len);
	memcpy(p + sizeof(ap) + ap.path_len, to, ap.other_len);
	drive_request(d, AGENT_PATH, channel, p, sizeof(ap) + ap.path_len + ap.other_len);
	return drive_wait(d, channel);
}

static struct reply *ask(struct drive *d, uint32_t op, uint32_t flags, const char *path)
{
	return ask2(d, op, flags, 0, path, "");
}

static struct agent_stat stat_of(const struct reply *r)
{
	struct agent_stat as;

	if (r->failed)
		fail_msg("stat: %s", r->text);
	assert_true(r->started_len >= sizeof(as));
	memcpy(&as, r->started_with, sizeof(as));
	assert_int_equal(r->started_len, sizeof(as) + as.link_len);
	return as;
}

static void test_stat(void **state)
{
	struct drive *d = drive_of(state);
	struct scratch s;
	struct agent_stat as;
	char target[320];

	scratch_make(&s);
	put(scratch_path(&s, "file"), "12345", 5);
	(void)snprintf(target, sizeof(target), "%s", s.path);
	assert_int_equal(chmod(s.path, 04751), 0);
	as = stat_of(ask(d, AGENT_PATH_STAT, 0, s.path));
	assert_int_equal(as.size, 5);
	assert_int_equal(as.mode, S_IFREG | 04751);
	assert_int_equal(as.link_len, 0);

	/* A link is itself, until it is asked for what it stands for. */
	assert_int_equal(symlink("file", scratch_path(&s, "link")), 0);
	as = stat_of(ask(d, AGENT_PATH_STAT, 0, s.path));
	assert_true(S_ISLNK(as.mode));
	assert_int_equal(as.link_len, 4);
	as = stat_of(ask(d, AGENT_PATH_STAT, AGENT_PATH_FOLLOW, s.path));
	assert_int_equal(as.mode, S_IFREG | 04751);

	assert_int_equal(symlink("loop", scratch_path(&s, "loop")), 0);
	assert_true(S_ISLNK(stat_of(ask(d, AGENT_PATH_STAT, 0, s.path)).mode));
	assert_failed(ask(d, AGENT_PATH_STAT, AGENT_PATH_FOLLOW, s.path), AGENT_E_INVALID_PATH);

	assert_true(S_ISDIR(stat_of(ask(d, AGENT_PATH_STAT, 0, "/")).mode));
	assert_true(S_ISCHR(stat_of(ask(d, AGENT_PATH_STAT, 0, "/dev/null")).mode));
	assert_true(S_ISREG(stat_of(ask(d, AGENT_PATH_STAT, 0, "/proc/self/status")).mode));
	assert_true(S_ISLNK(stat_of(ask(d, AGENT_PATH_STAT, 0, "/proc/self/exe")).mode));
	/* Where a magic link leads is nobody's business. */
	assert_failed(
	    ask(d, AGENT_PATH_STAT, AGENT_PATH_FOLLOW, "/proc/self/root"), AGENT_E_INVALID_PATH);
	assert_int_equal(mkfifo(scratch_path(&s, "fifo"), 0600), 0);
	assert_true(S_ISFIFO(stat_of(ask(d, AGENT_PATH_STAT, AGENT_PATH_FOLLOW, s.path)).mode));
	assert_failed(ask(d, AGENT_PATH_STAT, 0, scratch_path(&s, "none")), AGENT_E_NOT_FOUND);
	assert_failed(
	    ask(d, AGENT_PATH_STAT, 0, scratch_path(&s, "file/x")), AGENT_E_NOT_A_DIRECTORY);
	scratch_remove(&s);
}

static void test_mkdir(void **state)
{
	struct drive *d = drive_of(state);
	struct scratch s;
	struct stat st;
	const struct reply *r;

	scratch_make(&s);
	r = ask(d, AGENT_PATH_MKDIR, 0, scratch_path(&s, "dir"));
	assert_false(r->failed);
	assert_int_equal(r->end.bytes, 1);
	assert_int_equal(stat(s.path, &st), 0);
	assert_int_equal(st.st_mode, S_IFDIR | 0755);
	assert_failed(ask(d, AGENT_PATH_MKDIR, 0, s.path), AGENT_E_EXISTS);
	r = ask(d, AGENT_PATH_MKDIR, AGENT_PATH_PARENTS, s.path);
	assert_false(r->failed);
	assert_int_equal(r->end.bytes, 0);

	/* The mode is the last one's, and the umask does not change it. */
	assert_failed(ask(d, AGENT_PATH_MKDIR, 0, scratch_path(&s, "a/b/c")), AGENT_E_NOT_FOUND);
	r = ask2(d, AGENT_PATH_MKDIR, AGENT_PATH_PARENTS | AGENT_PATH_MODE, 01777, s.path, "");
	assert_false(r->failed);
	assert_int_equal(r->end.bytes, 3);
	assert_int_equal(stat(s.path, &st), 0);
	assert_int_equal(st.st_mode, S_IFDIR | 01777);
	assert_int_equal(stat(scratch_path(&s, "a/b"), &st), 0);
	assert_int_equal(st.st_mode, S_IFDIR | 0755);

	/* Through a link, and onto one. */
	assert_int_equal(symlink("a", scratch_path(&s, "link")), 0);
	assert_false(
	    ask(d, AGENT_PATH_MKDIR, AGENT_PATH_PARENTS, scratch_path(&s, "link/x/y"))->failed);
	assert_int_equal(stat(scratch_path(&s, "a/x/y"), &st), 0);
	assert_false(
	    ask(d, AGENT_PATH_MKDIR, AGENT_PATH_PARENTS, scratch_path(&s, "link"))->failed);
	assert_int_equal(symlink("nowhere", scratch_path(&s, "dangling")), 0);
	assert_failed(ask(d, AGENT_PATH_MKDIR, AGENT_PATH_PARENTS, s.path), AGENT_E_EXISTS);
	assert_failed(ask(d, AGENT_PATH_MKDIR, AGENT_PATH_PARENTS, scratch_path(&s, "dangling/x")),
	    AGENT_E_NOT_FOUND);

	put(scratch_path(&s, "file"), "", 0);
	assert_failed(ask(d, AGENT_PATH_MKDIR, AGENT_PATH_PARENTS, s.path), AGENT_E_EXISTS);
	assert_failed(ask(d, AGENT_PATH_MKDIR, AGENT_PATH_PARENTS, scratch_path(&s, "file/x")),
	    AGENT_E_NOT_A_DIRECTORY);
	assert_failed(ask(d, AGENT_PATH_MKDIR, 0, "/"), AGENT_E_EXISTS);
	assert_false(ask(d, AGENT_PATH_MKDIR, AGENT_PATH_PARENTS, "/")->failed);
	scratch_remove(&s);
}

static void test_remove(void **state)
{
	struct drive *d = drive_of(state);
	struct scratch s;
	struct stat st;

	scratch_make(&s);
	put(scratch_path(&s, "file"), "", 0);
	assert_int_equal(symlink("file", scratch_path(&s, "link")), 0);
	assert_false(ask(d, AGENT_PATH_REMOVE, 0, s.path)->failed); /* not what it stands for */
	assert_int_equal(stat(scratch_path(&s, "file"), &st), 0);
	assert_false(ask(d, AGENT_PATH_REMOVE, 0, s.path)->failed);
	assert_failed(ask(d, AGENT_PATH_REMOVE, 0, s.path), AGENT_E_NOT_FOUND);

	assert_int_equal(mkdir(scratch_path(&s, "dir"), 0755), 0);
	put(scratch_path(&s, "dir/file"), "", 0);
	assert_failed(ask(d, AGENT_PATH_REMOVE, 0, scratch_path(&s, "dir")), AGENT_E_NOT_EMPTY);
	assert_failed(
	    ask(d, AGENT_PATH_REMOVE, 0, scratch_path(&s, "dir/file/x")), AGENT_E_NOT_A_DIRECTORY);
	assert_false(ask(d, AGENT_PATH_REMOVE, 0, scratch_path(&s, "dir/file"))->failed);
	assert_false(ask(d, AGENT_PATH_REMOVE, 0, scratch_path(&s, "dir"))->failed);
	assert_failed(ask(d, AGENT_PATH_REMOVE, 0, "/"), AGENT_E_BUSY);
	assert_int_equal(scratch_count(&s), 0);
	scratch_remove(&s);
}

static void test_rename(void **state)
{
	struct drive *d = drive_of(state);
	struct scratch s;
	char to[300];

	scratch_make(&s);
	put(scratch_path(&s, "from"), "new", 3);
	(void)snprintf(to, sizeof(to), "%s/to", s.dir);
	assert_false(ask2(d, AGENT_PATH_RENAME, 0, 0, s.path, to)->failed);
	assert_content(to, "new", 3);
	assert_failed(ask2(d, AGENT_PATH_RENAME, 0, 0, s.path, to), AGENT_E_NOT_FOUND);

	/* What is there is only replaced if that was asked for. */
	put(s.path, "newer", 5);
	assert_failed(ask2(d, AGENT_PATH_RENAME, 0, 0, s.path, to), AGENT_E_EXISTS);
	assert_content(to, "new", 3);
	assert_false(ask2(d, AGENT_PATH_RENAME, AGENT_PATH_OVERWRITE, 0, s.path, to)->failed);
	assert_content(to, "newer", 5);

	assert_int_equal(mkdir(scratch_path(&s, "dir"), 0755), 0);
	assert_failed(
	    ask2(d, AGENT_PATH_RENAME, AGENT_PATH_OVERWRITE, 0, to, s.path), AGENT_E_IS_DIRECTORY);
	assert_failed(ask2(d, AGENT_PATH_RENAME, AGENT_PATH_OVERWRITE, 0, s.path, to),
	    AGENT_E_NOT_A_DIRECTORY);
	(void)snprintf(to, sizeof(to), "%s/dir/inside", s.dir);
	assert_failed(ask2(d, AGENT_PATH_RENAME, 0, 0, s.path, to), AGENT_E_INVALID);
	(void)snprintf(to, sizeof(to), "%s/none/x", s.dir);
	assert_failed(ask2(d, AGENT_PATH_RENAME, 0, 0, s.path, to), AGENT_E_NOT_FOUND);
	assert_failed(ask2(d, AGENT_PATH_RENAME, 0, 0, "/", s.path), AGENT_E_BUSY);
	assert_failed(ask2(d, AGENT_PATH_RENAME, AGENT_PATH_OVERWRITE, 0, s.path, "/proc/x"),
	    AGENT_E_CROSS_DEVICE);
	scratch_remove(&s);
}

static void test_paths_are_checked(void **state)
{
	static const char *const bad[] = {
	    "", "relative", "/a/../b", "/a//b", "/a/", "/./a", "/..", "//"};
	struct drive *d = drive_of(state);
	char longest[PATH_MAX + 10];

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		for (uint32_t op = AGENT_PATH_STAT; op < AGENT_PATH_OPS; op++)
			assert_failed(
			    ask2(d, op, 0, 0, bad[i], op == AGENT_PATH_RENAME ? "/x" : ""),
			    AGENT_E_INVALID_PATH);
		assert_failed(ask2(d, AGENT_PATH_RENAME, 0, 0, "/x", bad[i]), AGENT_E_INVALID_PATH);
	}
	memset(longest, 'x', sizeof(longest));
	longest[0] = '/';
	longest[sizeof(longest) - 1] = '\0';
	assert_failed(ask(d, AGENT_PATH_STAT, 0, longest), AGENT_E_INVALID_PATH);
}

/* Any bytes but NUL and slash. */
static void test_names_of_any_bytes(void **state)
{
	struct drive *d = drive_of(state);
	struct scratch s;
	char name[250];
	char moved[300];
	struct stat st;

	for (size_t i = 0; i < sizeof(name) - 1; i++)
		name[i] = (char)(i + 1 == '/' ? ':' : i + 1);
	name[sizeof(name) - 1] = '\0';
	scratch_make(&s);
	assert_false(ask(d, AGENT_PATH_MKDIR, 0, scratch_path(&s, name))->failed);
	assert_int_equal(stat(s.path, &st), 0);
	assert_true(S_ISDIR(stat_of(ask(d, AGENT_PATH_STAT, 0, s.path)).mode));
	(void)snprintf(moved, sizeof(moved), "%s/\xff\n'\"", s.dir);
	assert_false(ask2(d, AGENT_PATH_RENAME, 0, 0, s.path, moved)->failed);
	assert_false(ask(d, AGENT_PATH_REMOVE, 0, moved)->failed);
	assert_int_equal(scratch_count(&s), 0);
	scratch_remove(&s);
}

/* Each of these ends the guest: a worker does not send it. */
static void test_nonsense_breaks_the_rules(void **state)
{
	static const struct agent_path bad[] = {
	    {.op = AGENT_PATH_NONE, .path_len = 2},
	    {.op = AGENT_PATH_OPS, .path_len = 2},
	    {.op = UINT32_MAX, .path_len = 2},
	    {.op = AGENT_PATH_STAT, .path_len = 3},
	    {.op = AGENT_PATH_STAT, .path_len = UINT32_MAX},
	    {.op = AGENT_PATH_STAT, .path_len = 1, .other_len = 1},
	    {.op = AGENT_PATH_STAT, .path_len = 2, .flags = AGENT_PATH_PARENTS},
	    {.op = AGENT_PATH_STAT, .path_len = 2, .reserved = 1},
	    {.op = AGENT_PATH_REMOVE, .path_len = 2, .flags = 1U << 31},
	    {.op = AGENT_PATH_RENAME, .path_len = 2, .other_len = UINT32_MAX},
	};

	(void)state;
	for (size_t i = 0; i <= sizeof(bad) / sizeof(bad[0]); i++) {
		struct drive *d = drive_start(false);
		uint8_t p[sizeof(bad[0]) + 2] = {0};

		if (i == sizeof(bad) / sizeof(bad[0])) {
			drive_request(d, AGENT_PATH, 1, p, sizeof(bad[0]) - 1);
		} else {
			memcpy(p, &bad[i], sizeof(bad[i]));
			memcpy(p + sizeof(bad[i]), "/x", 2);
			drive_request(d, AGENT_PATH, 1, p, sizeof(p));
		}
		assert_int_not_equal(drive_await_end(d), 0);
		drive_free(d);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
	    GUEST_TEST(test_stat),
	    GUEST_TEST(test_mkdir),
	    GUEST_TEST(test_remove),
	    GUEST_TEST(test_rename),
	    GUEST_TEST(test_paths_are_checked),
	    GUEST_TEST(test_names_of_any_bytes),
	    cmocka_unit_test(test_nonsense_breaks_the_rules),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
