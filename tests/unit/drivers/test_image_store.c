/*
 * Tests of drivers/image: the store (names, locks, what goes and what stays), trees, notes, and
 * what is read of images. Pulls are tests/integ/test_images.py's.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cmocka.h>

#include "drivers/image/manifest.h"
#include "drivers/image/pull.h"
#include "drivers/image/root.h"
#include "drivers/image/run.h"
#include "drivers/image/tree.h"
#include "drivers/image/trim.h"
#include "lib/clock.h"
#include "lib/fd.h"

#define ID(c) "sha256:" c c c c c c c c c c c c c c c c
#define MIB (1024ULL * 1024ULL)

struct place {
	char dir[64];
	struct image_store store;
};

static int setup(void **state)
{
	struct place *p = calloc(1, sizeof(*p));

	assert_non_null(p);
	(void)snprintf(p->dir, sizeof(p->dir), "/tmp/sbxd-store-XXXXXX");
	assert_non_null(mkdtemp(p->dir));
	assert_int_equal(image_store_open(p->dir, true, &p->store, &(struct err){0}), 0);
	*state = p;
	return 0;
}

static int teardown(void **state)
{
	struct place *p = *state;

	image_store_close(&p->store);
	assert_int_equal(image_tree_remove(p->dir), 0);
	assert_int_equal(access(p->dir, F_OK), -1);
	free(p);
	return 0;
}

static void parse(const char *text, struct image_ref *ref)
{
	struct err err = {0};

	if (image_ref_parse(text, ref, &err) < 0)
		fail_msg("%s", err.text);
}

/* An image as a pull leaves it, of that size, last used so many seconds ago. */
static void add(struct place *p, const char *reference, const char *id, uint64_t mib, int age)
{
	const struct timespec times[2] = {
	    {.tv_sec = 1700000000 - age}, {.tv_sec = 1700000000 - age}};
	struct image_name name = {0};
	struct image_note note;
	struct image_ref ref;
	struct err err = {0};
	char place[16];
	int lock;

	lock = image_store_begin(&p->store, place, &err);
	assert_true(lock >= 0);
	assert_int_equal(mkdirat(lock, "rootfs", 0755), 0);
	image_note_init(&note);
	(void)snprintf(note.id, sizeof(note.id), "%s", id);
	(void)snprintf(note.user, sizeof(note.user), "app");
	note.size = mib * MIB;
	assert_int_equal(image_note_set_env(&note, "A=b"), 0);
	assert_int_equal(image_note_write(lock, &note), 0);
	assert_int_equal(utimensat(lock, "note", times, 0), 0);
	image_note_free(&note);
	assert_int_equal(image_store_commit(&p->store, place, id, &err), 0);
	(void)close(lock);
	parse(reference, &ref);
	image_ref_print(&ref, name.normal);
	(void)snprintf(name.reference, sizeof(name.reference), "%s", reference);
	(void)snprintf(name.id, sizeof(name.id), "%s", id);
	assert_int_equal(image_store_write_name(&p->store, &name), 0);
}

static int find(struct place *p, const char *reference, struct image_found *found)
{
	struct image_ref ref;
	struct err err = {0};

	parse(reference, &ref);
	return image_store_find(p->dir, &ref, found, &err);
}

static void drop(struct image_found *f)
{
	fd_close(&f->hold);
	image_note_free(&f->note);
}

static bool is_here(struct place *p, const char *reference)
{
	struct image_found f;
	int rc = find(p, reference, &f);

	if (rc == 0)
		drop(&f);
	else
		assert_int_equal(rc, -ENODATA);
	return rc == 0;
}

static size_t entries(struct place *p)
{
	struct image_tree t;

	assert_int_equal(image_tree_measure(p->store.path, &t), 0);
	return t.entries;
}

