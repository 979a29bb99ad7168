/* The real sbx-files: listing, searching, removing. */
#include "tests/unit/guest/files_run.h"

#include <signal.h>

static void test_list(void **state)
{
	struct tree *t = *state;

	tree_text(t, "file", "12345");
	tree_dir(t, "dir");
	tree_text(t, "dir/inner", "");
	tree_dir(t, "dir/deep");
	tree_text(t, "dir/deep/x.log", "");
	tree_dir(t, "node_modules"); /* a search passes it over, a list does not */
	assert_int_equal(symlink("dir", tree_path(t, "link")), 0);
	assert_int_equal(chmod(tree_path(t, "dir"), 01750), 0);

	ASSERT_ROWS(RUN_IN(t, "glob", "pattern=*"), "dir/inner", "file", "link");
	assert_int_equal(RUN_IN(t, "list", "depth=1")->rows_len, 4);
	assert_non_null(strstr(t->run.rows[0], "dir 41750 "));
	assert_string_equal(t->run.rows[1], "file 100644 5");
	assert_string_equal(t->run.rows[2], "link 120777 3 -> dir");
	assert_false(t->run.truncated);
	assert_int_equal(RUN_IN(t, "list", "depth=2")->rows_len, 6);
	assert_int_equal(RUN_IN(t, "list", "depth=3")->rows_len, 7);
	assert_string_equal(t->run.rows[2], "dir/deep/x.log 100644 0");
	assert_int_equal(RUN_IN(t, "list", "depth=3", "max=7")->rows_len, 7);
	assert_false(t->run.truncated);
	assert_int_equal(RUN_IN(t, "list", "depth=3", "max=6")->rows_len, 6);
	assert_true(t->run.truncated);
	assert_int_equal(RUN_IN(t, "list", "max=0")->rows_len, 0);
	assert_true(t->run.truncated);
}

/* The root may be a link, what is below it not. */
static void test_root_that_is_a_link(void **state)
{
	struct tree *t = *state;
	char path[64];
	const char *const args[] = {"glob", path, "pattern=*", NULL};

	tree_dir(t, "dir");
	tree_text(t, "dir/file", "");
	assert_int_equal(symlink("dir", tree_path(t, "link")), 0);
	(void)snprintf(path, sizeof(path), "path=%s/link", t->dir);
	ASSERT_ROWS(run_files(t, args), "file");
}

static void test_errors(void **state)
{
	static const struct {
		const char *args[5];
		int status;
		const char *says;
	} rows[] = {
	    {{"list", "path=/no/such"}, AGENT_E_NOT_FOUND, "/no/such"},
	    {{"list", "path=/etc/passwd"}, AGENT_E_NOT_A_DIRECTORY, "/etc/passwd"},
	    {{"list", "path=/etc/passwd/x"}, AGENT_E_NOT_A_DIRECTORY, "/etc/passwd"},
	    {{"list", "path=/dev/null"}, AGENT_E_NOT_A_DIRECTORY, "/dev/null"},
	    {{"list", "path=/proc/self/root"}, AGENT_E_INVALID_PATH, "/proc/self/root"},
	    {{"list", "path=etc"}, AGENT_E_INVALID_PATH, "etc"},
	    {{"list", "path=/etc/../etc"}, AGENT_E_INVALID_PATH, ".."},
	    {{"list"}, AGENT_E_INVALID_PATH, ""},
	    {{"list", "path=/etc", "depth=x"}, AGENT_E_INVALID, "depth=x"},
	    {{"list", "path=/etc", "depth"}, AGENT_E_INVALID, "depth"},
	    {{"list", "path=/etc", "other=1"}, AGENT_E_INVALID, "other=1"},
	    {{"glob", "path=/no/such", "pattern=*"}, AGENT_E_NOT_FOUND, "/no/such"},
	    {{"glob", "path=/etc/passwd", "pattern=*"}, AGENT_E_NOT_A_DIRECTORY, "/etc/passwd"},
	    {{"glob", "path=/etc", "pattern="}, AGENT_E_INVALID_PATTERN, "empty"},
	    {{"glob", "path=/etc", "pattern=/a"}, AGENT_E_INVALID_PATTERN, "relative"},
	    {{"glob", "path=/etc", "dirs=2"}, AGENT_E_INVALID, "dirs=2"},
	    {{"grep", "path=/no/such", "pattern=a"}, AGENT_E_NOT_FOUND, "/no/such"},
	    {{"grep", "path=/etc/passwd", "pattern=a"}, AGENT_E_NOT_A_DIRECTORY, "/etc/passwd"},
	    {{"grep", "path=/etc", "pattern=a("}, AGENT_E_INVALID_PATTERN, "at offset 2"},
	    {{"grep", "path=/etc", "pattern=a", "glob=../a"}, AGENT_E_INVALID_PATTERN, "glob"},
	    {{"remove", "path=/no/such"}, AGENT_E_NOT_FOUND, "/no/such"},
	    {{"remove", "path=/"}, AGENT_E_BUSY, "/"},
	    {{"remove", "path="}, AGENT_E_INVALID_PATH, ""},
	    {{"version", "path=/"}, AGENT_E_INVALID, "path=/"},
	    {{""}, AGENT_E_INVALID, "no such command"},
	};
	struct tree *t = *state;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct run *r = run_files(t, rows[i].args);

		if (r->status != rows[i].status || !strstr(r->why, rows[i].says))
			fail_msg("row %zu: %d: %s", i, r->status, r->why);
		assert_int_equal(r->rows_len, 0);
	}
}

