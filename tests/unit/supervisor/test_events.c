/* Tests of supervisor/api_events.c and client_stream.c: the flight recorder as a stream. */
#include <signal.h>

#include "tests/unit/supervisor/events_testing.h"

#define OTHER_UID 4711

static const struct pool_rules rules = {.slots = 2, .replicas = 2, .max_boots = 1};

static int setup(void **state)
{
	*state = stage_open(&rules);
	return 0;
}

static int teardown(void **state)
{
	stage_close(*state);
	return 0;
}

/* ---- what a stream says ---- */

static void test_a_record_is_one_message(void **state)
{
	struct sbxd *s = *state;
	struct peer_end *p = connect_as(s, geteuid());

	(void)record(s, geteuid(), TOKEN, "a \"quoted\"\nreason");
	ask(s, p, "?since=0");
	stage_until(s, has(p, "id: 1\nevent: lease\ndata: {\"time\":"));
	assert_true(
	    has(p, "\"seq\":1,\"kind\":\"lease\",\"slot\":1,\"generation\":5,\"box_id\":\"" TOKEN
		   "\",\"uid\":"));
	assert_true(has(p, "\"reason\":\"a \\\"quoted\\\"\\nreason\"}\n\n"));
	assert_true(has(p, "Content-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n"));
	hang_up(s, p);
	assert_true(LIST_EMPTY(&s->event_streams));
}

static void test_by_default_only_what_is_new(void **state)
{
	struct sbxd *s = *state;
	struct peer_end *p = connect_as(s, geteuid());

	(void)record(s, geteuid(), TOKEN, "old");
	ask(s, p, "");
	stage_until(s, has(p, "id: 1\n\n")); /* where it would go on from */
	(void)record(s, geteuid(), TOKEN, "new");
	sbxd_settle(s);
	stage_until(s, has(p, "\"reason\":\"new\""));
	assert_false(has(p, "old"));
	hang_up(s, p);
}

static void test_it_goes_on_after_the_record_that_is_named(void **state)
{
	static const char with_header[] =
	    "GET /v1/events?since=1&follow=0 HTTP/1.1\r\nHost: x\r\nLast-Event-ID: 3\r\n\r\n";
	struct sbxd *s = *state;
	struct peer_end *p = connect_as(s, geteuid());

	record_many(s, 5);
	ask(s, p, "?since=2&follow=0");
	stage_until(s, has(p, "\r\n0\r\n\r\n"));
	assert_int_equal(count(p->got, "\nevent: lease\n"), 3);
	assert_true(strstr(p->got, "id: 3\n") < strstr(p->got, "id: 4\n"));
	assert_true(strstr(p->got, "id: 4\n") < strstr(p->got, "id: 5\n"));
	forget(p);
	say(p, with_header); /* the header is newer than the query */
	stage_until(s, has(p, "\r\n0\r\n\r\n"));
	assert_int_equal(count(p->got, "\nevent: lease\n"), 2);
	assert_false(has(p, "id: 3\n"));
	forget(p);
	ask(s, p, "?since=5&follow=0");
	stage_until(s, has(p, "\r\n0\r\n\r\n"));
	assert_int_equal(count(p->got, "event:"), 0);
	hang_up(s, p);
}

static void test_a_place_in_another_ring_is_said_to_be_lost(void **state)
{
	struct sbxd *s = *state;
	struct peer_end *p = connect_as(s, geteuid());

	record_many(s, 2);
	ask(s, p, "?since=18446744073709551615&follow=0");
	stage_until(s, has(p, "\r\n0\r\n\r\n"));
	assert_true(has(p, "event: lost\ndata: {\"kind\":\"lost\",\"reason\":\"the recorder began "
			   "anew\"}\n\n"));
	assert_int_equal(count(p->got, "\nevent: lease\n"), 2);
	hang_up(s, p);
}

static void test_all_there_is_misses_nothing(void **state)
{
	struct sbxd *s = *state;
	struct peer_end *p = connect_as(s, geteuid());

	record_many(s, SHM_RING_RECORDS + 100);
	ask(s, p, "?since=0&follow=0");
	stage_until(s, has(p, "\r\n0\r\n\r\n"));
	assert_int_equal(count(p->got, "\nevent: lease\n"), SHM_RING_RECORDS);
	assert_int_equal(count(p->got, "event: lost"), 0);
	hang_up(s, p);
}

