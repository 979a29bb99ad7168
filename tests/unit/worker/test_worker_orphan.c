/* A worker that nobody comes for, that ends while it changes hands, or whose door is in trouble. */
#include "tests/unit/worker/adopting.h"

#define STRANGER_UID 65531U
#define SHORT_GRACE_MS 150U

static void expect_orderly_end(struct stage *t)
{
	assert_int_equal(stage_wait(t), 0);
	assert_int_equal(adopting_words(t), 0);
	assert_false(adopting_is_locked(t));
	stage_free(t);
}

/* It lives on past the grace of the first death, and then has a whole one again. */
static void test_each_death_has_its_own_grace(void **state)
{
	struct stage *t = stage_new(*state);

	t->orphan_grace_ms = SHORT_GRACE_MS;
	stage_start(t);
	adopting_stop(t);
	adopting_die(t);
	adopting_connect(t);
	adopting_go_on(t);
	adopting_expect_hello(t, CTL_UP, 0);
	assert_false(stage_readable(t->ctl, 2 * SHORT_GRACE_MS)); /* neither a word nor its end */
	adopting_die(t);
	expect_orderly_end(t);
}

/* Boots on without sbxd, as the lock and the page say, and then waits for another one. */
static void boot_alone(struct stage *t)
{
	stage_spawn(t);
	stage_expect(t, CTL_HELLO);
	stage_send_boot(t);
	adopting_die(t);
}

static void test_sbxd_dies_during_the_boot(void **state)
{
	struct stage *t = stage_new(*state);

	boot_alone(t);
	expect_orderly_end(t); /* after its grace */
	t = stage_new(*state);
	t->orphan_grace_ms = LONG_GRACE_MS;
	boot_alone(t);
	ADOPTING_UNTIL((t->ctl = rendezvous_connect(t->site->dir, 0, &(pid_t){0})) >= 0);
	adopting_expect_hello(t, CTL_UP, 0);
	stage_request(t, STAGE_RUN, "{\"command\":\"echo up\"}");
	stage_expect_text(t, "up");
	stage_close(t);
}

/* To a worker that may have to be waited for. */
static void send_in_time(struct stage *t, enum ctl_type type, const void *body)
{
	ADOPTING_UNTIL(ctl_send(t->ctl, type, ++t->seq, STAGE_GEN, body, NULL, 0, -1) == 0);
}

/* How it ended, the dead sbxd did not hear. */
static void test_end_is_told_again(void **state)
{
	const struct ctl_close close = {.grace_ms = 5000};

	for (int closed = 0; closed < 2; closed++) {
		struct stage *t = adopting_boot(state);
		struct slot_work work;

		/* So many answers to one who reads none that what is said last is only queued. */
		for (int i = 0; i < 2000; i++)
			send_in_time(t, CTL_PING, NULL);
		if (closed)
			send_in_time(t, CTL_CLOSE, &close);
		else
			assert_int_equal(kill(adopting_box(t), SIGKILL), 0);
		ADOPTING_UNTIL(slot_read_work(t->page, &work) == 0 && work.box_pid == 0);
		adopting_stop(t);
		adopting_die(t);
		adopting_connect(t);
		adopting_go_on(t);
		adopting_expect_hello(t, CTL_ENDING, 0);
		stage_expect(t, closed ? CTL_CLOSED : CTL_BOX_DIED);
		assert_int_equal(t->msg.head.seq, 0);
		assert_int_equal(t->msg.body.failed.code == 0, closed);
		assert_int_equal(stage_recv(t), 0);
		assert_int_equal(WEXITSTATUS(stage_wait(t)), !closed);
		assert_false(adopting_is_locked(t));
		stage_free(t);
	}
}

/* In the middle of an orderly end: the one that comes then hears how it ended, once, as an answer
 * to its own order if it gave one. */
