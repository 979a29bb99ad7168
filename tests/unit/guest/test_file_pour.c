/* file_pour: a file that cannot be spliced to gets the same bytes by copy. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "guest/file.h"
#include "lib/fd.h"

#define SIZE 1000003U

/* The kernel splices to no file that is appended to, and says EINVAL as it does of file systems
 * that have no splice at all. */
static int make_file(int flags)
{
	int fd = memfd_create("poured", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(fcntl(fd, F_SETFL, flags), 0);
	return fd;
}

static void pour_all(struct file_writer *w, const uint8_t *data, size_t size)
{
	int stream[2];

	assert_int_equal(pipe2(stream, O_CLOEXEC | O_NONBLOCK), 0);
	for (size_t at = 0; at < size;) {
		ssize_t put = write(stream[1], data + at, size - at);
		ssize_t got;
		int err = 0;

		assert_true(put > 0);
		at += (size_t)put;
		do {
			got = file_pour(w, stream[0], (size_t)put, &err);
			assert_int_equal(err, 0);
			put -= got > 0 ? got : 0;
		} while (put > 0 && got > 0);
		assert_int_equal(put, 0);
	}
	assert_int_equal(file_pour_end(w), 0);
	fd_close(&stream[0]);
	fd_close(&stream[1]);
}

static void check(int flags)
{
	struct file_writer w = {.fd = make_file(flags), .size = SIZE, .pipe = {-1, -1}};
	uint8_t *data = malloc(SIZE);
	uint8_t *back = malloc(SIZE);

	assert_non_null(data);
	assert_non_null(back);
	for (size_t i = 0; i < SIZE; i++)
		data[i] = (uint8_t)(i * 2654435761U >> 13);
	assert_true(file_pour_begin(&w));
	pour_all(&w, data, SIZE);
	assert_int_equal(w.done, SIZE);
	assert_int_equal(w.piped, 0);
	assert_int_equal(pread(w.fd, back, SIZE, 0), SIZE);
	assert_memory_equal(back, data, SIZE);
	fd_close(&w.pipe[0]);
	fd_close(&w.pipe[1]);
	fd_close(&w.fd);
	free(data);
	free(back);
}

static void test_spliced(void **state)
{
	(void)state;
	check(0);
}

static void test_copied(void **state)
{
	(void)state;
	check(O_APPEND);
}

/* In both ways a file that takes no more says so. */
static void test_no_space(void **state)
{
	static const int ways[] = {0, O_APPEND};

	(void)state;
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		struct file_writer w = {
		    .fd = open("/dev/full", O_WRONLY | O_CLOEXEC | ways[i]),
		    .size = SIZE,
		    .pipe = {-1, -1},
		};

		assert_true(w.fd >= 0);
		assert_true(file_pour_begin(&w));
		assert_int_equal(write(w.pipe[1], "data", 4), 4);
		w.piped = 4;
		assert_int_equal(file_pour_end(&w), ENOSPC);
		fd_close(&w.pipe[0]);
		fd_close(&w.pipe[1]);
		fd_close(&w.fd);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_spliced),
	    cmocka_unit_test(test_copied),
	    cmocka_unit_test(test_no_space),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
