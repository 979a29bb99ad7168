/* sbx-files pack: a tree as records, also while it changes. */
#include <sys/socket.h>
#include <sys/un.h>

#include "tests/unit/guest/archive_run.h"

#define PACKED_MAX 40000

struct packed {
	struct entry_member m;
	char *path;
	char *link;
	struct buf data;
	struct buf extents;
	uint64_t pieces; /* in ascending order so far: up to here */
	bool complete;
};

struct packing {
	int status;
	bool done;
	uint64_t count;
	size_t len;
	char why[AGENT_ERROR_TEXT + 1];
	struct packed all[PACKED_MAX];
	struct entry_reader reader;
};

static int take(void *ctx, const struct entry *e)
{
	struct packing *p = ctx;
	struct packed *m = p->len > 0 ? &p->all[p->len - 1] : NULL;

	assert_false(p->done);
	if (e->type == ENTRY_DONE) {
		p->done = true;
		p->count = e->u.done.count;
		assert_true(!m || m->complete);
	} else if (e->type == ENTRY_MEMBER) {
		assert_true(!m || m->complete);
		assert_true(p->len < PACKED_MAX);
		m = &p->all[p->len++];
		m->m = e->u.member;
		m->path = strndup((const char *)e->path, e->path_len);
		m->link = strndup((const char *)e->text, e->text_len);
		m->complete = m->m.kind != ENTRY_FILE;
		buf_init(&m->data, ARCHIVE_MAX);
		buf_init(&m->extents, ARCHIVE_MAX);
	} else if (e->type == ENTRY_EXTENTS) {
		assert_int_equal(buf_append(&m->extents, e->text, e->text_len), 0);
	} else {
		assert_int_equal(e->type, ENTRY_PIECE);
		assert_true(m && !m->complete);
		assert_int_equal(m->extents.len, m->m.extents * sizeof(struct entry_extent));
		assert_true(e->u.piece.offset >= m->pieces);
		m->pieces = e->u.piece.offset + e->text_len;
		m->complete = e->text_len == 0;
		assert_int_equal(buf_append(&m->data, e->text, e->text_len), 0);
	}
	return 0;
}

static void packing_free(struct packing *p)
{
	for (size_t i = 0; i < p->len; i++) {
		free(p->all[i].path);
		free(p->all[i].link);
		buf_free(&p->all[i].data);
		buf_free(&p->all[i].extents);
	}
	free(p);
}

static void pack_start(struct tree *t, struct helper *h, const char *name, const char *more)
{
	char path[PATH_MAX + 8];
	const char *args[] = {"pack", path, more, NULL};

	(void)snprintf(path, sizeof(path), "path=%s", *name ? tree_path(t, name) : t->dir);
	helper_start(h, args);
}

static struct packing *pack_end(struct helper *h)
{
	struct packing *p = calloc(1, sizeof(*p));
	struct buf said;

	assert_non_null(p);
	buf_init(&said, ARCHIVE_MAX);
	p->status = helper_end(h, &said);
	memcpy(p->why, h->why, sizeof(h->why));
	assert_int_equal(entry_feed(&p->reader, buf_head(&said), said.len, take, p), 0);
	assert_int_equal(p->done, p->status == AGENT_OK);
	if (p->done)
		assert_int_equal(p->count, p->len);
	buf_free(&said);
	return p;
}

static struct packing *pack(struct tree *t, const char *name, const char *more)
{
	struct helper h;

	pack_start(t, &h, name, more);
	return pack_end(&h);
}

static const struct packed *find(const struct packing *p, const char *path)
{
	for (size_t i = 0; i < p->len; i++) {
		if (strcmp(p->all[i].path, path) == 0)
			return &p->all[i];
	}
	return NULL;
}