static void test_close_is_told_to_the_next(void **state)
{
	for (int ordered = 0; ordered < 2; ordered++) {
		const struct ctl_close close = {.grace_ms = 20000};
		struct stage *t = adopting_boot(state);
		pid_t box = adopting_box(t);

		assert_int_equal(kill(box, SIGSTOP), 0); /* it will not sync */
		stage_send(t, CTL_CLOSE, &close);
		ADOPTING_UNTIL(adopting_is_locked(t));
		adopting_die(t);
		adopting_connect(t);
		adopting_expect_hello(t, CTL_ENDING, 0);
		if (ordered)
			stage_send(t, CTL_CLOSE, &close);
		stage_send(t, CTL_PING, NULL);
		stage_expect(t, CTL_PONG);
		assert_int_equal(kill(box, SIGCONT), 0);
		stage_expect(t, CTL_CLOSED);
		assert_int_equal(t->msg.head.seq, ordered ? t->seq - 1 : 0);
		assert_int_equal(t->msg.body.failed.code, 0);
		assert_int_equal(stage_recv(t), 0);
		expect_orderly_end(t);
	}
}

static void workers_path(const struct stage_site *s, const char *name, char *out, size_t size)
{
	(void)snprintf(out, size, "%s/%s", s->dir, name);
}

/* Nothing is left of a box that no sbxd could ever find. */
static void test_no_place_for_the_door(void **state)
{
	struct stage *t = stage_new(*state);
	char there[96];
	char away[96];

	workers_path(t->site, RENDEZVOUS_DIR, there, sizeof(there));
	workers_path(t->site, "away", away, sizeof(away));
	assert_int_equal(rename(there, away), 0);
	stage_spawn(t);
	stage_expect(t, CTL_HELLO);
	stage_send_boot(t);
	stage_expect(t, CTL_FAILED);
	assert_int_equal(rename(away, there), 0);
	assert_int_equal(t->msg.body.failed.code, ENOENT);
	assert_string_equal(t->msg.body.failed.reason, "boot_failed");
	assert_non_null(strstr(t->msg.body.failed.text, "/" RENDEZVOUS_DIR "/0"));
	assert_int_equal(WEXITSTATUS(stage_wait(t)), 1);
	assert_false(adopting_is_locked(t));
	stage_free(t);
}

/* A request for sbxd comes before the worker has seen that there is none: it is told so. */
static void test_hand_back_to_the_dead(void **state)
{
	struct stage *t = adopting_boot(state);

	adopting_be_idle(t);
	adopting_stop(t);
	adopting_send(t, "GET /v1/pool HTTP/1.1\r\nHost: x\r\n\r\n");
	adopting_die(t);
	adopting_go_on(t);
	buf_clear(&t->answer);
	while (stage_read(t) > 0)
		;
	assert_true(stage_has(t, "HTTP/1.1 503 "));
	assert_true(stage_has(t, "\"reason\":\"shutting_down\""));
	assert_true(stage_has(t, "Retry-After: 1\r\n"));
	assert_true(stage_has(t, "Connection: close\r\n"));
	ADOPTING_UNTIL(adopting_words(t) == 0);
	adopting_connect(t);
	adopting_expect_hello(t, CTL_UP, 0);
	stage_close(t);
}

/* Runs in a child: 0 when it was turned away. */
static int come_as_stranger(const struct stage *t)
{
	struct pollfd p = {.events = POLLIN};
	pid_t pid = 0;
	char byte;

	if (setresuid(STRANGER_UID, STRANGER_UID, STRANGER_UID) < 0)
		return 2;
	p.fd = rendezvous_connect(t->site->dir, 0, &pid);
	if (p.fd < 0)
		return 3;
	return poll(&p, 1, STAGE_WAIT_MS) == 1 && recv(p.fd, &byte, 1, 0) == 0 ? 0 : 4;
}

