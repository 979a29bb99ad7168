/* Tests of worker/janitor.c: its orders, and its process from start to the end of its socket. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/fd.h"
#include "lib/proc.h"
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

static void handle(const struct ctl_msg *m, int fd, struct ctl_done *done)
{
	struct janitor_answer answer;

	janitor_handle(m, fd, &answer);
	*done = answer.done;
	janitor_answer_free(&answer);
}

static void test_unknown_driver(void **state)
{
	struct ctl_done done;
	struct ctl_msg m;

	(void)state;
	fill(&m, CTL_PREPARE, "nonesuch");
	handle(&m, -1, &done);
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
		handle(&m, -1, &done);
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
	handle(&m, prepared, &done);
	if (done.code == EPERM || done.code == ENOSYS)
		skip(); /* no namespaces here */
	if (done.code)
		fail_msg("%s", done.text);
	assert_string_equal(done.isolation, "namespace");
	assert_true(lseek(prepared, 0, SEEK_END) > 0);

	fill(&m, CTL_SWEEP, "namespace");
	handle(&m, kept, &done);
	assert_int_equal(done.code, 0);
	assert_int_equal(done.count, 0);
	assert_int_equal(write(kept, "+sbxd-unit", 10), 10); /* a name without its end */
	handle(&m, kept, &done);
	assert_int_equal(done.code, EBADMSG);
	assert_int_equal(done.missing, 0);

	fill(&m, CTL_FINISH, "namespace");
	handle(&m, prepared, &done);
	assert_int_equal(done.code, 0);
}

/* The first that takes such an image; none knows this one. */
static void test_auto_picks_a_driver(void **state)
{
	FD_SCOPED int prepared = memfd_create("prepared", MFD_CLOEXEC);
	struct ctl_done done;
	struct ctl_msg m;

	(void)state;
	fill(&m, CTL_PREPARE, "auto");
	(void)snprintf(m.body.prepare.image, sizeof(m.body.prepare.image), "host");
	handle(&m, prepared, &done);
	if (done.code == EPERM || done.code == ENOSYS)
		skip(); /* no namespaces here */
	assert_int_equal(done.code, 0);
	assert_string_equal(done.driver, "namespace");
	(void)snprintf(m.body.prepare.image, sizeof(m.body.prepare.image), "/nowhere/at/all");
	handle(&m, prepared, &done);
	assert_int_not_equal(done.code, 0);
	assert_non_null(strstr(done.text, "namespace: "));
	assert_non_null(strstr(done.text, "/nowhere/at/all"));

	fill(&m, CTL_FINISH, "auto");
	handle(&m, -1, &done);
	assert_int_equal(done.code, 0);
}

static void test_cleanup_refuses_a_foreign_name(void **state)
{
	struct ctl_done done;
	struct ctl_msg m;

	(void)state;
	fill(&m, CTL_CLEANUP, "namespace");
	(void)snprintf(m.body.cleanup.name, sizeof(m.body.cleanup.name), "sbxd-other-1-1");
	handle(&m, -1, &done);
	assert_int_equal(done.code, EINVAL);
	assert_non_null(strstr(done.text, "sbxd-other-1-1"));
}

/* ---- what is to be kept ---- */

static void box_name(char out[64], int slot)
{
	(void)snprintf(out, 64, "sbxd-jan%d-%d-1", (int)getpid(), slot);
}

static void box_path(char out[200], int slot)
{
	char name[64];

	box_name(name, slot);
	(void)snprintf(out, 200, "%s/namespace-jan%d/boxes/%s", dir, (int)getpid(), name);
}

/* The trace of a box: of this process if it lives, else of one that is long gone. */
static void add_box(int slot, bool lives)
{
	char path[200];
	uint64_t start = 0;
	FILE *f;

	box_path(path, slot);
	assert_int_equal(proc_start_time(getpid(), &start), 0);
	f = fopen(path, "we");
	assert_non_null(f);
	assert_true(
	    fprintf(f, "%d %llu\n", (int)getpid(), (unsigned long long)(lives ? start : 1)) > 0);
	assert_int_equal(fclose(f), 0);
}

