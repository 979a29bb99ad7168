/*
 * making: what a box that is being made will have, who waits for it, and what becomes of it when
 * they leave.
 */
#include <errno.h>

#include "supervisor/idempotency.h"
#include "supervisor/making.h"
#include "tests/unit/supervisor/events_testing.h"
#include "tests/unit/supervisor/fake_workers.h"

/* There is no room: nothing boots. */
static const struct pool_rules rules = {.slots = 2, .policy = REPLICA_WAIT, .max_boots = 1};

static int set_up(void **state)
{
	*state = stage_open(&rules);
	return 0;
}

static int tear_down(void **state)
{
	struct sbxd *s = *state;

	makings_free(s);
	stage_close(s);
	return 0;
}

static struct making *begin(struct sbxd *s, const char *token, struct idempotent *key)
{
	const struct make_request r = {.name = "n"};
	struct making *m = NULL;

	assert_int_equal(making_begin(s, 1000, token, &r, key, &m), 0);
	return m;
}

/* ---- what it will have ---- */

static void configure(struct sbxd *s, char *data, size_t len)
{
	s->config.environment.data = data;
	s->config.environment.len = len;
}

static void test_its_own_variables_come_before_the_configured(void **state)
{
	static char configured[] = "A=1\0B=2\0AB=3";
	static const char expected[] = "A=1\0AB=3\0B=own\0C=";
	struct sbxd *s = *state;
	struct make_request r = {.working_dir = "/srv", .user = "nobody:users"};
	struct making *m;

	configure(s, configured, sizeof(configured));
	r.env = json_pack("{s:s, s:s}", "B", "own", "C", "");
	assert_non_null(r.env);
	assert_int_equal(making_begin(s, 1000, TOKEN, &r, NULL, &m), 0);
	json_decref(r.env);
	assert_string_equal(m->working_dir, "/srv");
	assert_string_equal(m->user, "nobody:users");
	assert_int_equal(m->env.len, sizeof(expected));
	assert_memory_equal(buf_head(&m->env), expected, sizeof(expected));
}

static void test_too_many_variables_are_refused(void **state)
{
	struct sbxd *s = *state;
	struct make_request r = {0};
	struct making *m;
	char *text = malloc(CTL_TAIL_MAX);

	assert_non_null(text);
	memset(text, 'x', CTL_TAIL_MAX);
	text[CTL_TAIL_MAX - 1] = '\0';
	r.env = json_pack("{s:s}", "A", text);
	assert_non_null(r.env);
	assert_int_equal(making_begin(s, 1000, TOKEN, &r, NULL, &m), -EMSGSIZE);
	assert_true(LIST_EMPTY(&s->makings));
	json_decref(r.env);
	free(text);
}

static void test_it_is_found(void **state)
{
	struct sbxd *s = *state;
	struct idempotent key = {.done = false};
	struct making *a = begin(s, "aaaaaaaaaaaaaaaa", NULL);
	struct making *b = begin(s, "bbbbbbbbbbbbbbbb", &key);

	assert_int_not_equal(a->req, b->req);
	assert_ptr_equal(making_by_req(s, a->req), a);
	assert_ptr_equal(making_by_token(s, 1000, "bbbbbbbbbbbbbbbb"), b);
	assert_null(making_by_token(s, 1001, "bbbbbbbbbbbbbbbb"));
	assert_ptr_equal(making_by_key(s, &key), b);
	making_drop(b);
	assert_null(making_by_key(s, &key));
	assert_null(making_by_token(s, 1000, "bbbbbbbbbbbbbbbb"));
}

/* ---- who waits ---- */

static void note(struct client *c, void *ctx)
{
	int *told = ctx;

	(*told)++;
	client_reply_empty(c, 204, NULL);
}

static void test_all_who_wait_are_told(void **state)
{
	struct sbxd *s = *state;
	struct idempotent key = {.done = false};
	struct making *m = begin(s, TOKEN, &key);
	struct peer_end *p[3];
	int told = 0;

	for (int i = 0; i < 3; i++) {
		p[i] = connect_as(s, geteuid());
		assert_int_equal(making_join(m, p[i]->c), 0);
	}
	assert_non_null(making_client(s, m->req));
	assert_ptr_equal(making_client(s, client_req(p[1]->c)), p[1]->c);
	hang_up(s, p[1]);
	making_answer(s, m, note, &told);
	assert_int_equal(told, 2);
	assert_true(LIST_EMPTY(&s->makings));
	stage_until(s, has(p[0], "HTTP/1.1 204") && has(p[2], "HTTP/1.1 204"));
	stage_until(s, clients_count(s->clients) == 0); /* it had asked for nothing more */
	p[0]->c = p[2]->c = NULL;
	hang_up(s, p[0]);
	hang_up(s, p[2]);
}

static uint64_t waiting(struct sbxd *s, struct making *m)
{
	struct pool_request q = {
	    .want = POOL_WANT_MADE, .req = m->req, .uid = 1000, .anonymous = true, .lease_id = 5};

	memcpy(q.id.token, m->token, sizeof(q.id.token));
	pool_acquire(s->pool, loop_now(s->loop), &q);
	assert_int_equal(pool_waiters(s->pool), 1);
	return m->req;
}

static void test_without_a_key_it_ends_with_its_client(void **state)
{
	struct sbxd *s = *state;
	struct making *m = begin(s, TOKEN, NULL);
	struct peer_end *p = connect_as(s, geteuid());
	uint64_t req = waiting(s, m);

	assert_int_equal(making_join(m, p->c), 0);
	hang_up(s, p);
	assert_null(making_by_req(s, req));
	assert_int_equal(pool_waiters(s->pool), 0);
}

static void test_with_a_key_it_goes_on(void **state)
{
	struct sbxd *s = *state;
	struct idempotent key = {.done = false};
	struct making *m = begin(s, TOKEN, &key);
	struct peer_end *p = connect_as(s, geteuid());
	uint64_t req = waiting(s, m);
	int told = 0;

	assert_int_equal(making_join(m, p->c), 0);
	hang_up(s, p);
	assert_ptr_equal(making_by_req(s, req), m);
	assert_null(making_client(s, req));
	assert_int_equal(pool_waiters(s->pool), 1);
	making_answer(s, m, note, &told);
	assert_int_equal(told, 0);
}

#define staged(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    staged(test_its_own_variables_come_before_the_configured),
	    staged(test_too_many_variables_are_refused),
	    staged(test_it_is_found),
	    staged(test_all_who_wait_are_told),
	    staged(test_without_a_key_it_ends_with_its_client),
	    staged(test_with_a_key_it_goes_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
