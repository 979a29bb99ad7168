/*
 * restore: what a successor makes of the table that a dead supervisor left. The workers in it are
 * real processes, or none.
 */
#include "supervisor/restore.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "lib/fd.h"
#include "lib/proc.h"
#include "shm/lease.h"
#include "shm/ring.h"
#include "shm/slot.h"
#include "supervisor/worker_adopt.h"
#include "tests/unit/shm/shm_testing.h"
#include "tests/unit/supervisor/fake_workers.h"

#define SLOTS 6U

/* ---- what worker_adopt.c would do ---- */

bool worker_adopt(struct sbxd *s, uint32_t slot, uint64_t gen, pid_t pid, uint64_t start, int pidfd)
{
	assert_true(gen > 0);
	assert_true(pidfd >= 0);
	fd_close(&pidfd);
	s->workers[slot] = calloc(1, sizeof(struct worker));
	assert_non_null(s->workers[slot]);
	s->workers[slot]->pid = pid;
	s->workers[slot]->start = start;
	return true;
}

void workers_give_up_silent(struct sbxd *s)
{
	(void)s;
}

/* ---- the dead supervisor's table ---- */

struct left {
	struct sbxd *s;
	pid_t worker; /* a live process */
	uint64_t start;
};

static int set_up(void **state)
{
	const struct pool_rules rules = {
	    .slots = SLOTS, .replicas = 4, .max_boots = 2, .idle_timeout = NS_PER_S * 600};
	struct left *l = calloc(1, sizeof(*l));

	assert_non_null(l);
	l->s = stage_open(&rules);
	l->s->seg.header->next_generation = 100;
	l->worker = fork();
	assert_true(l->worker >= 0);
	if (l->worker == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			(void)pause();
	}
	assert_int_equal(proc_start_time(l->worker, &l->start), 0);
	*state = l;
	return 0;
}

static int tear_down(void **state)
{
	struct left *l = *state;

	assert_int_equal(kill(l->worker, SIGKILL), 0);
	assert_int_equal(waitpid(l->worker, NULL, 0), l->worker);
	workers_forget_all(l->s);
	stage_close(l->s);
	free(l);
	return 0;
}

/* A box of the dead supervisor; its worker is the live process. */
static struct slot_sup box(const struct left *l, uint32_t state, uint32_t n)
{
	struct slot_sup part = part_make(state, n);

	part.worker_pid = l->worker;
	part.worker_start = l->start;
	return part;
}

static void leave(struct left *l, uint32_t slot, const struct slot_sup *part)
{
	slot_publish_sup(&l->s->seg.slots[slot], part);
}

/* As segment_attach() does before anybody looks. */
static uint32_t take_over(struct left *l)
{
	struct slot_sup *parts = calloc(SLOTS, sizeof(*parts));
	uint32_t order[SLOTS];

	segment_rebuild(&l->s->seg, parts, order);
	free(parts);
	return restore_boxes(l->s);
}

/* What stands in the table afterwards must be as whole as any. */
static void assert_table(struct left *l)
{
	struct err findings[4];
	size_t n;

	publish_changed(l->s);
	n = segment_validate(&l->s->seg, findings, 4);
	if (n > 0)
		fail_msg("%zu findings, first: %s", n, findings[0].text);
}

static void test_leases_of_a_live_box_are_kept(void **state)
{
	struct left *l = *state;
	struct slot_sup part = box(l, SLOT_ACTIVE, 1);
	const struct pool_box *b;
	const struct pool_lease *lease;
	struct lease_copy shown;

	part.leases = 2;
	part.lease_span = 8;
	lease_publish(&l->s->seg.slots[3], 2, 22, 5, UINT64_MAX);
	lease_publish(&l->s->seg.slots[3], 7, 77, 0, 4000);
	lease_publish(&l->s->seg.slots[3], 8, 88, 0, 4000); /* its box never showed it */
	leave(l, 3, &part);
	assert_int_equal(take_over(l), 1);

	b = pool_box_find(l->s->pool, part.owner_uid, part.token);
	assert_non_null(b);
	assert_int_equal(b->slot, 3);
	assert_int_equal(b->generation, part.generation);
	assert_int_equal(b->state, SLOT_ACTIVE);
	assert_int_equal(b->lease_count, 2);
	assert_true(b->flags & SLOT_FLAG_ADOPTED);
	lease = TAILQ_FIRST(&b->leases);
	assert_int_equal(lease->id, 22);
	assert_int_equal(lease->cookie, 5);
	assert_int_equal(lease->place, 2);
	lease = TAILQ_NEXT(lease, link);
	assert_int_equal(lease->id, 77);
	assert_int_equal(lease->expires, 4000);
	publish_changed(l->s);
	assert_true(lease_read(&l->s->seg.slots[3], 7, &shown));
	assert_int_equal(shown.id, 77);
}

/* It is found by its name, is what it was, and the next supervisor's successor will see that, too.
 */
