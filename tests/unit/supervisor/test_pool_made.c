/* Tests of supervisor/pool_made.c: boxes that are their creator's until they are removed. */
#include "tests/unit/supervisor/pool_restarting.h"

#include <errno.h>

#define OTHER_UID 1001U

/* The next request for a box of that name, NULL: of none. */
static struct pool_request make_request(struct rig *r, uid_t uid, const char *name)
{
	struct pool_request q = {
	    .want = POOL_WANT_MADE,
	    .uid = uid,
	    .anonymous = true,
	    .no_user = true,
	    .name = name,
	    .req = ++r->last_req,
	};

	RIG_CHECK(r, q.req < RIG_REQS);
	q.lease_id = 5000 + q.req;
	(void)snprintf(q.spec.image, sizeof(q.spec.image), "host");
	(void)snprintf(q.id.token, sizeof(q.id.token), "%016" PRIx64, 0xabc000 + q.req);
	memset(q.id.digest, (int)q.req, sizeof(q.id.digest));
	return q;
}

static uint64_t make(struct rig *r, const char *name)
{
	struct pool_request q = make_request(r, RIG_UID, name);

	return rig_send(r, &q);
}

static const struct pool_box *box_of(const struct rig *r, uint64_t req)
{
	char token[SHM_TOKEN_LEN];

	(void)snprintf(token, sizeof(token), "%016" PRIx64, 0xabc000 + req);
	return pool_box_find(r->pool, RIG_UID, token);
}

static uint64_t order(struct rig *r, uint64_t made, enum pool_want want, uint64_t timeout)
{
	uint64_t req = ++r->last_req;
	const struct pool_box *b = box_of(r, made);

	assert_int_equal(pool_order(r->pool, r->now, b->uid, b->token, want, timeout, req), 0);
	rig_settle(r);
	return req;
}

#define start(r, made) order(r, made, POOL_WANT_START, 0)
#define stop(r, made) order(r, made, POOL_WANT_STOP, NS_PER_S)

#define assert_rest(r, made, expected) \
	assert_int_equal(box_of(r, made)->flags &SLOT_FLAGS_REST, expected)

static int remove_made(struct rig *r, uint64_t made, bool force)
{
	uint64_t req = ++r->last_req;
	const struct pool_box *b = box_of(r, made);
	int rc = pool_remove(r->pool, r->now, b->uid, b->token, force, req);

	r->requests[req].outcome = GONE;
	r->requests[req].removal = rc == 0;
	rig_settle(r);
	assert_true(rc < 0 || (r->held & HOLD(POOL_CLOSE)) || r->requests[req].removed);
	return rc;
}

/* ---- making ---- */

static void test_a_box_is_made_at_once_and_is_fresh(void **state)
{
	struct rig *r = *state;
	uint64_t req = make(r, "mine");
	const struct pool_box *b = box_of(r, req);

	assert_outcome(r, req, GOT(SOURCE_COLD));
	assert_int_equal(b->state, SLOT_ACTIVE);
	assert_string_equal(b->name, "mine");
	assert_int_equal(
	    b->flags, SLOT_FLAG_ANONYMOUS | SLOT_FLAG_NO_USER | SLOT_FLAG_MADE | SLOT_FLAG_FRESH);
	assert_ptr_equal(pool_box_named(r->pool, RIG_UID, "mine"), b);
	assert_null(pool_box_named(r->pool, OTHER_UID, "mine"));
	assert_null(pool_box_named(r->pool, RIG_UID, "min"));
}

static void test_a_box_needs_no_name(void **state)
{
	struct rig *r = *state;

	assert_outcome(r, make(r, NULL), GOT(SOURCE_COLD));
	assert_outcome(r, make(r, ""), GOT(SOURCE_COLD));
	assert_null(pool_box_named(r->pool, RIG_UID, ""));
}

static void test_a_name_is_its_uids_own(void **state)
{
	struct rig *r = *state;
	struct pool_request q;
	uint64_t req = make(r, "mine");

	assert_outcome(r, make(r, "mine"), REFUSED(API_ALREADY_EXISTS));
	assert_outcome(r, make(r, "Mine"), GOT(SOURCE_COLD));
	q = make_request(r, OTHER_UID, "mine");
	assert_outcome(r, rig_send(r, &q), GOT(SOURCE_COLD));
	assert_int_equal(pool_box_named(r->pool, OTHER_UID, "mine")->uid, OTHER_UID);
	assert_ptr_equal(pool_box_named(r->pool, RIG_UID, "mine"), box_of(r, req));
}

