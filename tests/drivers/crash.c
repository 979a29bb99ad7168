/* crash: a worker that dies, or fails, at each step leaves nothing that cleanup() does not remove.
 */
#include "tests/drivers/conformance.h"
#include "tests/drivers/faults.h"
#include "tests/drivers/fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "drivers/record.h"
#include "lib/clock.h"
#include "lib/fd.h"
#include "lib/proc.h"

static int worker_starts_and_kills(struct fixture *f, struct fixture_box *b)
{
	struct err err = {0};

	if (f->driver->start(&f->site, &b->spec, &b->box, &b->stream, &err) < 0)
		return 1;
	return f->driver->kill(b->box, patience_soon()) < 0 ? 2 : 0;
}

static void assert_cleaned(struct fixture *f, struct fixture_box *b, pid_t pid, uint64_t start)
{
	struct host_state now;
	struct err err = {0};

	if (f->driver->cleanup(&f->site, b->name, pid, start, &err) < 0)
		fail_msg("cleanup: %s", err.text);
	host_state_take(&f->site, &now);
	host_state_assert_same(&f->quiet, &now);
}

static void die_at(const char *step, int known)
{
	struct fixture *f = fixture_current();
	struct fixture_box *b = fixture_box_new(f, 5);
	int status;

	faults_arm_kill(f->driver->name, step);
	status = fixture_wait(fixture_fork(f, b, worker_starts_and_kills));
	if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
		fail_msg("step %s was not reached: status %d", step, status);
	/* Before the box was announced nobody can know that its process is there; that it ends by
	 * itself is all there is. */
	if ((!known || !b->born->pid) && !(f->target->traits & TARGET_OUTLIVES))
		host_state_await_orphans();
	if (known)
		assert_cleaned(f, b, b->born->pid, b->born->start);
	else
		assert_cleaned(f, b, 0, 0);
	fixture_box_free(b);
}

static void test_worker_dies_at_each_step(void **state)
{
	struct fixture *f = fixture_current();

	(void)state;
	for (size_t i = 0; f->target->steps->deadly[i]; i++) {
		die_at(f->target->steps->deadly[i], 1);
		die_at(f->target->steps->deadly[i], 0);
	}
}

static void test_start_fails_at_each_step(void **state)
{
	struct fixture *f = fixture_current();
	struct fixture_box *b;
	struct host_state now;
	struct err err;

	(void)state;
	for (size_t i = 0; f->target->steps->failing[i]; i++) {
		b = fixture_box_new(f, 6);
		faults_arm_fail(f->driver->name, f->target->steps->failing[i]);
		err = (struct err){0};
		assert_int_equal(
		    f->driver->start(&f->site, &b->spec, &b->box, &b->stream, &err), -EIO);
		host_state_take(&f->site, &now);
		host_state_assert_same(&f->quiet, &now);
		fixture_box_free(b);
	}
}

static void kill_at_birth(void *ctx, pid_t pid, uint64_t start)
{
	struct fixture_box *b = ctx;

	b->born->pid = pid;
	b->born->start = start;
	assert_int_equal(kill(pid, SIGKILL), 0);
}

/* That is no fault of the box's, and start() says so: another may be tried. */
static void test_a_box_is_killed_while_it_starts(void **state)
{
	struct fixture *f = fixture_current();
	struct fixture_box *b = fixture_box_new(f, 7);
	struct err err = {0};

	(void)state;
	b->spec.born = kill_at_birth;
	b->spec.born_ctx = b;
	assert_int_equal(
	    f->driver->start(&f->site, &b->spec, &b->box, &b->stream, &err), -EOWNERDEAD);
	if (!strstr(err.text, "killed"))
		fail_msg("%s", err.text);
	assert_cleaned(f, b, b->born->pid, b->born->start);
	b->spec.born = NULL;
	fixture_box_start(f, b);
	fixture_box_kill(f, b);
	f->driver->free(b->box);
	fd_close(&b->stream);
	assert_cleaned(f, b, 0, 0);
	fixture_box_free(b);
}

/* A driver's own program may die as well: start() says so, and nothing is left. */
static void test_the_drivers_program_dies(void **state)
{
	struct fixture *f = fixture_current();
	struct fixture_box *b;
	struct host_state now;
	struct err err;

	(void)state;
	for (size_t i = 0; f->target->steps->program[i]; i++) {
		b = fixture_box_new(f, 9);
		faults_arm_program(f->driver->name, f->target->steps->program[i]);
		err = (struct err){0};
		assert_true(f->driver->start(&f->site, &b->spec, &b->box, &b->stream, &err) < 0);
		assert_true(err.text[0] != '\0');
		host_state_take(&f->site, &now);
		host_state_assert_same(&f->quiet, &now);
		fixture_box_free(b);
	}
}

static int any_box(void *ctx, const char *name)
{
	(void)ctx;
	(void)name;
	return 77;
}

/* What a janitor does to a box whose worker is gone. */
static int janitor_cleans(struct fixture *f, struct fixture_box *b)
{
	struct err err = {0};

	if (f->driver->list(&f->site, any_box, NULL) != 77)
		return 1;
	if (f->driver->adopt(&f->site, b->name, &err) < 0)
		return 2;
	return f->driver->cleanup(&f->site, b->name, b->born->pid, b->born->start, &err) < 0;
}

