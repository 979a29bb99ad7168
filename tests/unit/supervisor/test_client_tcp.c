/* client_tcp: connections over TCP, from the listener on: what each must prove, how long it may
 * take, and who makes room. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "supervisor/client_int.h"
#include "supervisor/listen.h"
#include "tests/unit/supervisor/sbxd_testing.h"

#define TOKEN "0123456789abcdef-token"
#define OTHER_UID 4711
#define TCP_MAX 3

static const struct pool_rules rules = {.slots = 2, .replicas = 2, .max_boots = 1};

static int setup(void **state)
{
	struct sbxd *s = stage_open(&rules);
	struct err err = {0};

	(void)snprintf(s->socket_path, sizeof(s->socket_path), "/tmp/sbxd-tcp-%d", (int)getpid());
	s->config.listen_tcp = (struct config_listen){.set = true, .addr = {127, 0, 0, 1}};
	s->config.limits.tcp_connections = TCP_MAX;
	s->auth = (struct auth){.set = true, .uid = OTHER_UID};
	assert_int_equal(
	    digest_sha256(&(struct digest_part){TOKEN, strlen(TOKEN)}, 1, s->auth.digest), 0);
	if (listen_open(s, &err) < 0)
		fail_msg("%s", err.text);
	*state = s;
	return 0;
}

static int teardown(void **state)
{
	struct sbxd *s = *state;

	listen_close(s);
	assert_int_equal(access(s->socket_path, F_OK), -1);
	stage_close(s);
	return 0;
}

/* ---- the far end ---- */

struct far {
	int fd;
	struct client *c; /* of sbxd's end */
	size_t len;
	bool ended;
	char got[65536];
};

static struct client *newest(const struct sbxd *s, const struct client *const *before)
{
	for (uint32_t i = 0; i < s->clients->max; i++) {
		if (s->clients->slots[i] && s->clients->slots[i] != before[i])
			return s->clients->slots[i];
	}
	return NULL;
}

static struct far *far_new(struct sbxd *s)
{
	struct far *f = calloc(1, sizeof(*f));
	struct sockaddr_in addr;
	socklen_t len = sizeof(addr);
	const struct client *before[8];

	assert_non_null(f);
	memcpy(before, s->clients->slots, sizeof(before));
	assert_int_equal(getsockname(s->tcp_listener.fd, (struct sockaddr *)&addr, &len), 0);
	f->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(f->fd, (struct sockaddr *)&addr, len), 0);
	/* It is taken in the round in which it is seen. */
	assert_int_equal(loop_step(s->loop, NS_PER_S), 0);
	f->c = newest(s, before);
	return f;
}

static void far_free(struct sbxd *s, struct far *f)
{
	close(f->fd);
	free(f);
	for (int i = 0; i < 3; i++)
		assert_int_equal(loop_step(s->loop, 0), 0);
}

static void far_take(struct far *f)
{
	ssize_t n = recv(f->fd, f->got + f->len, sizeof(f->got) - 1 - f->len, MSG_DONTWAIT);

	if (n > 0)
		f->len += (size_t)n;
	f->ended |= n == 0 || (n < 0 && errno != EAGAIN);
	f->got[f->len] = '\0';
}

static bool far_has(struct far *f, const char *text)
{
	far_take(f);
	return strstr(f->got, text) != NULL;
}

