/*
 * perform: what becomes of a box that ends: the order to clean up, the lock of a dead worker
 * recovered, the page repaired, and only then a free slot.
 */
#include "tests/unit/supervisor/perform_testing.h"

static void test_a_removed_box_is_cleaned_up_after(void **state)
{
	struct sbxd *s = *state;
	uint32_t slot = warm_box(s, "a");
	struct pool_box before = *box_of(s, "a");
	struct shm_event ev;
	char line[128];

	(void)snprintf(line, sizeof(line), "cleanup %s 4711 4712", s->parts[slot].name);
	use_page(s, slot);
	assert_int_equal(pool_remove(s->pool, loop_now(s->loop), OWNER, before.token, true, 1), 0);
	sbxd_settle(s);
	assert_int_equal(s->workers[slot]->told[CTL_CLOSE], 1);
	assert_int_equal(s->parts[slot].worker_pid, s->workers[slot]->pid);
	end_worker(s, slot);
	assert_int_equal(s->parts[slot].state, SLOT_CLOSING);
	assert_int_equal(s->parts[slot].worker_pid, 0);
	assert_int_equal(index_find(&s->seg, OWNER, before.token), slot);
	assert_true(page_is_used(s, slot)); /* not before its processes are proven gone */
	assert_valid(s);
	stage_until(s, pool_count(s->pool, SLOT_FREE) == 3);
	assert_int_equal(orders_like(s->state_dir, line), 1);
	assert_true(page_is_clear(s, slot));
	assert_int_equal(index_find(&s->seg, OWNER, before.token), SHM_NONE);
	assert_int_equal(counted(s, COUNTER_LOCK_RECOVERIES), 0);
	assert_int_equal(counted(s, COUNTER_WORKER_CRASHES), 0);
	assert_true(event_at(s, EVENT_STATE, SLOT_FREE, &ev) > 0);
	assert_string_equal(ev.token, before.token); /* before who removed it is answered */
}

/* The worker died in the middle of a transition. */
static void test_the_lock_of_a_dead_worker_is_recovered(void **state)
{
	struct sbxd *s = *state;
	uint32_t slot = warm_box(s, "a");
	struct shm_page *page = &s->seg.slots[slot].page;
	struct pool_box before = *box_of(s, "a");
	pid_t pid = s->workers[slot]->pid;
	uint64_t crash;
	uint64_t recovery;
	uint64_t freed;
	struct shm_event ev;

	use_page(s, slot);
	die_after(lock_it, page);
	atomic_store(&page->work_seq, atomic_load(&page->work_seq) | 1U); /* and while it wrote */
	end_worker(s, slot);
	assert_true(page_is_used(s, slot));
	assert_int_equal(counted(s, COUNTER_LOCK_RECOVERIES), 0);
	stage_until(s, s->parts[slot].state == SLOT_FREE);
	assert_true(page_is_clear(s, slot));
	assert_valid(s);
	assert_int_equal(counted(s, COUNTER_LOCK_RECOVERIES), 1);
	assert_int_equal(counted(s, COUNTER_WORKER_CRASHES), 1);
	assert_int_equal(scope_lock_try(page, repair_nothing, NULL), SCOPE_LOCKED);
	scope_unlock(page);

	crash = event_at(s, EVENT_WORKER_CRASH, 0, &ev);
	assert_int_equal(ev.pid, pid);
	assert_int_equal(ev.code, SIGKILL);
	recovery = event_at(s, EVENT_LOCK_RECOVERY, 0, &ev);
	assert_int_equal(ev.slot, slot);
	assert_int_equal(ev.generation, before.generation);
	assert_int_equal(ev.owner_uid, OWNER);
	assert_string_equal(ev.token, before.token);
	freed = event_at(s, EVENT_STATE, SLOT_FREE, &ev);
	assert_int_equal(ev.slot, slot);
	assert_int_equal(ev.generation, before.generation);
	assert_int_equal(ev.owner_uid, OWNER);
	assert_string_equal(ev.token, before.token); /* its owner sees its end too */
	assert_true(0 < crash && crash < recovery && recovery < freed);
}