static void test_a_connection_goes_on_after_a_stream_that_ends(void **state)
{
	struct sbxd *s = *state;
	struct peer_end *p = connect_as(s, geteuid());

	record_many(s, 3000); /* more than a socket takes at once */
	say(p, "GET /v1/events?since=0&follow=0 HTTP/1.1\r\nHost: x\r\n\r\n"
	       "GET /v1/nothing HTTP/1.1\r\nHost: x\r\n\r\n");
	stage_until(s, has(p, "HTTP/1.1 404"));
	assert_int_equal(count(p->got, "\nevent: lease\n"), 3000);
	assert_non_null(strstr(p->got, "\r\n0\r\n\r\nHTTP/1.1 404"));
	assert_int_equal(p->c->state, CLIENT_READING);
	hang_up(s, p);
}

static void test_http_1_0_is_answered_without_chunks(void **state)
{
	struct sbxd *s = *state;
	struct peer_end *p = connect_as(s, geteuid());

	record_many(s, 1);
	say(p, "GET /v1/events?since=0&follow=0 HTTP/1.0\r\n\r\n");
	stage_until(s, (take(p), p->ended));
	assert_false(has(p, "chunked"));
	assert_true(has(p, "Connection: close\r\n"));
	assert_true(has(p, "\r\n\r\nid: 1\nevent: lease\n"));
	assert_string_equal(p->got + p->len - 4, "\"}\n\n");
	p->c = NULL;
	hang_up(s, p);
}

