/* A machine whose console says much, played by a process of ours. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "drivers/qemu/machine.h"
#include "lib/clock.h"
#include "lib/fd.h"

#define LONG (60 * NS_PER_S) /* not waited for, unless something is wrong */
#define SHORT (200 * NS_PER_MS)
#define PANIC "[    1.0] Kernel panic - not syncing: No working init found."
#define TRACE "[    1.1]  panic+0x118/0x2f4\r\n"
#define MUCH (1024 * 1024) /* more than any socket holds */

/* What the process does with its ends of the stream and of the console. */
typedef void qemu_fn(int stream, int console);

static void make_pair(int *ours, int *theirs)
{
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(fd_set_nonblock(pair[0]), 0);
	*ours = pair[0];
	*theirs = pair[1];
}

static struct machine start(qemu_fn *qemu)
{
	struct machine m = {.qmp = -1, .listener = -1, .memory = -1};
	int stream;
	int console;

	make_pair(&m.stream, &stream);
	make_pair(&m.console, &console);
	m.words = memfd_create("words", MFD_CLOEXEC);
	m.said = memfd_create("said", MFD_CLOEXEC);
	m.pid = fork();
	assert_true(m.pid >= 0);
	if (m.pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)close(m.stream);
		(void)close(m.console);
		qemu(stream, console);
		_exit(0);
	}
	m.pidfd = (int)syscall(SYS_pidfd_open, m.pid, 0);
	(void)close(stream);
	(void)close(console);
	return m;
}

static void end(struct machine *m)
{
	assert_int_equal(machine_kill(m, clock_now_ns() + LONG), 0);
	machine_close(m);
}

static void say(int console, const char *line)
{
	size_t n = strlen(line);

	if (write(console, line, n) != (ssize_t)n)
		_exit(1);
}

/* A kernel that panics, with a trace; its machine ends only when all of it is out. */
static void panics(int stream, int console)
{
	(void)stream;
	say(console, PANIC "\r\n");
	for (size_t n = 0; n < MUCH; n += strlen(TRACE))
		say(console, TRACE);
}

static void talks_before_it_is_there(int stream, int console)
{
	for (size_t n = 0; n < MUCH; n += strlen(TRACE))
		say(console, TRACE);
	if (write(stream, "hello", 5) != 5)
		_exit(1);
	(void)pause();
}

static void talks_for_ever(int stream, int console)
{
	(void)stream;
	for (;;)
		say(console, TRACE);
}

static void test_a_full_console_holds_no_machine_up(void **state)
{
	struct machine m = start(talks_before_it_is_there);

	(void)state;
	assert_int_equal(machine_wait(&m, m.stream, POLLIN, clock_now_ns() + LONG), 0);
	end(&m);
}

static void test_the_end_comes_after_a_long_trace_and_is_explained(void **state)
{
	struct machine m = start(panics);
	struct err err = {0};

	(void)state;
	/* Its stream ends with it. */
	assert_int_equal(machine_wait(&m, m.stream, POLLIN, clock_now_ns() + LONG), 0);
	(void)err_set(&err, EPIPE, "it ended");
	machine_explain(&m, &err);
	assert_string_equal(
	    err.text, "it ended (Kernel panic - not syncing: No working init found.)");
	end(&m);
}

static void test_what_is_said_before_anybody_waits_counts(void **state)
{
	struct machine m = start(panics);
	struct err err = {0};
	struct pollfd p = {.fd = m.console, .events = POLLIN};

	(void)state;
	while (recv(m.console, err.text, sizeof(PANIC), MSG_PEEK) < (ssize_t)sizeof(PANIC))
		assert_int_equal(poll(&p, 1, 10000), 1);
	(void)err_set(&err, ETIMEDOUT, "late");
	machine_explain(&m, &err);
	assert_non_null(strstr(err.text, "late (Kernel panic"));
	end(&m);
}

static void test_one_that_talks_for_ever_is_not_waited_for(void **state)
{
	struct machine m = start(talks_for_ever);
	uint64_t began = clock_now_ns();

	(void)state;
	assert_int_equal(machine_wait(&m, m.stream, POLLIN, began + SHORT), -ETIMEDOUT);
	assert_true(clock_now_ns() - began >= SHORT);
	end(&m);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_a_full_console_holds_no_machine_up),
	    cmocka_unit_test(test_the_end_comes_after_a_long_trace_and_is_explained),
	    cmocka_unit_test(test_what_is_said_before_anybody_waits_counts),
	    cmocka_unit_test(test_one_that_talks_for_ever_is_not_waited_for),
	};

	(void)alarm(120); /* a wait that never ends is a failure, too */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
