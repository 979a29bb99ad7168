/* coro: a function that stops in the middle, on a stack of its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/log.h"
#include "worker/confine.h"
#include "worker/coro.h"

struct counter {
	struct coro *coro;
	int steps;
	int at;
	volatile char *local; /* where its stack is */
};

static void count(void *arg)
{
	struct counter *c = arg;
	volatile char here[512];

	memset((char *)(uintptr_t)here, 7, sizeof(here));
	c->local = here;
	for (c->at = 0; c->at < c->steps; c->at++) {
		coro_suspend(c->coro);
		for (size_t i = 0; i < sizeof(here); i++)
			assert_int_equal(here[i], 7);
	}
}

static void test_steps(void **state)
{
	struct counter c = {.steps = 3};

	(void)state;
	c.coro = coro_create(count, &c);
	assert_non_null(c.coro);
	for (int i = 0; i < 3; i++) {
		assert_true(coro_resume(c.coro));
		assert_int_equal(c.at, i);
	}
	assert_false(coro_resume(c.coro));
	assert_int_equal(c.at, 3);
	coro_free(c.coro);
}

/* Many at once, each on its own stack, in any order. */
static void test_many(void **state)
{
	struct counter all[50] = {{.steps = 0}};

	(void)state;
	for (int i = 0; i < 50; i++) {
		all[i].steps = i % 7;
		all[i].coro = coro_create(count, &all[i]);
		assert_non_null(all[i].coro);
	}
	for (int round = 0; round < 7; round++) {
		for (int i = 49; i >= 0; i--) {
			if (round <= all[i].steps)
				assert_int_equal(coro_resume(all[i].coro), round < all[i].steps);
		}
	}
	for (int i = 0; i < 50; i++) {
		assert_int_equal(all[i].at, all[i].steps);
		for (int k = 0; k < i; k++)
			assert_ptr_not_equal(all[i].local, all[k].local);
		coro_free(all[i].coro);
	}
}

static void test_never_run(void **state)
{
	struct counter c = {.steps = 1, .at = -1};

	(void)state;
	c.coro = coro_create(count, &c);
	assert_non_null(c.coro);
	coro_free(c.coro);
	coro_free(NULL);
	assert_int_equal(c.at, -1);
}

/* printf() of a number is about the deepest that anybody calls from there. */
static void format(void *arg)
{
	char *to = arg;

	(void)snprintf(to, 64, "%.3f %s %lld", 1234.5, "text", 1LL << 60);
}

static void test_deep_calls(void **state)
{
	char text[64] = "";
	struct coro *c = coro_create(format, text);

	(void)state;
	assert_non_null(c);
	assert_false(coro_resume(c));
	assert_string_equal(text, "1234.500 text 1152921504606846976");
	coro_free(c);
}

/* Wait status of a child that does `fn` with the worker's filter of system calls. */
static int child(void (*fn)(void))
{
	int status = -1;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		if (confine_load_filter() < 0)
			_exit(9);
		fn();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void use(void)
{
	struct counter c = {.steps = 2};

	c.coro = coro_create(count, &c);
	if (!c.coro || !coro_resume(c.coro) || !coro_resume(c.coro) || coro_resume(c.coro))
		_exit(1);
	coro_free(c.coro);
}

static void test_under_the_filter(void **state)
{
	(void)state;
	assert_int_equal(child(use), 0);
}

static int overrun(volatile char *above, int depth)
{
	volatile char here[4096];

	here[0] = above ? above[0] : 1;
	return depth > 1 << 20 ? here[0] : overrun(here, depth + 1) + here[0];
}

static void fall(void *arg)
{
	*(int *)arg = overrun(NULL, 0);
}

static void use_up_the_stack(void)
{
	int result = 0;
	struct coro *c = coro_create(fall, &result);

	(void)signal(SIGSEGV, SIG_DFL);
	if (c)
		(void)coro_resume(c);
	_exit(result & 1);
}

/* It ends in the guard, not in somebody's memory. */
static void test_overrun_is_fatal(void **state)
{
	int status;

	(void)state;
	status = child(use_up_the_stack);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGSEGV);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_steps),
	    cmocka_unit_test(test_many),
	    cmocka_unit_test(test_never_run),
	    cmocka_unit_test(test_deep_calls),
	    cmocka_unit_test(test_under_the_filter),
	    cmocka_unit_test(test_overrun_is_fatal),
	};

	log_init("test", LOG_TEXT, LOG_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
