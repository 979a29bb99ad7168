/*
 * publish: after every event at a pool, the shared table shows what the pool knows: to those who
 * validate it, to those who look for a scope, and to those who walk the warm list.
 */
#include <unistd.h>

#include "shm/index.h"
#include "shm/lease.h"
#include "shm/warm.h"
#include "supervisor/worker_link.h"
#include "tests/unit/supervisor/pool_random.h"
#include "tests/unit/supervisor/sbxd_testing.h"

#define SEEDS 150U

/* All that publish.c knows of a worker. */
struct worker {
	pid_t pid;
	uint64_t start;
};

pid_t worker_pid(const struct worker *w)
{
	return w->pid;
}

uint64_t worker_start_time(const struct worker *w)
{
	return w->start;
}

struct board {
	struct run run;
	struct sbxd s;
	struct worker workers[RIG_SLOTS];
};

/* ---- what perform.c does with the table ---- */

static void meet_worker(struct board *x, uint32_t slot)
{
	const struct rig_slot *seen = &x->run.rig.slots[slot];

	x->workers[slot].pid = (pid_t)(1000 + seen->generation);
	x->workers[slot].start = 7 + seen->generation;
	x->s.workers[slot] = seen->worker ? &x->workers[slot] : NULL;
}

static void on_action(void *ctx, const struct pool_action *a)
{
	struct board *x = ctx;
	const struct pool_box *b = pool_box_at(x->s.pool, a->slot);

	if (!b || b->generation != a->generation)
		return;
	if (a->kind == POOL_SPAWN || a->kind == POOL_GRANT)
		publish_box(&x->s, b);
	meet_worker(x, a->slot);
}

static void on_dirty(void *ctx, const struct pool_box *b)
{
	struct board *x = ctx;

	meet_worker(x, b->slot);
	publish_box(&x->s, b);
}

/* ---- what the table must show ---- */

static void check_validates(const struct board *x)
{
	const struct rig *r = &x->run.rig;
	struct err findings[4];
	size_t n = segment_validate(&x->s.seg, findings, 4);

	if (n > 0)
		fail_msg("%zu findings, first: %s (seed %" PRIu64 ", step %u: %s)", n,
		    findings[0].text, r->seed, r->step, r->doing);
}

static void check_part(const struct board *x, const struct pool_box *b)
{
	const struct rig *r = &x->run.rig;
	bool is_box = b->state != SLOT_FREE;
	struct slot_sup part;

	RIG_CHECK(r, slot_read_sup(&x->s.seg.slots[b->slot], &part) == 0);
	if (is_box) /* a slot that was never used was never published */
		RIG_CHECK(r, !memcmp(&part, &x->s.parts[b->slot], sizeof(part)));
	RIG_CHECK(r, part.state == b->state && part.generation == b->generation);
	RIG_CHECK(r, part.leases == b->lease_count && part.waiters == b->waiters);
	RIG_CHECK(r, part.state_ns == b->state_since && part.parked_ns == b->parked);
	RIG_CHECK(r, part.acquires == b->acquires && part.source == b->source);
	RIG_CHECK(r, part.owner_uid == b->uid && !strcmp(part.token, b->token));
	RIG_CHECK(r, part.flags == b->flags && !strcmp(part.box_name, b->name));
	RIG_CHECK(r, !memcmp(part.identity, b->identity, sizeof(part.identity)));
	RIG_CHECK(r, !memcmp(part.spec_digest, b->spec.digest, sizeof(part.spec_digest)));
	RIG_CHECK(r, !strcmp(part.last_error, b->last_error));
	RIG_CHECK(r, is_box == (part.name[0] != '\0'));
	RIG_CHECK(r, (part.worker_pid != 0) == r->slots[b->slot].worker);
	RIG_CHECK(r, b->generation < x->s.seg.header->next_generation);
}

static void check_leases(const struct board *x, const struct pool_box *b)
{
	const struct shm_slot *slot = &x->s.seg.slots[b->slot];
	const struct rig *r = &x->run.rig;
	const struct pool_lease *l;
	struct lease_copy shown;
	uint32_t count = 0;

	for (uint32_t i = 0; i < SHM_LEASES; i++)
		count += lease_read(slot, i, &shown);
	RIG_CHECK(r, count == b->lease_count && slot->sup.lease_span <= SHM_LEASES);
	TAILQ_FOREACH (l, &b->leases, link) {
		RIG_CHECK(r, l->place < slot->sup.lease_span && lease_read(slot, l->place, &shown));
		RIG_CHECK(r, shown.id == l->id && shown.cookie == l->cookie &&
				 shown.expires_ns == l->expires);
	}
}

