/* A worker between two supervisors: what the next one is told and given, and what the clients see
 * of it: nothing. */
#include "tests/unit/worker/adopting.h"

#define ELSEWHERE "GET /v1/pool HTTP/1.1\r\nHost: x\r\n\r\n"

/* Every byte of what `seq 1 last` prints, out of lines of JSON; returns how many lines there were.
 */
static unsigned int count_numbers(const char *p)
{
	char want[16] = "";
	unsigned int number = 0;
	size_t at = 0;

	while ((p = strstr(p, "{\"stream\":\"stdout\",\"data\":\""))) {
		p += strlen("{\"stream\":\"stdout\",\"data\":\"");
		while (*p != '"') {
			char c = *p == '\\' ? '\n' : *p;

			if (want[at] == '\0') {
				(void)snprintf(want, sizeof(want), "%u\n", ++number);
				at = 0;
			}
			if (c != want[at++])
				return 0;
			p += c == '\n' ? 2 : 1;
		}
	}
	return want[at] ? 0 : number;
}

/* The client is slow and the command waits for it while one sbxd dies and the next one comes. */
static void test_streaming_goes_on(void **state)
{
	static const char request[] = STAGE_RUN " HTTP/1.1\r\nHost: x\r\n"
						"X-Request-Id: mine\r\n"
						"Accept: application/x-ndjson\r\n"
						"Content-Length: 26\r\n\r\n"
						"{\"command\":\"seq 1 900000\"}";
	struct stage *t = adopting_boot(state);
	int fds = adopting_count_fds(t);

	stage_hand_over(t, request, strlen(request));
	stage_expect_text(t, "1\\n2\\n3\\n");
	adopting_succeed(t, 1);
	assert_int_equal(adopting_held_cookie(t), CONN_COOKIE(atomic_load(&t->page->conns[0])));
	assert_string_equal(t->msg.body.conn.request_id, "mine");
	assert_int_equal(t->msg.body.conn.uid, STAGE_CLIENT_UID);
	assert_int_equal(atomic_load(&t->page->in_flight), 1);
	assert_int_equal(CONN_STATE(atomic_load(&t->page->conns[0])), CONN_RESPONDING);
	stage_expect_text(t, "{\"exit_code\":0,");
	assert_int_equal(count_numbers(stage_text(t)), 900000);
	fd_close(&t->client);
	stage_expect(t, CTL_CONN_GONE);
	stage_catch_up(t);
	assert_int_equal(adopting_words(t), 0);
	assert_true(adopting_count_fds(t) <= fds + 2); /* the pipe that data goes through is kept */
	stage_close(t);
}

/* The next one gives orders as the one before did: check, hand over, close. */
static void test_orders_of_the_next(void **state)
{
	struct stage *t = adopting_boot(state);

	adopting_succeed(t, 0);
	stage_send(t, CTL_CHECK, NULL);
	stage_expect(t, CTL_CHECKED);
	assert_int_equal(t->msg.head.seq, t->seq);
	assert_int_equal(t->msg.body.failed.code, 0);
	stage_send(t, CTL_PARK, NULL);
	stage_send(t, CTL_PROMOTE, NULL);
	stage_request(t, STAGE_RUN, "{\"command\":\"echo for the next\"}");
	stage_expect_text(t, "for the next");
	stage_close(t);
}

static void test_idle_connection_belongs_to_the_next(void **state)
{
	struct stage *t = adopting_boot(state);
	uint64_t cookie;

	adopting_be_idle(t);
	adopting_succeed(t, 1);
	cookie = adopting_held_cookie(t);
	assert_string_equal(t->msg.body.conn.request_id, "");
	adopting_ask(t);
	adopting_send(t, ELSEWHERE);
	stage_expect(t, CTL_HANDBACK);
	assert_int_equal(t->msg.body.conn.cookie, cookie);
	assert_int_equal(t->msg.head.seq, 0); /* no order of this one had a number */
	assert_int_equal(adopting_cookie(t->msg.fd), cookie);
	assert_int_equal(t->msg.tail_len, strlen(ELSEWHERE));
	fd_close(&t->msg.fd);
	stage_catch_up(t);
	assert_int_equal(adopting_words(t), 0);
	stage_close(t);
}

/* What it had ordered is done, also when it had not read what it was told. */
static void test_last_orders_of_the_dead(void **state)
{
	struct stage *t = adopting_boot(state);

	stage_send(t, CTL_PING, NULL);
	assert_true(stage_readable(t->ctl, STAGE_WAIT_MS));
	adopting_stop(t);
	stage_request(t, STAGE_RUN, "{\"command\":\"echo done all the same\"}");
	adopting_die(t);
	adopting_connect(t);
	adopting_go_on(t);
	adopting_expect_hello(t, CTL_UP, 1);
	(void)adopting_held_cookie(t);
	stage_expect_text(t, "done all the same");
	stage_close(t);
}

