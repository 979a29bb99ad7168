/* The commands of sbxctl that ask or look: what they send, what they print, how they exit. */
#include "tests/unit/tools/cli_fixture.h"

#include <fcntl.h>
#include <jansson.h>
#include <sys/mman.h>

#include "shm/segment.h"

#define BOX                                                                                 \
	"{\"box_id\":\"0123456789abcdef\",\"state\":\"warm\",\"user_id\":\"u\\u001b[31m\"," \
	"\"thread_id\":null,\"leases\":2,\"age_seconds\":61.5,\"lease_id\":\"aa\","         \
	"\"source\":\"cold\",\"more\":{\"a\":[1]}}"

struct call {
	const struct cli_command *command;
	char *args[6];
	struct fake_answer answer;
	const char *asked;
	const char *body; /* NULL: none */
	const char *out;  /* part of what is printed */
};

static const struct call calls[] = {
    {&cli_acquire, {"-u", "u", "-t", "t"}, {.json = BOX}, "POST /v1/acquire HTTP/1.1",
	"{\"user_id\":\"u\",\"thread_id\":\"t\"}", "0123456789abcdef\n"},
    {&cli_acquire, {"--json", "--lease", "1.5", "--wait=2", "--image=x"}, {.json = BOX},
	"POST /v1/acquire HTTP/1.1",
	"{\"user_id\":null,\"thread_id\":null,\"image\":\"x\",\"lease_seconds\":1.500,"
	"\"wait_seconds\":2.000}",
	"\"lease_id\": \"aa\""},
    {&cli_release, {"7:ab/c"}, {.json = "{\"status\":\"warm\"}"},
	"POST /v1/boxes/7%3Aab%2Fc/release HTTP/1.1", "{}", "warm\n"},
    {&cli_release, {"b", "--lease", "aa"}, {.json = "{\"status\":\"running\"}"},
	"POST /v1/boxes/b/release HTTP/1.1", "{\"lease_id\":\"aa\"}", "running\n"},
    {&cli_inspect, {"b"}, {.json = BOX}, "GET /v1/boxes/b HTTP/1.1", NULL,
	"user_id          u?[31m\nthread_id        -\nleases           2\n"},
    {&cli_inspect, {"b", "--json"}, {.json = BOX}, "GET /v1/boxes/b HTTP/1.1", NULL,
	"\"leases\": 2"},
    {&cli_rm, {"b"}, {.bytes = "HTTP/1.1 204 No Content\r\n\r\n"}, "DELETE /v1/boxes/b HTTP/1.1",
	NULL, ""},
    {&cli_rm, {"-f", "b"}, {.bytes = "HTTP/1.1 204 No Content\r\n\r\n"},
	"DELETE /v1/boxes/b?force=true HTTP/1.1", NULL, ""},
    {&cli_ps, {NULL}, {.json = "{\"boxes\":[" BOX "]}"}, "GET /v1/boxes?all=true HTTP/1.1", NULL,
	"0123456789abcdef -    warm  u?[31m -      -         1m01s"},
    {&cli_ps, {NULL},
	{.json = "{\"boxes\":[{\"box_id\":\"0123456789abcdef\",\"name\":\"my-box\","
		 "\"state\":\"active\",\"status\":\"stopped\"}]}"},
	"GET /v1/boxes?all=true HTTP/1.1", NULL, "0123456789abcdef my-box stopped "},
    {&cli_ps, {"--json"}, {.json = "{\"boxes\":[" BOX "]}"}, "GET /v1/boxes?all=true HTTP/1.1",
	NULL, "\"box_id\": \"0123456789abcdef\""},
    {&cli_pool, {NULL},
	{.json = "{\"replicas\":3,\"replica_policy\":\"soft\",\"states\":{\"free\":5,\"warm\":1,"
		 "\"active\":0},\"active\":0,\"warm\":1,\"boxes\":1,\"counters\":{\"boots\":4},"
		 "\"latency\":{\"cold\":{\"count\":2,\"p50_us\":10,\"p95_us\":20,\"p99_us\":30}},"
		 "\"supervisor\":{\"pid\":77,\"generation\":1,\"uptime_seconds\":3700}}"},
	"GET /v1/pool HTTP/1.1", NULL, "pid 77, generation 1, up 1h01m\n"},
    {&cli_shutdown, {NULL}, {.json = "{}"}, "POST /v1/shutdown HTTP/1.1", NULL, ""},
};

static void test_calls(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		const struct call *c = &calls[i];
		const struct fake_answer answers[FAKE_ANSWERS] = {c->answer};
		struct cli_run r = {.stdout_fd = -1};
		struct fake f;

		fake_start(&f, answers);
		cli_start(&r, c->command, f.socket, NULL, c->args);
		cli_end(&r);
		assert_string_equal(r.err, "");
		assert_int_equal(r.status, 0);
		if (!strstr(f.log->asked, c->asked))
			fail_msg("asked %s", f.log->asked);
		if (c->body && !strstr(f.log->asked, c->body))
			fail_msg("asked %s", f.log->asked);
		if (!strstr(r.out, c->out))
			fail_msg("printed %s", r.out);
		fake_stop(&f);
	}
}

static void test_refusals_are_said_with_their_reason(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		const struct fake_answer answers[FAKE_ANSWERS] = {
		    {.json = "{\"error\":{\"message\":\"no \\u0007\",\"reason\":\"because\"}}",
			.status = "403 Forbidden"}};
		struct cli_run r = {.stdout_fd = -1};
		struct fake f;

		fake_start(&f, answers);
		cli_start(&r, calls[i].command, f.socket, NULL, calls[i].args);
		cli_end(&r);
		assert_int_equal(r.status, CLI_FAILED);
		assert_int_equal(strncmp(r.err, "sbxctl: ", 8), 0);
		assert_non_null(strstr(r.err, ": no ? (because)\n"));
		assert_string_equal(r.out, "");
		fake_stop(&f);
	}
}