/* The cap applies to what is told; whether there is more is looked for. */
static void test_truncated(void **state)
{
	struct tree *t = *state;

	tree_text(t, "a", "x\nx\n");
	tree_text(t, "b.log", "x\n");
	tree_text(t, "c", "y\n");
	assert_int_equal(RUN_IN(t, "grep", "pattern=x", "max=2")->rows_len, 2);
	assert_false(t->run.truncated);
	assert_int_equal(RUN_IN(t, "grep", "pattern=x", "max=1")->rows_len, 1);
	assert_true(t->run.truncated);
	assert_int_equal(RUN_IN(t, "glob", "pattern=*", "max=2")->rows_len, 2);
	assert_false(t->run.truncated);
	assert_int_equal(RUN_IN(t, "glob", "pattern=*", "max=1")->rows_len, 1);
	assert_true(t->run.truncated);
}

static void test_grep_passes_over(void **state)
{
	enum { LARGEST = 1000000 };
	struct tree *t = *state;
	char *bytes = malloc(LARGEST + 1);
	char line[2100];

	assert_non_null(bytes);
	memset(bytes, '\n', LARGEST + 1);
	memcpy(bytes, "found", 5);
	tree_file(t, "largest", bytes, LARGEST);
	tree_file(t, "larger", bytes, LARGEST + 1);
	bytes[8191] = '\0';
	tree_file(t, "nul-8191", bytes, 9000);
	bytes[8191] = '\n';
	bytes[8192] = '\0';
	tree_file(t, "nul-8192", bytes, 9000);
	free(bytes);
	tree_text(t, "text", "found\n");
	assert_int_equal(symlink("text", tree_path(t, "link")), 0);
	assert_int_equal(mkfifo(tree_path(t, "fifo"), 0600), 0);
	tree_text(t, "found", "only its name\n");
	memset(line, 'x', sizeof(line));
	memcpy(line, "found", 5);
	line[2000] = '\n';
	tree_file(t, "line-2000", line, 2001);
	line[2000] = 'x';
	line[2001] = '\n';
	tree_file(t, "line-2001", line, 2002);

	assert_int_equal(RUN_IN(t, "grep", "pattern=found")->rows_len, 4);
	assert_string_equal(t->run.rows[0], "largest:1:found");
	assert_memory_equal(t->run.rows[1], "line-2000:1:foundxxx", 20);
	assert_int_equal(strlen(t->run.rows[1]), strlen("line-2000:1:") + 200);
	assert_string_equal(t->run.rows[2], "nul-8192:1:found");
	assert_string_equal(t->run.rows[3], "text:1:found");
	assert_int_equal(t->run.count, 0); /* no problems */
}

static void test_grep_lines(void **state)
{
	struct tree *t = *state;

	tree_text(t, "crlf", "one\r\ntwo\r\n\r\nlast\r");
	ASSERT_ROWS(RUN_IN(t, "grep", "pattern=o$"), "crlf:2:two");
	ASSERT_ROWS(RUN_IN(t, "grep", "pattern=^$"), "crlf:3:");
	ASSERT_ROWS(RUN_IN(t, "grep", "pattern=T$"), "crlf:4:last");
	/* No match goes over a line's end. */
	ASSERT_ROWS(RUN_IN(t, "grep", "pattern=one\\s+two"), NULL);
	ASSERT_ROWS(RUN_IN(t, "grep", "pattern=\\Atwo\\z"), "crlf:2:two");
	tree_text(t, "empty", "");
	tree_text(t, "newline", "\n");
	ASSERT_ROWS(RUN_IN(t, "grep", "pattern=^$", "glob=[en]*"), "newline:1:");
}

