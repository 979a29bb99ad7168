/* walk: trees that are deep, wide, closed, in a circle, or change while they are walked. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "guest/files/walk.h"

#define NOBODY 65534
#define SEEN_MAX (1U << 20)

/* What a walk came by: "path\n" for each entry, "<path\n" on leaving, "!path errno\n". */
struct trip {
	char dir[40];
	int root; /* of the tree */
	size_t entries;
	size_t fds; /* most that were open at once */
	size_t deepest;
	const char *skip;
	const char *stop;
	void (*at_each)(struct trip *t, const struct walk_item *item);
	size_t len;
	char seen[SEEN_MAX];
};

static size_t count_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	size_t n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	(void)closedir(d);
	return n;
}

static void note(struct trip *t, const char *mark, const char *path, size_t len)
{
	int n =
	    snprintf(t->seen + t->len, sizeof(t->seen) - t->len, "%s%.*s\n", mark, (int)len, path);

	assert_true(n > 0 && (size_t)n < sizeof(t->seen) - t->len);
	t->len += (size_t)n;
}

static enum walk_verdict on_entry(void *ctx, const struct walk_item *item)
{
	struct trip *t = ctx;
	size_t fds = count_fds();

	t->entries++;
	t->fds = fds > t->fds ? fds : t->fds;
	t->deepest = item->depth > t->deepest ? item->depth : t->deepest;
	assert_int_equal(strlen(item->path), item->path_len);
	assert_string_equal(item->path + item->path_len - item->name_len, item->name);
	note(t, "", item->path, item->path_len);
	if (t->at_each)
		t->at_each(t, item);
	if (t->stop && strcmp(item->path, t->stop) == 0)
		return WALK_STOP;
	return t->skip && strcmp(item->name, t->skip) == 0 ? WALK_SKIP : WALK_ON;
}

static void on_left(void *ctx, const struct walk_item *item)
{
	assert_int_equal(faccessat(item->dir, item->name, F_OK, AT_SYMLINK_NOFOLLOW), 0);
	note(ctx, "<", item->path, item->path_len);
}

static void on_problem(void *ctx, const char *path, size_t len, int err)
{
	char mark[32];

	(void)snprintf(mark, sizeof(mark), "!%d ", err);
	note(ctx, mark, path, len);
}

static const struct walk_ops ops = {
    .entry = on_entry,
    .left = on_left,
    .problem = on_problem,
    .sorted = true,
    .deepest = SIZE_MAX,
};