static void test_kinds(void **state)
{
	struct tree *t = *state;
	struct packing *p;
	const struct packed *m;
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	tree_dir(t, "top");
	tree_dir(t, "top/empty");
	tree_text(t, "top/file", "content");
	tree_text(t, "top/nothing", "");
	assert_int_equal(chmod(tree_path(t, "top/file"), 06711), 0);
	assert_int_equal(symlink("../any\xff", tree_path(t, "top/link")), 0);
	assert_int_equal(mkfifo(tree_path(t, "top/fifo"), 0644), 0);
	(void)snprintf(sun.sun_path, sizeof(sun.sun_path), "%s/top/socket", t->dir);
	assert_int_equal(bind(s, (struct sockaddr *)&sun, sizeof(sun)), 0);
	(void)close(s);
	p = pack(t, "top", NULL);
	assert_int_equal(p->len, 5);
	assert_string_equal(p->all[0].path, "top");
	assert_int_equal(p->all[0].m.kind, ENTRY_DIRECTORY);
	assert_non_null(find(p, "top/empty"));
	m = find(p, "top/file");
	assert_non_null(m);
	assert_int_equal(m->m.mode, 06711);
	assert_int_equal(m->m.size, 7);
	assert_memory_equal(buf_head(&m->data), "content", 7);
	m = find(p, "top/link");
	assert_non_null(m);
	assert_int_equal(m->m.kind, ENTRY_SYMLINK);
	assert_string_equal(m->link, "../any\xff");
	assert_int_equal(find(p, "top/nothing")->data.len, 0);
	packing_free(p);
	p = pack(t, "top", "contents=1");
	assert_string_equal(p->all[0].path, ".");
	assert_non_null(find(p, "./file"));
	packing_free(p);
	p = pack(t, "top/file", NULL);
	assert_int_equal(p->len, 1);
	assert_string_equal(p->all[0].path, "file");
	packing_free(p);
}

static const struct {
	const char *name;
	const char *more;
	int code;
} refused[] = {
    {"missing", NULL, AGENT_E_NOT_FOUND},
    {"file/x", NULL, AGENT_E_NOT_A_DIRECTORY},
    {"file", "directory=1", AGENT_E_NOT_A_DIRECTORY},
    {"fifo", NULL, AGENT_E_INVALID},
    {"loop", NULL, AGENT_E_INVALID_PATH},
    {"a/../b", NULL, AGENT_E_INVALID_PATH},
    {"file", "follow=x", AGENT_E_INVALID},
};

static void test_refused(void **state)
{
	struct tree *t = *state;

	tree_text(t, "file", "x");
	assert_int_equal(mkfifo(tree_path(t, "fifo"), 0644), 0);
	assert_int_equal(symlink("loop", tree_path(t, "loop")), 0);
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		struct packing *p = pack(t, refused[i].name, refused[i].more);

		if (p->status != refused[i].code)
			fail_msg("%s: status %d: %s", refused[i].name, p->status, p->why);
		assert_int_equal(p->len, 0);
		packing_free(p);
	}
}

/* Waits until the helper has said `n` bytes, all of which stay in its pipe and in `said`. */
static void await_output(struct helper *h, struct buf *said, size_t n)
{
	uint8_t bytes[4096];

	while (said->len < n) {
		size_t want = n - said->len < sizeof(bytes) ? n - said->len : sizeof(bytes);
		ssize_t got = read(h->out, bytes, want);

		assert_true(got > 0);
		assert_int_equal(buf_append(said, bytes, (size_t)got), 0);
	}
}

/* Its size is said, its data does not fit into a pipe: then it becomes another. */
static struct packing *pack_while(struct tree *t, void (*change)(const char *path))
{
	static uint8_t data[1 << 20];
	struct packing *p = calloc(1, sizeof(*p));
	struct buf said;
	struct helper h;

	assert_non_null(p);
	memset(data, 'd', sizeof(data));
	tree_file(t, "file", data, sizeof(data));
	buf_init(&said, ARCHIVE_MAX);
	pack_start(t, &h, "file", NULL);
	await_output(&h, &said, 1000);
	change(tree_path(t, "file"));
	p->status = helper_end(&h, &said);
	assert_int_equal(p->status, AGENT_OK);
	assert_int_equal(entry_feed(&p->reader, buf_head(&said), said.len, take, p), 0);
	assert_int_equal(p->len, 1);
	assert_int_equal(p->all[0].data.len, sizeof(data));
	assert_int_equal(buf_head(&p->all[0].data)[0], 'd');
	buf_free(&said);
	return p;
}

static void cut(const char *path)
{
	assert_int_equal(truncate(path, 10), 0);
}

static void lengthen(const char *path)
{
	assert_int_equal(truncate(path, 5 << 20), 0);
}

static void remove_file(const char *path)
{
	assert_int_equal(unlink(path), 0);
}

static void test_a_file_that_changes(void **state)
{
	struct tree *t = *state;
	struct packing *p = pack_while(t, cut);

	assert_int_equal(buf_head(&p->all[0].data)[p->all[0].data.len - 1], 0);
	packing_free(p);
	p = pack_while(t, lengthen);
	assert_int_equal(buf_head(&p->all[0].data)[p->all[0].data.len - 1], 'd');
	packing_free(p);
	p = pack_while(t, remove_file);
	assert_int_equal(buf_head(&p->all[0].data)[p->all[0].data.len - 1], 'd');
	packing_free(p);
}

