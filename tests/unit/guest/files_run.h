/*
 * files_run: runs the real sbx-files over a tree of the test's own, and takes its records apart.
 * The binary is $SBX_FILES, by default build/sbx-files.
 */
#ifndef SBXD_TESTS_GUEST_FILES_RUN_H
#define SBXD_TESTS_GUEST_FILES_RUN_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "wire/agent.h"
#include "wire/entry.h"

#define RUN_ROWS_MAX 4096
#define RUN_ROW_MAX 1024
#define RUN_ARGS_MAX 16

/* What it said: each record as a line of text. */
struct run {
	int status;
	char why[AGENT_ERROR_TEXT + 1];
	bool done; /* the last record came */
	bool truncated;
	uint64_t count;
	size_t rows_len;
	char rows[RUN_ROWS_MAX][RUN_ROW_MAX];
};

struct tree {
	char dir[40];
	struct run run;
};

static inline int run_take(void *ctx, const struct entry *e)
{
	struct run *r = ctx;
	char *row = r->rows[r->rows_len];
	int n = 0;

	assert_false(r->done);
	assert_true(r->rows_len < RUN_ROWS_MAX);
	switch (e->type) {
	case ENTRY_DONE:
		r->done = true;
		r->truncated = (e->u.done.flags & ENTRY_DONE_TRUNCATED) != 0;
		r->count = e->u.done.count;
		return 0;
	case ENTRY_ITEM:
		n = snprintf(row, RUN_ROW_MAX, "%.*s %o %llu%s%.*s", (int)e->path_len,
		    (const char *)e->path, e->u.item.mode, (unsigned long long)e->u.item.size,
		    e->text_len ? " -> " : "", (int)e->text_len, (const char *)e->text);
		break;
	case ENTRY_PATH:
		n = snprintf(row, RUN_ROW_MAX, "%.*s", (int)e->path_len, (const char *)e->path);
		break;
	case ENTRY_LINE:
		n = snprintf(row, RUN_ROW_MAX, "%.*s:%llu:%.*s", (int)e->path_len,
		    (const char *)e->path, (unsigned long long)e->u.line.number, (int)e->text_len,
		    (const char *)e->text);
		break;
	case ENTRY_PROBLEM:
		n = snprintf(row, RUN_ROW_MAX, "!%.*s %s", (int)e->path_len, (const char *)e->path,
		    agent_code_name(e->u.problem.code));
		break;
	default:
		fail_msg("record %d", (int)e->type);
	}
	assert_true(n >= 0 && n < RUN_ROW_MAX);
	r->rows_len++;
	return 0;
}

static inline void run_child(const char *const *args, int out, int err)
{
	const char *other = getenv("SBX_FILES");
	const char *path = other ? other : "build/sbx-files";
	char *argv[RUN_ARGS_MAX + 2] = {(char *)(uintptr_t) "sbx-files"};
	char *envp[] = {NULL};

	for (size_t i = 0; args[i] && i < RUN_ARGS_MAX; i++)
		argv[i + 1] = (char *)(uintptr_t)args[i];
	if (dup2(out, STDOUT_FILENO) < 0 || dup2(err, STDERR_FILENO) < 0)
		_exit(126);
	(void)execve(path, argv, envp);
	_exit(127);
}

/* Runs it with args (NULL-terminated, a command first). */
static inline const struct run *run_files(struct tree *t, const char *const *args)
{
	static struct entry_reader reader;
	struct run *r = &t->run;
	uint8_t bytes[3000]; /* no whole number of records */
	int out[2];
	int err[2];
	ssize_t n;
	pid_t pid;

	*r = (struct run){.status = -1};
	reader.len = 0;
	reader.steps = 0;
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	assert_int_equal(pipe2(err, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		run_child(args, out[1], err[1]);
	(void)close(out[1]);
	(void)close(err[1]);
	while ((n = read(out[0], bytes, sizeof(bytes))) > 0)
		assert_int_equal(entry_feed(&reader, bytes, (size_t)n, run_take, r), 0);
	n = read(err[0], r->why, sizeof(r->why) - 1);
	assert_true(n >= 0);
	(void)close(out[0]);
	(void)close(err[0]);
	assert_int_equal(waitpid(pid, &r->status, 0), pid);
	assert_true(WIFEXITED(r->status));
	r->status = WEXITSTATUS(r->status);
	assert_int_equal(reader.len, 0);
	if (r->done != (r->status == AGENT_OK))
		fail_msg("status %d, done %d: %s", r->status, r->done, r->why);
	return r;
}

/* The same for a command in the tree: path=, and then what comes after it. */
static inline const struct run *run_in(struct tree *t, const char *command, const char *const *more)
{
	char path[64];
	const char *args[RUN_ARGS_MAX] = {command, path};

	(void)snprintf(path, sizeof(path), "path=%s", t->dir);
	for (size_t i = 0; more[i]; i++) {
		assert_true(i + 3 < RUN_ARGS_MAX);
		args[i + 2] = more[i];
	}
	return run_files(t, args);
}

#define RUN_IN(t, command, ...) run_in(t, command, (const char *const[]){__VA_ARGS__, NULL})

/* As expected: the rows, in their order. */
static inline void assert_rows(const struct run *r, const char *const *rows)
{
	size_t n = 0;

	if (r->status != 0)
		fail_msg("status %d: %s", r->status, r->why);
	for (; rows[n]; n++) {
		if (n >= r->rows_len || strcmp(r->rows[n], rows[n]) != 0)
			fail_msg("row %zu: %s, not %s", n, n < r->rows_len ? r->rows[n] : "none",
			    rows[n]);
	}
	if (n != r->rows_len)
		fail_msg("one row more: %s", r->rows[n]);
}

#define ASSERT_ROWS(r, ...) assert_rows(r, (const char *const[]){__VA_ARGS__, NULL})

static inline const char *tree_path(const struct tree *t, const char *name)
{
	static char path[PATH_MAX];

	(void)snprintf(path, sizeof(path), "%s/%s", t->dir, name);
	return path;
}

static inline void tree_dir(const struct tree *t, const char *name)
{
	assert_int_equal(mkdir(tree_path(t, name), 0755), 0);
}

static inline void tree_file(const struct tree *t, const char *name, const void *bytes, size_t n)
{
	int fd = open(tree_path(t, name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, n), n);
	(void)close(fd);
}

static inline void tree_text(const struct tree *t, const char *name, const char *text)
{
	tree_file(t, name, text, strlen(text));
}

static inline int tree_setup(void **state)
{
	struct tree *t = calloc(1, sizeof(*t));

	assert_non_null(t);
	(void)snprintf(t->dir, sizeof(t->dir), "/tmp/sbx-files-test-XXXXXX");
	assert_non_null(mkdtemp(t->dir));
	*state = t;
	return 0;
}

static inline int tree_teardown(void **state)
{
	struct tree *t = *state;
	char line[100];

	(void)snprintf(line, sizeof(line), "rm -rf %s", t->dir);
	assert_int_equal(system(line), 0);
	free(t);
	return 0;
}

#define TREE_TEST(f) cmocka_unit_test_setup_teardown(f, tree_setup, tree_teardown)

#endif
