/*
 * outlive: boxes that do not die with their workers, where a driver has such: taken over by another
 * worker, by their names alone.
 */
#include "tests/drivers/conformance.h"
#include "tests/drivers/fixture.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "lib/clock.h"

#define NOT_SO 3

/* A worker that dies, when its box is one that does not. */
static int leave_box(struct fixture *f, struct fixture_box *b)
{
	fixture_box_start(f, b);
	if (!f->driver->outlives || !f->driver->outlives(b->box)) {
		(void)f->driver->kill(b->box, clock_now_ns() + 10 * NS_PER_S);
		return NOT_SO;
	}
	(void)fixture_shell(b, "",
	    "echo kept >/tmp/mine; (setsid sleep 4711 >/dev/null 2>&1 &); sleep 4712 >/dev/null & "
	    "true",
	    0);
	(void)raise(SIGKILL);
	return EXIT_FAILURE;
}

static void test_a_box_that_was_left_is_taken_over(void **state)
{
	struct fixture *f = fixture_current();
	struct fixture_box *b = fixture_box_new(f, 34);
	struct host_state now;
	int status = fixture_wait(fixture_fork(f, b, leave_box));
	struct err err = {0};

	(void)state;
	if (WIFEXITED(status) && WEXITSTATUS(status) == NOT_SO) {
		assert_int_equal(
		    f->driver->cleanup(&f->site, b->name, b->born->pid, b->born->start, &err), 0);
		fixture_box_free(b);
		skip();
	}
	assert_true(WIFSIGNALED(status));
	b->spec.take_over = true;
	fixture_box_start(f, b);
	assert_int_equal(b->born->calls, 2);
	assert_string_equal(fixture_shell(b, "", "cat /tmp/mine", 0), "kept\n");
	assert_string_equal(
	    fixture_shell(b, "", "pgrep -f 'sleep 471[12]' || echo none", 0), "none\n");
	assert_true(f->driver->outlives(b->box));
	fixture_box_end(f, b);
	host_state_take(&f->site, &now);
	host_state_assert_same(&f->quiet, &now);
}

static void test_a_box_that_is_not_there_is_not_taken_over(void **state)
{
	struct fixture *f = fixture_current();
	struct fixture_box *b;
	struct host_state now;
	struct err err = {0};

	(void)state;
	if (!f->driver->outlives)
		skip();
	b = fixture_box_new(f, 35);
	b->spec.take_over = true;
	assert_int_equal(f->driver->start(&f->site, &b->spec, &b->box, &b->stream, &err), -ENOENT);
	assert_int_equal(err.code, ENOENT);
	assert_int_equal(
	    f->driver->cleanup(&f->site, b->name, b->born->pid, b->born->start, &err), 0);
	fixture_box_free(b);
	host_state_take(&f->site, &now);
	host_state_assert_same(&f->quiet, &now);
}

int conformance_outlive(void)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_a_box_that_was_left_is_taken_over),
	    cmocka_unit_test(test_a_box_that_is_not_there_is_not_taken_over),
	};

	return cmocka_run_group_tests_name("outlive", tests, NULL, NULL);
}
