/* Tests of supervisor/pool_queue.c: the rounds in which room is given, and how the queue is shown.
 */
#include "tests/unit/supervisor/pool_testing.h"

/* A request of that user, for a thread of its own. */
static uint64_t ask(struct rig *r, uid_t uid, const char *user)
{
	char thread[16];
	struct pool_request q;

	(void)snprintf(thread, sizeof(thread), "%" PRIu64, r->last_req + 1);
	q = rig_request(r, thread);
	q.uid = uid;
	q.user = user;
	assert_int_equal(identity_scope(user, thread, &q.id), 0);
	return rig_send(r, &q);
}

/* Gives back the box of the one request that has one. */
static void give_back(struct rig *r, uint64_t req)
{
	const struct pool_box *b = pool_box_at(r->pool, r->requests[req].slot);
	uint64_t lease = rig_lease(r, req);

	assert_int_equal(b->generation, r->requests[req].generation);
	(void)pool_release(r->pool, r->now, b->uid, b->token, lease);
	rig_settle(r);
}

/* One box for all: gives it back until everybody had it; `order` takes the requests in the order in
 * which they got it. */
static void serve_all(struct rig *r, uint64_t holder, uint64_t *order, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		rig_forget(r);
		give_back(r, holder);
		holder = 0;
		for (uint32_t k = 0; k < r->log_count; k++) {
			if (r->log[k].kind == POOL_GRANT)
				holder = r->log[k].req;
		}
		assert_true(holder > 0);
		order[i] = holder;
	}
}

static uint64_t start(struct rig *r)
{
	rig_restart(r, REPLICA_WAIT, 1, 4);
	return ask(r, RIG_UID, "holder");
}

static void test_a_user_with_many_requests_does_not_hold_up_another(void **state)
{
	struct rig *r = *state;
	uint64_t holder = start(r);
	uint64_t many[5];
	uint64_t few[2];
	uint64_t order[7];

	for (int i = 0; i < 5; i++)
		many[i] = ask(r, RIG_UID, "many");
	for (int i = 0; i < 2; i++)
		few[i] = ask(r, RIG_UID, "few");
	serve_all(r, holder, order, 7);
	assert_int_equal(order[0], many[0]);
	assert_int_equal(order[1], few[0]);
	assert_int_equal(order[2], many[1]);
	assert_int_equal(order[3], few[1]);
	for (int i = 4; i < 7; i++)
		assert_int_equal(order[i], many[i - 2]);
}

static void test_equal_names_of_other_uids_are_other_users(void **state)
{
	struct rig *r = *state;
	uint64_t holder = start(r);
	uint64_t req[3];
	uint64_t order[3];

	req[0] = ask(r, RIG_UID, "u");
	req[1] = ask(r, RIG_UID, "u");
	req[2] = ask(r, RIG_UID + 1, "u");
	serve_all(r, holder, order, 3);
	assert_int_equal(order[0], req[0]);
	assert_int_equal(order[1], req[2]);
	assert_int_equal(order[2], req[1]);
}

/* Whoever comes again as soon as it was served waits for the others all the same. */
static void test_coming_again_at_once_overtakes_nobody(void **state)
{
	struct rig *r = *state;
	uint64_t eager = start(r);
	uint64_t other[3];

	for (int i = 0; i < 3; i++)
		other[i] = ask(r, RIG_UID, "other");
	for (int i = 0; i < 3; i++) {
		uint64_t again = ask(r, RIG_UID, "eager");

		give_back(r, eager);
		assert_outcome(r, other[i], GOT(SOURCE_COLD));
		assert_outcome(r, again, WAITING);
		give_back(r, other[i]);
		assert_outcome(r, again, GOT(SOURCE_COLD));
		eager = again;
	}
}

static void test_who_comes_anew_joins_the_next_round(void **state)
{
	struct rig *r = *state;
	uint64_t holder = start(r);
	uint64_t many[5];
	uint64_t order[4];
	uint64_t late;

	for (int i = 0; i < 5; i++)
		many[i] = ask(r, RIG_UID, "many");
	give_back(r, holder);
	give_back(r, many[0]);
	assert_outcome(r, many[1], GOT(SOURCE_COLD));
	late = ask(r, RIG_UID, "late");
	serve_all(r, many[1], order, 4);
	assert_int_equal(order[0], many[2]); /* which was there before it */
	assert_int_equal(order[1], late);    /* and not behind all that was there */
	assert_int_equal(order[2], many[3]);
}