/* Sends a request and reads its answer, which is the last thing that was read. */
static const char *far_ask(struct sbxd *s, struct far *f, const char *path, const char *fields)
{
	char text[512];

	(void)snprintf(text, sizeof(text), "GET %s HTTP/1.1\r\nHost: x\r\n%s\r\n", path, fields);
	f->len = 0;
	f->got[0] = '\0';
	assert_int_equal(send(f->fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
	stage_until(s, far_has(f, "}"));
	return f->got;
}

#define RIGHT "Authorization: Bearer " TOKEN "\r\n"

static void assert_status(const char *answer, int status)
{
	char line[32];

	(void)snprintf(line, sizeof(line), "HTTP/1.1 %d ", status);
	if (strncmp(answer, line, strlen(line)) != 0)
		fail_msg("no %d: %s", status, answer);
}

static int option(int fd, int level, int name)
{
	int value = -1;
	socklen_t len = sizeof(value);

	assert_int_equal(getsockopt(fd, level, name, &value, &len), 0);
	return value;
}

/* ---- tests ---- */

static void test_options_of_the_sockets(void **state)
{
	struct sbxd *s = *state;
	struct far *f = far_new(s);

	assert_true(option(s->tcp_listener.fd, SOL_SOCKET, SO_REUSEADDR) != 0);
	assert_true(option(f->c->fd, IPPROTO_TCP, TCP_NODELAY) != 0);
	assert_true(option(f->c->fd, SOL_SOCKET, SO_KEEPALIVE) != 0);
	assert_int_equal(option(f->c->fd, IPPROTO_TCP, TCP_KEEPIDLE), 60);
	far_free(s, f);
}

static void test_who_it_is(void **state)
{
	struct sbxd *s = *state;
	struct far *f = far_new(s);

	assert_true(f->c->peer.by_token);
	assert_false(client_is_admin(f->c));
	assert_true(client_is_by_token(f->c));
	assert_status(far_ask(s, f, "/v1/me", RIGHT), 200);
	assert_non_null(strstr(f->got, "\"sub\":\"4711\""));
	s->auth.uid = 0; /* the file was given away, and read again */
	assert_status(far_ask(s, f, "/v1/me", RIGHT), 200);
	assert_non_null(strstr(f->got, "\"sub\":\"0\""));
	assert_false(client_is_admin(f->c));
	far_free(s, f);
}

static void test_each_request_is_looked_at(void **state)
{
	struct sbxd *s = *state;
	struct far *f = far_new(s);

	assert_true(f->c->stranger);
	assert_status(far_ask(s, f, "/v1/me", ""), 401);
	assert_non_null(strstr(f->got, "WWW-Authenticate: Bearer\r\n"));
	assert_status(far_ask(s, f, "/v1/nothing", ""), 401);
	assert_status(far_ask(s, f, "/v1/me", "Authorization: Bearer x\r\n"), 401);
	assert_non_null(strstr(f->got, "error=\"invalid_token\""));
	assert_status(far_ask(s, f, "/v1/config", ""), 200);
	assert_true(f->c->stranger);
	assert_status(far_ask(s, f, "/v1/me", RIGHT), 200);
	assert_false(f->c->stranger);
	assert_status(far_ask(s, f, "/v1/me", ""), 401);
	assert_status(far_ask(s, f, "/v1/nothing", RIGHT), 404);
	far_free(s, f);
}

/* Without a configured token there is none that is right. */
static void test_no_token_no_client(void **state)
{
	struct sbxd *s = *state;
	struct far *f;

	s->auth.set = false;
	f = far_new(s);
	assert_int_equal(client_uid(f->c), (uid_t)-1);
	assert_status(far_ask(s, f, "/v1/me", RIGHT), 401);
	far_free(s, f);
}

static void fire(struct sbxd *s, struct client *c)
{
	assert_true(c->timer.pos != 0);
	assert_int_equal(loop_timer_set(s->loop, &c->timer, 0, c->timer.fn), 0);
	assert_int_equal(loop_step(s->loop, 0), 0);
}

static void test_a_silent_stranger_goes_soon(void **state)
{
	struct sbxd *s = *state;
	struct far *f = far_new(s);

	assert_true(f->c->timer.at - loop_now(s->loop) <= CLIENT_HEAD_TIME);
	assert_status(far_ask(s, f, "/v1/config", ""), 200);
	assert_true(f->c->timer.at - loop_now(s->loop) <= CLIENT_HEAD_TIME);
	f->len = 0;
	fire(s, f->c);
	assert_int_equal(clients_count(s->clients), 0);
	stage_until(s, (far_take(f), f->ended));
	assert_int_equal(f->len, 0); /* without a word */
	far_free(s, f);
}

static void test_who_has_begun_is_told(void **state)
{
	struct sbxd *s = *state;
	struct far *f = far_new(s);

	assert_int_equal(send(f->fd, "GET", 3, MSG_NOSIGNAL), 3);
	stage_until(s, f->c->http != NULL);
	fire(s, f->c);
	stage_until(s, far_has(f, "}"));
	assert_status(f->got, 408);
	far_free(s, f);
}

static void test_idle_time_of_who_is_known(void **state)
{
	struct sbxd *s = *state;
	struct far *f = far_new(s);

	s->config.limits.connection_idle_ns = 3600 * NS_PER_S;
	assert_status(far_ask(s, f, "/v1/me", RIGHT), 200);
	assert_true(f->c->timer.at - loop_now(s->loop) > 3000 * NS_PER_S);
	s->config.limits.connection_idle_ns = 0;
	assert_status(far_ask(s, f, "/v1/me", RIGHT), 200);
	assert_int_equal(f->c->timer.pos, 0);
	s->config.limits.connection_idle_ns = NS_PER_S;
	client_mark_tied(f->c);
	assert_status(far_ask(s, f, "/v1/me", RIGHT), 200);
	assert_int_equal(f->c->timer.pos, 0);
	far_free(s, f);
}

static void test_strangers_make_room(void **state)
{
	struct sbxd *s = *state;
	struct far *f[TCP_MAX + 1];

	for (int i = 0; i < TCP_MAX; i++)
		f[i] = far_new(s);
	assert_int_equal(s->clients->tcp_count, TCP_MAX);
	assert_status(far_ask(s, f[0], "/v1/me", RIGHT), 200); /* the oldest is known */
	f[TCP_MAX] = far_new(s);
	assert_int_equal(s->clients->tcp_count, TCP_MAX);
	stage_until(s, (far_take(f[1]), f[1]->ended)); /* the oldest of the others */
	assert_status(far_ask(s, f[0], "/v1/me", RIGHT), 200);
	assert_status(far_ask(s, f[2], "/v1/me", RIGHT), 200);
	assert_status(far_ask(s, f[TCP_MAX], "/v1/me", RIGHT), 200);
	for (int i = 0; i <= TCP_MAX; i++)
		far_free(s, f[i]);
	assert_int_equal(s->clients->tcp_count, 0);
	assert_true(TAILQ_EMPTY(&s->clients->strangers));
}

static void test_who_is_known_stays(void **state)
{
	struct sbxd *s = *state;
	struct far *f[TCP_MAX];
	struct far *late;

	for (int i = 0; i < TCP_MAX; i++) {
		f[i] = far_new(s);
		assert_status(far_ask(s, f[i], "/v1/me", RIGHT), 200);
	}
	late = far_new(s);
	assert_null(late->c);
	stage_until(s, (far_take(late), late->ended));
	assert_status(late->got, 429);
	far_free(s, late);
	for (int i = 0; i < TCP_MAX; i++) {
		assert_status(far_ask(s, f[i], "/v1/me", RIGHT), 200);
		far_free(s, f[i]);
	}
}

/* However many the configuration allows: half of the places are for the socket. */
static void test_half_of_the_places(void **state)
{
	struct sbxd *s = *state;
	struct far *f[6];

	s->config.limits.tcp_connections = 1000;
	for (int i = 0; i < 6; i++)
		f[i] = far_new(s);
	assert_int_equal(s->clients->tcp_count, 4);
	assert_int_equal(clients_count(s->clients), 4);
	for (int i = 0; i < 6; i++)
		far_free(s, f[i]);
}

/* An end of input is an end: over TCP there is no other sign of it. */
static void test_who_leaves_while_it_waits(void **state)
{
	struct sbxd *s = *state;
	struct far *f = far_new(s);

	assert_status(far_ask(s, f, "/v1/me", RIGHT), 200);
	client_wait(f->c);
	assert_int_equal(send(f->fd, "x", 1, MSG_NOSIGNAL), 1); /* can wait */
	for (int i = 0; i < 3; i++)
		assert_int_equal(loop_step(s->loop, NS_PER_MS), 0);
	assert_int_equal(clients_count(s->clients), 1);
	assert_int_equal(shutdown(f->fd, SHUT_WR), 0);
	stage_until(s, clients_count(s->clients) == 0);
	far_free(s, f);
}

/* Its worker was told to stop the box before it had looked at the request, whose token it was not
 * shown: nobody can tell again whose it is. */
static void test_a_request_that_comes_back_is_not_asked_anew(void **state)
{
	static const char back[] = "GET /v1/boxes/b/fs/stat?path=/ HTTP/1.1\r\nHost: x\r\n"
				   "Authorization: *****************************\r\n\r\n";
	static const char next[] = "GET /v1/me HTTP/1.1\r\nHost: x\r\n" RIGHT "\r\n";
	struct sbxd *s = *state;
	struct far *f = far_new(s);
	struct client_list list = TAILQ_HEAD_INITIALIZER(list);

	assert_status(far_ask(s, f, "/v1/me", RIGHT), 200);
	assert_int_equal(buf_append(&f->c->in, next, strlen(next)), 0);
	client_handed_over(f->c, 0, (struct worker *)f, &list);
	f->len = 0;
	client_handed_back(f->c, (const uint8_t *)back, strlen(back), false);
	assert_true(TAILQ_EMPTY(&list));
	stage_until(s, (far_take(f), f->ended));
	assert_status(f->got, 409);
	assert_non_null(strstr(f->got, "being stopped"));
	assert_null(strstr(f->got, "\"sub\"")); /* what followed it may hang on it */
	far_free(s, f);
	assert_int_equal(clients_count(s->clients), 0);
}

/* What was read behind a request that is answered now. */
static void test_what_was_read_on_is_served(void **state)
{
	static const char next[] = "GET /v1/me HTTP/1.1\r\nHost: x\r\n" RIGHT "\r\n";
	struct sbxd *s = *state;
	struct far *f = far_new(s);
	struct client_list list = TAILQ_HEAD_INITIALIZER(list);

	assert_status(far_ask(s, f, "/v1/me", RIGHT), 200);
	assert_int_equal(buf_append(&f->c->in, next, strlen(next)), 0);
	client_handed_over(f->c, 0, (struct worker *)f, &list);
	f->len = 0;
	client_handed_back(f->c, NULL, 0, false);
	stage_until(s, far_has(f, "}"));
	assert_status(f->got, 200);
	far_free(s, f);
}

#define staged(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    staged(test_options_of_the_sockets),
	    staged(test_who_it_is),
	    staged(test_each_request_is_looked_at),
	    staged(test_no_token_no_client),
	    staged(test_a_silent_stranger_goes_soon),
	    staged(test_who_has_begun_is_told),
	    staged(test_idle_time_of_who_is_known),
	    staged(test_strangers_make_room),
	    staged(test_who_is_known_stays),
	    staged(test_half_of_the_places),
	    staged(test_who_leaves_while_it_waits),
	    staged(test_a_request_that_comes_back_is_not_asked_anew),
	    staged(test_what_was_read_on_is_served),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
