/*
 * guest/tree.c on texts and trees that were made up.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guest/tree.h"

static struct tree *new_tree(void)
{
	struct tree *t = calloc(1, sizeof(*t));

	assert_non_null(t);
	t->dir = -1;
	return t;
}

static void test_stat_is_parsed(void **state)
{
	static const struct {
		const char *text;
		int32_t pid;
		int32_t parent;
		char state;
		bool inert;
	} rows[] = {
	    {"17 (sleep) S 4 17 17 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 987654 8 9\n", 17, 4, 'S',
		false},
	    {"1 (a) b (c)) R 0 1 1 0 -1 4 1 2 3 4 5 6 7 8 20 0 1 0 987654 8 9\n", 1, 0, 'R', false},
	    {"9 () Z 1 1 1 0 -1 4 1 2 3 4 5 6 7 8 20 0 1 0 987654", 9, 1, 'Z', true},
	    {"9 (main is dead) Z 1 1 1 0 -1 4 1 2 3 4 5 6 7 8 20 0 5 0 987654", 9, 1, 'Z', false},
	    {"9 (\n) S 5 (x) T 1 1 1 0 -1 4 1 2 3 4 5 6 7 8 20 0 1 0 987654 1", 9, 1, 'T', true},
	    {"9 (x) D 1 1 1 0 -1 4 1 2 3 4 5 6 7 8 -20 0 1 0 987654 1", 9, 1, 'D', false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct tree_entry e = {0};

		assert_int_equal(tree_parse_stat(rows[i].text, strlen(rows[i].text), &e), 0);
		assert_int_equal(e.pid, rows[i].pid);
		assert_int_equal(e.parent, rows[i].parent);
		assert_int_equal(e.state, rows[i].state);
		assert_int_equal(e.inert, rows[i].inert);
		assert_int_equal(e.start, 987654);
		assert_int_equal(e.root, 0);
	}
}

static void test_bad_stat_is_refused(void **state)
{
	static const char good[] = "9 (x) S 1 1 1 0 -1 4 1 2 3 4 5 6 7 8 20 0 1 0 987654";
	static const char *const bad[] = {
	    "",
	    "9",
	    "9 ",
	    "9 (x",
	    ") 9 (x",
	    "9 (x)",
	    "9 (x) ",
	    "x (x) S 1 1 1 0 -1 4 1 2 3 4 5 6 7 8 20 0 1 0 987654 1",
	    "9 (x) SS 1 1 1 0 -1 4 1 2 3 4 5 6 7 8 20 0 1 0 987654 1",
	    "9 (x) S x 1 1 0 -1 4 1 2 3 4 5 6 7 8 20 0 1 0 987654 1",
	    "99999999999 (x) S 1 1 1 0 -1 4 1 2 3 4 5 6 7 8 20 0 1 0 987654 1",
	};
	struct tree_entry e;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(tree_parse_stat(bad[i], strlen(bad[i]), &e), -EBADMSG);
	/* Every cut, in memory that ends there. Within the last number a cut is just another
	 * number. */
	for (size_t n = 0; n < sizeof(good) - 6; n++) {
		char *exact = malloc(n + 1);

		assert_non_null(exact);
		memcpy(exact + 1, good, n);
		assert_int_equal(tree_parse_stat(exact + 1, n, &e), -EBADMSG);
		free(exact);
	}
}

static void add(struct tree *t, int32_t pid, int32_t parent)
{
	tree_add(t, &(struct tree_entry){.pid = pid, .parent = parent, .state = 'S'});
}

static int32_t root_of(const struct tree *t, int32_t pid)
{
	for (uint32_t i = 0; i < t->count; i++)
		if (t->entries[i].pid == pid)
			return t->entries[i].root;
	return -1;
}

static void test_descendants_are_marked(void **state)
{
	struct tree *t = new_tree();

	(void)state;
	add(t, 1, 0);
	add(t, 10, 1); /* a shim */
	add(t, 20, 1); /* another */
	add(t, 11, 10);
	add(t, 12, 11);
	add(t, 21, 20);
	add(t, 5, 12); /* pids wrapped around: children may have lower ones */
	add(t, 4, 5);
	add(t, 3, 4);
	add(t, 30, 1);
	add(t, 31, 999); /* its parent was not seen */
	tree_mark(t, 10);
	tree_mark(t, 20);
	assert_int_equal(root_of(t, 10), 0);
	assert_int_equal(root_of(t, 11), 10);
	assert_int_equal(root_of(t, 12), 10);
	assert_int_equal(root_of(t, 5), 10);
	assert_int_equal(root_of(t, 4), 10);
	assert_int_equal(root_of(t, 3), 10);
	assert_int_equal(root_of(t, 21), 20);
	assert_int_equal(root_of(t, 1), 0);
	assert_int_equal(root_of(t, 20), 0);
	assert_int_equal(root_of(t, 30), 0);
	assert_int_equal(root_of(t, 31), 0);
	free(t);
}

/* A look is not taken at one instant: it may show what never was at once. */
static void test_impossible_trees_end(void **state)
{
	struct tree *t = new_tree();

	(void)state;
	add(t, 2, 3);
	add(t, 3, 2);
	add(t, 4, 4);
	add(t, 5, 2);
	tree_mark(t, 2);
	assert_int_equal(root_of(t, 2), 0);
	assert_int_equal(root_of(t, 3), 2);
	assert_int_equal(root_of(t, 4), 0);
	assert_int_equal(root_of(t, 5), 2);
	tree_mark(t, 4);
	free(t);
}

static void test_entries_are_sorted_and_bounded(void **state)
{
	struct tree *t = new_tree();

	(void)state;
	for (int32_t i = 0; i < 1000; i++)
		add(t, (i * 7919) % 1009 + 1, 1);
	add(t, 500, 77);
	for (uint32_t i = 1; i < t->count; i++)
		assert_true(t->entries[i - 1].pid < t->entries[i].pid);
	for (int32_t i = 0; i < (int32_t)TREE_MAX + 10; i++)
		add(t, i + 2000, 1);
	assert_int_equal(t->count, TREE_MAX);
	free(t);
}

/* Only the process that was seen is hit, not another that has its pid. */
static void test_signal_is_exact(void **state)
{
	struct tree *t = new_tree();
	struct tree_entry e = {0};
	int status;
	pid_t pid = fork();

	(void)state;
	if (pid == 0) {
		pause();
		_exit(0);
	}
	assert_int_equal(tree_begin(t), 0);
	while (tree_read(t, 10) == 1)
		continue;
	for (uint32_t i = 0; i < t->count; i++)
		if (t->entries[i].pid == pid)
			e = t->entries[i];
	assert_int_equal(e.pid, pid);
	assert_int_equal(e.parent, getpid());
	e.start++;
	assert_int_equal(tree_signal(t, &e, SIGKILL), -ESRCH);
	assert_int_equal(waitpid(pid, &status, WNOHANG), 0);
	e.start--;
	assert_int_equal(tree_signal(t, &e, SIGKILL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(WTERMSIG(status), SIGKILL);
	assert_true(tree_signal(t, &e, SIGKILL) < 0);
	tree_end(t);
	assert_int_equal(t->dir, -1);
	free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_stat_is_parsed),
	    cmocka_unit_test(test_bad_stat_is_refused),
	    cmocka_unit_test(test_descendants_are_marked),
	    cmocka_unit_test(test_impossible_trees_end),
	    cmocka_unit_test(test_entries_are_sorted_and_bounded),
	    cmocka_unit_test(test_signal_is_exact),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