static void test_usage(void **state)
{
	static const struct {
		const struct cli_command *command;
		char *args[4];
	} wrong[] = {
	    {&cli_acquire, {"x"}},
	    {&cli_acquire, {"--lease", "0"}},
	    {&cli_acquire, {"-u"}},
	    {&cli_release, {NULL}},
	    {&cli_release, {"a", "b"}},
	    {&cli_inspect, {NULL}},
	    {&cli_rm, {NULL}},
	    {&cli_rm, {"--force=1", "b"}},
	    {&cli_ps, {"x"}},
	    {&cli_pool, {"x"}},
	    {&cli_shutdown, {"now"}},
	    {&cli_token, {"u"}},
	    {&cli_token, {"a", "b", "c"}},
	    {&cli_token, {"--no-user", "a", "b"}},
	    {&cli_shm_dump, {"a", "b"}},
	    {&cli_events, {"x"}},
	    {&cli_doctor, {"x"}},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct cli_run r = {.stdout_fd = -1};

		cli_start(&r, wrong[i].command, "/nonexistent", NULL, wrong[i].args);
		cli_end(&r);
		if (r.status != CLI_USAGE)
			fail_msg("case %zu exits %d: %s", i, r.status, r.err);
		assert_string_equal(r.out, "");
	}
}

static void test_token_vectors(void **state)
{
	json_t *root = json_load_file("tests/data/scope_token.json", 0, NULL);
	json_t *c;
	size_t i;

	(void)state;
	assert_non_null(root);
	json_array_foreach(json_object_get(root, "cases"), i, c)
	{
		char user[1024];
		char thread[1024];
		char expected[64];
		const char *u = json_string_value(json_object_get(c, "user_id"));
		char *with[] = {"--", user, thread, NULL};
		char *without[] = {"--no-user", thread, NULL};
		struct cli_run r = {.stdout_fd = -1};

		snprintf(user, sizeof(user), "%s", u ? u : "");
		snprintf(thread, sizeof(thread), "%s",
		    json_string_value(json_object_get(c, "thread_id")));
		snprintf(expected, sizeof(expected), "%s\n",
		    json_string_value(json_object_get(c, "token")));
		cli_start(&r, &cli_token, NULL, NULL, u ? with : without);
		cli_end(&r);
		assert_int_equal(r.status, 0);
		assert_string_equal(r.out, expected);
	}
	json_decref(root);
}

/* A table whose sbxd died: made by a child that ends without taking it away. */
static void make_orphan(const char *name, const char *instance)
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		struct segment s;

		_exit(segment_create(name, instance, 4, 1, &s, NULL) == 0 ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void test_a_table_that_was_left(void **state)
{
	char instance[32];
	char name[64];
	char left[96];
	struct cli_run r = {.stdout_fd = -1};
	char *args[] = {"--instance", instance, NULL};
	char *named[] = {name, "--json", NULL};
	char *doctor[] = {"--json", NULL};
	int fd;

	(void)state;
	snprintf(instance, sizeof(instance), "unit-%d", (int)getpid());
	snprintf(name, sizeof(name), "/sbxd-%u-%s", (unsigned int)getuid(), instance);
	make_orphan(name, instance);

	cli_start(&r, &cli_shm_dump, NULL, NULL, args);
	cli_end(&r);
	assert_string_equal(r.err, "");
	assert_int_equal(r.status, 0);
	assert_non_null(strstr(r.out, "(dead)"));
	assert_non_null(strstr(r.out, "the table is valid\n"));

	cli_start(&r, &cli_ps, NULL, NULL, args);
	cli_end(&r);
	assert_int_equal(r.status, 0);
	assert_non_null(strstr(r.err, "sbxd is not running"));

	cli_start(&r, &cli_doctor, "/nonexistent", NULL, doctor);
	cli_end(&r);
	assert_int_equal(r.status, CLI_WRONG);
	snprintf(left, sizeof(left), "\"%s: its sbxd is gone\"", name);
	assert_non_null(strstr(r.out, left));
	assert_non_null(strstr(r.out, "\"healthy\": false"));

	/* A slot in a state that does not exist. */
	fd = shm_open(name, O_RDWR | O_CLOEXEC, 0);
	assert_true(fd >= 0);
	{
		struct segment s;
		uint32_t state_word = 99;
		off_t at;

		assert_int_equal(segment_attach(name, false, &s, NULL), 0);
		at = (off_t)(s.header->slots_off + offsetof(struct shm_slot, sup) +
			     offsetof(struct slot_sup, state));
		segment_close(&s);
		assert_int_equal(
		    pwrite(fd, &state_word, sizeof(state_word), at), sizeof(state_word));
	}
	close(fd);
	cli_start(&r, &cli_shm_dump, NULL, NULL, named);
	cli_end(&r);
	assert_int_equal(r.status, CLI_WRONG);
	assert_null(strstr(r.out, "\"findings\": []"));
	assert_int_equal(segment_unlink(name), 0);

	cli_start(&r, &cli_shm_dump, NULL, NULL, args);
	cli_end(&r);
	assert_int_equal(r.status, CLI_FAILED);
	assert_non_null(strstr(r.err, name));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_calls),
	    cmocka_unit_test(test_refusals_are_said_with_their_reason),
	    cmocka_unit_test(test_usage),
	    cmocka_unit_test(test_token_vectors),
	    cmocka_unit_test(test_a_table_that_was_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