static void test_found_by_name_and_by_digest(void **state)
{
	struct place *p = *state;
	struct image_found f;
	struct image_root root;

	assert_false(is_here(p, "a"));
	add(p, "a", ID("0123"), 1, 0);
	assert_int_equal(find(p, "docker.io/library/a:latest", &f), 0);
	assert_string_equal(f.note.id, ID("0123"));
	assert_string_equal(f.note.user, "app");
	assert_int_equal(f.note.env.len, 4);
	drop(&f);
	assert_true(is_here(p, ID("0123")));
	assert_false(is_here(p, ID("4567")));
	assert_int_equal(image_root_get(p->dir, "a", &root, &(struct err){0}), 0);
	assert_int_equal(access(root.path, F_OK), 0);
	assert_memory_equal(buf_head(&root.config), "app\0\0A=b\0", 9);
	image_root_free(&root);
	assert_int_equal(image_root_get(p->dir, "b", &root, &(struct err){0}), -ENODATA);
	image_root_free(&root);
	assert_int_equal(
	    image_root_get("/tmp/sbxd-no-such", "b", &root, &(struct err){0}), -ENODATA);
	image_root_free(&root);
	assert_int_equal(image_root_get(p->dir, "/etc/passwd", &root, &(struct err){0}), -ENOTDIR);
	image_root_free(&root);
	assert_int_equal(image_root_get(p->dir, "host", &root, &(struct err){0}), 0);
	assert_string_equal(root.path, "");
	image_root_free(&root);
}

static void test_what_is_held_stays(void **state)
{
	struct place *p = *state;
	struct image_found f;
	int copy;

	add(p, "a", ID("0123"), 1, 0);
	assert_int_equal(find(p, "a", &f), 0);
	copy = dup(f.hold); /* as a worker has it */
	assert_int_equal(image_take_out(&p->store, ID("0123")), -EBUSY);
	drop(&f);
	assert_int_equal(image_take_out(&p->store, ID("0123")), -EBUSY);
	(void)close(copy);
	assert_int_equal(image_take_out(&p->store, ID("0123")), 0);
	assert_false(is_here(p, "a"));
	assert_false(is_here(p, ID("0123")));
	assert_int_equal(image_take_out(&p->store, ID("0123")), -ENOENT);
	assert_int_equal(image_empty_gone(&p->store), 0);
	assert_int_equal(entries(p), 0);
}

static void test_the_longest_unused_goes(void **state)
{
	struct place *p = *state;
	struct image_found f;
	uint32_t count = 0;
	uint64_t bytes = 0;

	add(p, "oldest", ID("0000"), 2, 400);
	add(p, "older", ID("1111"), 2, 300);
	add(p, "old", ID("2222"), 2, 200);
	add(p, "new", ID("3333"), 2, 100);
	assert_int_equal(find(p, "oldest", &f), 0); /* it is used now, and held */
	assert_int_equal(image_make_room(&p->store, "", 8 * MIB, &count, &bytes), 0);
	assert_int_equal(count, 0);
	assert_int_equal(image_make_room(&p->store, "", 5 * MIB, &count, &bytes), 0);
	assert_int_equal(count, 2);
	assert_int_equal(bytes, 4 * MIB);
	assert_true(is_here(p, "oldest") && is_here(p, "new"));
	assert_false(is_here(p, "older") || is_here(p, "old"));
	assert_int_equal(image_make_room(&p->store, ID("3333"), 0, &count, &bytes), -ENOSPC);
	assert_true(is_here(p, "oldest") && is_here(p, "new"));
	drop(&f);
	assert_int_equal(image_make_room(&p->store, "", 0, &count, &bytes), 0);
	assert_int_equal(image_empty_gone(&p->store), 0);
	assert_int_equal(entries(p), 0);
}

/* What a process that died was at has no lock; what one that lives is at has. */
static void test_leftovers_go(void **state)
{
	struct place *p = *state;
	char name[16];
	char other[16];
	struct err err = {0};
	int lock;
	int lives;

	lock = image_store_begin(&p->store, name, &err);
	lives = image_store_begin(&p->store, other, &err);
	assert_true(lock >= 0 && lives >= 0);
	assert_int_equal(mkdirat(lock, "rootfs", 0), 0);
	(void)close(lock);
	add(p, "a", ID("0123"), 1, 0);
	assert_int_equal(image_store_discard(&p->store, "sha256-none"), 0);
	assert_int_equal(image_sweep(&p->store), 0);
	assert_int_equal(image_empty_gone(&p->store), 0);
	assert_int_equal(faccessat(p->store.dir, name, F_OK, 0), -1);
	assert_int_equal(faccessat(p->store.dir, other, F_OK, 0), 0);
	assert_true(is_here(p, "a"));
	(void)close(lives);
	/* A name of an image that is gone is none. */
	assert_int_equal(
	    image_store_discard(&p->store,
		"sha256-0123012301230123012301230123012301230123012301230123012301230123"),
	    0);
	assert_false(is_here(p, "a"));
	assert_int_equal(image_sweep(&p->store), 0);
	assert_int_equal(image_empty_gone(&p->store), 0);
	assert_int_equal(entries(p), 0);
}

