/* Tests of worker/janitor.c: its orders, and its process from start to the end of its socket. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/fd.h"
#include "worker/janitor.h"

static char dir[] = "/tmp/sbxd-test-janitor-XXXXXX";

static int setup(void **state)
{
	(void)state;
	return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	return rmdir(dir); /* every order's traces are gone */
}

static void fill(struct ctl_msg *m, enum ctl_type type, const char *driver)
{
	struct ctl_site *site = &m->body.prepare.site;

	memset(m, 0, sizeof(*m));
	m->head.type = (uint16_t)type;
	(void)snprintf(site->instance, sizeof(site->instance), "jan%d", (int)getpid());
	(void)snprintf(site->driver, sizeof(site->driver), "%s", driver);
	(void)snprintf(site->state_dir, sizeof(site->state_dir), "%s", dir);
	(void)snprintf(site->runtime_dir, sizeof(site->runtime_dir), "%s", dir);
	site->uid_base = geteuid() == 0 ? 1500000000U : 0;
}

static void test_unknown_driver(void **state)
{
	struct ctl_done done;
	struct ctl_msg m;

	(void)state;
	fill(&m, CTL_PREPARE, "nonesuch");
	janitor_handle(&m, -1, &done);
	assert_int_equal(done.code, ENOENT);
	assert_non_null(strstr(done.text, "nonesuch"));
}

static void test_other_messages_are_refused(void **state)
{
	static const uint16_t others[] = {CTL_NONE, CTL_BOOT, CTL_DONE, CTL_TYPES, 65535};
	struct ctl_done done;
	struct ctl_msg m;

	(void)state;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		fill(&m, CTL_PREPARE, "namespace");
		m.head.type = others[i];
		janitor_handle(&m, -1, &done);
		assert_int_equal(done.code, EBADMSG);
	}
}

static void test_prepare_sweep_finish(void **state)
{
	FD_SCOPED int prepared = memfd_create("prepared", MFD_CLOEXEC);
	FD_SCOPED int kept = memfd_create("kept", MFD_CLOEXEC);
	struct ctl_done done;
	struct ctl_msg m;

	(void)state;
	fill(&m, CTL_PREPARE, "namespace");
	(void)snprintf(m.body.prepare.image, sizeof(m.body.prepare.image), "host");
	janitor_handle(&m, prepared, &done);
	if (done.code == EPERM || done.code == ENOSYS)
		skip(); /* no namespaces here */
	if (done.code)
		fail_msg("%s", done.text);
	assert_string_equal(done.isolation, "namespace");
	assert_true(lseek(prepared, 0, SEEK_END) > 0);

	fill(&m, CTL_SWEEP, "namespace");
	janitor_handle(&m, kept, &done);
	assert_int_equal(done.code, 0);
	assert_int_equal(done.count, 0);
	assert_int_equal(write(kept, "sbxd-unit", 9), 9); /* a name without its end */
	janitor_handle(&m, kept, &done);
	assert_int_equal(done.code, EBADMSG);

	fill(&m, CTL_FINISH, "namespace");
	janitor_handle(&m, prepared, &done);
	assert_int_equal(done.code, 0);
}

static void test_cleanup_refuses_a_foreign_name(void **state)
{
	struct ctl_done done;
	struct ctl_msg m;

	(void)state;
	fill(&m, CTL_CLEANUP, "namespace");
	(void)snprintf(m.body.cleanup.name, sizeof(m.body.cleanup.name), "sbxd-other-1");
	janitor_handle(&m, -1, &done);
	assert_int_equal(done.code, EINVAL);
	assert_non_null(strstr(done.text, "sbxd-other-1"));
}

static pid_t spawn_janitor(int *control)
{
	int pair[2];
	pid_t pid;

	assert_int_equal(
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		(void)alarm(60); /* whatever happens to the test */
		if (dup2(pair[1], CTL_FD_CONTROL) < 0)
			_exit(99);
		for (int fd = CTL_FD_CONTROL + 1; fd < 20; fd++)
			(void)close(fd);
		_exit(janitor_main());
	}
	(void)close(pair[1]);
	*control = pair[0];
	return pid;
}

static void test_process_answers_in_order_and_ends(void **state)
{
	static uint8_t packet[CTL_MSG_MAX];
	FD_SCOPED int control = -1;
	pid_t pid = spawn_janitor(&control);
	struct pollfd p = {.fd = control, .events = POLLIN};
	struct ctl_msg m;
	struct ctl_msg answer;
	int status = 0;

	(void)state;
	/* A terminal's interrupt does not end it. */
	fill(&m, CTL_FINISH, "namespace");
	for (uint64_t seq = 41; seq < 44; seq++)
		assert_int_equal(
		    ctl_send(control, CTL_FINISH, seq, 0, &m.body.prepare, NULL, 0, -1), 0);
	for (uint64_t seq = 41; seq < 44; seq++) {
		assert_int_equal(poll(&p, 1, 10000), 1);
		assert_int_equal(ctl_recv(control, packet, &answer), 1);
		assert_int_equal(answer.head.type, CTL_DONE);
		assert_int_equal(answer.head.seq, seq);
		assert_int_equal(answer.body.done.code, 0);
		assert_int_equal(kill(pid, SIGINT), 0);
		assert_int_equal(kill(pid, SIGTERM), 0);
	}
	fd_close(&control);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_unknown_driver),
	    cmocka_unit_test(test_other_messages_are_refused),
	    cmocka_unit_test(test_prepare_sweep_finish),
	    cmocka_unit_test(test_cleanup_refuses_a_foreign_name),
	    cmocka_unit_test(test_process_answers_in_order_and_ends),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
