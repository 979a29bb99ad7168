/* sbxctl events: what it prints of a table and of a service's stream, and how it ends. */
#include "tests/unit/tools/cli_fixture.h"

#include <fcntl.h>
#include <jansson.h>

#include "shm/ring.h"
#include "shm/slot.h"
#include "tools/cli_view.h"

#define TOKEN "0123456789abcdef"
#define WAIT_MS 20000 /* that any single wait may take before the test fails */

/* ---- a table, and sbxctl with its output in a pipe ---- */

struct stage {
	char instance[32];
	char name[64];
	struct segment seg;
	struct cli_run run;
	int pipe; /* what it prints; -1: closed */
	size_t len;
	char out[2 << 20];
};

static int setup(void **state)
{
	struct stage *t = calloc(1, sizeof(*t));

	assert_non_null(t);
	(void)snprintf(t->instance, sizeof(t->instance), "unit-ev-%d", (int)getpid());
	assert_int_equal(segment_name(t->name, sizeof(t->name), getuid(), t->instance), 0);
	(void)segment_unlink(t->name);
	assert_int_equal(segment_create(t->name, "unit", 2, 1, &t->seg, NULL), 0);
	t->pipe = -1;
	*state = t;
	return 0;
}

static int teardown(void **state)
{
	struct stage *t = *state;

	segment_close(&t->seg);
	(void)segment_unlink(t->name);
	free(t);
	return 0;
}

static void record(struct stage *t, uint32_t kind, const char *reason)
{
	struct shm_event ev = {.kind = kind, .wall_ms = 1234, .slot = SHM_NONE};

	if (kind != EVENT_SUPERVISOR_START)
		(void)snprintf(ev.token, sizeof(ev.token), TOKEN);
	ev.from = SLOT_FREE;
	ev.to = SLOT_RESERVED;
	(void)snprintf(ev.reason, sizeof(ev.reason), "%s", reason);
	(void)ring_append(&t->seg, &ev);
}

static void record_many(struct stage *t, size_t n)
{
	for (size_t i = 0; i < n; i++)
		record(t, EVENT_LEASE, "many");
}

/* A new table under the same name, as a new sbxd makes it. */
static void begin_anew(struct stage *t)
{
	segment_close(&t->seg);
	(void)segment_unlink(t->name);
	assert_int_equal(segment_create(t->name, "unit", 2, 1, &t->seg, NULL), 0);
}

static int far_end; /* of its output: it must not hold that itself */

static int run_events(struct cli *cli, int argc, char **argv)
{
	close(far_end);
	cli->command = &cli_events;
	return cli_events.run(cli, argc, argv);
}

static const struct cli_command events_alone = {.name = "test", .run = run_events};

static void start(struct stage *t, const char *socket, char *const *args)
{
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	far_end = ends[0];
	t->run.stdout_fd = ends[1];
	cli_start(&t->run, &events_alone, socket, NULL, args);
	close(ends[1]);
	t->pipe = ends[0];
}

#define START(t, ...)  \
	start(t, NULL, \
	    (char *const[]){"--instance", (t)->instance, __VA_ARGS__ __VA_OPT__(, ) NULL})

/* The next of its output; false at its end. */
static bool take(struct stage *t)
{
	struct pollfd p = {.fd = t->pipe, .events = POLLIN};
	ssize_t n;

	assert_int_equal(poll(&p, 1, WAIT_MS), 1);
	n = read(t->pipe, t->out + t->len, sizeof(t->out) - 1 - t->len);
	assert_true(n >= 0);
	t->len += (size_t)n;
	t->out[t->len] = '\0';
	return n > 0;
}

static void until(struct stage *t, const char *text)
{
	while (!strstr(t->out, text)) {
		if (!take(t))
			fail_msg("it ended with %s", t->out);
	}
}

/* Its exit status, when it has printed all. */
static int ended(struct stage *t)
{
	while (t->pipe >= 0 && take(t))
		;
	close(t->pipe);
	t->pipe = -1;
	cli_end(&t->run);
	return t->run.status;
}

