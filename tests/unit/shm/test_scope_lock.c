/* Tests of shm/scope_lock.c: every one of them with real processes that die. */
#include "shm/scope_lock.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>

#include "lib/clock.h"
#include "shm/repair.h"
#include "tests/unit/shm/shm_testing.h"

/* gcc 12's ThreadSanitizer does not know pthread_mutex_clocklock() and would call each unlock after
 * it a mistake. */
const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
	return "report_mutex_bugs=0";
}

#define FAR_NS (60 * NS_PER_S) /* a wait that ends earlier ends for another reason */

static int repair_fails(struct shm_page *page, void *ctx)
{
	(void)page;
	(void)ctx;
	return -EINVAL;
}

static int repair_counts(struct shm_page *page, void *ctx)
{
	int *calls = ctx;

	(void)page;
	(*calls)++;
	return 0;
}

static void take_lock(void *ctx)
{
	struct shm_slot *slot = ctx;

	if (scope_lock_try(&slot->page, repair_fails, NULL) != SCOPE_LOCKED)
		_exit(1);
}

static void test_lock_try_unlock(void **state)
{
	struct shm_slot *slot = slot_make();
	int calls = 0;

	(void)state;
	assert_int_equal(scope_lock_try(&slot->page, repair_counts, &calls), SCOPE_LOCKED);
	assert_int_equal(scope_lock_try(&slot->page, repair_counts, &calls), SCOPE_BUSY);
	scope_unlock(&slot->page);
	assert_int_equal(
	    scope_lock_wait(&slot->page, clock_now_ns() + FAR_NS, repair_counts, &calls),
	    SCOPE_LOCKED);
	scope_unlock(&slot->page);
	assert_int_equal(calls, 0); /* nobody died, nothing was repaired */
	slot_unmap(slot);
}

/* Report 17: an #ifdef around the robust attribute made no mutex robust. Only a kill shows it. */
static void test_report_17_robust_mutex_survives_kill9(void **state)
{
	struct shm_slot *slot = slot_make();
	int calls = 0;

	(void)state;
	die_after(take_lock, slot);
	assert_int_equal(scope_lock_try(&slot->page, repair_counts, &calls), SCOPE_RECOVERED);
	assert_int_equal(calls, 1);
	scope_unlock(&slot->page);
	assert_int_equal(scope_lock_try(&slot->page, repair_counts, &calls), SCOPE_LOCKED);
	assert_int_equal(calls, 1);
	scope_unlock(&slot->page);
	slot_unmap(slot);
}

static void spoil_holding_the_lock(void *ctx)
{
	struct shm_slot *slot = ctx;

	take_lock(slot);
	atomic_store(&slot->page.in_flight, 5);
	atomic_store(&slot->page.conns[7], CONN_WORD(99, CONN_REQUEST));
	(void)setenv("SBX_FAULT", "slot-publish=kill", 1);
	slot_publish_work(&slot->page, &(struct slot_work){.generation = 9});
}

/* Report 18: EOWNERDEAD recovered the lock but not the data behind it. */
static void test_report_18_record_repaired_before_consistent(void **state)
{
	struct shm_slot *slot = slot_make();
	uint32_t number = 0;
	struct slot_work out;

	(void)state;
	die_after(spoil_holding_the_lock, slot);
	assert_int_equal(slot_read_work(&slot->page, &out), -EAGAIN);
	assert_int_equal(scope_lock_try(&slot->page, repair_page, &number), SCOPE_RECOVERED);
	assert_int_equal(slot_read_work(&slot->page, &out), 0);
	assert_int_equal(out.generation, 0);
	assert_int_equal(atomic_load(&slot->page.in_flight), 0);
	assert_int_equal(atomic_load(&slot->page.conns[7]), 0);
	scope_unlock(&slot->page);

	/* Had the lock been made consistent before the repair, a failing one could not break it. */
	die_after(spoil_holding_the_lock, slot);
	assert_int_equal(scope_lock_try(&slot->page, repair_fails, NULL), SCOPE_BROKEN);
	assert_int_equal(scope_lock_try(&slot->page, repair_page, &number), SCOPE_BROKEN);
	slot_unmap(slot);
}

static void test_a_failed_repair_breaks_the_lock_for_ever(void **state)
{
	struct shm_slot *slot = slot_make();
	int calls = 0;

	(void)state;
	die_after(take_lock, slot);
	assert_int_equal(scope_lock_try(&slot->page, repair_fails, NULL), SCOPE_BROKEN);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(scope_lock_try(&slot->page, repair_counts, &calls), SCOPE_BROKEN);
		assert_int_equal(
		    scope_lock_wait(&slot->page, clock_now_ns() + FAR_NS, repair_counts, &calls),
		    SCOPE_BROKEN);
	}
	assert_int_equal(calls, 0);
	slot_unmap(slot);
}

static int repair_dies(struct shm_page *page, void *ctx)
{
	(void)page;
	(void)ctx;
	(void)kill(getpid(), SIGKILL);
	return 0;
}

static void recover_and_die(void *ctx)
{
	(void)scope_lock_try(ctx, repair_dies, NULL);
}

static void test_a_repairer_that_dies_is_followed_by_another(void **state)
{
	struct shm_slot *slot = slot_make();
	int calls = 0;

	(void)state;
	die_after(take_lock, slot);
	die_after(recover_and_die, slot);
	assert_int_equal(scope_lock_try(&slot->page, repair_counts, &calls), SCOPE_RECOVERED);
	assert_int_equal(calls, 1);
	scope_unlock(&slot->page);
	slot_unmap(slot);
}