static void test_the_same_image_twice(void **state)
{
	struct place *p = *state;
	struct image_census c;

	add(p, "a", ID("0123"), 1, 0);
	add(p, "b", ID("0123"), 1, 0); /* somebody else was faster: ours is left over */
	assert_int_equal(image_sweep(&p->store), 0);
	assert_int_equal(image_census_take(&p->store, &c), 0);
	assert_int_equal(c.count, 1);
	assert_int_equal(c.name_count, 2);
	assert_false(c.images[0].in_use);
	image_census_free(&c);
	assert_true(is_here(p, "a") && is_here(p, "b"));
}

static void test_locks(void **state)
{
	struct place *p = *state;
	int a = image_store_lock(&p->store, clock_now_ns() + NS_PER_S);

	assert_true(a >= 0);
	assert_int_equal(image_store_lock(&p->store, clock_now_ns()), -ETIMEDOUT);
	(void)close(a);
	a = image_store_lock(&p->store, clock_now_ns() + NS_PER_S);
	assert_true(a >= 0);
	(void)close(a);
}

static void test_a_tree_is_cleaned(void **state)
{
	struct place *p = *state;
	char path[96];
	char file[128];
	struct image_tree t;
	struct stat st;

	(void)snprintf(path, sizeof(path), "%s/tree", p->dir);
	assert_int_equal(mkdir(path, 0755), 0);
	(void)snprintf(file, sizeof(file), "%s/file", path);
	assert_int_equal(close(open(file, O_CREAT | O_WRONLY | O_CLOEXEC, 0644)), 0);
	if (setxattr(file, "user.overlay.opaque", "y", 1, 0) < 0)
		skip();
	assert_int_equal(setxattr(file, "user.kept", "y", 1, 0), 0);
	(void)snprintf(file, sizeof(file), "%s/link", path);
	assert_int_equal(symlink("/etc", file), 0);
	(void)snprintf(file, sizeof(file), "%s/fifo", path);
	assert_int_equal(mkfifo(file, 0644), 0);
	(void)snprintf(file, sizeof(file), "%s/node", path);
	if (geteuid() == 0)
		assert_int_equal(mknod(file, S_IFCHR | 0600, 0), 0);
	assert_int_equal(image_tree_scrub(path, &t), 0);
	assert_int_equal(t.devices, geteuid() == 0);
	assert_int_equal(t.entries, 3);
	assert_int_equal(lstat(file, &st), -1);
	(void)snprintf(file, sizeof(file), "%s/file", path);
	assert_int_equal(getxattr(file, "user.overlay.opaque", NULL, 0), -1);
	assert_int_equal(getxattr(file, "user.kept", NULL, 0), 1);
	assert_int_equal(image_tree_remove(path), 0);
	assert_int_equal(image_tree_remove(path), 0); /* nothing there is fine */
	assert_int_equal(access("/etc/passwd", F_OK), 0);
}