/* From the first moment: also while there is no room, no image, no worker. */
static void test_a_name_is_taken_while_its_box_is_being_made(void **state)
{
	struct rig *r = *state;
	uint64_t first;
	uint64_t waits;

	rig_restart(r, REPLICA_WAIT, 1, 8);
	r->held = HOLD(POOL_SPAWN);
	first = make(r, "first");
	waits = make(r, "second");
	assert_outcome(r, make(r, "first"), REFUSED(API_ALREADY_EXISTS));
	assert_outcome(r, make(r, "second"), REFUSED(API_ALREADY_EXISTS));
	assert_null(pool_box_named(r->pool, RIG_UID, "second")); /* there is none yet */
	rig_leave(r, waits);
	waits = make(r, "second");
	assert_outcome(r, waits, WAITING);
	rig_let_go(r);
	assert_outcome(r, first, GOT(SOURCE_COLD));
	assert_int_equal(remove_made(r, first, true), 0);
	assert_outcome(r, waits, GOT(SOURCE_COLD));
}

static void test_made_boxes_count_against_replicas(void **state)
{
	struct rig *r = *state;
	uint64_t made;

	rig_restart(r, REPLICA_REJECT, 2, 8);
	made = make(r, "a");
	assert_outcome(r, make(r, "b"), GOT(SOURCE_COLD));
	assert_outcome(r, make(r, "c"), REFUSED(API_CAPACITY));
	assert_outcome(r, make(r, "c"), REFUSED(API_CAPACITY)); /* the name was not kept */
	assert_outcome(r, rig_acquire(r, "t"), REFUSED(API_CAPACITY));
	assert_int_equal(remove_made(r, made, true), 0);
	assert_outcome(r, rig_acquire(r, "t"), GOT(SOURCE_COLD));
}

static void test_a_warm_box_makes_way_for_one_that_is_made(void **state)
{
	struct rig *r = *state;

	rig_restart(r, REPLICA_REJECT, 1, 8);
	(void)rig_park(r, "t");
	assert_outcome(r, make(r, "a"), GOT(SOURCE_COLD));
	assert_state(r, "t", SLOT_FREE);
}

static void test_it_is_never_made_of_stock(void **state)
{
	struct rig *r = *state;
	struct pool_rules rules = r->rules;

	rules.prewarm = 1;
	(void)snprintf(rules.stock.image, sizeof(rules.stock.image), "host");
	rig_use(r, &rules);
	rig_pass(r, NS_PER_S);
	assert_int_equal(pool_count(r->pool, SLOT_STOCK), 1);
	assert_outcome(r, make(r, "a"), GOT(SOURCE_COLD));
	assert_int_equal(pool_count(r->pool, SLOT_STOCK), 1);
	assert_outcome(r, rig_acquire(r, "t"), GOT(SOURCE_PREWARMED));
}

static void test_who_leaves_before_it_is_made_has_none(void **state)
{
	struct rig *r = *state;
	uint64_t req;

	r->held = HOLD(POOL_SPAWN);
	req = make(r, "a");
	rig_leave(r, req);
	assert_int_equal(box_of(r, req)->state, SLOT_BOOTING);
	assert_outcome(r, make(r, "a"), REFUSED(API_ALREADY_EXISTS)); /* it still is there */
	rig_let_go(r);
	assert_null(box_of(r, req));
	assert_outcome(r, make(r, "a"), GOT(SOURCE_COLD));
}

static void test_a_boot_that_fails_frees_the_name(void **state)
{
	struct rig *r = *state;
	uint64_t req;

	r->held = HOLD(POOL_SPAWN) | HOLD(POOL_CLOSE);
	req = make(r, "a");
	pool_image_failed(
	    r->pool, r->now, box_of(r, req)->slot, box_of(r, req)->generation, "no such image");
	rig_settle(r);
	assert_outcome(r, req, REFUSED(API_IMAGE_PULL_FAILED));
	assert_string_equal(r->requests[req].text, "no such image");
	assert_int_equal(box_of(r, req)->state, SLOT_CLOSING);
	r->held = HOLD(POOL_CLOSE);
	req = make(r, "a"); /* while the other closes */
	rig_settle(r);
	assert_outcome(r, req, GOT(SOURCE_COLD));
	assert_ptr_equal(pool_box_named(r->pool, RIG_UID, "a"), box_of(r, req));
}