/* A child that holds the lock until it is killed. */
static pid_t start_holder(struct shm_slot *slot)
{
	int ready[2];
	char c = 0;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		take_lock(slot);
		if (write(ready[1], &c, 1) != 1)
			_exit(1);
		for (;;)
			(void)pause();
	}
	assert_int_equal(read(ready[0], &c, 1), 1);
	(void)close(ready[0]);
	(void)close(ready[1]);
	return pid;
}

static void test_a_live_holder_is_busy_until_the_deadline(void **state)
{
	struct shm_slot *slot = slot_make();
	pid_t holder = start_holder(slot);
	uint64_t begun = clock_now_ns();
	int calls = 0;

	(void)state;
	assert_int_equal(scope_lock_try(&slot->page, repair_counts, &calls), SCOPE_BUSY);
	assert_int_equal(scope_lock_wait(&slot->page, 0, repair_counts, &calls), SCOPE_BUSY);
	assert_int_equal(
	    scope_lock_wait(&slot->page, begun + 20 * NS_PER_MS, repair_counts, &calls),
	    SCOPE_BUSY);
	assert_true(clock_now_ns() >= begun + 20 * NS_PER_MS);
	assert_int_equal(calls, 0);

	/* The waiter has it as soon as the holder is dead, reaped or not. */
	assert_int_equal(kill(holder, SIGKILL), 0);
	assert_int_equal(
	    scope_lock_wait(&slot->page, CLOCK_NEVER, repair_counts, &calls), SCOPE_RECOVERED);
	assert_int_equal(waitpid(holder, NULL, 0), holder);
	scope_unlock(&slot->page);
	slot_unmap(slot);
}

/* An ordinary unlock must wake a waiter in another process: the mutex is shared between them. */
static void test_unlocking_wakes_another_process(void **state)
{
	struct shm_slot *slot = slot_make();
	int calls = 0;
	int status = 0;
	pid_t pid;

	(void)state;
	assert_int_equal(scope_lock_try(&slot->page, repair_counts, &calls), SCOPE_LOCKED);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		_exit((int)scope_lock_wait(
		    &slot->page, clock_now_ns() + FAR_NS / 6, repair_counts, &calls));
	/* The kernel's mark that somebody sleeps on the lock. */
	while (!(
	    (unsigned int)__atomic_load_n(&slot->page.scope_lock.__data.__lock, __ATOMIC_RELAXED) &
	    FUTEX_WAITERS))
		(void)sched_yield();
	scope_unlock(&slot->page);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), SCOPE_LOCKED);
	/* It exited without unlocking, which is as good as being killed. */
	assert_int_equal(scope_lock_try(&slot->page, repair_counts, &calls), SCOPE_RECOVERED);
	scope_unlock(&slot->page);
	slot_unmap(slot);
}

static void test_a_mutex_of_another_kind_is_broken(void **state)
{
	struct shm_slot *slot = slot_make();
	pthread_mutex_t plain = PTHREAD_MUTEX_INITIALIZER;
	int calls = 0;

	(void)state;
	assert_true(scope_lock_is_intact(&slot->page.scope_lock));
	memcpy(&slot->page.scope_lock, &plain, sizeof(plain));
	assert_false(scope_lock_is_intact(&slot->page.scope_lock));
	assert_int_equal(scope_lock_try(&slot->page, repair_counts, &calls), SCOPE_BROKEN);
	assert_int_equal(scope_lock_wait(&slot->page, 0, repair_counts, &calls), SCOPE_BROKEN);
	memset(&slot->page.scope_lock, 0xff, sizeof(slot->page.scope_lock));
	assert_int_equal(scope_lock_try(&slot->page, repair_counts, &calls), SCOPE_BROKEN);
	slot_unmap(slot);
}

/* A reader sees all of it without touching anything. */
static void test_who_holds_it(void **state)
{
	struct shm_slot *slot = slot_make();
	struct shm_page before;
	pid_t holder;
	int calls = 0;

	(void)state;
	assert_int_equal(scope_lock_holder(&slot->page), SCOPE_HOLDER_NONE);
	holder = start_holder(slot);
	memcpy(&before, &slot->page, sizeof(before));
	assert_int_equal(scope_lock_holder(&slot->page), holder);
	assert_memory_equal(&before, &slot->page, sizeof(before));
	assert_int_equal(kill(holder, SIGKILL), 0);
	assert_int_equal(waitpid(holder, NULL, 0), holder);
	assert_int_equal(scope_lock_holder(&slot->page), SCOPE_HOLDER_DIED);
	assert_int_equal(scope_lock_try(&slot->page, repair_counts, &calls), SCOPE_RECOVERED);
	assert_int_equal(scope_lock_holder(&slot->page), getpid());
	scope_unlock(&slot->page);
	assert_int_equal(scope_lock_holder(&slot->page), SCOPE_HOLDER_NONE);
	die_after(take_lock, slot);
	assert_int_equal(scope_lock_try(&slot->page, repair_fails, NULL), SCOPE_BROKEN);
	assert_int_equal(scope_lock_holder(&slot->page), SCOPE_HOLDER_BROKEN);
	slot_unmap(slot);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_lock_try_unlock),
	    cmocka_unit_test(test_report_17_robust_mutex_survives_kill9),
	    cmocka_unit_test(test_report_18_record_repaired_before_consistent),
	    cmocka_unit_test(test_a_failed_repair_breaks_the_lock_for_ever),
	    cmocka_unit_test(test_a_repairer_that_dies_is_followed_by_another),
	    cmocka_unit_test(test_a_live_holder_is_busy_until_the_deadline),
	    cmocka_unit_test(test_unlocking_wakes_another_process),
	    cmocka_unit_test(test_a_mutex_of_another_kind_is_broken),
	    cmocka_unit_test(test_who_holds_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