static void test_a_made_box_stays_what_it_is(void **state)
{
	struct left *l = *state;
	struct slot_sup part = box(l, SLOT_ACTIVE, 1);
	const struct pool_box *b;

	part.leases = 1;
	part.lease_span = 1;
	part.flags = SLOT_FLAG_ANONYMOUS | SLOT_FLAG_NO_USER | SLOT_FLAG_MADE | SLOT_FLAG_STOPPED;
	memset(part.user, 0, sizeof(part.user));
	memset(part.thread, 0, sizeof(part.thread));
	(void)snprintf(part.box_name, sizeof(part.box_name), "build-1");
	lease_publish(&l->s->seg.slots[2], 0, 22, 0, UINT64_MAX);
	leave(l, 2, &part);
	assert_int_equal(take_over(l), 1);
	b = pool_box_named(l->s->pool, part.owner_uid, "build-1");
	assert_non_null(b);
	assert_int_equal(b->slot, 2);
	assert_string_equal(b->token, part.token);
	assert_int_equal(b->flags, part.flags | SLOT_FLAG_ADOPTED);
	assert_int_equal(b->lease_count, 1);
	assert_null(pool_box_named(l->s->pool, part.owner_uid + 1, "build-1"));
	assert_table(l);
	assert_string_equal(l->s->seg.slots[2].sup.box_name, "build-1");
	assert_int_equal(l->s->seg.slots[2].sup.flags, b->flags);
}

static void test_a_pid_that_another_process_has_now_is_no_worker(void **state)
{
	struct left *l = *state;
	struct slot_sup part = box(l, SLOT_WARM, 1);
	const struct pool_box *b = pool_box_at(l->s->pool, 0);

	part.worker_start--;
	leave(l, 0, &part);
	assert_int_equal(take_over(l), 0);
	assert_null(l->s->workers[0]);
	assert_int_equal(b->state, SLOT_CLOSING);
	assert_int_equal(kill(l->worker, 0), 0);
	assert_table(l);
}

static void test_what_is_not_whole_costs_its_slot_and_no_more(void **state)
{
	struct left *l = *state;
	struct slot_sup good = box(l, SLOT_WARM, 1);
	struct slot_sup never = box(l, SLOT_ACTIVE, 200); /* a generation that was never given */
	struct slot_sup wild;

	memset(&wild, 0xff, sizeof(wild));
	leave(l, 0, &good);
	leave(l, 1, &never);
	leave(l, 2, &wild);
	assert_int_equal(take_over(l), 1);
	assert_int_equal(pool_box_at(l->s->pool, 0)->state, SLOT_WARM);
	assert_int_equal(pool_box_at(l->s->pool, 1)->state, SLOT_QUARANTINED);
	assert_int_equal(pool_box_at(l->s->pool, 2)->state, SLOT_QUARANTINED);
	assert_int_equal(pool_count(l->s->pool, SLOT_FREE), SLOTS - 3);
	assert_null(pool_box_find(l->s->pool, never.owner_uid, never.token));
	assert_table(l);
	assert_int_equal(l->s->seg.header->state_count[SLOT_QUARANTINED], 2);
	assert_int_equal(l->s->seg.header->state_count[SLOT_FREE], SLOTS - 3);
}

static void test_warm_boxes_keep_their_order(void **state)
{
	struct left *l = *state;
	struct slot_sup newest = box(l, SLOT_WARM, 3);
	struct slot_sup oldest = box(l, SLOT_WARM, 1);
	struct slot_sup checked = box(l, SLOT_CHECKING, 2);
	struct pool_action a;

	leave(l, 0, &newest);
	leave(l, 1, &oldest);
	leave(l, 2, &checked);
	assert_int_equal(take_over(l), 3);
	assert_int_equal(pool_count(l->s->pool, SLOT_WARM), 3);
	for (uint32_t i = 0; i < 3; i++)
		pool_adopted(l->s->pool, loop_now(l->s->loop), i,
		    pool_box_at(l->s->pool, i)->generation, true, false);
	assert_table(l);
	while (pool_next_action(l->s->pool, &a))
		assert_int_not_equal(a.kind, POOL_KILL);
	assert_int_equal(l->s->seg.header->warm_head, 1);
	assert_int_equal(l->s->seg.header->warm_tail, 2); /* somebody wanted it just now */
}

/* What it answered to the return of a lease, its successor answers too. */
static void test_boxes_that_are_gone_are_known(void **state)
{
	struct left *l = *state;
	struct shm_event ev = {
	    .kind = EVENT_STATE, .from = SLOT_WARM, .to = SLOT_CLOSING, .owner_uid = 1000};

	memcpy(ev.token, "0123456789abcdef", 16);
	(void)ring_append(&l->s->seg, &ev);
	ev.to = SLOT_ACTIVE;
	memcpy(ev.token, "fedcba9876543210", 16);
	(void)ring_append(&l->s->seg, &ev);
	assert_int_equal(take_over(l), 0);
	assert_int_equal(
	    pool_release(l->s->pool, 1, 1000, "0123456789abcdef", 0), POOL_RELEASE_CLOSED);
	assert_int_equal(
	    pool_release(l->s->pool, 1, 1001, "0123456789abcdef", 0), POOL_RELEASE_NOT_FOUND);
	assert_int_equal(
	    pool_release(l->s->pool, 1, 1000, "fedcba9876543210", 0), POOL_RELEASE_NOT_FOUND);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_leases_of_a_live_box_are_kept, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_a_made_box_stays_what_it_is, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(
		test_a_pid_that_another_process_has_now_is_no_worker, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(
		test_what_is_not_whole_costs_its_slot_and_no_more, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_boxes_that_are_gone_are_known, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_warm_boxes_keep_their_order, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