/* One that hung when it was replaced: its descriptor is still open. Its orders count to the last.
 */
static void test_old_link_is_still_open(void **state)
{
	const struct ctl_claim first = {.token = "0000000000000000"};
	const struct ctl_claim last = {.token = "8899aabbccddeeff"};
	struct stage *t = adopting_boot(state);
	struct ctl_msg msg;
	int old;

	adopting_be_idle(t);
	adopting_stop(t);
	for (int i = 0; i < 8; i++)
		stage_send(t, CTL_CLAIM, &first);
	stage_send(t, CTL_CLAIM, &last);
	old = fd_take(&t->ctl);
	adopting_connect(t);
	adopting_go_on(t);
	adopting_expect_hello(t, CTL_UP, 1);
	(void)adopting_held_cookie(t);
	assert_int_equal(ctl_recv(old, t->packet, &msg), 0);
	assert_int_equal(ctl_send(old, CTL_PING, 0, STAGE_GEN, NULL, NULL, 0, -1), -EPIPE);
	fd_close(&old);
	stage_request(t, "POST /v1/boxes/8899aabbccddeeff/run", "{\"command\":\"echo claimed\"}");
	stage_expect_text(t, "claimed");
	stage_close(t);
}

/* Twice, and with the first successor already dead when it is let in: nothing is left of each. */
static void test_adopted_again_and_again(void **state)
{
	struct stage *t = adopting_boot(state);
	int fds;

	adopting_be_idle(t);
	fds = adopting_count_fds(t);
	for (int i = 0; i < 3; i++) {
		adopting_succeed(t, 1);
		(void)adopting_held_cookie(t);
		adopting_expect_alive(t);
		assert_int_equal(adopting_count_fds(t), fds);
	}
	adopting_stop(t);
	adopting_die(t);
	for (int i = 0; i < 3; i++)
		adopting_connect(t); /* closes the one before */
	adopting_go_on(t);
	adopting_expect_hello(t, CTL_UP, 1);
	(void)adopting_held_cookie(t);
	adopting_ask(t);
	adopting_expect_alive(t);
	assert_int_equal(adopting_count_fds(t), fds);
	fd_close(&t->client);
	stage_expect(t, CTL_CONN_GONE);
	stage_close(t);
}

static void test_client_goes_meanwhile(void **state)
{
	struct stage *t = adopting_boot(state);
	uint64_t cookie;

	adopting_be_idle(t);
	adopting_stop(t);
	adopting_die(t);
	adopting_connect(t);
	fd_close(&t->client);
	adopting_go_on(t);
	adopting_expect_hello(t, CTL_UP, 1);
	cookie = adopting_held_cookie(t);
	stage_expect(t, CTL_CONN_GONE);
	assert_int_equal(t->msg.body.conn.cookie, cookie);
	stage_close(t);
}

/* Nobody is to hear of it, and its place is free again. */
static void test_client_goes_while_there_is_none(void **state)
{
	struct stage *t = adopting_boot(state);

	adopting_be_idle(t);
	adopting_stop(t);
	adopting_die(t);
	fd_close(&t->client);
	adopting_go_on(t);
	ADOPTING_UNTIL(adopting_words(t) == 0);
	adopting_connect(t);
	adopting_expect_hello(t, CTL_UP, 0);
	adopting_be_idle(t);
	assert_int_not_equal(atomic_load(&t->page->conns[0]), 0);
	stage_close(t);
}

/* More connections than fit its socket at once wait their turn. */
static void test_many_connections(void **state)
{
	struct stage *t = adopting_boot(state);
	int clients[SHM_CONNS];
	uint64_t seen[SHM_CONNS];
	int before = adopting_count_fds(t);

	for (int i = 0; i < SHM_CONNS; i++) {
		t->client = -1;
		adopting_be_idle(t);
		clients[i] = t->client;
	}
	t->client = -1;
	adopting_succeed(t, SHM_CONNS);
	for (int i = 0; i < SHM_CONNS; i++) {
		seen[i] = adopting_held_cookie(t);
		assert_int_equal(seen[i], CONN_COOKIE(atomic_load(&t->page->conns[i])));
		for (int k = 0; k < i; k++)
			assert_true(seen[k] != seen[i]);
	}
	adopting_expect_alive(t);
	assert_int_equal(adopting_count_fds(t), before + SHM_CONNS);
	for (int i = 0; i < SHM_CONNS; i++)
		fd_close(&clients[i]);
	for (int i = 0; i < SHM_CONNS; i++)
		stage_expect(t, CTL_CONN_GONE);
	adopting_expect_alive(t);
	assert_int_equal(adopting_count_fds(t), before);
	assert_int_equal(adopting_words(t), 0);
	stage_close(t);
}