#define MIB (1ULL << 20)

static void make_sparse(const char *path, uint64_t size, uint64_t every, unsigned int count)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	for (unsigned int i = 0; i < count; i++)
		assert_int_equal(pwrite(fd, "data", 4, (off_t)(i * every)), 4);
	assert_int_equal(ftruncate(fd, (off_t)size), 0);
	(void)close(fd);
}

/* The file as its pieces make it: what is in no piece is zero. */
static void check_sparse(const struct packed *m, uint64_t every, unsigned int count)
{
	const struct entry_extent *x =
	    (const struct entry_extent *)(const void *)buf_head(&m->extents);
	uint64_t at = 0;
	unsigned int found = 0;

	for (uint32_t i = 0; i < m->m.extents; i++) {
		for (; found < count && found * every < x[i].offset + x[i].length; found++) {
			assert_true(found * every >= x[i].offset);
			assert_memory_equal(
			    buf_head(&m->data) + at + (found * every - x[i].offset), "data", 4);
		}
		at += x[i].length;
	}
	assert_int_equal(found, count);
	assert_int_equal(at, m->data.len);
	assert_int_equal(x[m->m.extents - 1].offset + x[m->m.extents - 1].length, m->m.size);
}

static void test_holes(void **state)
{
	struct tree *t = *state;
	const struct packed *m;
	struct packing *p;

	tree_dir(t, "d");
	make_sparse(tree_path(t, "d/some"), 4096 * MIB, 1024 * MIB, 3);
	make_sparse(tree_path(t, "d/none"), 0, 0, 0);
	make_sparse(tree_path(t, "d/all"), 20 * MIB, 0, 0);
	make_sparse(tree_path(t, "d/small"), 15 * MIB, 0, 0);		/* not worth it */
	make_sparse(tree_path(t, "d/many"), 8192 * 6000, 8192, 6000);	/* more than are said */
	make_sparse(tree_path(t, "d/late"), 17 * MIB + 4, 17 * MIB, 2); /* data at the end */
	p = pack(t, "d", NULL);
	assert_int_equal(p->status, 0);
	m = find(p, "d/some");
	assert_int_equal(m->m.size, 4096 * MIB);
	check_sparse(m, 1024 * MIB, 3);
	assert_true(m->data.len < 100000);
	assert_int_equal(find(p, "d/none")->m.extents, 0);
	m = find(p, "d/all");
	assert_int_equal(m->m.extents, 1);
	assert_int_equal(m->data.len, 0);
	m = find(p, "d/small");
	assert_int_equal(m->m.extents, 0);
	assert_int_equal(m->data.len, 15 * MIB);
	m = find(p, "d/many");
	assert_true(m->m.extents <= ENTRY_EXTENTS_MAX);
	if (m->m.extents > 1) /* as far as the file system keeps holes of 4 KiB */
		check_sparse(m, 8192, 6000);
	check_sparse(find(p, "d/late"), 17 * MIB, 2);
	packing_free(p);
}

static void test_hard_links(void **state)
{
	struct tree *t = *state;
	struct packing *p;
	size_t links = 0;

	tree_dir(t, "d");
	tree_dir(t, "d/e");
	tree_text(t, "d/a", "content");
	assert_int_equal(symlink("a", tree_path(t, "d/s")), 0);
	for (int i = 0; i < 5; i++) {
		char from[PATH_MAX];
		char name[16];

		(void)snprintf(from, sizeof(from), "%s", tree_path(t, "d/a"));
		(void)snprintf(name, sizeof(name), "d/e/%d", i);
		assert_int_equal(link(from, tree_path(t, name)), 0);
	}
	p = pack(t, "d", NULL);
	for (size_t i = 0; i < p->len; i++) {
		const struct packed *m = &p->all[i];

		if (m->m.kind != ENTRY_HARDLINK)
			continue;
		links++;
		assert_int_equal(m->m.size, 0);
		assert_int_equal(find(p, m->link)->m.kind, ENTRY_FILE);
		assert_true(find(p, m->link) < m);
	}
	assert_int_equal(links, 5);
	packing_free(p);
	p = pack(t, "d", "follow=1");
	assert_int_equal(
	    find(p, "d/s")->m.kind == ENTRY_FILE || find(p, "d/s")->m.kind == ENTRY_HARDLINK, 1);
	packing_free(p);
}

