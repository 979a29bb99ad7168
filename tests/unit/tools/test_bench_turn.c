/* A turn of sbxbench against a service that answers as it is told: what its row says. */
#include "tests/unit/tools/fake_service.h"

#include <errno.h>

#include "tools/bench_turn.h"

#define BOX "{\"box_id\":\"b1\",\"lease_id\":\"l1\",\"source\":\"warm\",\"generation\":7}"
#define RAN(out)                                                                 \
	"{\"exit_code\":0,\"signal\":null,\"timed_out\":false,\"stdout\":\"" out \
	"\",\"stderr\":\"\"}"
#define TIMEOUT_S 0.3 /* what hangs is waited for so long */

/* What one turn of a workload says, and how it ends. */
static const struct turn_case {
	const char *workload;
	uint32_t turn;
	struct fake_answer answers[FAKE_ANSWERS];
	int rc;
	const char *error; /* its beginning; NULL: success */
	int requests;
	int warm_hit;
} cases[] = {
    {"noop", 0, {{.json = BOX}, {.json = RAN("")}, {.json = "{}"}}, 0, NULL, 3, 1},
    {"noop", 0, {{.json = BOX}, {.json = RAN("x")}, {.json = "{}"}}, -EIO,
	"run: the command did not print '' but 'x'", 3, 1},
    {"python_small", 1, {{.json = BOX}, {.json = RAN("4999950000\\n")}, {.json = "{}"}}, 0, NULL, 3,
	1},
    {"python_small", 1, {{.json = BOX}, {.json = RAN("4999950001\\n")}, {.json = "{}"}}, -EIO,
	"run: the command did not print", 3, 1},
    {"state_reuse", 5, {{.json = BOX}, {.json = RAN("state-2\\n")}, {.json = "{}"}}, 0, NULL, 3, 1},
    {"state_reuse", 5, {{.json = BOX}, {.json = RAN("state-1\\n")}, {.json = "{}"}}, -EIO,
	"run: the command did not print 'state-2' but 'state-1", 3, 1},
    {"noop", 0,
	{{.json = BOX},
	    {.json = "{\"exit_code\":3,\"signal\":null,\"timed_out\":false,\"stdout\":\"\","
		     "\"stderr\":\"a\\nb\\n\"}"},
	    {.json = "{}"}},
	-EIO, "run: the command ended with 3: b", 3, 1},
    {"noop", 0,
	{{.json = BOX},
	    {.json = "{\"exit_code\":null,\"signal\":9,\"timed_out\":false,\"stdout\":\"\","
		     "\"stderr\":\"\"}"},
	    {.json = "{}"}},
	-EIO, "run: the command was ended by a signal", 3, 1},
    {"noop", 0,
	{{.json = BOX},
	    {.json = "{\"exit_code\":null,\"signal\":9,\"timed_out\":true,\"stdout\":\"\","
		     "\"stderr\":\"\"}"},
	    {.json = "{}"}},
	-EIO, "run: the command took too long", 3, 1},
    {"noop", 0,
	{{.json = "{\"error\":{\"message\":\"no room\",\"reason\":\"capacity_exceeded\"}}",
	    .status = "429 Too Many Requests"}},
	-EIO, "acquire: no room (capacity_exceeded)", 1, -1},
    {"noop", 0, {{.json = "[]"}}, -EIO, "acquire: ", 1, -1},
    {"noop", 0, {{.json = "{\"box_id\":\"b1\"}"}}, -EIO, "acquire: the answer has no lease_id", 1,
	-1},
    {"noop", 0, {{.json = BOX}, {.hang_up = true}}, -ECONNRESET, "run: the service closed", 2, 1},
    {"noop", 0, {{.json = BOX}, {.hang = true}}, -ETIMEDOUT, "run: the service did not answer", 2,
	1},
    {"noop", 0, {{.json = BOX}, {.json = RAN("")}, {.bytes = "nonsense\r\n\r\n", .hang_up = true}},
	-EBADMSG, "release: ", 3, 1},
    {"noop", 0,
	{{.json = "{\"box_id\":\"b1\",\"lease_id\":\"l1\",\"source\":\"cold\",\"generation\":7}"},
	    {.json = RAN("")}, {.json = "{}"}},
	0, NULL, 3, 0},
};