static void assert_quarantined(struct sbxd *s, uint32_t slot, const char *why)
{
	struct shm_event ev;
	uint32_t other;

	stage_until(s, s->parts[slot].state == SLOT_QUARANTINED);
	assert_string_equal(pool_box_at(s->pool, slot)->last_error, why);
	assert_int_equal(counted(s, COUNTER_QUARANTINES), 1);
	assert_int_equal(counted(s, COUNTER_LOCK_RECOVERIES), 0);
	assert_true(event_at(s, EVENT_QUARANTINE, 0, &ev) > 0);
	assert_int_equal(ev.slot, slot);
	assert_string_equal(ev.reason, why);
	assert_null(box_of(s, "a"));
	other = warm_box(s, "a"); /* its scope goes on elsewhere, and there only */
	assert_int_not_equal(other, slot);
	assert_int_equal(s->parts[slot].state, SLOT_QUARANTINED);
}

static void test_what_cannot_be_repaired_is_quarantined(void **state)
{
	struct sbxd *s = *state;
	uint32_t slot = warm_box(s, "a");
	struct shm_page *page = &s->seg.slots[slot].page;

	die_after(lock_it, page);
	end_worker(s, slot);
	page->slot++; /* it went bad before it died */
	stage_until(s, pool_count(s->pool, SLOT_QUARANTINED) == 1);
	assert_quarantined(s, slot, "its scope lock cannot be recovered");
	/* Never made consistent: nobody gets in again. */
	assert_int_equal(scope_lock_try(page, repair_nothing, NULL), SCOPE_BROKEN);
	assert_int_equal(scope_lock_try(page, repair_nothing, NULL), SCOPE_BROKEN);
}

static void test_a_page_that_cannot_be_repaired_is_quarantined(void **state)
{
	struct sbxd *s = *state;
	uint32_t slot = warm_box(s, "a");

	end_worker(s, slot);
	s->seg.slots[slot].page.slot++;
	stage_until(s, pool_count(s->pool, SLOT_QUARANTINED) == 1);
	assert_quarantined(s, slot, "its page cannot be repaired");
	assert_int_equal(
	    scope_lock_try(&s->seg.slots[slot].page, repair_nothing, NULL), SCOPE_LOCKED);
	scope_unlock(&s->seg.slots[slot].page);
}

/* A worker that went bad made another mutex of it. */
static void test_a_lock_of_another_kind_is_quarantined(void **state)
{
	struct sbxd *s = *state;
	uint32_t slot = warm_box(s, "a");

	s->seg.slots[slot].page.scope_lock.__data.__kind = 0;
	end_worker(s, slot);
	assert_quarantined(s, slot, "its scope lock cannot be recovered");
}

/* Somebody alive has it, who must not have the page any more. */
static void test_a_lock_that_is_held_is_not_waited_for(void **state)
{
	struct sbxd *s = *state;
	uint32_t slot = warm_box(s, "a");
	int ready[2];
	int status;
	char byte;
	pid_t pid;

	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		lock_it(&s->seg.slots[slot].page);
		(void)!write(ready[1], "x", 1);
		for (;;)
			(void)pause();
	}
	fd_close(&ready[1]); /* a child that fails ends the wait */
	assert_int_equal(read(ready[0], &byte, 1), 1);
	end_worker(s, slot);
	assert_quarantined(s, slot, "its scope lock cannot be recovered");
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	fd_close(&ready[0]);
}

static void test_a_cleanup_that_fails_leaves_the_page_alone(void **state)
{
	struct sbxd *s = *state;
	uint32_t slot = warm_box(s, "a");

	(void)snprintf(s->runtime_dir, sizeof(s->runtime_dir), "unclean");
	use_page(s, slot);
	end_worker(s, slot);
	assert_quarantined(s, slot, "a mount is busy");
	assert_int_equal(cleanups(s, slot, 4711, 4712), 1);
	assert_true(page_is_used(s, slot));
	assert_valid(s);
}

static void test_an_image_that_fails_frees_the_slot(void **state)
{
	struct sbxd *s = *state;
	struct shm_event ev;

	ask(s, "a", "bad");
	assert_int_equal(box_of(s, "a")->state, SLOT_BOOTING);
	stage_until(s, pool_count(s->pool, SLOT_FREE) == 3);
	assert_null(s->workers[0]);
	assert_true(event_at(s, EVENT_BOOT_FAILED, 0, &ev) > 0);
	assert_string_equal(ev.reason, "no image bad, try 1");
	assert_int_equal(counted(s, COUNTER_WORKER_CRASHES), 0);
	assert_valid(s);
}