static void test_a_lost_boot_is_tried_again_under_its_name(void **state)
{
	struct rig *r = *state;
	uint64_t req;

	r->held = HOLD(POOL_SPAWN) | HOLD(POOL_CLEAN);
	req = make(r, "a");
	rig_crash(r, box_of(r, req)->slot);
	assert_int_equal(box_of(r, req)->state, SLOT_CLOSING);
	assert_outcome(r, make(r, "a"), REFUSED(API_ALREADY_EXISTS));
	rig_let_go(r);
	assert_outcome(r, req, GOT(SOURCE_COLD));
	assert_string_equal(box_of(r, req)->name, "a");
}

/* ---- its creator's ---- */

static void test_nothing_takes_it_from_its_creator(void **state)
{
	struct rig *r = *state;
	struct pool_rules rules = r->rules;
	uint64_t req = make(r, "a");
	const struct pool_box *b = box_of(r, req);

	rules.active_idle_timeout = NS_PER_S;
	rules.idle_timeout = NS_PER_S;
	rules.replicas = 1;
	rig_use(r, &rules);
	assert_int_equal(pool_release(r->pool, r->now, RIG_UID, b->token, 0), POOL_RELEASE_RUNNING);
	assert_int_equal(pool_release(r->pool, r->now, RIG_UID, b->token, rig_lease(r, req)),
	    POOL_RELEASE_RUNNING);
	assert_int_equal(pool_reset(r->pool, r->now), 0);
	pool_conn_gone(r->pool, r->now, 0);
	rig_settle(r);
	(void)rig_acquire(r, "t"); /* beyond replicas */
	rig_pass(r, 3600 * NS_PER_S);
	assert_ptr_equal(box_of(r, req), b);
	assert_int_equal(b->state, SLOT_ACTIVE);
	assert_int_equal(b->lease_count, 1);
	assert_state(r, "t", SLOT_FREE); /* that one went */
}

static void test_an_acquire_never_gets_it(void **state)
{
	struct rig *r = *state;
	uint64_t made = make(r, "a");
	struct pool_request q = rig_request(r, "t");

	memcpy(q.id.token, box_of(r, made)->token, sizeof(q.id.token)); /* by a collision */
	assert_outcome(r, rig_send(r, &q), REFUSED(API_IDENTITY_COLLISION));
}

static void test_shutdown_closes_it(void **state)
{
	struct rig *r = *state;
	uint64_t req = make(r, "a");
	uint64_t waits;

	r->held = HOLD(POOL_STOP);
	waits = stop(r, req);
	rig_shutdown(r);
	assert_int_equal(r->drained, 1);
	assert_outcome(r, waits, REFUSED(API_SHUTTING_DOWN));
	assert_outcome(r, make(r, "b"), REFUSED(API_SHUTTING_DOWN));
}

/* ---- starting and stopping ---- */

static void test_start_and_stop(void **state)
{
	struct rig *r = *state;
	uint64_t req = make(r, "a");

	assert_outcome(r, start(r, req), OBEYED);
	assert_rest(r, req, 0);
	assert_int_equal(rig_recorded(r, EVENT_START), 1);
	assert_outcome(r, start(r, req), OBEYED);
	assert_int_equal(rig_recorded(r, EVENT_START), 1);
	assert_outcome(r, stop(r, req), OBEYED);
	assert_rest(r, req, SLOT_FLAG_STOPPED);
	assert_int_equal(rig_recorded(r, EVENT_STOP), 1);
	assert_outcome(r, stop(r, req), OBEYED);
	assert_int_equal(rig_said(r, POOL_STOP), 1);
	assert_outcome(r, start(r, req), OBEYED);
	assert_rest(r, req, 0);
	assert_int_equal(box_of(r, req)->state, SLOT_ACTIVE);
}

static void test_a_fresh_box_may_be_stopped(void **state)
{
	struct rig *r = *state;
	uint64_t req = make(r, NULL);

	assert_outcome(r, stop(r, req), OBEYED);
	assert_rest(r, req, SLOT_FLAG_STOPPED);
}