/* However many others come for the first time, and before it is served: its turn comes. */
static void test_no_stream_of_new_users_starves_a_second_request(void **state)
{
	struct rig *r = *state;
	uint64_t holder = start(r);
	uint64_t second;
	uint64_t order[1];
	uint32_t served = 0;

	ask(r, RIG_UID, "two");
	second = ask(r, RIG_UID, "two");
	for (uint32_t uid = 1; rig_outcome(r, second) == WAITING; uid++) {
		ask(r, RIG_UID + uid, "new");
		ask(r, RIG_UID + uid, "newer");
		serve_all(r, holder, order, 1);
		holder = order[0];
		assert_true(++served <= 8);
	}
}

static void test_who_comes_anew_overtakes_nobody_of_the_current_round(void **state)
{
	struct rig *r = *state;
	uint64_t holder = start(r);
	uint64_t a[2];
	uint64_t b[2];
	uint64_t late;

	for (int i = 0; i < 2; i++) {
		a[i] = ask(r, RIG_UID, "a");
		b[i] = ask(r, RIG_UID, "b");
	}
	give_back(r, holder);
	give_back(r, a[0]);
	give_back(r, b[0]);
	assert_outcome(r, a[1], GOT(SOURCE_COLD)); /* the second round has begun */
	late = ask(r, RIG_UID, "late");
	give_back(r, a[1]);
	assert_outcome(r, b[1], GOT(SOURCE_COLD));
	assert_outcome(r, late, WAITING);
}

static void test_who_was_served_in_a_round_waits_for_the_next(void **state)
{
	struct rig *r = *state;
	uint64_t holder = start(r);
	uint64_t a = ask(r, RIG_UID, "a");
	uint64_t b = ask(r, RIG_UID, "b");
	uint64_t c[2];
	uint64_t again;

	for (int i = 0; i < 2; i++)
		c[i] = ask(r, RIG_UID, "c");
	give_back(r, holder);
	give_back(r, a);
	assert_outcome(r, b, GOT(SOURCE_COLD));
	again = ask(r, RIG_UID, "a"); /* though others were served since */
	give_back(r, b);
	give_back(r, c[0]);
	assert_outcome(r, c[1], GOT(SOURCE_COLD));
	assert_outcome(r, again, WAITING);
}

/* Enough of them to meet in the buckets of the table of users. */
static void test_many_users_are_all_told_apart(void **state)
{
	struct rig *r = *state;
	uint64_t holder = start(r);
	uint64_t order[201];
	uint64_t first = r->last_req + 1;

	for (uint32_t i = 0; i < 100; i++) {
		ask(r, RIG_UID + i, "u");
		ask(r, RIG_UID + i, "v");
	}
	ask(r, RIG_UID, "w");
	serve_all(r, holder, order, 201);
	for (uint32_t i = 0; i < 201; i++) /* all in one round */
		assert_int_equal(order[i], first + i);
}

static void test_what_a_user_gave_up_does_not_count_against_it(void **state)
{
	struct rig *r = *state;
	uint64_t holder = start(r);
	uint64_t other[2];
	uint64_t order[3];
	uint64_t req;

	for (int i = 0; i < 2; i++)
		other[i] = ask(r, RIG_UID, "other");
	for (int i = 0; i < 5; i++)
		rig_leave(r, ask(r, RIG_UID, "fickle"));
	req = ask(r, RIG_UID, "fickle");
	serve_all(r, holder, order, 3);
	assert_int_equal(order[0], other[0]);
	assert_int_equal(order[1], req);
	assert_int_equal(order[2], other[1]);
}

static void test_nothing_is_remembered_of_a_queue_that_was_empty(void **state)
{
	struct rig *r = *state;
	uint64_t holder = start(r);
	uint64_t a;
	uint64_t b;

	for (int i = 0; i < 3; i++) {
		a = ask(r, RIG_UID, "a");
		give_back(r, holder);
		holder = a;
	}
	assert_int_equal(pool_waiters(r->pool), 0);
	a = ask(r, RIG_UID, "a"); /* first again, though it had the last three */
	b = ask(r, RIG_UID, "b");
	give_back(r, holder);
	assert_outcome(r, a, GOT(SOURCE_COLD));
	assert_outcome(r, b, WAITING);
}