/* It was never shown, so nobody else had the page; and a successor would find the slot free. */
static void test_nothing_of_a_box_that_never_began_is_recovered(void **state)
{
	struct sbxd *s = *state;
	struct pool_request q = {
	    .req = 0xffffffffU, .uid = OWNER, .user = "u", .thread = "b", .lease_id = 9};
	struct shm_page *page;

	(void)warm_box(s, "a"); /* so that the image is there */
	assert_int_equal(identity_scope("u", "b", &q.id), 0);
	(void)snprintf(q.spec.image, sizeof(q.spec.image), "good");
	pool_acquire(s->pool, loop_now(s->loop), &q);
	page = &s->seg.slots[box_of(s, "b")->slot].page;
	die_after(lock_it, page);
	pool_client_gone(s->pool, loop_now(s->loop), q.req);
	assert_int_equal(pool_remove(s->pool, loop_now(s->loop), OWNER, q.id.token, true, 1), 0);
	sbxd_settle(s);
	assert_int_equal(pool_count(s->pool, SLOT_FREE), 2);
	assert_int_equal(counted(s, COUNTER_LOCK_RECOVERIES), 0);
	assert_int_equal(scope_lock_try(page, repair_nothing, NULL), SCOPE_BROKEN);
}

/* The lease of one who left meanwhile is given back: the box was warm, and is the newest now. */
static void test_a_grant_that_nobody_takes(void **state)
{
	struct sbxd *s = *state;
	uint32_t a = warm_box(s, "a");
	uint32_t b = warm_box(s, "b");
	uint32_t list[3];

	assert_int_equal(warm_list(&s->seg, list, 3), 2);
	assert_true(list[0] == a && list[1] == b);
	ask(s, "a", "good");
	assert_int_equal(box_of(s, "a")->state, SLOT_WARM);
	assert_int_equal(warm_list(&s->seg, list, 3), 2);
	assert_true(list[0] == b && list[1] == a);
	assert_valid(s);
}

static void test_the_end(void **state)
{
	struct sbxd *s = *state;
	uint32_t slot = warm_box(s, "a");

	sbxd_shutdown(s, "a test");
	sbxd_settle(s);
	assert_int_equal(s->workers[slot]->told[CTL_CLOSE], 1);
	assert_false(s->drained);
	end_worker(s, slot);
	assert_int_equal(loop_run(s->loop), 0); /* ends by itself */
	assert_true(s->drained);
	assert_int_equal(s->exit_status, 0);
	assert_int_equal(orders_like(s->state_dir, "finish"), 1);
	assert_int_equal(pool_count(s->pool, SLOT_FREE), 3);
	assert_valid(s);
}

static void test_the_end_with_a_slot_in_quarantine(void **state)
{
	struct sbxd *s = *state;
	uint32_t slot = warm_box(s, "a");

	(void)snprintf(s->runtime_dir, sizeof(s->runtime_dir), "unclean");
	end_worker(s, slot);
	sbxd_shutdown(s, "a test");
	sbxd_settle(s);
	assert_int_equal(loop_run(s->loop), 0);
	assert_int_equal(s->exit_status, EXIT_FAILURE);
	assert_int_equal(pool_count(s->pool, SLOT_QUARANTINED), 1);
}

#define staged(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	    staged(test_a_removed_box_is_cleaned_up_after),
	    staged(test_the_lock_of_a_dead_worker_is_recovered),
	    staged(test_what_cannot_be_repaired_is_quarantined),
	    staged(test_a_page_that_cannot_be_repaired_is_quarantined),
	    staged(test_a_lock_of_another_kind_is_quarantined),
	    staged(test_a_lock_that_is_held_is_not_waited_for),
	    staged(test_a_cleanup_that_fails_leaves_the_page_alone),
	    staged(test_an_image_that_fails_frees_the_slot),
	    staged(test_nothing_of_a_box_that_never_began_is_recovered),
	    staged(test_a_grant_that_nobody_takes),
	    staged(test_the_end),
	    staged(test_the_end_with_a_slot_in_quarantine),
	};

	if (is_janitor(argc, argv))
		return janitor_main();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