static void test_stranger(void **state)
{
	struct stage *t;
	char path[96];
	int status;
	pid_t pid;

	if (getuid() != 0)
		skip();
	t = adopting_boot(state);
	/* Even if it could reach the socket, which the directory's mode forbids. */
	workers_path(t->site, RENDEZVOUS_DIR, path, sizeof(path));
	assert_int_equal(chmod(path, 0711), 0);
	workers_path(t->site, RENDEZVOUS_DIR "/0", path, sizeof(path));
	assert_int_equal(chmod(path, 0666), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		_exit(come_as_stranger(t));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	workers_path(t->site, RENDEZVOUS_DIR, path, sizeof(path));
	assert_int_equal(chmod(path, 0700), 0);
	stage_catch_up(t); /* sbxd is still sbxd */
	adopting_succeed(t, 0);
	stage_catch_up(t);
	stage_close(t);
}

/* Whoever cannot be let in waits for the next try. */
static void test_not_let_in_at_once(void **state)
{
	struct stage *t = stage_new(*state);
	char fault[160];
	char once[96];
	char byte = '1';
	int fd;

	workers_path(t->site, "once", once, sizeof(once));
	fd = open(once, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(pwrite(fd, &byte, 1, 0), 1);
	(void)snprintf(fault, sizeof(fault), "worker.adopt.accept=fail@%s", once);
	t->fault = fault;
	t->orphan_grace_ms = LONG_GRACE_MS;
	stage_start(t);
	adopting_be_idle(t);
	adopting_succeed(t, 1);
	(void)adopting_held_cookie(t);
	assert_int_equal(pread(fd, &byte, 1, 0), 1);
	assert_int_equal(byte, '0'); /* it was tried before */
	fd_close(&fd);
	stage_close(t);
}

/* A connection that cannot be shown is closed: better than one that is nobody's. */
static void test_connection_that_cannot_be_shown(void **state)
{
	struct stage *t = stage_new(*state);
	char byte;

	t->fault = "worker.adopt.duplicate=fail";
	t->orphan_grace_ms = LONG_GRACE_MS;
	stage_start(t);
	stage_request(t, STAGE_RUN, "{\"command\":\"sleep 1000\"}");
	stage_catch_up(t);
	adopting_succeed(t, 0);
	assert_int_equal(recv(t->client, &byte, 1, 0), 0);
	adopting_expect_alive(t);
	assert_int_equal(adopting_words(t), 0);
	/* Its command was ended as if the client had gone. */
	stage_request(t, STAGE_RUN,
	    "{\"command\":\"while pgrep -x sleep >/dev/null; do :; done\",\"timeout_seconds\":10}");
	stage_expect_text(t, "\"exit_code\":0");
	stage_close(t);
}

/* Dies at each step of changing hands: the next one sees the connection end, and the page tells
 * what its clients are owed. */
static void test_deaths_while_adopted(void **state)
{
	static const char *const points[] = {
	    "worker.adopt.accepted=kill",
	    "worker.adopt.hello_sent=kill",
	    "worker.adopt.held_sent=kill",
	};

	for (size_t i = 0; i < sizeof(points) / sizeof(points[0]); i++) {
		struct stage *t = stage_new(*state);

		t->orphan_grace_ms = LONG_GRACE_MS;
		t->fault = points[i];
		stage_start(t);
		stage_request(t, STAGE_RUN, "{\"command\":\"sleep 1000\"}");
		stage_catch_up(t);
		adopting_die(t);
		adopting_connect(t);
		assert_int_equal(stage_wait(t), SIGKILL);
		if (i > 0)
			stage_expect(t, CTL_HELLO);
		if (i > 1) {
			stage_expect(t, CTL_BOOTED);
			(void)adopting_held_cookie(t);
		}
		assert_int_equal(stage_recv(t), 0);
		assert_int_equal(CONN_STATE(atomic_load(&t->page->conns[0])), CONN_REQUEST);
		stage_free(t);
	}
}

#define TEST(f) cmocka_unit_test_teardown(f, stage_after)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_each_death_has_its_own_grace),
	    TEST(test_sbxd_dies_during_the_boot),
	    TEST(test_end_is_told_again),
	    TEST(test_close_is_told_to_the_next),
	    TEST(test_hand_back_to_the_dead),
	    TEST(test_no_place_for_the_door),
	    TEST(test_stranger),
	    TEST(test_not_let_in_at_once),
	    TEST(test_connection_that_cannot_be_shown),
	    TEST(test_deaths_while_adopted),
	};

	return cmocka_run_group_tests(tests, stage_setup, stage_teardown);
}