static void test_grep_what_is_no_text(void **state)
{
	struct tree *t = *state;

	tree_file(t, "latin", "na\xefve\n", 6);
	ASSERT_ROWS(RUN_IN(t, "grep", "pattern=na.ve"), "latin:1:na\xef\xbf\xbdve");
	ASSERT_ROWS(RUN_IN(t, "grep", "pattern=\xef\xbf\xbd"), "latin:1:na\xef\xbf\xbdve");
	ASSERT_ROWS(RUN_IN(t, "grep", "pattern=\xef\xbf\xbd", "literal=1", "case=1"),
	    "latin:1:na\xef\xbf\xbdve");
}

/* A colon ends no path, a newline no name, and bytes that are no text come through. */
static void test_names_of_any_bytes(void **state)
{
	static const char *const names[] = {
	    "a:1:b", "line\nbreak", "quote'\"", "with space", "\xc3\xaf", "\xff\xfe"};
	struct tree *t = *state;
	char row[64];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		tree_text(t, names[i], "needle\n");
	assert_rows(RUN_IN(t, "glob", "pattern=*"),
	    (const char *const[]){
		"a:1:b", "line\nbreak", "quote'\"", "with space", "\xc3\xaf", "\xff\xfe", NULL});
	assert_int_equal(RUN_IN(t, "grep", "pattern=needle")->rows_len, 6);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		(void)snprintf(row, sizeof(row), "%s:1:needle", names[i]);
		assert_string_equal(t->run.rows[i], row);
	}
	ASSERT_ROWS(RUN_IN(t, "glob", "pattern=\xff*"), "\xff\xfe");
}

/* It stops and says where, rather than that there is nothing. */
static void test_grep_gives_up(void **state)
{
	struct tree *t = *state;
	char line[1100];

	memset(line, 'a', sizeof(line));
	memcpy(line + sizeof(line) - 3, "zz\n", 3);
	tree_text(t, "before", "zzz\n");
	tree_file(t, "line", line, sizeof(line));
	assert_int_equal(
	    RUN_IN(t, "grep", "pattern=(a+)+zzz|^zzz")->status, AGENT_E_INVALID_PATTERN);
	assert_non_null(strstr(t->run.why, "line 1 of line"));
}

/* As nobody, who may not read everything. */
static void test_unreadable_is_told(void **state)
{
	struct tree *t = *state;

	tree_dir(t, "closed");
	tree_text(t, "closed/file", "needle\n");
	tree_text(t, "open", "needle\n");
	tree_text(t, "secret", "needle\n");
	assert_int_equal(chmod(tree_path(t, "closed"), 0700), 0);
	assert_int_equal(chmod(tree_path(t, "secret"), 0600), 0);
	assert_int_equal(chmod(t->dir, 0755), 0);
	if (geteuid() != 0)
		skip();
	assert_int_equal(setresuid(65534, 65534, 0), 0);
	(void)RUN_IN(t, "grep", "pattern=needle");
	assert_int_equal(setresuid(0, 0, 0), 0);
	ASSERT_ROWS(
	    &t->run, "!closed permission_denied", "open:1:needle", "!secret permission_denied");
	assert_int_equal(t->run.count, 2);
	assert_false(t->run.truncated);
}

static void test_problems_are_counted(void **state)
{
	enum { CLOSED = ENTRY_PROBLEMS_MAX + 20 };
	struct tree *t = *state;
	char name[16];

	for (int i = 0; i < CLOSED; i++) {
		(void)snprintf(name, sizeof(name), "%d", i);
		tree_dir(t, name);
		assert_int_equal(chmod(tree_path(t, name), 0), 0);
	}
	assert_int_equal(chmod(t->dir, 0755), 0);
	if (geteuid() != 0)
		skip();
	assert_int_equal(setresuid(65534, 65534, 0), 0);
	(void)RUN_IN(t, "glob", "pattern=*");
	assert_int_equal(setresuid(0, 0, 0), 0);
	assert_int_equal(t->run.rows_len, ENTRY_PROBLEMS_MAX);
	assert_int_equal(t->run.count, CLOSED);
}