static void test_head_has_no_body_and_follows_nothing(void **state)
{
	struct sbxd *s = *state;
	struct peer_end *p = connect_as(s, geteuid());

	record_many(s, 1);
	say(p, "HEAD /v1/events?since=0 HTTP/1.1\r\nHost: x\r\n\r\n");
	stage_until(s, has(p, "\r\n\r\n"));
	assert_true(has(p, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"));
	assert_true(LIST_EMPTY(&s->event_streams));
	forget(p);
	say(p, "HEAD /v1/events?since=a HTTP/1.1\r\nHost: x\r\n\r\n");
	stage_until(s, has(p, "HTTP/1.1 400"));
	hang_up(s, p);
}

static void test_wrong_questions(void **state)
{
	static const char *const wrong[] = {"?since=", "?since=-1", "?since=+1", "?since=1x",
	    "?since=18446744073709551616", "?since=1&since=2", "?since=1111111111111111111111111",
	    "?follow=2", "?follow=", "?follow=yes", "?follow=0&follow=0"};
	struct sbxd *s = *state;
	struct peer_end *p = connect_as(s, geteuid());

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		ask(s, p, wrong[i]);
		if (!has(p, "HTTP/1.1 400") || !has(p, "invalid_argument"))
			fail_msg("%s: %s", wrong[i], p->got);
		forget(p);
	}
	say(p, "GET /v1/events HTTP/1.1\r\nHost: x\r\nLast-Event-ID: x\r\n\r\n");
	stage_until(s, has(p, "HTTP/1.1 400"));
	assert_true(has(p, "Last-Event-ID"));
	assert_true(LIST_EMPTY(&s->event_streams));
	hang_up(s, p);
}

/* ---- who sees what ---- */

static void test_others_see_only_their_own_boxes(void **state)
{
	struct sbxd *s = *state;
	struct peer_end *admin;
	struct peer_end *other;

	if (geteuid() != 0)
		skip();
	admin = connect_as(s, 0);
	other = connect_as(s, OTHER_UID);
	ask(s, admin, "");
	ask(s, other, "");
	(void)record(s, OTHER_UID, TOKEN, "his");
	(void)record(s, OTHER_UID, "", "of no box");
	(void)record(s, OTHER_UID + 1, TOKEN, "another's");
	(void)record(s, 0, TOKEN, "root's");
	(void)record(s, OTHER_UID, TOKEN, "last");
	sbxd_settle(s);
	stage_until(s, has(admin, "\"last\"") && has(other, "\"last\""));
	assert_int_equal(count(admin->got, "event: lease"), 5);
	assert_int_equal(count(other->got, "event: lease"), 2);
	assert_true(has(other, "\"his\""));
	hang_up(s, admin);
	hang_up(s, other);
}

static void test_a_user_has_only_so_many_streams(void **state)
{
	struct sbxd *s = *state;
	struct peer_end *p[33];

	clients_destroy(s->clients);
	s->clients = clients_create(s, 64);
	assert_non_null(s->clients);
	for (size_t i = 0; i < 33; i++) {
		p[i] = connect_as(s, geteuid());
		ask(s, p[i], "");
		assert_true(has(p[i], i < 32 ? "200 OK" : "429 Too Many"));
	}
	assert_true(has(p[32], "Retry-After: 5"));
	forget(p[32]);
	ask(s, p[32], "?follow=0"); /* that one ends by itself */
	assert_true(has(p[32], "200 OK"));
	hang_up(s, p[0]);
	stage_until(s, has(p[32], "0\r\n\r\n"));
	forget(p[32]);
	ask(s, p[32], "");
	assert_true(has(p[32], "200 OK"));
	for (size_t i = 1; i < 33; i++)
		hang_up(s, p[i]);
	assert_true(LIST_EMPTY(&s->event_streams));
}

/* ---- slow and silent clients ---- */

static bool blocked(const struct peer_end *p)
{
	return p->c->stream && p->c->stream->blocked;
}

static void fill_socket(struct sbxd *s, const struct peer_end *p)
{
	for (int i = 0; i < 100000 && !blocked(p); i++) {
		record_many(s, 1);
		sbxd_settle(s);
		assert_int_equal(loop_step(s->loop, 0), 0);
	}
	assert_true(blocked(p));
}

static void test_a_slow_client_is_told_what_it_lost_and_costs_nothing(void **state)
{
	struct sbxd *s = *state;
	struct peer_end *slow = connect_as(s, geteuid());
	struct peer_end *quick;
	uint64_t last;
	uint64_t lost = 0;
	const char *at;

	ask(s, slow, "");
	fill_socket(s, slow);
	quick = connect_as(s, geteuid());
	ask(s, quick, "");
	for (int i = 0; i < 2 * (int)SHM_RING_RECORDS; i++) {
		record_many(s, 1);
		sbxd_settle(s);
		take(quick);
		assert_false(has(quick, "event: lost"));
		quick->len = quick->len > sizeof(quick->got) / 2 ? 0 : quick->len;
		assert_true(slow->c->out.len < 16384);
	}
	last = record(s, geteuid(), TOKEN, "the end");
	sbxd_settle(s);
	stage_until(s, has(quick, "the end"));
	stage_until(s, has(slow, "the end"));
	at = strstr(slow->got, "event: lost\ndata: {\"kind\":\"lost\",\"count\":");
	assert_non_null(at);
	assert_int_equal(count(slow->got, "event: lost"), 1);
	lost = strtoull(strstr(at, "count\":") + 7, NULL, 10);
	assert_int_equal((uint64_t)count(slow->got, "event: lease") + lost, last);
	assert_true(lost > SHM_RING_RECORDS / 2);
	hang_up(s, slow);
	hang_up(s, quick);
}

static void run_timer(struct sbxd *s, struct client *c)
{
	loop_timer_fn *fn = c->timer.fn;

	assert_int_not_equal(c->timer.pos, 0);
	assert_int_equal(loop_timer_set(s->loop, &c->timer, 0, fn), 0);
	assert_int_equal(loop_step(s->loop, 0), 0);
}

static void test_a_client_that_takes_nothing_is_left(void **state)
{
	struct sbxd *s = *state;
	struct peer_end *p = connect_as(s, geteuid());

	ask(s, p, "");
	fill_socket(s, p);
	run_timer(s, p->c);
	assert_int_equal(clients_count(s->clients), 0);
	assert_true(LIST_EMPTY(&s->event_streams));
	p->c = NULL;
	hang_up(s, p);
}

static void test_a_client_that_reads_a_little_is_given_more_time(void **state)
{
	struct sbxd *s = *state;
	struct peer_end *p = connect_as(s, geteuid());
	uint64_t before;

	ask(s, p, "");
	fill_socket(s, p);
	/* As if it had been blocked for long. */
	assert_int_equal(
	    loop_timer_set(s->loop, &p->c->timer, loop_now(s->loop) + NS_PER_S, p->c->timer.fn), 0);
	before = p->c->timer.at;
	while (p->len < sizeof(p->got) / 2 && p->c->timer.at <= before) {
		take(p);
		record_many(s, 1);
		sbxd_settle(s);
		assert_int_equal(loop_step(s->loop, 0), 0);
	}
	assert_true(p->c->timer.at > before + 10 * NS_PER_S);
	hang_up(s, p);
}

static void test_silence_is_broken(void **state)
{
	struct sbxd *s = *state;
	struct peer_end *p = connect_as(s, geteuid());

	record_many(s, 3);
	ask(s, p, "");
	for (int i = 1; i <= 3; i++) {
		assert_true(p->c->timer.at <= loop_now(s->loop) + 15 * NS_PER_S);
		run_timer(s, p->c);
		take(p);
		assert_int_equal(count(p->got, ": keep-alive\nid: 3\n\n"), i);
	}
	assert_int_equal(count(p->got, "event:"), 0);
	hang_up(s, p);
}

/* ---- hanging up ---- */

static void test_a_pipelined_request_does_not_hide_the_hang_up(void **state)
{
	struct sbxd *s = *state;
	struct peer_end *p = connect_as(s, geteuid());

	ask(s, p, "");
	say(p, "GET /v1/nothing HTTP/1.1\r\nHost: x\r\n\r\n");
	for (int i = 0; i < 5; i++) /* it neither ends the stream nor wakes us again and again */
		assert_int_equal(loop_step(s->loop, 0), 0);
	assert_int_equal(p->c->state, CLIENT_STREAMING);
	assert_int_equal(p->c->watch.events, 0);
	record_many(s, 1);
	sbxd_settle(s);
	assert_true(has(p, "event: lease"));
	hang_up(s, p);
	assert_true(LIST_EMPTY(&s->event_streams));
}

static void test_a_client_that_reads_no_more_is_left(void **state)
{
	struct sbxd *s = *state;
	struct peer_end *p = connect_as(s, geteuid());

	ask(s, p, "");
	assert_int_equal(shutdown(p->fd, SHUT_RD), 0);
	record_many(s, 1);
	sbxd_settle(s);
	stage_until(s, clients_count(s->clients) == 0);
	p->c = NULL;
	hang_up(s, p);
	assert_true(LIST_EMPTY(&s->event_streams));
}

static void test_the_end_of_sbxd_ends_the_stream(void **state)
{
	struct sbxd *s = *state;
	struct peer_end *p = connect_as(s, geteuid());

	ask(s, p, "");
	clients_destroy(s->clients);
	s->clients = NULL;
	assert_true(LIST_EMPTY(&s->event_streams));
	take(p);
	assert_string_equal(p->got + p->len - 5, "0\r\n\r\n");
	take(p);
	assert_true(p->ended);
	s->clients = clients_create(s, 8);
	p->c = NULL;
	hang_up(s, p);
}

#define staged(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    staged(test_a_record_is_one_message),
	    staged(test_by_default_only_what_is_new),
	    staged(test_it_goes_on_after_the_record_that_is_named),
	    staged(test_a_place_in_another_ring_is_said_to_be_lost),
	    staged(test_all_there_is_misses_nothing),
	    staged(test_a_connection_goes_on_after_a_stream_that_ends),
	    staged(test_http_1_0_is_answered_without_chunks),
	    staged(test_head_has_no_body_and_follows_nothing),
	    staged(test_wrong_questions),
	    staged(test_others_see_only_their_own_boxes),
	    staged(test_a_user_has_only_so_many_streams),
	    staged(test_a_slow_client_is_told_what_it_lost_and_costs_nothing),
	    staged(test_a_client_that_takes_nothing_is_left),
	    staged(test_a_client_that_reads_a_little_is_given_more_time),
	    staged(test_silence_is_broken),
	    staged(test_a_pipelined_request_does_not_hide_the_hang_up),
	    staged(test_a_client_that_reads_no_more_is_left),
	    staged(test_the_end_of_sbxd_ends_the_stream),
	};

	(void)signal(SIGPIPE, SIG_IGN); /* as sbxd has it blocked */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
