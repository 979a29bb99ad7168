/*
 * attach_testing: a segment that somebody else made and left, and what may be wrong with it.
 */
#ifndef SBXD_TESTS_ATTACH_TESTING_H
#define SBXD_TESTS_ATTACH_TESTING_H

#include <fcntl.h>

#include "lib/fd.h"
#include "tests/unit/shm/shm_testing.h"

#define SLOTS 8U

/* The state of each test is a name under which nothing stands. */
#define WITH(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

static inline int setup(void **state)
{
	static char name[64];

	table_name(name);
	(void)segment_unlink(name);
	*state = name;
	return 0;
}

static inline int teardown(void **state)
{
	(void)segment_unlink(*state);
	return 0;
}

static inline void create_and_leave(void *ctx)
{
	struct segment seg;

	if (segment_create(ctx, "unit", SLOTS, 2, &seg, NULL) < 0)
		_exit(1);
}

/* Writes `len` bytes into the object, past the mapping and its checks. */
static inline void scribble(const char *name, size_t offset, const void *bytes, size_t len)
{
	int fd = shm_open(name, O_RDWR | O_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, bytes, len, (off_t)offset), len);
	fd_close(&fd);
}

static inline void assert_foreign(const char *name, const char *text)
{
	struct segment seg = {.fd = 55};
	struct err why = {0};
	int fds = fd_count_open();

	assert_int_equal(segment_probe(name, &why), SEGMENT_FOREIGN);
	if (!strstr(why.text, text))
		fail_msg("\"%s\" does not say \"%s\"", why.text, text);
	assert_int_equal(segment_probe(name, NULL), SEGMENT_FOREIGN);
	for (int writable = 0; writable < 2; writable++) {
		memset(&why, 0, sizeof(why));
		assert_true(segment_attach(name, writable, &seg, &why) < 0);
		assert_non_null(strstr(why.text, name));
		assert_int_equal(seg.fd, 55);
	}
	assert_int_equal(fd_count_open(), fds);
}

#endif