static bool has_box(int slot)
{
	char path[200];

	box_path(path, slot);
	return access(path, F_OK) == 0;
}

/* The instance's directories, without what prepare() would put there. */
static int setup_traces(void **state)
{
	char path[200];

	(void)state;
	(void)snprintf(path, sizeof(path), "%s/namespace-jan%d", dir, (int)getpid());
	assert_int_equal(mkdir(path, 0700), 0);
	(void)strcat(path, "/boxes");
	assert_int_equal(mkdir(path, 0700), 0);
	return 0;
}

static int teardown_traces(void **state)
{
	struct ctl_done done;
	struct ctl_msg m;

	(void)state;
	fill(&m, CTL_FINISH, "namespace");
	handle(&m, -1, &done);
	return done.code;
}

static void keep(int kept, char how, int slot)
{
	char name[64];

	box_name(name, slot);
	assert_true(dprintf(kept, "%c%s%c", how, name, '\0') > 0);
}

static void test_sweep_keeps_what_it_is_told(void **state)
{
	FD_SCOPED int kept = memfd_create("kept", MFD_CLOEXEC);
	struct ctl_done done;
	struct ctl_msg m;

	(void)state;
	for (int slot = 1; slot <= 4; slot++)
		add_box(slot, slot == 1);
	keep(kept, CTL_KEEP_LIVE, 1);
	keep(kept, CTL_KEEP_ENDING, 2);
	fill(&m, CTL_SWEEP, "namespace");
	handle(&m, kept, &done);
	assert_int_equal(done.code, 0);
	assert_int_equal(done.count, 2);
	assert_int_equal(done.missing, 0);
	assert_true(has_box(1) && has_box(2));
	assert_false(has_box(3) || has_box(4));
}

/* Dead, half there, not there: counted, and left to their workers. */
static void test_sweep_counts_what_should_live_and_does_not(void **state)
{
	FD_SCOPED int kept = memfd_create("kept", MFD_CLOEXEC);
	struct ctl_done done;
	struct ctl_msg m;

	(void)state;
	add_box(1, true);
	add_box(2, false);
	for (int slot = 1; slot <= 3; slot++)
		keep(kept, CTL_KEEP_LIVE, slot);
	keep(kept, CTL_KEEP_ENDING, 4);
	fill(&m, CTL_SWEEP, "namespace");
	handle(&m, kept, &done);
	assert_int_equal(done.code, 0);
	assert_int_equal(done.missing, 2);
	assert_int_equal(done.count, 0);
	assert_true(has_box(1) && has_box(2));
}

/* A start that fails leaves what the last supervisor's boxes need. */
static void test_a_driver_that_cannot_keeps_its_boxes(void **state)
{
	FD_SCOPED int prepared = memfd_create("prepared", MFD_CLOEXEC);
	struct ctl_done done;
	struct ctl_msg m;

	(void)state;
	add_box(6, true);
	fill(&m, CTL_PREPARE, "auto");
	(void)snprintf(m.body.prepare.image, sizeof(m.body.prepare.image), "/nowhere/at/all");
	handle(&m, prepared, &done);
	assert_int_not_equal(done.code, 0);
	assert_true(has_box(6));
}

/* One that was reserved before `auto` was decided. */
static void test_cleanup_whatever_driver_it_was(void **state)
{
	struct ctl_done done;
	struct ctl_msg m;

	(void)state;
	add_box(5, false);
	fill(&m, CTL_CLEANUP, "auto");
	box_name(m.body.cleanup.name, 5);
	handle(&m, -1, &done);
	assert_int_equal(done.code, 0);
	assert_false(has_box(5));
}