static void check_index(const struct board *x)
{
	const struct rig *r = &x->run.rig;

	for (uint32_t i = 0; i < SCOPES; i++) {
		const char *token = x->run.ids[i / 2].token;
		uid_t uid = RIG_UID + (i & 1);
		const struct pool_box *b = pool_box_find(x->s.pool, uid, token);

		RIG_CHECK(r, index_find(&x->s.seg, uid, token) == (b ? b->slot : SHM_NONE));
	}
}

static void check_warm_list(const struct board *x)
{
	const struct rig *r = &x->run.rig;
	const struct pool_box *b;
	uint32_t list[RIG_SLOTS];
	int n = warm_list(&x->s.seg, list, RIG_SLOTS);
	int i = 0;

	RIG_CHECK(r, n == (int)pool_count(x->s.pool, SLOT_WARM));
	TAILQ_FOREACH (b, &x->s.pool->warm, queue)
		RIG_CHECK(r, i < n && list[i++] == b->slot);
}

static void check_totals(const struct board *x)
{
	const struct shm_header *h = x->s.seg.header;
	const struct rig *r = &x->run.rig;

	for (uint32_t i = 0; i < SLOT_STATES; i++)
		RIG_CHECK(r, h->state_count[i] == pool_count(x->s.pool, (enum slot_state)i));
	RIG_CHECK(r, h->waiters == pool_waiters(x->s.pool));
	RIG_CHECK(r, h->replicas == pool_rules(x->s.pool)->replicas);
}

static void on_settled(void *ctx)
{
	struct board *x = ctx;

	publish_changed(&x->s);
	check_validates(x);
	for (uint32_t i = 0; i < x->run.rig.rules.slots; i++)
		check_part(x, pool_box_at(x->s.pool, i));
	for (uint32_t i = 0; i < x->run.rig.rules.slots; i++)
		check_leases(x, pool_box_at(x->s.pool, i));
	check_index(x);
	check_warm_list(x);
	check_totals(x);
}

/* ---- the runs ---- */

static void begin(struct board *x, uint64_t seed)
{
	run_begin(&x->run, seed);
	stage_table(&x->s, x->run.rig.rules.slots);
	x->s.pool = x->run.rig.pool;
	x->run.rig.hooks = (struct rig_hooks){on_action, on_dirty, on_settled, x};
}

static void end(struct board *x)
{
	stage_table_close(&x->s);
	run_end(&x->run);
}

static void test_the_table_follows_the_pool(void **state)
{
	struct board *x = *state;
	uint64_t first = run_from_environment("SBX_SEED", 1);
	uint64_t seeds = run_from_environment("SBX_SEEDS", SEEDS);

	for (uint64_t i = 0; i < seeds; i++) {
		begin(x, first + i);
		run_events(&x->run);
		end(x);
	}
}

/* ---- what comes together in one round of the loop ---- */

static struct pool_box box(uint32_t slot, uint32_t state, uint64_t generation, uint64_t parked)
{
	struct pool_box b = {
	    .slot = slot,
	    .state = state,
	    .generation = generation,
	    .machine = generation,
	    .uid = RIG_UID,
	    .identity = {1},
	    .state_since = parked,
	    .parked = parked,
	};

	(void)snprintf(b.token, sizeof(b.token), "%016" PRIx64, generation);
	return b;
}

static void show(struct board *x, struct pool_box b)
{
	x->run.rig.slots[b.slot].worker = b.state != SLOT_FREE && b.state != SLOT_RESERVED;
	meet_worker(x, b.slot);
	publish_box(&x->s, &b);
	check_validates(x);
}

static void assert_warm(const struct board *x, int n, const uint32_t *slots)
{
	uint32_t list[RIG_SLOTS];

	assert_int_equal(warm_list(&x->s.seg, list, RIG_SLOTS), n);
	assert_memory_equal(list, slots, (size_t)n * sizeof(*slots));
}

static void begin_alone(struct board *x)
{
	stage_table(&x->s, 4);
	x->run.rig.doing = "show";
}