static bool was_killed(int status)
{
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

static void test_janitor_dies_while_cleaning(void **state)
{
	struct fixture *f = fixture_current();
	struct fixture_box *b;

	(void)state;
	for (size_t i = 0; f->target->steps->cleaning[i]; i++) {
		/* Without cgroups there is nothing to remove and so no such step. */
		if (f->target->traits & TARGET_OWN_WORK && f->facts.warning[0] &&
		    !strcmp(f->target->steps->cleaning[i], "cleanup"))
			continue;
		b = fixture_box_new(f, 7);
		fixture_box_start(f, b);
		faults_arm_kill(f->driver->name, f->target->steps->cleaning[i]);
		if (!was_killed(fixture_wait(fixture_fork(f, b, janitor_cleans))))
			fail_msg("step %s was not reached", f->target->steps->cleaning[i]);
		fixture_box_kill(f, b);
		f->driver->free(b->box);
		fd_close(&b->stream);
		assert_cleaned(f, b, 0, 0);
		fixture_box_free(b);
	}
}

/* Another instance that finds nothing of ours, so that what the others use stays. */
static struct driver_site other_site(const struct fixture *f, char state[96])
{
	struct driver_site site = f->site;

	(void)snprintf(state, 96, "%s/other", f->state);
	site.instance = "conf-crash";
	site.state_dir = state;
	return site;
}

static int janitor_prepares(struct fixture *f, struct fixture_box *b)
{
	char state[96];
	struct driver_site site = other_site(f, state);
	struct driver_facts facts;
	struct err err = {0};

	(void)b;
	if (f->driver->probe(&site, &facts, &err) < 0)
		return 1;
	if (f->driver->prepare(&site, f->image, &err) < 0)
		return 2;
	return f->driver->finish(&site, &err) < 0 ? 3 : 0;
}

static void assert_janitor_dies(const char *step)
{
	struct fixture *f = fixture_current();
	struct host_state now;
	char state[96];

	(void)other_site(f, state);
	assert_int_equal(mkdir(state, 0700), 0);
	faults_arm_kill(f->driver->name, step);
	if (!was_killed(fixture_wait(fixture_fork(f, NULL, janitor_prepares))))
		fail_msg("step %s was not reached", step);
	host_state_await_orphans();
	assert_int_equal(fixture_wait(fixture_fork(f, NULL, janitor_prepares)), 0);
	assert_int_equal(record_remove_tree(AT_FDCWD, state), 0);
	host_state_take(&f->site, &now);
	host_state_assert_same(&f->quiet, &now);
}

static void test_janitor_dies_while_preparing(void **state)
{
	struct fixture *f = fixture_current();

	(void)state;
	for (size_t i = 0; f->target->steps->preparing[i]; i++)
		assert_janitor_dies(f->target->steps->preparing[i]);
	for (size_t i = 0; f->target->steps->finishing[i]; i++)
		assert_janitor_dies(f->target->steps->finishing[i]);
}

/* They wrote to the same memory. What failed half-way is not to fail the tests after it as well. */
static int prepare_again(void **state)
{
	struct fixture *f = fixture_current();
	struct err err = {0};
	char path[96];

	(void)state;
	faults_disarm();
	(void)other_site(f, path);
	(void)record_remove_tree(AT_FDCWD, path); /* mostly it is gone */
	if (f->driver->prepare(&f->site, f->image, &err) < 0)
		fail_msg("prepare: %s", err.text);
	return 0;
}

/* The parent keeps a copy of the stream: its end is not what ends the box. */
static int worker_hands_out_stream(struct fixture *f, struct fixture_box *b)
{
	struct err err = {0};
	int to = b->stream;

	if (f->driver->start(&f->site, &b->spec, &b->box, &b->stream, &err) < 0)
		return 1;
	if (fd_send_msg(to, "", 1, &b->stream, 1) != 1)
		return 2;
	for (;;)
		(void)pause();
}

static void test_box_dies_with_its_worker(void **state)
{
	struct fixture *f = fixture_current();
	struct fixture_box *b = fixture_box_new(f, 8);
	int fds[FD_PASS_MAX];
	int pair[2];
	struct pollfd p = {.events = POLLIN};
	char byte;
	pid_t worker;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	b->stream = pair[1];
	worker = fixture_fork(f, b, worker_hands_out_stream);
	p.fd = pair[0];
	fd_close(&b->stream); /* the worker's: so its end is heard */
	assert_int_equal(poll(&p, 1, patience_ms()), 1);
	if (fd_recv_msg(pair[0], &byte, 1, fds) != 1)
		fail_msg("the worker started no box: status %#x", fixture_wait(worker));
	agent_client_init(&b->client, fds[0]);
	assert_int_equal(agent_client_hello(&b->client, patience_ms()), 0);
	assert_int_equal(agent_client_ping(&b->client, patience_ms()), 0);

	p.fd = proc_open_exact(b->born->pid, b->born->start);
	assert_true(p.fd >= 0);
	assert_int_equal(kill(worker, SIGKILL), 0);
	assert_true(WIFSIGNALED(fixture_wait(worker)));
	assert_int_equal(poll(&p, 1, patience_ms()), 1);
	(void)close(p.fd);
	(void)close(fds[0]);
	(void)close(pair[0]);
	assert_cleaned(f, b, 0, 0);
	fixture_box_free(b);
}

int conformance_crash(void)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_worker_dies_at_each_step),
	    cmocka_unit_test(test_start_fails_at_each_step),
	    cmocka_unit_test(test_a_box_is_killed_while_it_starts),
	    cmocka_unit_test(test_the_drivers_program_dies),
	    cmocka_unit_test(test_janitor_dies_while_cleaning),
	    cmocka_unit_test_teardown(test_janitor_dies_while_preparing, prepare_again),
	    cmocka_unit_test(test_box_dies_with_its_worker),
	};

	return cmocka_run_group_tests_name("crash", tests, NULL, NULL);
}