/* More files of several names than are remembered: all are said, whole or as links. */
static void test_many_hard_links(void **state)
{
	struct tree *t = *state;
	struct packing *p;
	size_t files = 0;
	size_t links = 0;

	tree_dir(t, "d");
	for (int i = 0; i < 17000; i++) {
		char from[PATH_MAX];
		char name[300];

		(void)snprintf(name, sizeof(name), "d/%0250d", i);
		tree_text(t, name, "x");
		(void)snprintf(from, sizeof(from), "%s", tree_path(t, name));
		(void)snprintf(name, sizeof(name), "d/l%0249d", i);
		assert_int_equal(link(from, tree_path(t, name)), 0);
	}
	p = pack(t, "d", NULL);
	assert_int_equal(p->len, 1 + 2 * 17000);
	for (size_t i = 0; i < p->len; i++) {
		const struct packed *m = &p->all[i];

		files += m->m.kind == ENTRY_FILE;
		links += m->m.kind == ENTRY_HARDLINK;
		if (m->m.kind == ENTRY_FILE)
			assert_int_equal(m->data.len, 1);
	}
	assert_true(files >= 17000);
	assert_true(links > 10000);
	packing_free(p);
}

static void test_follow(void **state)
{
	struct tree *t = *state;
	struct packing *p;

	tree_dir(t, "d");
	tree_dir(t, "d/real");
	tree_dir(t, "d/real/sub");
	tree_text(t, "d/real/file", "x");
	tree_dir(t, "out");
	tree_text(t, "out/file", "y");
	assert_int_equal(symlink("real", tree_path(t, "d/link")), 0);
	assert_int_equal(symlink("../../out", tree_path(t, "d/real/out")), 0);
	assert_int_equal(symlink("../..", tree_path(t, "d/real/sub/up")), 0);
	assert_int_equal(symlink("self", tree_path(t, "d/self")), 0);
	assert_int_equal(symlink("gone", tree_path(t, "d/dangling")), 0);
	assert_int_equal(symlink("../d", tree_path(t, "out/back")), 0);
	p = pack(t, "d", "follow=1");
	assert_int_equal(p->status, 0);
	assert_int_equal(find(p, "d/link")->m.kind, ENTRY_DIRECTORY);
	assert_int_equal(find(p, "d/link/out/file")->m.kind, ENTRY_FILE);
	assert_int_equal(find(p, "d/real/sub/up")->m.kind, ENTRY_SYMLINK);
	assert_int_equal(find(p, "d/real/out/back")->m.kind, ENTRY_SYMLINK);
	assert_int_equal(find(p, "d/link/sub/up")->m.kind, ENTRY_SYMLINK);
	assert_int_equal(find(p, "d/self")->m.kind, ENTRY_SYMLINK);
	assert_string_equal(find(p, "d/dangling")->link, "gone");
	assert_int_equal(p->len, 1 + 2 + 2 * (1 + 2 + 1 + 3));
	packing_free(p);
	p = pack(t, "d", "follow=0");
	assert_int_equal(find(p, "d/link")->m.kind, ENTRY_SYMLINK);
	assert_int_equal(p->len, 9);
	packing_free(p);
}

/* Deeper than a path may be long: it is said so, and nothing is left open. */
static void test_too_deep(void **state)
{
	struct tree *t = *state;
	char name[201];
	struct packing *p;
	int cwd = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	assert_true(cwd >= 0);
	memset(name, 'n', 200);
	name[200] = '\0';
	assert_int_equal(chdir(t->dir), 0);
	for (int i = 0; i < 21; i++) {
		assert_int_equal(mkdir(name, 0755), 0);
		assert_int_equal(chdir(name), 0);
	}
	assert_int_equal(fchdir(cwd), 0);
	(void)close(cwd);
	p = pack(t, name, NULL);
	assert_int_equal(p->status, AGENT_E_INVALID_PATH);
	packing_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TREE_TEST(test_kinds),
	    TREE_TEST(test_refused),
	    TREE_TEST(test_a_file_that_changes),
	    TREE_TEST(test_holes),
	    TREE_TEST(test_hard_links),
	    TREE_TEST(test_many_hard_links),
	    TREE_TEST(test_follow),
	    TREE_TEST(test_too_deep),
	};

	(void)signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
