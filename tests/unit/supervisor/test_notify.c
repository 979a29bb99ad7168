/* What the service manager is told: by a path or an abstract name, never waiting for it. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/clock.h"
#include "lib/fd.h"
#include "lib/log.h"
#include "supervisor/notify.h"

/* The manager's end. */
struct fixture {
	char name[64];
	int fd;
	struct notify n;
};

static void begin(struct fixture *f, const char *prefix)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	size_t len;

	(void)snprintf(f->name, sizeof(f->name), "%s/tmp/sbxd-notify-%d", prefix, (int)getpid());
	len = strlen(f->name);
	memcpy(addr.sun_path, f->name, len);
	if (*prefix)
		addr.sun_path[0] = '\0';
	f->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	assert_int_equal(bind(f->fd, (struct sockaddr *)&addr,
			     (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len)),
	    0);
	assert_int_equal(setenv("NOTIFY_SOCKET", f->name, 1), 0);
	notify_open(&f->n);
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	begin(f, "");
	*state = f;
	return 0;
}

static int setup_abstract(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	begin(f, "@");
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	notify_close(&f->n);
	fd_close(&f->fd);
	if (f->name[0] == '/')
		(void)unlink(f->name);
	free(f);
	return 0;
}

/* The next message, "" when there is none. */
static const char *heard(const struct fixture *f)
{
	static char text[1024];
	ssize_t n = recv(f->fd, text, sizeof(text) - 1, 0);

	text[n < 0 ? 0 : n] = '\0';
	return text;
}

static void test_tells_a_state(void **state)
{
	struct fixture *f = *state;

	notify_send(&f->n, "READY=1");
	assert_string_equal(heard(f), "READY=1");
	assert_int_equal(notify_try(&f->n, "WATCHDOG=1"), 0);
	assert_string_equal(heard(f), "WATCHDOG=1");
	notify_reloading(&f->n, 1234567890123ULL);
	assert_string_equal(heard(f), "RELOADING=1\nMONOTONIC_USEC=1234567890");
	assert_string_equal(heard(f), "");
}

static void test_takes_its_variables_away(void **state)
{
	struct fixture *f = *state;

	assert_null(getenv("NOTIFY_SOCKET"));
	notify_close(&f->n);
	notify_open(&f->n); /* nobody by now */
	notify_send(&f->n, "READY=1");
	assert_string_equal(heard(f), "");
	assert_null(f->n.due);
}

static void test_the_watchdog_is_for_this_process(void **state)
{
	const struct {
		const char *usec;
		long pid; /* relative to ours; 1000000: none is named */
		uint64_t ns;
	} cases[] = {
	    {"3000000", 0, 3 * NS_PER_S},
	    {"3000000", 1000000, 3 * NS_PER_S},
	    {"3000000", 1, 0},
	    {"-3", 0, 0},
	    {"3x", 0, 0},
	    {"", 0, 0},
	    {"18446744073709551615", 0, 0},
	    {"99999999999999999999", 0, 0},
	};
	struct fixture *f = *state;
	char pid[32];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		(void)snprintf(pid, sizeof(pid), "%ld", (long)getpid() + cases[i].pid);
		assert_int_equal(setenv("NOTIFY_SOCKET", f->name, 1), 0);
		assert_int_equal(setenv("WATCHDOG_USEC", cases[i].usec, 1), 0);
		if (cases[i].pid != 1000000)
			assert_int_equal(setenv("WATCHDOG_PID", pid, 1), 0);
		notify_close(&f->n);
		notify_open(&f->n);
		assert_int_equal(f->n.watchdog_ns, cases[i].ns);
		assert_null(getenv("WATCHDOG_USEC"));
		assert_null(getenv("WATCHDOG_PID"));
	}
}

static void test_a_status_is_one_line_and_told_once(void **state)
{
	struct fixture *f = *state;
	char is[2 * NOTIFY_STATUS_MAX];

	notify_status(&f->n, "%s", "image a\nREADY=1");
	assert_string_equal(heard(f), "STATUS=image a?READY=1");
	notify_status(&f->n, "%s", "image a\nREADY=1");
	assert_string_equal(heard(f), "");
	memset(is, 'x', sizeof(is));
	is[sizeof(is) - 1] = '\0';
	notify_status(&f->n, "%s", is);
	assert_int_equal(strlen(heard(f)), strlen("STATUS=") + NOTIFY_STATUS_MAX - 1);
}

/* A state must not be lost where the queue is full, and it is the newest one that counts. */
static void test_a_full_queue_is_not_waited_for(void **state)
{
	struct fixture *f = *state;
	int filled = 0;

	while (notify_try(&f->n, "WATCHDOG=1") == 0)
		filled++;
	assert_true(filled > 0);
	notify_status(&f->n, "full");
	notify_send(&f->n, "READY=1");
	notify_send(&f->n, "STOPPING=1");
	notify_retry(&f->n);
	for (int i = 0; i < filled; i++)
		assert_string_equal(heard(f), "WATCHDOG=1");
	assert_string_equal(heard(f), "");
	notify_retry(&f->n);
	assert_string_equal(heard(f), "STOPPING=1");
	notify_retry(&f->n);
	assert_string_equal(heard(f), "");
	notify_status(&f->n, "full"); /* it was not told before */
	assert_string_equal(heard(f), "STATUS=full");
}

static void test_a_manager_that_is_gone(void **state)
{
	struct fixture *f = *state;

	fd_close(&f->fd);
	notify_send(&f->n, "READY=1");
	assert_null(f->n.due);
}

static void test_a_socket_of_no_kind(void **state)
{
	static const char *const names[] = {"", "vsock:2:99", "relative/path",
	    "/0123456789012345678901234567890123456789012345678901234567890123456789012345678901234"
	    "5678901234567890123456789"};
	struct fixture *f = *state;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		assert_int_equal(setenv("NOTIFY_SOCKET", names[i], 1), 0);
		notify_close(&f->n);
		notify_open(&f->n);
		assert_int_equal(f->n.fd, -1);
		notify_send(&f->n, "READY=1");
		assert_null(getenv("NOTIFY_SOCKET"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_tells_a_state, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_tells_a_state, setup_abstract, teardown),
	    cmocka_unit_test_setup_teardown(test_takes_its_variables_away, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_the_watchdog_is_for_this_process, setup, teardown),
	    cmocka_unit_test_setup_teardown(
		test_a_status_is_one_line_and_told_once, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_a_full_queue_is_not_waited_for, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_a_manager_that_is_gone, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_a_socket_of_no_kind, setup, teardown),
	};

	log_init("unit", LOG_TEXT, LOG_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