static void walk_with(struct trip *t, const struct walk_ops *how)
{
	size_t fds = count_fds();
	int fd = openat(t->root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	assert_true(fd >= 0);
	t->len = t->entries = t->fds = t->deepest = 0;
	t->seen[0] = '\0';
	assert_int_equal(walk_tree(fd, how, t), 0);
	assert_int_equal(count_fds(), fds);
}

static void assert_saw(struct trip *t, const char *what)
{
	walk_with(t, &ops);
	assert_string_equal(t->seen, what);
}

static int setup(void **state)
{
	struct trip *t = calloc(1, sizeof(*t));

	assert_non_null(t);
	(void)snprintf(t->dir, sizeof(t->dir), "/tmp/sbx-walk-test-XXXXXX");
	assert_non_null(mkdtemp(t->dir));
	assert_int_equal(chmod(t->dir, 0755), 0);
	t->root = open(t->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(t->root >= 0);
	*state = t;
	return 0;
}

static int teardown(void **state)
{
	struct trip *t = *state;
	char line[100];

	(void)snprintf(line, sizeof(line), "rm -rf %s", t->dir);
	assert_int_equal(system(line), 0);
	(void)close(t->root);
	free(t);
	return 0;
}

static void make_dir(const struct trip *t, const char *path)
{
	assert_int_equal(mkdirat(t->root, path, 0755), 0);
}

static void make_file(const struct trip *t, const char *path)
{
	int fd = openat(t->root, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	(void)close(fd);
}

static void test_order(void **state)
{
	struct trip *t = *state;

	assert_saw(t, "");
	make_dir(t, "b");
	make_file(t, "b/z");
	make_file(t, "b/a");
	make_dir(t, "b/empty");
	make_file(t, "b.txt");
	make_file(t, "a:\n\"'");
	make_file(t, "\xff");
	make_file(t, ".hidden");
	assert_int_equal(mkfifoat(t->root, "fifo", 0600), 0);
	assert_saw(t, ".hidden\na:\n\"'\nb\nb/a\nb/empty\n<b/empty\nb/z\n<b\nb.txt\nfifo\n\xff\n");
	t->skip = "b";
	assert_saw(t, ".hidden\na:\n\"'\nb\nb.txt\nfifo\n\xff\n");
	t->skip = NULL;
	t->stop = "b/a";
	assert_saw(t, ".hidden\na:\n\"'\nb\nb/a\n");
}

/* Neither to directories nor in circles. */
static size_t steps;

static void count_step(void)
{
	steps++;
}

/* Each name is a step when it is read and when it is looked at: a directory of any size, or a tree
 * of any, gives signs of life all the time. */
static void test_steps(void **state)
{
	struct trip *t = *state;
	struct walk_ops stepping = ops;

	stepping.step = count_step;
	steps = 0;
	assert_int_equal(mkdirat(t->root, "d", 0700), 0);
	for (int i = 0; i < 10; i++) {
		char name[16];

		(void)snprintf(name, sizeof(name), "d/%d", i);
		assert_int_equal(mknodat(t->root, name, S_IFREG | 0600, 0), 0);
	}
	walk_with(t, &stepping);
	assert_int_equal(t->entries, 11);
	assert_true(steps >= 2 * t->entries);
}

static void test_links_are_not_followed(void **state)
{
	struct trip *t = *state;

	make_dir(t, "dir");
	make_file(t, "dir/file");
	assert_int_equal(symlinkat("dir", t->root, "to-dir"), 0);
	assert_int_equal(symlinkat("..", t->root, "dir/up"), 0);
	assert_int_equal(symlinkat("loop", t->root, "loop"), 0);
	assert_int_equal(symlinkat("/", t->root, "root"), 0);
	assert_saw(t, "dir\ndir/file\ndir/up\n<dir\nloop\nroot\nto-dir\n");
}

/* A chain of `levels` directories "d", each with a file "f". */
static void make_chain(const struct trip *t, size_t levels)
{
	int at = fcntl(t->root, F_DUPFD_CLOEXEC, 0);

	for (size_t i = 0; i < levels; i++) {
		int next;
		int file;

		assert_int_equal(mkdirat(at, "d", 0755), 0);
		next = openat(at, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		assert_true(next >= 0);
		(void)close(at);
		at = next;
		file = openat(at, "f", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
		assert_true(file >= 0);
		(void)close(file);
	}
	(void)close(at);
}

static void test_deep_tree(void **state)
{
	enum { LEVELS = 300 };
	struct trip *t = *state;
	size_t before = count_fds();

	make_chain(t, LEVELS);
	walk_with(t, &ops);
	assert_int_equal(t->entries, 2 * LEVELS);
	assert_int_equal(t->deepest, LEVELS + 1);
	assert_null(strchr(t->seen, '!'));
	assert_true(t->fds <= before + WALK_FDS_MAX + 1);
	/* The file of a level comes after the directory beside it: each was come back to. */
	assert_string_equal(t->seen + t->len - strlen("<d/d\nd/f\n<d\n"), "<d/d\nd/f\n<d\n");
}

static void test_paths_too_long(void **state)
{
	struct trip *t = *state;
	struct walk_ops shallow = ops;

	make_chain(t, 4);
	shallow.deepest = 4; /* "d/d/" */
	walk_with(t, &shallow);
	assert_string_equal(t->seen, "d\nd/d\n!36 d/d/\n!36 d/d/\n<d/d\nd/f\n<d\n");
}

static void move_away(struct trip *t, const struct walk_item *item)
{
	if (item->depth == 100 && item->type == DT_REG)
		assert_int_equal(renameat(t->root, "d/d/d", t->root, "elsewhere"), 0);
}

/* The way back leads to somewhere else: that is said, and nothing there is looked at. */
static void test_moved_meanwhile(void **state)
{
	struct trip *t = *state;
	char want[32];

	make_chain(t, 110);
	make_file(t, "outside");
	t->at_each = move_away;
	walk_with(t, &ops);
	(void)snprintf(want, sizeof(want), "\n!%d d/d/d\n", ESTALE);
	assert_string_equal(t->seen + t->len - strlen(want), want);
	assert_null(strstr(t->seen, "outside"));
}

static void change(struct trip *t, const struct walk_item *item)
{
	if (strcmp(item->path, "a") != 0)
		return;
	assert_int_equal(unlinkat(t->root, "gone", AT_REMOVEDIR), 0);
	assert_int_equal(unlinkat(t->root, "link", AT_REMOVEDIR), 0);
	assert_int_equal(symlinkat("/", t->root, "link"), 0);
	assert_int_equal(unlinkat(t->root, "file", AT_REMOVEDIR), 0);
	make_file(t, "file");
}

/* Names that were read as directories, and are none any more. */
static void test_changed_meanwhile(void **state)
{
	struct trip *t = *state;

	make_file(t, "a");
	make_dir(t, "file");
	make_dir(t, "gone");
	make_dir(t, "link");
	make_dir(t, "z");
	t->at_each = change;
	assert_saw(t, "a\nfile\ngone\nlink\nz\n<z\n");
}

static void test_closed_directory(void **state)
{
	struct trip *t = *state;

	make_dir(t, "closed");
	make_file(t, "closed/file");
	make_file(t, "open");
	assert_int_equal(fchmodat(t->root, "closed", 0, 0), 0);
	if (geteuid() == 0)
		assert_int_equal(seteuid(NOBODY), 0);
	walk_with(t, &ops);
	if (getuid() == 0)
		assert_int_equal(seteuid(0), 0);
	assert_int_equal(fchmodat(t->root, "closed", 0755, 0), 0);
	assert_string_equal(t->seen, "closed\n!13 closed\nopen\n");
}

/* That nothing is found in what cannot be read says nothing. */
static void test_closed_root(void **state)
{
	struct trip *t = *state;
	int fd = open("/proc/1/map_files", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int rc;

	if (fd < 0 || geteuid() != 0)
		skip();
	assert_int_equal(seteuid(NOBODY), 0);
	rc = walk_tree(fd, &ops, t);
	assert_int_equal(seteuid(0), 0);
	assert_int_equal(rc, EACCES);
	assert_int_equal(t->len, 0);
}

static void test_wide_directory(void **state)
{
	enum { FILES = 20000 };
	struct trip *t = *state;
	char name[16];
	const char *at;

	for (int i = FILES - 1; i >= 0; i--) {
		(void)snprintf(name, sizeof(name), "%05d", i);
		assert_int_equal(symlinkat("x", t->root, name), 0); /* cheaper than files */
	}
	walk_with(t, &ops);
	at = t->seen;
	for (int i = 0; i < FILES; i++, at += 6) {
		(void)snprintf(name, sizeof(name), "%05d\n", i);
		assert_memory_equal(at, name, 6);
	}
	assert_int_equal(*at, '\0');
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_order, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_steps, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_links_are_not_followed, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_deep_tree, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_paths_too_long, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_moved_meanwhile, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_changed_meanwhile, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_closed_directory, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_closed_root, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_wide_directory, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
