/* QEMU's monitor, played by a thread of ours: what a QEMU that was taken over could say, too. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "drivers/qemu/qmp.h"
#include "lib/clock.h"
#include "lib/fd.h"

#define GREETING "{\"QMP\": {\"version\": {}, \"capabilities\": []}}\r\n"
#define OK "{\"return\": {}}\r\n"

/* One machine: its process is a child that does nothing. */
struct stand {
	struct machine m;
	struct qmp q;
	struct err err;
	int qemu; /* QEMU's end */
};

static int setup(void **state)
{
	struct stand *s = calloc(1, sizeof(*s));
	int pair[2];

	assert_non_null(s);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	s->m =
	    (struct machine){.stream = -1, .words = -1, .console = -1, .said = -1, .listener = -1};
	s->m.qmp = pair[0];
	s->qemu = pair[1];
	assert_int_equal(fd_set_nonblock(pair[0]), 0);
	s->m.pid = fork();
	if (s->m.pid == 0) {
		(void)pause();
		_exit(0);
	}
	s->m.pidfd = (int)syscall(SYS_pidfd_open, s->m.pid, 0);
	assert_true(s->m.pidfd >= 0);
	*state = s;
	return 0;
}

static int teardown(void **state)
{
	struct stand *s = *state;

	assert_int_equal(machine_kill(&s->m, clock_now_ns() + 10 * NS_PER_S), 0);
	machine_close(&s->m);
	fd_close(&s->qemu);
	free(s);
	return 0;
}

static void say(struct stand *s, const char *text)
{
	assert_int_equal(write(s->qemu, text, strlen(text)), strlen(text));
}

static uint64_t soon(void)
{
	return clock_now_ns() + 10 * NS_PER_S;
}

/* Said beforehand: an answer may lie in the stream before the question. */
static void test_it_agrees_and_gives_orders(void **state)
{
	struct stand *s = *state;
	char heard[256] = "";
	char text[32];
	size_t len = 0;

	say(s, GREETING OK
	    "{\"event\": \"RESUME\"}\r\n{\"return\": {\"status\": \"running\"}}\r\n" OK);
	assert_int_equal(qmp_begin(&s->q, &s->m, soon(), &s->err), 0);
	assert_int_equal(qmp_ask(&s->q, "{\"execute\":\"query-status\"}", "status", text,
			     sizeof(text), soon(), &s->err),
	    0);
	assert_string_equal(text, "running");
	assert_int_equal(qmp_order(&s->q, "{\"execute\":\"stop\"}", soon(), &s->err), 0);
	while (!strstr(heard, "stop")) {
		ssize_t n = read(s->qemu, heard + len, sizeof(heard) - 1 - len);

		assert_true(n > 0);
		len += (size_t)n;
	}
	assert_string_equal(heard, "{\"execute\":\"qmp_capabilities\"}\n"
				   "{\"execute\":\"query-status\"}\n{\"execute\":\"stop\"}\n");
}

static void test_a_refusal_is_told(void **state)
{
	struct stand *s = *state;

	say(s, GREETING OK
	    "{\"error\": {\"class\": \"GenericError\", \"desc\": \"no such thing\"}}\r\n");
	assert_int_equal(qmp_begin(&s->q, &s->m, soon(), &s->err), 0);
	assert_int_equal(qmp_order(&s->q, "{\"execute\":\"fly\"}", soon(), &s->err), -EREMOTEIO);
	assert_string_equal(s->err.text, "QEMU refuses fly: no such thing");
}

static void test_nonsense_is_refused(void **state)
{
	static const char *const said[] = {
	    "hello\n", "[]\n", "{\"QMP\": \n", "\n", "{}\n", "\x80\n"};
	struct stand *s = *state;

	for (size_t i = 0; i < sizeof(said) / sizeof(said[0]); i++) {
		s->q.len = 0;
		say(s, said[i]);
		assert_int_equal(qmp_begin(&s->q, &s->m, soon(), &s->err), -EBADMSG);
	}
}

static void test_what_has_no_end_is_refused(void **state)
{
	struct stand *s = *state;
	char *much = malloc(2 * QMP_LINE);

	assert_non_null(much);
	memset(much, ' ', 2 * QMP_LINE);
	assert_int_equal(write(s->qemu, much, 2 * QMP_LINE), 2 * QMP_LINE);
	free(much);
	assert_int_equal(qmp_begin(&s->q, &s->m, soon(), &s->err), -EBADMSG);
}

/* Only events, for ever: each of them is a line, and each of them resets nothing. */
static void test_endless_events_are_refused(void **state)
{
	struct stand *s = *state;
	pid_t talker;

	say(s, GREETING OK);
	assert_int_equal(qmp_begin(&s->q, &s->m, soon(), &s->err), 0);
	talker = fork();
	assert_true(talker >= 0);
	if (talker == 0) {
		while (write(s->qemu, "{\"event\": \"E\"}\n", 15) == 15)
			continue;
		_exit(0);
	}
	assert_int_equal(qmp_order(&s->q, "{\"execute\":\"stop\"}", soon(), &s->err), -EBADMSG);
	assert_int_equal(kill(talker, SIGKILL), 0);
	assert_int_equal(waitpid(talker, NULL, 0), talker);
}

static void test_silence_has_a_bound(void **state)
{
	struct stand *s = *state;

	assert_int_equal(qmp_begin(&s->q, &s->m, clock_now_ns() + NS_PER_MS, &s->err), -ETIMEDOUT);
	assert_non_null(strstr(s->err.text, "did not answer in time"));
	say(s, GREETING OK);
	assert_int_equal(qmp_begin(&s->q, &s->m, soon(), &s->err), 0);
	assert_int_equal(
	    qmp_order(&s->q, "{\"execute\":\"stop\"}", clock_now_ns() + NS_PER_MS, &s->err),
	    -ETIMEDOUT);
}

/* QEMU does not read: an order that does not fit its queue is given up, too. */
static void test_a_full_queue_has_a_bound(void **state)
{
	struct stand *s = *state;
	char fill[4096] = "";

	say(s, GREETING OK);
	assert_int_equal(qmp_begin(&s->q, &s->m, soon(), &s->err), 0);
	while (write(s->m.qmp, fill, sizeof(fill)) > 0)
		continue;
	assert_int_equal(
	    qmp_order(&s->q, "{\"execute\":\"stop\"}", clock_now_ns() + NS_PER_MS, &s->err),
	    -ETIMEDOUT);
}

static void test_its_end_is_seen(void **state)
{
	struct stand *s = *state;

	say(s, GREETING OK);
	assert_int_equal(qmp_begin(&s->q, &s->m, soon(), &s->err), 0);
	assert_int_equal(kill(s->m.pid, SIGKILL), 0);
	assert_int_equal(qmp_order(&s->q, "{\"execute\":\"stop\"}", soon(), &s->err), -EPIPE);
	fd_close(&s->qemu);
	assert_int_equal(qmp_order(&s->q, "{\"execute\":\"stop\"}", soon(), &s->err), -EPIPE);
}

#define TEST(t) cmocka_unit_test_setup_teardown(t, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
	    TEST(test_it_agrees_and_gives_orders),
	    TEST(test_a_refusal_is_told),
	    TEST(test_nonsense_is_refused),
	    TEST(test_what_has_no_end_is_refused),
	    TEST(test_endless_events_are_refused),
	    TEST(test_silence_has_a_bound),
	    TEST(test_a_full_queue_has_a_bound),
	    TEST(test_its_end_is_seen),
	};

	(void)signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