static int count(const char *text, const char *part)
{
	int n = 0;

	for (const char *at = text; (at = strstr(at, part)); at += strlen(part))
		n++;
	return n;
}

/* ---- what the table holds ---- */

static void test_a_line_for_each_record(void **state)
{
	struct stage *t = *state;

	record(t, EVENT_SUPERVISOR_START, "0.1");
	record(t, EVENT_STATE, "acquire");
	record(t, EVENT_WORKER_CRASH, "bad \033[31m\n");
	START(t);
	assert_int_equal(ended(t), 0);
	assert_string_equal(t->out,
	    "1970-01-01T00:00:01.234Z supervisor_start -                                     0.1\n"
	    "1970-01-01T00:00:01.234Z state            " TOKEN " free->reserved       acquire\n"
	    "1970-01-01T00:00:01.234Z worker_crash     " TOKEN
	    "                      bad ?[31m?\n");
	assert_string_equal(t->run.err, "");
}

static void test_an_object_on_a_line(void **state)
{
	struct stage *t = *state;
	char *line;
	char *rest;
	json_int_t seq = 0;

	record(t, EVENT_SUPERVISOR_START, "line\nbreak");
	record(t, EVENT_STATE, "acquire");
	START(t, "--json");
	assert_int_equal(ended(t), 0);
	for (line = strtok_r(t->out, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		json_t *o = json_loads(line, 0, NULL);

		assert_true(json_is_object(o));
		assert_int_equal(json_integer_value(json_object_get(o, "seq")), ++seq);
		assert_string_equal(cli_text_at(o, "time"), "1970-01-01T00:00:01.234Z");
		assert_string_equal(
		    cli_text_at(o, "kind"), seq == 1 ? "supervisor_start" : "state");
		assert_string_equal(cli_text_at(o, "box_id"), seq == 1 ? "-" : TOKEN);
		assert_string_equal(cli_text_at(o, "to"), seq == 1 ? "-" : "reserved");
		json_decref(o);
	}
	assert_int_equal(seq, 2);
}

static void test_all_that_a_full_ring_holds(void **state)
{
	struct stage *t = *state;

	record_many(t, SHM_RING_RECORDS + 100);
	START(t);
	assert_int_equal(ended(t), 0);
	assert_int_equal(count(t->out, "\n"), SHM_RING_RECORDS);
	assert_int_equal(count(t->out, "lost"), 0);
}

static void test_the_table_of_a_dead_sbxd(void **state)
{
	struct stage *t = *state;
	int status;
	pid_t pid;

	segment_close(&t->seg);
	(void)segment_unlink(t->name);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		if (segment_create(t->name, "unit", 2, 1, &t->seg, NULL) < 0)
			_exit(1);
		record(t, EVENT_STATE, "before it died");
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	START(t);
	assert_int_equal(ended(t), 0);
	assert_non_null(strstr(t->out, "before it died\n"));
}

/* ---- following ---- */

static void follow_until(struct stage *t, int signal)
{
	t->len = 0;
	t->out[0] = '\0';
	begin_anew(t);
	record(t, EVENT_STATE, "before");
	START(t, "-f");
	until(t, " before\n");
	record(t, EVENT_STATE, "after");
	until(t, " after\n");
	record(t, EVENT_STATE, "and more");
	until(t, " and more\n");
	kill(t->run.pid, signal);
	assert_int_equal(ended(t), 0);
	assert_string_equal(t->run.err, "");
	assert_int_equal(count(t->out, "\n"), 3);
}

static void test_following(void **state)
{
	follow_until(*state, SIGINT);
	follow_until(*state, SIGTERM);
}

static void test_what_it_was_too_slow_for_is_said(void **state)
{
	struct stage *t = *state;
	int status;

	START(t, "-f", "--json");
	record(t, EVENT_STATE, "first");
	until(t, "first");
	kill(t->run.pid, SIGSTOP);
	assert_int_equal(waitpid(t->run.pid, &status, WUNTRACED), t->run.pid);
	record_many(t, SHM_RING_RECORDS + 17);
	record(t, EVENT_STATE, "last");
	kill(t->run.pid, SIGCONT);
	until(t, "last");
	kill(t->run.pid, SIGINT);
	assert_int_equal(ended(t), 0);
	assert_non_null(strstr(t->out, "{\"kind\":\"lost\",\"count\":18,\"reason\":"));
	assert_int_equal(count(t->out, "\n"), 1 + 1 + SHM_RING_RECORDS);
}

static void test_a_new_table_is_followed_too(void **state)
{
	struct stage *t = *state;

	record(t, EVENT_STATE, "old");
	START(t, "-f");
	until(t, " old\n");
	record(t, EVENT_STATE, "the last");
	begin_anew(t);
	record(t, EVENT_STATE, "new");
	until(t, " new\n");
	assert_true(strstr(t->out, " the last\n") < strstr(t->out, " new\n"));
	record(t, EVENT_STATE, "newer");
	until(t, " newer\n");
	kill(t->run.pid, SIGINT);
	assert_int_equal(ended(t), 0);
	assert_int_equal(count(t->out, "\n"), 4);
	assert_string_equal(t->run.err, "sbxctl: events: the table is gone; waiting for the next\n"
					"sbxctl: events: sbxd began a new table\n");
}

static void test_nobody_reads(void **state)
{
	struct stage *t = *state;

	START(t, "-f");
	close(t->pipe); /* noticed without anything to say */
	t->pipe = -1;
	cli_end(&t->run);
	assert_int_equal(t->run.status, 0);
	assert_string_equal(t->run.err, "");

	record_many(t, SHM_RING_RECORDS); /* more than a pipe takes */
	START(t);
	assert_true(take(t));
	close(t->pipe);
	t->pipe = -1;
	cli_end(&t->run);
	assert_int_equal(t->run.status, 0);
	assert_string_equal(t->run.err, "");
}

static void test_a_signal_while_nobody_reads(void **state)
{
	struct stage *t = *state;

	record_many(t, SHM_RING_RECORDS);
	START(t, "-f");
	assert_true(take(t)); /* and no more: the pipe is full, or will be */
	kill(t->run.pid, SIGINT);
	cli_end(&t->run);
	assert_int_equal(t->run.status, 0);
	close(t->pipe);
	t->pipe = -1;
}

static void test_output_that_fails(void **state)
{
	struct stage *t = *state;
	struct cli_run r;
	char *args[] = {"--instance", t->instance, NULL};

	record(t, EVENT_STATE, "x");
	r.stdout_fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
	assert_true(r.stdout_fd >= 0);
	cli_start(&r, &cli_events, NULL, NULL, args);
	close(r.stdout_fd);
	cli_end(&r);
	assert_int_equal(r.status, CLI_FAILED);
	assert_string_equal(r.err, "sbxctl: stdout: cannot write: No space left on device\n");
}

/* ---- the service's stream, where the table is not ours to read ---- */

#define HEAD "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
#define STATE(seq, reason)                                                                     \
	"id: " seq "\nevent: state\ndata: {\"time\":\"1970-01-01T00:00:01.234Z\",\"seq\":" seq \
	",\"kind\":\"state\",\"box_id\":\"" TOKEN "\",\"from\":\"free\",\"to\":\"reserved\","  \
	"\"reason\":\"" reason "\"}\n\n"

static void test_a_stream_of_the_service(void **state)
{
	static const struct fake_answer answers[FAKE_ANSWERS] = {
	    {.bytes = HEAD "Connection: close\r\n\r\n: keep-alive\nid: 4\n\n" STATE("5",
		 "one") "event: lost\ndata: "
			"{\"kind\":\"lost\",\"count\":3,\"reason\":\"r\"}\n\n" STATE("9", "two"),
		.hang_up = true},
	    {.bytes = HEAD "Connection: close\r\n\r\n" STATE("5", "one"), .hang_up = true},
	    {.json = "{\"error\":{\"message\":\"no\",\"reason\":\"because\"}}",
		.status = "403 Forbidden"},
	    {.bytes = HEAD "Transfer-Encoding: chunked\r\n\r\n5\r\nid: 1", .hang_up = true},
	    {.bytes = HEAD "Connection: close\r\n\r\ndata: {nonsense\n\n", .hang_up = true},
	};
	struct cli_run r;
	struct fake f;

	(void)state;
	fake_start(&f, answers);
	CLI_RUN(&r, &cli_events, f.socket, NULL);
	assert_string_equal(r.err, "");
	assert_int_equal(r.status, 0);
	assert_string_equal(r.out,
	    "1970-01-01T00:00:01.234Z state            " TOKEN " free->reserved       one\n"
	    "-                        lost             -                                     r "
	    "(3)\n"
	    "1970-01-01T00:00:01.234Z state            " TOKEN " free->reserved       two\n");
	assert_non_null(strstr(f.log->asked, "GET /v1/events?since=0&follow=0 HTTP/1.1\r\n"));
	CLI_RUN(&r, &cli_events, f.socket, NULL, "--json");
	assert_int_equal(
	    strncmp(r.out, "{\"time\":\"1970-01-01T00:00:01.234Z\",\"seq\":5,", 43), 0);
	CLI_RUN(&r, &cli_events, f.socket, NULL);
	assert_int_equal(r.status, CLI_FAILED);
	assert_string_equal(r.err, "sbxctl: events: no (because)\n");
	CLI_RUN(&r, &cli_events, f.socket, NULL);
	assert_int_equal(r.status, CLI_FAILED);
	assert_string_equal(r.err, "sbxctl: events: the service closed the connection\n");
	CLI_RUN(&r, &cli_events, f.socket, NULL);
	assert_int_equal(r.status, CLI_FAILED);
	assert_string_equal(r.out, "");
	fake_stop(&f);
	CLI_RUN(&r, &cli_events, f.socket, NULL);
	assert_int_equal(r.status, CLI_FAILED);
	assert_non_null(strstr(r.err, f.socket));
}

static void test_a_stream_that_broke_is_taken_up_where_it_was(void **state)
{
	static const struct fake_answer answers[FAKE_ANSWERS] = {
	    {.bytes = HEAD "Transfer-Encoding: chunked\r\n\r\n7\r\nid: 41\n\r\n", .hang_up = true},
	    {.bytes = HEAD "Connection: close\r\n\r\n" STATE("42", "again"), .hang = true},
	};
	struct stage *t = *state;
	struct fake f;
	char *args[] = {"--follow", NULL};

	fake_start(&f, answers);
	start(t, f.socket, args);
	until(t, " again\n");
	assert_non_null(strstr(f.log->asked, "GET /v1/events?since=0&follow=1 "));
	assert_non_null(strstr(f.log->asked, "GET /v1/events?since=41&follow=1 "));
	kill(t->run.pid, SIGINT);
	assert_int_equal(ended(t), 0);
	assert_string_equal(t->run.err, "sbxctl: events: sbxd has ended; waiting for the next\n");
	fake_stop(&f);
}

#define staged(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    staged(test_a_line_for_each_record),
	    staged(test_an_object_on_a_line),
	    staged(test_all_that_a_full_ring_holds),
	    staged(test_the_table_of_a_dead_sbxd),
	    staged(test_following),
	    staged(test_what_it_was_too_slow_for_is_said),
	    staged(test_a_new_table_is_followed_too),
	    staged(test_nobody_reads),
	    staged(test_a_signal_while_nobody_reads),
	    staged(test_output_that_fails),
	    cmocka_unit_test(test_a_stream_of_the_service),
	    staged(test_a_stream_that_broke_is_taken_up_where_it_was),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