static void test_use_starts(void **state)
{
	struct rig *r = *state;
	uint64_t req = make(r, NULL);
	const struct pool_box *b = box_of(r, req);

	assert_true(pool_use(r->pool, b->slot, b->generation));
	assert_rest(r, req, 0);
	rig_settle(r);
	(void)stop(r, req);
	assert_true(pool_use(r->pool, b->slot, b->generation));
	assert_rest(r, req, 0);
	rig_settle(r);
	assert_int_equal(rig_recorded(r, EVENT_START), 2);
	assert_true(pool_use(r->pool, b->slot, b->generation));
	assert_true(pool_use(r->pool, b->slot, b->generation + 1)); /* stale: nothing to start */
	rig_settle(r);
	assert_int_equal(rig_recorded(r, EVENT_START), 2);
}

static void test_while_it_stops(void **state)
{
	struct rig *r = *state;
	uint64_t req = make(r, NULL);
	const struct pool_box *b = box_of(r, req);
	uint64_t first;
	uint64_t joins;
	uint64_t starts;
	uint64_t again;

	r->held = HOLD(POOL_STOP);
	first = stop(r, req);
	joins = stop(r, req);
	starts = start(r, req);
	again = stop(r, req);
	assert_rest(r, req, SLOT_FLAG_STOPPING);
	assert_false(pool_use(r->pool, b->slot, b->generation));
	assert_int_equal(remove_made(r, req, false), -EBUSY);
	assert_outcome(r, first, WAITING);
	rig_answer_slot(r, b->slot);
	assert_outcome(r, first, OBEYED);
	assert_outcome(r, joins, OBEYED);
	assert_outcome(r, starts, OBEYED);
	assert_outcome(r, again, WAITING); /* one after the other */
	assert_int_equal(rig_said(r, POOL_STOP), 2);
	rig_let_go(r);
	assert_outcome(r, again, OBEYED);
	assert_rest(r, req, SLOT_FLAG_STOPPED);
}

static void test_orders_wait_until_it_is_made(void **state)
{
	struct rig *r = *state;
	uint64_t req;
	uint64_t starts;
	uint64_t stops;

	r->held = HOLD(POOL_SPAWN);
	req = make(r, "a");
	starts = start(r, req);
	stops = stop(r, req);
	assert_outcome(r, starts, WAITING);
	rig_let_go(r);
	assert_outcome(r, req, GOT(SOURCE_COLD));
	assert_outcome(r, starts, OBEYED);
	assert_outcome(r, stops, OBEYED);
	assert_rest(r, req, SLOT_FLAG_STOPPED);
}

static void test_orders_of_a_box_that_nobody_waits_for(void **state)
{
	struct rig *r = *state;
	uint64_t req;
	uint64_t starts;

	rig_restart(r, REPLICA_SOFT, 8, 8);
	r->held = HOLD(POOL_SPAWN);
	req = make(r, "a");
	starts = start(r, req);
	rig_leave(r, req);
	assert_outcome(r, starts, WAITING);
	rig_let_go(r);
	assert_outcome(r, starts, REFUSED(API_BOX_DIED));
	assert_null(box_of(r, req));
}

static void test_a_stop_goes_on_without_who_asked(void **state)
{
	struct rig *r = *state;
	uint64_t req = make(r, NULL);

	r->held = HOLD(POOL_STOP);
	rig_leave(r, stop(r, req));
	assert_rest(r, req, SLOT_FLAG_STOPPING);
	rig_let_go(r);
	assert_rest(r, req, SLOT_FLAG_STOPPED);
}

static void test_a_stop_that_fails(void **state)
{
	struct rig *r = *state;
	uint64_t req = make(r, NULL);
	uint64_t stops;

	(void)start(r, req);
	r->sick = true;
	stops = stop(r, req);
	assert_outcome(r, stops, REFUSED(API_TIMEOUT));
	assert_string_equal(r->requests[stops].text, "processes are left");
	assert_rest(r, req, 0); /* it goes on running */
	r->sick = false;
	assert_outcome(r, stop(r, req), OBEYED);
}

/* A worker that says nothing has hung. */
static void test_a_stop_without_an_answer(void **state)
{
	struct rig *r = *state;
	uint64_t req = make(r, "a");
	uint64_t stops;

	r->held = HOLD(POOL_STOP);
	stops = order(r, req, POOL_WANT_STOP, 5 * NS_PER_S);
	rig_pass(r, 5 * NS_PER_S + POOL_STOP_SLACK - 1);
	assert_outcome(r, stops, WAITING);
	rig_pass(r, 1);
	assert_outcome(r, stops, REFUSED(API_BOX_DIED));
	assert_null(box_of(r, req));
	assert_outcome(r, make(r, "a"), GOT(SOURCE_COLD));
}

