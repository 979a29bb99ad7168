/* scratch: a directory of a test's own, and what is in it. For the file tests of guest/. */
#ifndef SBXD_TESTS_GUEST_SCRATCH_H
#define SBXD_TESTS_GUEST_SCRATCH_H

#include "tests/unit/guest/process.h"

/* A directory of the test's own, and paths in it. */
struct scratch {
	char dir[40];
	char path[300];
};

static inline void scratch_make(struct scratch *s)
{
	memcpy(s->dir, "/tmp/sbx-guest-test-XXXXXX", sizeof("/tmp/sbx-guest-test-XXXXXX"));
	assert_non_null(mkdtemp(s->dir));
}

static inline const char *scratch_path(struct scratch *s, const char *name)
{
	(void)snprintf(s->path, sizeof(s->path), "%s/%s", s->dir, name);
	return s->path;
}

/* How many names there are. */
static inline int scratch_count(const struct scratch *s)
{
	DIR *dir = opendir(s->dir);
	int n = 0;

	assert_non_null(dir);
	while (readdir(dir) != NULL)
		n++;
	closedir(dir);
	return n - 2;
}

static inline void scratch_remove(struct scratch *s)
{
	char line[100];

	(void)snprintf(line, sizeof(line), "rm -rf %s", s->dir);
	assert_int_equal(system(line), 0);
}

static inline void put(const char *path, const void *data, size_t n)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, n), n);
	close(fd);
}

static inline void assert_content(const char *path, const void *want, size_t n)
{
	char *got = malloc(n + 2);
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	assert_non_null(got);
	assert_true(fd >= 0);
	assert_int_equal(read(fd, got, n + 2), n);
	if (n > 0)
		assert_memory_equal(got, want, n);
	close(fd);
	free(got);
}

static inline void assert_failed(const struct reply *r, uint32_t code)
{
	if (!r->failed || r->error.code != code)
		fail_msg("failed %d, code %u not %u: %s", r->failed, r->error.code, code, r->text);
}

#endif