/* The lock is free at once, and the answer goes to nobody: not to one that did not ask. */
static void test_check_is_given_up(void **state)
{
	struct stage *t = adopting_boot(state);
	pid_t box = adopting_box(t);

	assert_int_equal(kill(box, SIGSTOP), 0);
	stage_send(t, CTL_CHECK, NULL);
	ADOPTING_UNTIL(adopting_is_locked(t));
	adopting_succeed(t, 0);
	assert_false(adopting_is_locked(t));
	stage_send(t, CTL_CHECK, NULL);
	assert_int_equal(kill(box, SIGCONT), 0); /* it answers both */
	stage_expect(t, CTL_CHECKED);
	assert_int_equal(t->msg.head.seq, t->seq);
	assert_int_equal(t->msg.body.failed.code, 0);
	adopting_expect_alive(t);
	stage_close(t);
}

/* Connections that were on their way back when it died are gone with it: word and descriptor. */
static void test_hand_backs_under_way(void **state)
{
	enum { BACK = 8, BODY = 60000 };
	struct stage *t = adopting_boot(state);
	int before = adopting_count_fds(t);
	int clients[BACK];
	struct buf b;

	buf_init(&b, CTL_TAIL_MAX);
	assert_int_equal(buf_printf(&b,
			     ADOPTING_SHORT
			     "PUT /v1/elsewhere HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n",
			     BODY),
	    0);
	assert_non_null(buf_reserve(&b, BODY));
	memset(buf_reserve(&b, BODY), 'x', BODY);
	buf_commit(&b, BODY);
	for (int i = 0; i < BACK; i++) {
		t->client = -1;
		stage_hand_over(t, buf_head(&b), b.len);
		stage_expect_text(t, "\"reason\":\"method_not_allowed\"");
		clients[i] = t->client;
	}
	t->client = -1;
	buf_free(&b);
	adopting_be_idle(t); /* whoever came before is dealt with */
	assert_true(adopting_words(t) > 1 && adopting_words(t) < BACK + 1);
	adopting_succeed(t, 1);
	(void)adopting_held_cookie(t);
	adopting_expect_alive(t);
	assert_int_equal(adopting_words(t), 1);
	assert_int_equal(adopting_count_fds(t), before + 1);
	for (int i = 0; i < BACK; i++) {
		char byte;

		assert_int_equal(recv(clients[i], &byte, 1, 0), 0);
		fd_close(&clients[i]);
	}
	for (int i = 0; i < BACK; i++) {
		t->client = -1;
		adopting_be_idle(t);
		clients[i] = t->client;
	}
	for (int i = 0; i < BACK; i++)
		fd_close(&clients[i]);
	t->client = -1;
	for (int i = BACK + 1; i < SHM_CONNS; i++)
		assert_int_equal(atomic_load(&t->page->conns[i]), 0); /* their places were free */
	stage_close(t);
}

/* A box of stock is nobody's until it is claimed, and may be claimed again. */
static void test_claim(void **state)
{
	const struct ctl_claim claim = {.token = STAGE_TOKEN};
	struct stage *t = stage_new(*state);

	t->token = "";
	t->orphan_grace_ms = LONG_GRACE_MS;
	stage_start(t);
	stage_request(t, STAGE_RUN, "{\"command\":\"echo too early\"}");
	stage_expect_text(t, "HTTP/1.1 404 ");
	stage_request(t, "POST /v1/boxes/0:/run", "{\"command\":\"echo nobody\"}");
	stage_expect_text(t, "HTTP/1.1 404 ");
	stage_send(t, CTL_CLAIM, &claim);
	stage_request(t, STAGE_RUN, "{\"command\":\"echo in time\"}");
	stage_expect_text(t, "in time");
	adopting_succeed(t, 1);
	(void)adopting_held_cookie(t);
	stage_send(t, CTL_CLAIM, &claim);
	adopting_send(t, STAGE_RUN " HTTP/1.1\r\nHost: x\r\nContent-Length: 23\r\n\r\n"
				   "{\"command\":\"echo more\"}");
	stage_expect_text(t, "more");
	adopting_send(t, "GET /v1/boxes/0000000000000000/fs/read HTTP/1.1\r\nHost: x\r\n\r\n");
	stage_expect(t, CTL_HANDBACK);
	fd_close(&t->msg.fd);
	stage_close(t);
}

#define TEST(f) cmocka_unit_test_teardown(f, stage_after)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_streaming_goes_on),
	    TEST(test_orders_of_the_next),
	    TEST(test_idle_connection_belongs_to_the_next),
	    TEST(test_last_orders_of_the_dead),
	    TEST(test_old_link_is_still_open),
	    TEST(test_adopted_again_and_again),
	    TEST(test_client_goes_meanwhile),
	    TEST(test_client_goes_while_there_is_none),
	    TEST(test_many_connections),
	    TEST(test_check_is_given_up),
	    TEST(test_hand_backs_under_way),
	    TEST(test_claim),
	};

	return cmocka_run_group_tests(tests, stage_setup, stage_teardown);
}
