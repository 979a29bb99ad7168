/* Which instances are dead: a worker is who has the pid and the start time, and nobody else. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/proc.h"
#include "shm/segment.h"
#include "tools/gc.h"

struct stage {
	char instance[32];
	char name[64];
};

/* A table whose sbxd died while `pid`, started at `start`, had a box. */
static void make_orphan(const struct stage *t, pid_t pid, uint64_t start)
{
	int status;
	pid_t child = fork();

	assert_true(child >= 0);
	if (child == 0) {
		struct segment s;
		int rc = segment_create(t->name, t->instance, 4, 1, &s, NULL);

		if (rc == 0) {
			s.slots[2].sup.worker_pid = pid;
			s.slots[2].sup.worker_start = start;
			s.slots[2].sup.generation = 1;
			s.slots[2].sup.state = SLOT_WARM;
		}
		_exit(rc == 0 ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static struct gc_list find(const struct stage *t)
{
	const struct gc_query q = {.uid = geteuid(), .env = environ, .instance = t->instance};
	struct gc_list list;

	assert_int_equal(gc_find(&q, &list), 0);
	return list;
}

static int set_up(void **state)
{
	struct stage *t = calloc(1, sizeof(*t));

	snprintf(t->instance, sizeof(t->instance), "gc-%d", (int)getpid());
	snprintf(t->name, sizeof(t->name), "/sbxd-%u-%s", (unsigned int)geteuid(), t->instance);
	*state = t;
	return 0;
}

static int tear_down(void **state)
{
	struct stage *t = *state;

	(void)segment_unlink(t->name);
	free(t);
	return 0;
}

static void test_a_worker_that_lives(void **state)
{
	struct stage *t = *state;
	struct gc_list list;
	char why[64];
	uint64_t start;

	assert_int_equal(proc_start_time(getpid(), &start), 0);
	make_orphan(t, getpid(), start);
	list = find(t);
	assert_int_equal(list.count, 1);
	assert_int_equal(list.items[0].verdict, GC_WAITING);
	snprintf(why, sizeof(why), "worker %d lives", (int)getpid());
	assert_string_equal(list.items[0].why, why);
	gc_free(&list);
}

static void test_a_pid_that_another_has_now(void **state)
{
	struct stage *t = *state;
	struct gc_list list;
	uint64_t start;

	assert_int_equal(proc_start_time(getpid(), &start), 0);
	make_orphan(t, getpid(), start - 1);
	list = find(t);
	assert_int_equal(list.count, 1);
	assert_int_equal(list.items[0].verdict, GC_DEAD);
	assert_true(list.items[0].has_table);
	gc_free(&list);
}

static void test_one_that_is_supervised(void **state)
{
	struct stage *t = *state;
	struct gc_list list;
	struct segment s;

	assert_int_equal(segment_create(t->name, t->instance, 4, 1, &s, NULL), 0);
	list = find(t);
	assert_int_equal(list.count, 1);
	assert_int_equal(list.items[0].verdict, GC_LIVE);
	gc_free(&list);
	segment_close(&s);
	list = find(t); /* it left: nobody has it */
	assert_int_equal(list.items[0].verdict, GC_DEAD);
	gc_free(&list);
}

static void note(void *ctx, const char *kind, const char *what, const char *failed)
{
	char *text = ctx;

	snprintf(text + strlen(text), 512 - strlen(text), "%s %s%s\n", kind, what,
	    failed ? " stays" : "");
}

static void test_removal(void **state)
{
	struct stage *t = *state;
	char expected[128];
	char told[512] = "";
	struct gc_list list;
	struct segment s;
	struct err err;

	make_orphan(t, getpid(), 1);
	list = find(t);
	snprintf(expected, sizeof(expected), "table %s\n", t->name);
	assert_int_equal(gc_remove(&list.items[0], true, note, told, &err), 0);
	assert_string_equal(told, expected);
	assert_int_equal(segment_probe(t->name, NULL), SEGMENT_ORPHANED);

	/* An sbxd that has begun meanwhile keeps it. */
	assert_int_equal(segment_attach(t->name, true, &s, &err), 0);
	told[0] = '\0';
	assert_int_equal(gc_remove(&list.items[0], false, note, told, &err), -EBUSY);
	assert_string_equal(told, "");
	segment_close(&s);

	assert_int_equal(gc_remove(&list.items[0], false, note, told, &err), 0);
	assert_string_equal(told, expected);
	assert_int_equal(segment_probe(t->name, NULL), SEGMENT_ABSENT);
	gc_free(&list);
	list = find(t);
	assert_int_equal(list.count, 0);
	gc_free(&list);
}

/* Between the verdict and the removal an sbxd came, made a box and died. */
static void test_a_worker_since_it_was_judged(void **state)
{
	struct stage *t = *state;
	char told[512] = "";
	struct gc_list list;
	struct err err;
	uint64_t start;

	assert_int_equal(proc_start_time(getpid(), &start), 0);
	make_orphan(t, getpid(), start - 1);
	list = find(t);
	assert_int_equal(list.items[0].verdict, GC_DEAD);
	assert_int_equal(segment_unlink(t->name), 0);
	make_orphan(t, getpid(), start);
	assert_int_equal(gc_remove(&list.items[0], false, note, told, &err), -EBUSY);
	assert_non_null(strstr(err.text, "not dead any more: worker "));
	assert_string_equal(told, "");
	assert_int_equal(segment_probe(t->name, NULL), SEGMENT_ORPHANED);
	gc_free(&list);
	list = find(t);
	assert_int_equal(list.items[0].verdict, GC_WAITING);
	gc_free(&list);
}

/* What cannot be looked at is not dead. */
static void test_one_whose_user_nobody_can_be(void **state)
{
	struct gc_instance i = {.uid = (uid_t)-1, .name = "none"};

	(void)state;
	(void)snprintf(i.paths.shm_name, sizeof(i.paths.shm_name), "/sbxd-test-none-%d", getpid());
	gc_judge(&i);
	assert_int_equal(i.verdict, GC_UNKNOWN);
	assert_true(i.has_table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_one_whose_user_nobody_can_be),
	    cmocka_unit_test_setup_teardown(test_a_worker_that_lives, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_a_pid_that_another_has_now, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_one_that_is_supervised, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_removal, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_a_worker_since_it_was_judged, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