/* ---- the process ---- */

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

/* The answer to order `seq`; *busy: what came before it. */
static void await_done(int control, uint64_t seq, unsigned int *busy, struct ctl_done *done)
{
	static uint8_t packet[CTL_MSG_MAX];
	struct pollfd p = {.fd = control, .events = POLLIN};
	struct ctl_msg m;

	*busy = 0;
	for (;;) {
		assert_int_equal(poll(&p, 1, 20000), 1);
		assert_int_equal(ctl_recv(control, packet, &m), 1);
		assert_int_equal(m.head.seq, seq);
		if (m.head.type == CTL_DONE)
			break;
		assert_int_equal(m.head.type, CTL_BUSY);
		++*busy;
	}
	fd_close(&m.fd);
	*done = m.body.done;
}

/* A driver has its time for each of its calls; sbxd counts from the last word. */
static void test_process_tells_that_it_gets_on(void **state)
{
	FD_SCOPED int prepared = memfd_create("prepared", MFD_CLOEXEC);
	FD_SCOPED int control = -1;
	pid_t pid = spawn_janitor(&control);
	unsigned int busy;
	struct ctl_done done;
	struct ctl_msg m;

	(void)state;
	fill(&m, CTL_PREPARE, "auto");
	(void)snprintf(m.body.prepare.image, sizeof(m.body.prepare.image), "host");
	assert_int_equal(
	    ctl_send(control, CTL_PREPARE, 51, 0, &m.body.prepare, NULL, 0, prepared), 0);
	await_done(control, 51, &busy, &done);
	if (done.code == EPERM || done.code == ENOSYS)
		skip(); /* no namespaces here */
	assert_string_equal(done.driver, "namespace");
	assert_int_equal(busy, 2); /* before its probe() and before its prepare() */
	fill(&m, CTL_FINISH, "namespace");
	assert_int_equal(ctl_send(control, CTL_FINISH, 52, 0, &m.body.prepare, NULL, 0, -1), 0);
	await_done(control, 52, &busy, &done);
	assert_int_equal(done.code, 0);
	fd_close(&control);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* ---- turns ---- */

struct turn {
	pid_t pid;
	int control;
};

static void turn_order(const struct turn *t, enum ctl_type type, int fd)
{
	struct ctl_msg m;

	fill(&m, type, "namespace");
	if (type == CTL_CLEANUP)
		box_name(m.body.cleanup.name, 9); /* there is none */
	assert_int_equal(ctl_send(t->control, type, 7, 0, &m.body, NULL, 0, fd), 0);
}

static void turn_await(const struct turn *t, struct ctl_done *done)
{
	static uint8_t packet[CTL_MSG_MAX];
	struct pollfd p = {.fd = t->control, .events = POLLIN};
	struct ctl_msg m;

	assert_int_equal(poll(&p, 1, 20000), 1);
	assert_int_equal(ctl_recv(t->control, packet, &m), 1);
	assert_int_equal(m.head.type, CTL_DONE);
	*done = m.body.done;
}

/* The first has the turn from its first order on, until it ends. */
static struct turn turn_take(void)
{
	struct turn t;
	struct ctl_done done;

	t.pid = spawn_janitor(&t.control);
	turn_order(&t, CTL_CLEANUP, -1);
	turn_await(&t, &done);
	assert_int_equal(done.code, 0);
	return t;
}

/* Whoever has an order has the runtime directory open: to hold the turn, or to wait for it. */
static bool turn_has_begun(const struct turn *t)
{
	char path[64];
	char target[200];
	ssize_t n;

	for (int fd = 0; fd < 20; fd++) {
		(void)snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)t->pid, fd);
		n = readlink(path, target, sizeof(target) - 1);
		if (n > 0 && (size_t)n == strlen(dir) && !strncmp(target, dir, (size_t)n))
			return true;
	}
	return false;
}