static void test_a_box_that_dies_while_it_stops(void **state)
{
	struct rig *r = *state;
	uint64_t req = make(r, NULL);
	uint64_t stops;

	r->held = HOLD(POOL_STOP);
	stops = stop(r, req);
	rig_crash(r, box_of(r, req)->slot);
	assert_outcome(r, stops, REFUSED(API_BOX_DIED));
	assert_null(box_of(r, req));
}

static void test_what_cannot_be_ordered(void **state)
{
	struct rig *r = *state;
	uint64_t req = make(r, NULL);
	struct identity id;
	uint64_t late;

	(void)rig_acquire(r, "t");
	assert_int_equal(identity_scope("u", "t", &id), 0);
	assert_int_equal(
	    pool_order(r->pool, r->now, RIG_UID, id.token, POOL_WANT_STOP, 0, 99), -EINVAL);
	assert_int_equal(
	    pool_order(r->pool, r->now, RIG_UID, "none", POOL_WANT_START, 0, 99), -ENOENT);
	assert_int_equal(
	    pool_order(r->pool, r->now, OTHER_UID, box_of(r, req)->token, POOL_WANT_START, 0, 99),
	    -ENOENT);
	r->held = HOLD(POOL_CLOSE);
	assert_int_equal(remove_made(r, req, true), 0);
	late = start(r, req);
	assert_outcome(r, late, REFUSED(API_BOX_DIED));
}

static void test_late_words_about_a_stop(void **state)
{
	struct rig *r = *state;
	uint64_t req = make(r, NULL);
	const struct pool_box *b = box_of(r, req);

	pool_stopped(r->pool, r->now, b->slot, b->generation, true, "");
	pool_stopped(r->pool, r->now, b->slot, b->generation - 1, true, "");
	assert_rest(r, req, SLOT_FLAG_FRESH);
	assert_null(pool_next_dirty(r->pool));
	rig_settle(r);
}

/* ---- removal ---- */

static void test_removal_of_a_running_box_needs_force(void **state)
{
	struct rig *r = *state;
	uint64_t req = make(r, "a");

	(void)start(r, req);
	assert_int_equal(remove_made(r, req, false), -EBUSY);
	assert_int_equal(remove_made(r, req, true), 0);
	assert_null(box_of(r, req));
	req = make(r, "a");				 /* the name is free */
	assert_int_equal(remove_made(r, req, false), 0); /* fresh */
	req = make(r, "a");
	(void)stop(r, req);
	assert_int_equal(remove_made(r, req, false), 0); /* stopped */
}

static void test_the_name_is_free_once_it_closes(void **state)
{
	struct rig *r = *state;
	uint64_t req = make(r, "a");
	uint64_t next;

	r->held = HOLD(POOL_CLOSE);
	assert_int_equal(remove_made(r, req, true), 0);
	assert_null(pool_box_named(r->pool, RIG_UID, "a"));
	next = make(r, "a");
	assert_outcome(r, next, GOT(SOURCE_COLD));
	assert_int_equal(box_of(r, req)->state, SLOT_CLOSING);
	assert_string_equal(box_of(r, req)->name, "a"); /* it is still shown */
	rig_let_go(r);
	assert_ptr_equal(pool_box_named(r->pool, RIG_UID, "a"), box_of(r, next));
}

static void test_removal_while_it_is_made(void **state)
{
	struct rig *r = *state;
	uint64_t req;

	r->held = HOLD(POOL_SPAWN);
	req = make(r, "a");
	assert_int_equal(remove_made(r, req, false), -EBUSY);
	assert_int_equal(remove_made(r, req, true), 0);
	assert_outcome(r, req, REFUSED(API_BOX_DIED));
	assert_null(box_of(r, req)); /* and no other was begun */
	assert_int_equal(pool_count(r->pool, SLOT_FREE), r->rules.slots);
}

/* ---- successors ---- */