static void test_remove(void **state)
{
	struct tree *t = *state;
	char keep[64];
	char path[64];
	struct stat st;

	(void)snprintf(keep, sizeof(keep), "%s-kept", t->dir);
	assert_int_equal(mkdir(keep, 0755), 0);
	tree_dir(t, "a");
	tree_dir(t, "a/b");
	tree_text(t, "a/b/file", "");
	tree_text(t, "a/\xff\n:", "");
	assert_int_equal(symlink(keep, tree_path(t, "a/out")), 0);
	assert_int_equal(symlink("..", tree_path(t, "a/b/up")), 0);
	assert_int_equal(mkfifo(tree_path(t, "a/fifo"), 0600), 0);
	tree_text(t, "node_modules", "");
	(void)snprintf(path, sizeof(path), "path=%s", t->dir);
	assert_int_equal(
	    run_files(t, (const char *const[]){"remove", path, NULL})->status, AGENT_OK);
	assert_int_equal(t->run.count, 9);
	assert_int_equal(lstat(t->dir, &st), -1);
	assert_int_equal(rmdir(keep), 0); /* is still there */
	assert_int_equal(
	    run_files(t, (const char *const[]){"remove", path, NULL})->status, AGENT_E_NOT_FOUND);
}

/* A link goes, not what it stands for. */
static void test_remove_link(void **state)
{
	struct tree *t = *state;
	char path[64];
	struct stat st;

	tree_dir(t, "dir");
	tree_text(t, "dir/file", "");
	assert_int_equal(symlink("dir", tree_path(t, "link")), 0);
	(void)snprintf(path, sizeof(path), "path=%s/link", t->dir);
	assert_int_equal(
	    run_files(t, (const char *const[]){"remove", path, NULL})->status, AGENT_OK);
	assert_int_equal(t->run.count, 1);
	assert_int_equal(lstat(tree_path(t, "link"), &st), -1);
	assert_int_equal(lstat(tree_path(t, "dir/file"), &st), 0);
}

/* The rest goes, and what did not is named. */
static void test_remove_what_is_not_ours(void **state)
{
	struct tree *t = *state;
	char path[64];
	struct stat st;

	tree_dir(t, "dir");
	tree_dir(t, "dir/closed");
	tree_text(t, "dir/closed/file", "");
	tree_text(t, "dir/a", "");
	tree_text(t, "dir/z", "");
	if (geteuid() != 0)
		skip();
	assert_int_equal(chmod(t->dir, 0777), 0);
	assert_int_equal(chmod(tree_path(t, "dir"), 0777), 0);
	(void)snprintf(path, sizeof(path), "path=%s/dir", t->dir);
	assert_int_equal(setresuid(65534, 65534, 0), 0);
	(void)run_files(t, (const char *const[]){"remove", path, NULL});
	assert_int_equal(setresuid(0, 0, 0), 0);
	assert_int_equal(t->run.status, AGENT_E_PERMISSION);
	assert_non_null(strstr(t->run.why, "/dir/closed/file: "));
	assert_int_equal(lstat(tree_path(t, "dir/closed/file"), &st), 0);
	assert_int_equal(lstat(tree_path(t, "dir/a"), &st), -1);
	assert_int_equal(lstat(tree_path(t, "dir/z"), &st), -1);
}

/* Nobody reads its answer any more: it ends. */
static void test_reader_is_gone(void **state)
{
	struct tree *t = *state;
	int out[2];
	int status;
	pid_t pid;
	char path[64];

	for (int i = 0; i < 2000; i++) {
		char name[64];

		(void)snprintf(name, sizeof(name), "a-name-long-enough-to-fill-a-buffer-%d", i);
		assert_int_equal(symlink("x", tree_path(t, name)), 0);
	}
	(void)snprintf(path, sizeof(path), "path=%s", t->dir);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	(void)close(out[0]);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		run_child((const char *const[]){"list", path, NULL}, out[1], STDERR_FILENO);
	(void)close(out[1]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGPIPE);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
	    TREE_TEST(test_list),
	    TREE_TEST(test_root_that_is_a_link),
	    TREE_TEST(test_errors),
	    TREE_TEST(test_truncated),
	    TREE_TEST(test_grep_passes_over),
	    TREE_TEST(test_grep_lines),
	    TREE_TEST(test_grep_what_is_no_text),
	    TREE_TEST(test_names_of_any_bytes),
	    TREE_TEST(test_grep_gives_up),
	    TREE_TEST(test_unreadable_is_told),
	    TREE_TEST(test_problems_are_counted),
	    TREE_TEST(test_remove),
	    TREE_TEST(test_remove_link),
	    TREE_TEST(test_remove_what_is_not_ours),
	    TREE_TEST(test_reader_is_gone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