/* It was leased and parked again before anybody looked: it is the newest now. */
static void test_parked_again_at_once(void **state)
{
	struct board *x = *state;

	begin_alone(x);
	show(x, box(0, SLOT_WARM, 1, 100));
	show(x, box(1, SLOT_WARM, 2, 200));
	show(x, box(2, SLOT_WARM, 3, 300));
	assert_warm(x, 3, (const uint32_t[]){0, 1, 2});
	show(x, box(0, SLOT_WARM, 1, 400));
	assert_warm(x, 3, (const uint32_t[]){1, 2, 0});
	show(x, box(2, SLOT_WARM, 3, 500));
	assert_warm(x, 3, (const uint32_t[]){1, 0, 2});
	show(x, box(2, SLOT_WARM, 3, 500));
	assert_warm(x, 3, (const uint32_t[]){1, 0, 2});
	stage_table_close(&x->s);
}

/* A slot was cleaned and taken anew before anybody looked. */
static void test_another_box_in_the_slot_at_once(void **state)
{
	static const uint32_t states[] = {
	    SLOT_RESERVED, SLOT_BOOTING, SLOT_ACTIVE, SLOT_WARM, SLOT_CLOSING};
	const size_t n = sizeof(states) / sizeof(states[0]);
	struct board *x = *state;
	uint64_t generation = 1;

	begin_alone(x);
	show(x, box(1, SLOT_WARM, generation++, 1));
	for (size_t from = 0; from < n; from++) {
		for (size_t to = 0; to < n; to++) {
			struct pool_box first = box(0, states[from], generation, 100);
			struct pool_box second = box(0, states[to], generation + 1, 100);

			generation += 2;
			show(x, first);
			show(x, second);
			assert_int_equal(index_find(&x->s.seg, RIG_UID, first.token), SHM_NONE);
			assert_int_equal(index_find(&x->s.seg, RIG_UID, second.token), 0);
			assert_int_equal(
			    x->s.seg.header->warm_count, 1 + (states[to] == SLOT_WARM));
			assert_int_equal(x->s.seg.header->next_generation, generation);
		}
	}
	stage_table_close(&x->s);
}

static void test_what_leaves_the_index(void **state)
{
	struct board *x = *state;
	struct pool_box b = box(0, SLOT_CLOSING, 7, 1);

	begin_alone(x);
	show(x, b);
	assert_int_equal(index_find(&x->s.seg, RIG_UID, b.token), 0);
	b.state = SLOT_QUARANTINED;
	x->run.rig.slots[0].worker = false;
	publish_box(&x->s, &b);
	check_validates(x);
	assert_int_equal(index_find(&x->s.seg, RIG_UID, b.token), SHM_NONE);
	assert_int_equal(x->s.seg.header->state_count[SLOT_QUARANTINED], 1);
	assert_string_equal(x->s.parts[0].token, b.token); /* what it was is still shown */
	publish_box(&x->s, &b);
	check_validates(x);

	show(x, box(1, SLOT_WARM, 8, 1));
	show(x, (struct pool_box){.slot = 1, .state = SLOT_FREE});
	assert_int_equal(x->s.seg.header->state_count[SLOT_FREE], 3);
	assert_int_equal(x->s.seg.header->next_generation, 9); /* never given back */
	assert_warm(x, 0, NULL);
	stage_table_close(&x->s);
}

/* What the driver isolates with, sbxd learns while boxes of its stock are on their way already. */
static void test_isolation_that_is_known_later(void **state)
{
	struct board *x = *state;

	begin_alone(x);
	x->s.isolation[0] = '\0';
	show(x, box(0, SLOT_BOOTING, 1, 100));
	assert_string_equal(x->s.parts[0].isolation, "");
	(void)snprintf(x->s.isolation, sizeof(x->s.isolation), "userns");
	show(x, box(0, SLOT_ACTIVE, 1, 200));
	assert_string_equal(x->s.parts[0].isolation, "userns");
	x->s.isolation[0] = '\0'; /* a successor: what stands there is true */
	show(x, box(0, SLOT_WARM, 1, 300));
	assert_string_equal(x->s.parts[0].isolation, "userns");
	show(x, (struct pool_box){.slot = 0, .state = SLOT_FREE});
	assert_string_equal(x->s.parts[0].isolation, "");
	stage_table_close(&x->s);
}

static int setup(void **state)
{
	struct board *x = calloc(1, sizeof(*x));

	assert_non_null(x);
	run_setup(&x->run);
	x->run.stock = true;
	*state = x;
	return 0;
}

static int teardown(void **state)
{
	struct board *x = *state;

	end(x); /* of a run that failed */
	free(x);
	return 0;
}

#define boarded(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    boarded(test_parked_again_at_once),
	    boarded(test_another_box_in_the_slot_at_once),
	    boarded(test_what_leaves_the_index),
	    boarded(test_isolation_that_is_known_later),
	    boarded(test_the_table_follows_the_pool),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
