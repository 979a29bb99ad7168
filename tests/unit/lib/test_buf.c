/* Unit tests of lib/buf.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "lib/buf.h"
#include "lib/fd.h"

static void test_append_and_consume(void **state)
{
	struct buf b;

	(void)state;
	buf_init(&b, 64);
	assert_int_equal(buf_room(&b), 64);
	assert_int_equal(buf_puts(&b, "hello "), 0);
	assert_int_equal(buf_append(&b, "world", 5), 0);
	assert_int_equal(buf_append(&b, NULL, 0), 0);
	assert_int_equal(b.len, 11);
	assert_memory_equal(buf_head(&b), "hello world", 11);
	buf_consume(&b, 6);
	assert_int_equal(b.len, 5);
	assert_int_equal(buf_room(&b), 59); /* the bound is on what is held, not on what passed */
	assert_memory_equal(buf_head(&b), "world", 5);
	buf_consume(&b, 5);
	assert_int_equal(b.off, 0);
	buf_free(&b);
}

static void test_bound(void **state)
{
	struct buf b;

	(void)state;
	buf_init(&b, 10);
	assert_int_equal(buf_puts(&b, "123456"), 0);
	assert_int_equal(buf_puts(&b, "78901"), -ENOBUFS);
	assert_int_equal(buf_printf(&b, "%s", "78901"), -ENOBUFS);
	assert_null(buf_reserve(&b, 5));
	assert_null(buf_reserve(&b, SIZE_MAX));
	assert_int_equal(b.len, 6);
	assert_memory_equal(buf_head(&b), "123456", 6);
	assert_int_equal(buf_puts(&b, "7890"), 0);
	assert_int_equal(buf_room(&b), 0);
	assert_int_equal(buf_terminate(&b), -ENOBUFS);
	buf_consume(&b, 4);
	assert_int_equal(buf_puts(&b, "abcd"), 0);
	assert_memory_equal(buf_head(&b), "567890abcd", 10);
	buf_free(&b);
	assert_int_equal(b.max, 10);
	assert_int_equal(buf_puts(&b, "again"), 0);
	buf_free(&b);
}

/* A queue that is never empty must not make the memory grow. */
static void test_steady_queue_keeps_its_size(void **state)
{
	uint8_t in = 0;
	uint8_t out = 0;
	struct buf b;

	(void)state;
	buf_init(&b, 1u << 20);
	for (; b.len < 300; in++)
		assert_int_equal(buf_append(&b, &in, 1), 0);
	for (int round = 0; round < 100000; round++) {
		assert_int_equal(buf_append(&b, &in, 1), 0);
		in++;
		assert_int_equal(*buf_head(&b), out);
		buf_consume(&b, 1);
		out++;
	}
	assert_int_equal(b.len, 300);
	assert_true(b.cap <= 2048);
	buf_free(&b);
}

static void test_reserve_commit(void **state)
{
	struct buf b;
	uint8_t *to;

	(void)state;
	buf_init(&b, 4096);
	assert_int_equal(buf_puts(&b, "ab"), 0);
	to = buf_reserve(&b, 3000);
	assert_non_null(to);
	memset(to, 'z', 3000);
	assert_int_equal(b.len, 2);
	buf_commit(&b, 3000);
	assert_int_equal(b.len, 3002);
	assert_memory_equal(buf_head(&b), "abzz", 4);
	buf_clear(&b);
	assert_int_equal(b.len, 0);
	buf_trim(&b, 8192);
	assert_non_null(b.data);
	buf_trim(&b, 100);
	assert_null(b.data);
	assert_int_equal(buf_puts(&b, "kept"), 0);
	buf_trim(&b, 0); /* never what is in use */
	assert_memory_equal(buf_head(&b), "kept", 4);
	buf_free(&b);
}

static void test_printf(void **state)
{
	char big[600];
	struct buf b;

	(void)state;
	memset(big, 'x', sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	buf_init(&b, 1000);
	assert_int_equal(buf_printf(&b, "%d-%s", 7, "a"), 0);
	assert_int_equal(buf_printf(&b, "%s", big), 0);
	assert_int_equal(b.len, 3 + 599);
	assert_int_equal(buf_printf(&b, "%s", big), -ENOBUFS);
	assert_int_equal(buf_terminate(&b), 0);
	assert_int_equal(b.len, 3 + 599);
	assert_int_equal(strlen((const char *)buf_head(&b)), 3 + 599);
	buf_free(&b);
}

static void test_read_and_write(void **state)
{
	int ends[2];
	struct buf b;

	(void)state;
	assert_int_equal(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
	buf_init(&b, 8);
	assert_int_equal(buf_read_fd(&b, ends[0], 100), -EAGAIN);
	assert_int_equal(write(ends[1], "0123456789", 10), 10);
	assert_int_equal(buf_read_fd(&b, ends[0], 3), 3);
	assert_int_equal(buf_read_fd(&b, ends[0], 100), 5);
	assert_int_equal(buf_read_fd(&b, ends[0], 100), -ENOBUFS);
	assert_memory_equal(buf_head(&b), "01234567", 8);
	assert_int_equal(buf_write_fd(&b, ends[1]), 8);
	assert_int_equal(b.len, 0);
	fd_close(&ends[1]);
	assert_int_equal(buf_read_fd(&b, ends[0], 100), 8);
	assert_memory_equal(buf_head(&b), "89012345", 8);
	buf_clear(&b);
	assert_int_equal(buf_read_fd(&b, ends[0], 100), 2);
	assert_int_equal(buf_read_fd(&b, ends[0], 100), 0);
	assert_int_equal(buf_write_fd(&b, -1), -EBADF);
	assert_int_equal(b.len, 2);
	fd_close(&ends[0]);
	buf_free(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_append_and_consume),
	    cmocka_unit_test(test_bound),
	    cmocka_unit_test(test_steady_queue_keeps_its_size),
	    cmocka_unit_test(test_reserve_commit),
	    cmocka_unit_test(test_printf),
	    cmocka_unit_test(test_read_and_write),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