static void test_made_boxes_outlive_their_supervisor(void **state)
{
	struct rig *r = *state;
	uint64_t fresh = make(r, "fresh");
	uint64_t running = make(r, "running");
	uint64_t stopped = make(r, NULL);
	uint64_t generation = box_of(r, running)->generation;

	(void)start(r, running);
	(void)stop(r, stopped);
	rig_die_and_succeed(r);
	assert_rest(r, fresh, SLOT_FLAG_FRESH);
	assert_rest(r, running, 0);
	assert_rest(r, stopped, SLOT_FLAG_STOPPED);
	assert_ptr_equal(pool_box_named(r->pool, RIG_UID, "running"), box_of(r, running));
	assert_int_equal(box_of(r, running)->generation, generation);
	assert_int_equal(box_of(r, running)->lease_count, 1);
	assert_outcome(r, make(r, "fresh"), REFUSED(API_ALREADY_EXISTS));
	assert_int_equal(pool_reset(r->pool, r->now), 0);
	assert_outcome(r, start(r, stopped), OBEYED);
	assert_int_equal(remove_made(r, fresh, false), 0);
}

static void test_a_stop_is_begun_anew_by_a_successor(void **state)
{
	struct rig *r = *state;
	uint64_t req = make(r, NULL);
	uint64_t joins;

	r->held = HOLD(POOL_STOP) | HOLD_HELLO;
	(void)stop(r, req);
	rig_die_and_succeed(r);
	assert_rest(r, req, SLOT_FLAG_STOPPING);
	joins = stop(r, req);
	rig_pass(r, 100 * NS_PER_S - 60 * NS_PER_S); /* its worker has not said hello */
	assert_int_equal(rig_said(r, POOL_STOP), 1);
	r->held = HOLD(POOL_STOP);
	rig_settle(r);
	assert_int_equal(rig_said(r, POOL_STOP), 2);
	rig_let_go(r);
	assert_rest(r, req, SLOT_FLAG_STOPPED);
	assert_outcome(r, joins, OBEYED);
}

static void test_one_that_still_boots_goes_with_its_supervisor(void **state)
{
	struct rig *r = *state;
	uint64_t req;

	r->held = HOLD(POOL_SPAWN) | HOLD_HELLO;
	req = make(r, "a");
	rig_die_and_succeed(r);
	assert_int_equal(box_of(r, req)->state, SLOT_CLOSING);
	r->held = HOLD_HELLO;
	assert_outcome(r, make(r, "a"), GOT(SOURCE_COLD)); /* its creator asks again */
	rig_let_go(r);
	assert_null(box_of(r, req));
}

static void test_a_removal_that_was_half_done_is_done(void **state)
{
	struct rig *r = *state;
	uint64_t req = make(r, "a");
	struct rig_shown *table = rig_die(r);

	table[0].box.lease_count = 0;
	rig_succeed(r, table);
	free(table);
	rig_settle(r);
	assert_null(box_of(r, req));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    rig_test(test_a_box_is_made_at_once_and_is_fresh),
	    rig_test(test_a_box_needs_no_name),
	    rig_test(test_a_name_is_its_uids_own),
	    rig_test(test_a_name_is_taken_while_its_box_is_being_made),
	    rig_test(test_made_boxes_count_against_replicas),
	    rig_test(test_a_warm_box_makes_way_for_one_that_is_made),
	    rig_test(test_it_is_never_made_of_stock),
	    rig_test(test_who_leaves_before_it_is_made_has_none),
	    rig_test(test_a_boot_that_fails_frees_the_name),
	    rig_test(test_a_lost_boot_is_tried_again_under_its_name),
	    rig_test(test_nothing_takes_it_from_its_creator),
	    rig_test(test_an_acquire_never_gets_it),
	    rig_test(test_shutdown_closes_it),
	    rig_test(test_start_and_stop),
	    rig_test(test_a_fresh_box_may_be_stopped),
	    rig_test(test_use_starts),
	    rig_test(test_while_it_stops),
	    rig_test(test_orders_wait_until_it_is_made),
	    rig_test(test_orders_of_a_box_that_nobody_waits_for),
	    rig_test(test_a_stop_goes_on_without_who_asked),
	    rig_test(test_a_stop_that_fails),
	    rig_test(test_a_stop_without_an_answer),
	    rig_test(test_a_box_that_dies_while_it_stops),
	    rig_test(test_what_cannot_be_ordered),
	    rig_test(test_late_words_about_a_stop),
	    rig_test(test_removal_of_a_running_box_needs_force),
	    rig_test(test_the_name_is_free_once_it_closes),
	    rig_test(test_removal_while_it_is_made),
	    rig_test(test_made_boxes_outlive_their_supervisor),
	    rig_test(test_a_stop_is_begun_anew_by_a_successor),
	    rig_test(test_one_that_still_boots_goes_with_its_supervisor),
	    rig_test(test_a_removal_that_was_half_done_is_done),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