/* Deeper than there are descriptors, and longer than a path may be. */
static void test_a_deep_tree_goes(void **state)
{
	struct place *p = *state;
	int dir = open(p->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char path[96];

	for (int i = 0; i < 3000; i++) {
		int next;

		assert_int_equal(mkdirat(dir, "deep", 0700), 0);
		next = openat(dir, "deep", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		assert_true(next >= 0);
		(void)close(dir);
		dir = next;
	}
	(void)close(dir);
	(void)snprintf(path, sizeof(path), "%s/deep", p->dir);
	assert_int_equal(image_tree_remove(path), 0);
	assert_int_equal(access(path, F_OK), -1);
}

static void test_variables_of_an_image(void **state)
{
	struct image_note n;

	(void)state;
	image_note_init(&n);
	assert_int_equal(image_note_set_env(&n, "A=1"), 0);
	assert_int_equal(image_note_set_env(&n, "AB=2"), 0);
	assert_int_equal(image_note_set_env(&n, "A=3=4"), 0);
	assert_int_equal(image_note_set_env(&n, "no name=x"), 0);
	assert_int_equal(image_note_set_env(&n, "=x"), 0);
	assert_int_equal(image_note_set_env(&n, "nothing"), 0);
	assert_int_equal(n.env.len, 11);
	assert_memory_equal(buf_head(&n.env), "AB=2\0A=3=4\0", 11);
	image_note_free(&n);
}

static int parse_manifest(const char *text, struct image_manifest *m)
{
	struct err err = {0};

	return manifest_parse((const uint8_t *)text, strlen(text), m, &err);
}

static void test_manifests(void **state)
{
	static const char *const bad[] = {"", "[]", "{", "5", "{\"manifests\":[]}",
	    "{\"manifests\":[{\"digest\":\"sha256:1\",\"platform\":{\"os\":\"linux\","
	    "\"architecture\":\"amd64\"}}]}",
	    "{\"layers\":[{\"size\":-1}]}",
	    "{\"layers\":[{\"size\":9223372036854775807},{\"size\":1}]}",
	    "{\"config\":{\"digest\":\"x\"}}", "{\"config\":5}"};
	struct image_manifest m;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		if (*bad[i]) /* nothing at all is taken for {} */
			assert_int_equal(parse_manifest(bad[i], &m), -EINVAL);
	}
	assert_int_equal(parse_manifest("{\"config\":{\"digest\":\"" ID(
					    "0123") "\"},\"layers\":[{\"size\":2},{\"size\":3}]}",
			     &m),
	    0);
	assert_int_equal(m.bytes, 5);
	assert_string_equal(m.config, ID("0123"));
	assert_string_equal(m.chosen, "");
}

static void test_reasons(void **state)
{
	static const struct {
		const char *said;
		const char *reason;
	} cases[] = {
	    {"", ""},
	    {"plain\n", "plain"},
	    {"first\n  last \n\n", "last "},
	    {"time=\"x\" level=fatal msg=\"a \\\"quoted\\\" word\"\n", "a \"quoted\" word"},
	    {"level=fatal msg=\"Error parsing image name \\\"docker://r/a:b\\\": no route\"",
		"no route"},
	    {"level=fatal msg=\"initializing source docker://r/a:b: reading\"", "reading"},
	    {"bell\a and\033[1m", "bell and[1m"},
	};
	char out[40];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		image_run_reason(cases[i].said, out, sizeof(out));
		assert_string_equal(out, cases[i].reason);
	}
	image_run_reason(
	    "the beginning of what is said is not as particular as its end", out, sizeof(out));
	assert_string_equal(out, "...said is not as particular as its end");
}

static void test_settings(void **state)
{
	static const char text[] = "images.cache_mib=2\0images.pull_timeout=1.5\0"
				   "images.insecure_registries=a:1, b.c\0";
	const struct driver_options o = {.data = text, .len = sizeof(text) - 1};
	struct image_settings set;

	(void)state;
	image_settings_read(&o, &set);
	assert_int_equal(set.cache_bytes, 2 * MIB);
	assert_int_equal(set.pull_ns, NS_PER_S * 3 / 2);
	assert_null(set.auth);
	assert_true(image_settings_is_insecure(&set, "a:1"));
	assert_true(image_settings_is_insecure(&set, "b.c"));
	assert_false(image_settings_is_insecure(&set, "a"));
	assert_false(image_settings_is_insecure(&set, "b.cd"));
	assert_false(image_settings_is_insecure(&set, ""));
}

#define PLACE(t) cmocka_unit_test_setup_teardown(t, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
	    PLACE(test_found_by_name_and_by_digest),
	    PLACE(test_what_is_held_stays),
	    PLACE(test_the_longest_unused_goes),
	    PLACE(test_leftovers_go),
	    PLACE(test_the_same_image_twice),
	    PLACE(test_locks),
	    PLACE(test_a_tree_is_cleaned),
	    PLACE(test_a_deep_tree_goes),
	    cmocka_unit_test(test_variables_of_an_image),
	    cmocka_unit_test(test_manifests),
	    cmocka_unit_test(test_reasons),
	    cmocka_unit_test(test_settings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
