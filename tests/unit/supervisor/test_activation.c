/* The socket of a service manager: which is taken, and what is left of its variables. Descriptor 3
 * is where it is: this process keeps nothing else there. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/fd.h"
#include "supervisor/activation.h"

#define FIRST 3

static char path[64];

static int unix_socket(int type, const char *at, bool listens)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, type, 0);

	assert_true(fd >= 0);
	if (at) {
		(void)unlink(at); /* of the case before */
		memcpy(addr.sun_path, at, strlen(at));
		assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	} else if (listens) /* the kernel chooses an abstract name */
		assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr.sun_family)), 0);
	if (listens)
		assert_int_equal(listen(fd, 4), 0);
	return fd;
}

/* As a manager does it: fd becomes descriptor 3, inherited, and the environment says so. */
static void hand_over(int fd, const char *count, long pid_more)
{
	char pid[32];

	(void)snprintf(pid, sizeof(pid), "%ld", (long)getpid() + pid_more);
	if (fd >= 0 && fd != FIRST) {
		assert_int_equal(dup2(fd, FIRST), FIRST);
		(void)close(fd);
	}
	assert_int_equal(setenv("LISTEN_PID", pid, 1), 0);
	assert_int_equal(setenv("LISTEN_FDS", count, 1), 0);
	assert_int_equal(setenv("LISTEN_FDNAMES", "sbxd.socket", 1), 0);
}

static void assert_no_variables(void)
{
	assert_null(getenv("LISTEN_PID"));
	assert_null(getenv("LISTEN_FDS"));
	assert_null(getenv("LISTEN_FDNAMES"));
}

static void assert_refused(const char *because)
{
	struct err err = {0};
	int fd = 99;

	assert_true(activation_take(path, &fd, &err) < 0);
	assert_int_equal(fd, 99);
	assert_non_null(strstr(err.text, because));
	assert_no_variables();
}

static int setup(void **state)
{
	(void)state;
	(void)snprintf(path, sizeof(path), "/tmp/sbxd-activation-%d", (int)getpid());
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	(void)close(FIRST); /* may not be open */
	(void)unlink(path);
	return 0;
}

static void test_takes_it_once(void **state)
{
	struct err err = {0};
	int fd = 99;

	(void)state;
	hand_over(unix_socket(SOCK_STREAM, path, true), "1", 0);
	assert_int_equal(activation_take(path, &fd, &err), 0);
	assert_int_equal(fd, FIRST);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
	assert_no_variables();
	assert_int_equal(activation_take(path, &fd, &err), 0);
	assert_int_equal(fd, -1);
}

static void test_what_is_anothers_stays(void **state)
{
	struct err err = {0};
	int fd = 99;

	(void)state;
	hand_over(unix_socket(SOCK_STREAM, path, true), "1", 1);
	assert_int_equal(activation_take(path, &fd, &err), 0);
	assert_int_equal(fd, -1);
	assert_int_equal(fcntl(FIRST, F_GETFD), 0); /* neither closed nor changed */
	assert_no_variables();
}

static void test_none(void **state)
{
	struct err err = {0};
	int fd = 99;

	(void)state;
	assert_int_equal(activation_take(path, &fd, &err), 0);
	assert_int_equal(fd, -1);
	hand_over(-1, "0", 0);
	assert_int_equal(activation_take(path, &fd, &err), 0);
	assert_int_equal(fd, -1);
}

static void test_refuses_another_address(void **state)
{
	char other[sizeof(path) + 8];

	(void)state;
	(void)snprintf(other, sizeof(other), "%s-other", path);
	hand_over(unix_socket(SOCK_STREAM, other, true), "1", 0);
	assert_refused("not at /tmp/");
	hand_over(unix_socket(SOCK_STREAM, NULL, true), "1", 0);
	assert_refused("listens at ''");
	(void)unlink(other);
}

static void test_refuses_another_kind(void **state)
{
	(void)state;
	hand_over(socket(AF_INET, SOCK_STREAM, 0), "1", 0);
	assert_refused("no Unix stream socket");
	hand_over(unix_socket(SOCK_SEQPACKET, path, true), "1", 0);
	assert_refused("no Unix stream socket");
	hand_over(unix_socket(SOCK_DGRAM, path, false), "1", 0);
	assert_refused("sbxd.socket is no Unix stream socket");
	hand_over(open("/dev/null", O_RDWR), "1", 0);
	assert_refused("no Unix stream socket");
	hand_over(unix_socket(SOCK_STREAM, path, false), "1", 0);
	assert_refused("does not listen");
}

static void test_refuses_more_than_one(void **state)
{
	(void)state;
	hand_over(unix_socket(SOCK_STREAM, path, true), "2", 0);
	assert_refused("2 sockets are handed over");
}

static void test_refuses_nonsense(void **state)
{
	static const char *const counts[] = {"", "x", "-1", "1x", "99999999999999999999"};

	(void)state;
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		hand_over(unix_socket(SOCK_STREAM, path, true), counts[i], 0);
		assert_refused("no number of descriptors");
	}
	assert_int_equal(setenv("LISTEN_PID", "me", 1), 0);
	assert_int_equal(setenv("LISTEN_FDS", "1", 1), 0);
	assert_refused("no process id");
	assert_int_equal(close(FIRST), 0);
	hand_over(-1, "1", 0);
	assert_refused("descriptor 3");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_takes_it_once, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_what_is_anothers_stays, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_none, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_refuses_another_address, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_refuses_another_kind, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_refuses_more_than_one, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_refuses_nonsense, setup, teardown),
	};

	/* The harness that starts us may have left something there. */
	(void)close(FIRST);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