static void try_case(const struct turn_case *c, struct fake *f)
{
	const struct bench_plan p = {.scenario = bench_scenario_find("cold_unique_thread"),
	    .workload = bench_workload_find(c->workload),
	    .timeout = TIMEOUT_S};
	struct bench_client cl;
	struct bench_row r;
	int rc;

	bench_client_init(&cl, f->socket, -1, TIMEOUT_S);
	rc = bench_turn(&cl, &p, c->turn, &r, NULL);
	bench_client_close(&cl);
	if (c->error && strncmp(r.error, c->error, strlen(c->error)) != 0)
		fail_msg("'%s' instead of '%s'", r.error, c->error);
	assert_int_equal(rc, c->rc);
	assert_int_equal(r.success, c->error == NULL);
	assert_int_equal(f->log->requests, c->requests);
	assert_int_equal(r.warm_hit, c->warm_hit);
	assert_true(r.acquire_ms > 0 && (r.run_ms > 0) == (c->requests > 1));
	assert_true(r.total_ms >= r.acquire_ms + r.run_ms + r.release_ms);
}

static void test_what_a_turn_says(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fake f;

		fake_start(&f, cases[i].answers);
		try_case(&cases[i], &f);
		fake_stop(&f);
	}
}

static void test_what_is_asked(void **state)
{
	static const struct fake_answer answers[FAKE_ANSWERS] = {
	    {.json = BOX}, {.json = RAN("")}, {.json = "{}"}, {.json = "{}"}};
	static const char *const asked[] = {"POST /v1/acquire HTTP/1.1",
	    "\"user_id\":\"bench-user\",\"thread_id\":\"cold-0\",\"image\":\"x\",\"release_on_"
	    "disconnect\":true}",
	    "POST /v1/boxes/b1/run HTTP/1.1",
	    "{\"command\":\"true\",\"env\":{\"PAIR\":\"0\"},\"timeout_seconds\":5.000}",
	    "POST /v1/boxes/b1/release HTTP/1.1", "{\"lease_id\":\"l1\"}",
	    "DELETE /v1/boxes/b1 HTTP/1.1"};
	const struct bench_plan p = {.scenario = bench_scenario_find("cold_unique_thread"),
	    .workload = bench_workload_find("noop"),
	    .image = "x",
	    .no_warmpool = true,
	    .timeout = 5};
	struct bench_client cl;
	struct bench_row r;
	struct fake f;
	const char *at;

	(void)state;
	fake_start(&f, answers);
	bench_client_init(&cl, f.socket, -1, 5);
	assert_int_equal(bench_turn(&cl, &p, 0, &r, NULL), 0);
	bench_client_close(&cl);
	at = f.log->asked;
	for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]); i++) {
		at = strstr(at, asked[i]);
		if (!at)
			fail_msg("'%s' was not asked", asked[i]);
	}
	fake_stop(&f);
}

static void test_nobody_is_there(void **state)
{
	const struct bench_plan p = {.scenario = bench_scenario_find("cold_unique_thread"),
	    .workload = bench_workload_find("noop")};
	struct bench_client cl;
	struct bench_row r;

	(void)state;
	bench_client_init(&cl, "/nowhere/x", -1, 1);
	assert_int_equal(bench_turn(&cl, &p, 4, &r, NULL), -ENOENT);
	assert_int_equal(strncmp(r.error, "connect: ", 9), 0);
	bench_client_close(&cl);
	bench_turn_refuse(&p, 4, "gone", &r);
	assert_string_equal(r.error, "not tried: gone");
	assert_string_equal(r.thread, "cold-4");
	assert_false(r.success);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_what_a_turn_says),
	    cmocka_unit_test(test_what_is_asked),
	    cmocka_unit_test(test_nobody_is_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