/* A second one, which is ordered to sweep while the first has the turn. */
static struct turn turn_wait(void)
{
	FD_SCOPED int kept = memfd_create("kept", MFD_CLOEXEC);
	struct turn t;

	t.pid = spawn_janitor(&t.control);
	turn_order(&t, CTL_SWEEP, kept);
	for (int i = 0; !turn_has_begun(&t); i++) {
		assert_true(i < 10000);
		(void)poll(NULL, 0, 1);
	}
	return t;
}

static void turn_hang_up(struct turn *t)
{
	fd_close(&t->control);
}

static int turn_end(const struct turn *t)
{
	int status = -1;

	assert_int_equal(waitpid(t->pid, &status, 0), t->pid);
	return status;
}

static void test_a_second_janitor_waits_for_its_turn(void **state)
{
	struct turn first = turn_take();
	struct turn second;
	struct pollfd p = {.events = POLLIN};
	struct ctl_done done;

	(void)state;
	add_box(5, false);
	second = turn_wait();
	p.fd = second.control;
	assert_int_equal(poll(&p, 1, 50), 0);
	assert_true(has_box(5));
	turn_hang_up(&first);
	assert_int_equal(turn_end(&first), 0);
	turn_await(&second, &done);
	assert_int_equal(done.code, 0);
	assert_int_equal(done.count, 1);
	assert_false(has_box(5));
	turn_hang_up(&second);
	assert_int_equal(turn_end(&second), 0);
}

/* Its sbxd dies while it waits: what it would sweep may be a newer sbxd's by the time it could. */
static void test_a_waiting_janitor_ends_with_its_sbxd(void **state)
{
	struct turn first = turn_take();
	struct turn second;

	(void)state;
	add_box(5, false);
	second = turn_wait();
	turn_hang_up(&second);
	assert_int_equal(turn_end(&second), 0);
	assert_true(has_box(5));
	turn_hang_up(&first);
	assert_int_equal(turn_end(&first), 0);
}

/* The same when its turn comes at once: sbxd was gone before the order was read. */
static void test_an_order_that_outlived_its_sbxd_is_not_done(void **state)
{
	FD_SCOPED int kept = memfd_create("kept", MFD_CLOEXEC);
	struct turn t;
	int status = 0;

	(void)state;
	add_box(5, false);
	t.pid = spawn_janitor(&t.control);
	assert_int_equal(kill(t.pid, SIGSTOP), 0);
	assert_int_equal(waitpid(t.pid, &status, WUNTRACED), t.pid);
	assert_true(WIFSTOPPED(status));
	turn_order(&t, CTL_SWEEP, kept);
	turn_hang_up(&t);
	assert_int_equal(kill(t.pid, SIGCONT), 0);
	assert_int_equal(turn_end(&t), 0);
	assert_true(has_box(5));
}

#define TRACES(t) cmocka_unit_test_setup_teardown(t, setup_traces, teardown_traces)

int main(void)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_unknown_driver),
	    cmocka_unit_test(test_other_messages_are_refused),
	    cmocka_unit_test(test_prepare_sweep_finish),
	    cmocka_unit_test(test_auto_picks_a_driver),
	    cmocka_unit_test(test_cleanup_refuses_a_foreign_name),
	    TRACES(test_sweep_keeps_what_it_is_told),
	    TRACES(test_a_driver_that_cannot_keeps_its_boxes),
	    TRACES(test_cleanup_whatever_driver_it_was),
	    TRACES(test_sweep_counts_what_should_live_and_does_not),
	    cmocka_unit_test(test_process_answers_in_order_and_ends),
	    cmocka_unit_test(test_process_tells_that_it_gets_on),
	    TRACES(test_a_second_janitor_waits_for_its_turn),
	    TRACES(test_a_waiting_janitor_ends_with_its_sbxd),
	    TRACES(test_an_order_that_outlived_its_sbxd_is_not_done),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