/* Of two users that always have something in the queue neither gets more than one box more than the
 * other, however many requests each has. */
static void test_users_that_always_wait_get_equal_shares(void **state)
{
	struct rig *r = *state;
	uint64_t holder = start(r);
	uint64_t order[90];
	int got[3] = {0};
	uint64_t first;

	first = r->last_req + 1;
	for (int user = 0; user < 3; user++) {
		for (int i = 0; i < 30; i++)
			ask(r, RIG_UID, (const char[]){(char)('a' + user), 0});
	}
	serve_all(r, holder, order, 90);
	for (int i = 0; i < 90; i++) {
		got[(order[i] - first) / 30]++;
		for (int user = 1; user < 3; user++)
			assert_in_range(got[user] + 1 - got[0], 0, 2);
	}
}

/* ---- how it is shown ---- */

struct list {
	uint32_t count;
	uint32_t stop_at;
	struct pool_waiting rows[8];
};

static bool take_row(void *ctx, const struct pool_waiting *w)
{
	struct list *l = ctx;

	l->rows[l->count++] = *w;
	return l->count != l->stop_at;
}

static void test_the_queue_is_shown_in_the_order_in_which_it_is_served(void **state)
{
	struct rig *r = *state;
	uint64_t req[3];
	struct list l = {0};

	start(r);
	r->held = HOLD(POOL_SPAWN);
	req[0] = ask(r, RIG_UID, "a");
	req[1] = ask(r, RIG_UID, "a");
	rig_pass(r, NS_PER_S);
	req[2] = ask(r, RIG_UID + 1, "b");
	pool_each_waiting(r->pool, take_row, &l);
	assert_int_equal(l.count, 3);
	assert_int_equal(l.rows[0].req, req[0]);
	assert_int_equal(l.rows[1].req, req[2]);
	assert_int_equal(l.rows[2].req, req[1]);
	for (uint32_t i = 0; i < 3; i++) {
		assert_true(l.rows[i].for_room);
		assert_int_equal(l.rows[i].place, i + 1);
	}
	assert_int_equal(l.rows[1].uid, RIG_UID + 1);
	assert_string_equal(l.rows[1].user, "b");
	assert_string_equal(l.rows[1].thread, "4");
	assert_int_equal(strlen(l.rows[1].token), 16);
	assert_int_equal(l.rows[1].since, r->now);
	assert_int_equal(l.rows[1].deadline, r->now + 60 * NS_PER_S);
}

static void test_who_waits_for_a_box_of_its_own_is_shown_after_those(void **state)
{
	struct rig *r = *state;
	uint64_t own;
	uint64_t room;
	struct list l = {0};

	rig_restart(r, REPLICA_WAIT, 1, 4);
	r->held = HOLD(POOL_SPAWN);
	own = rig_acquire(r, "boots");
	room = rig_acquire(r, "no room");
	pool_each_waiting(r->pool, take_row, &l);
	assert_int_equal(l.count, 2);
	assert_int_equal(l.rows[0].req, room);
	assert_int_equal(l.rows[0].place, 1);
	assert_int_equal(l.rows[1].req, own);
	assert_int_equal(l.rows[1].place, 0);
	assert_false(l.rows[1].for_room);
	for (uint32_t stop = 1; stop <= 2; stop++) {
		l = (struct list){.stop_at = stop};
		pool_each_waiting(r->pool, take_row, &l);
		assert_int_equal(l.count, stop);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    rig_test(test_a_user_with_many_requests_does_not_hold_up_another),
	    rig_test(test_equal_names_of_other_uids_are_other_users),
	    rig_test(test_coming_again_at_once_overtakes_nobody),
	    rig_test(test_who_comes_anew_joins_the_next_round),
	    rig_test(test_what_a_user_gave_up_does_not_count_against_it),
	    rig_test(test_nothing_is_remembered_of_a_queue_that_was_empty),
	    rig_test(test_users_that_always_wait_get_equal_shares),
	    rig_test(test_the_queue_is_shown_in_the_order_in_which_it_is_served),
	    rig_test(test_who_waits_for_a_box_of_its_own_is_shown_after_those),
	    rig_test(test_no_stream_of_new_users_starves_a_second_request),
	    rig_test(test_who_comes_anew_overtakes_nobody_of_the_current_round),
	    rig_test(test_who_was_served_in_a_round_waits_for_the_next),
	    rig_test(test_many_users_are_all_told_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
