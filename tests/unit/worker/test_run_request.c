/* run_request: what POST run takes, refuses, and makes of it for the guest. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>

#include <cmocka.h>

#include "lib/clock.h"
#include "wire/agent.h"
#include "wire/limits.h"
#include "worker/run_request.h"
#include "worker/service.h"

static const struct ctl_limits limits = CTL_LIMITS_DEFAULT;
static const char box_env[] = "A=box\0B=box\0LANG=de_DE";

struct parsed {
	struct run_request r;
	struct agent_exec_request *x;
	enum api_error e;
	struct err err;
	int rc;
};

static void parse_for(struct parsed *p, const char *json, const struct service *s)
{
	memset(p, 0, sizeof(*p));
	p->rc = run_request_parse((const uint8_t *)json, strlen(json), s, &p->r, &p->e, &p->err);
	if (p->rc == 0)
		assert_int_equal(agent_parse_exec(buf_head(&p->r.exec), p->r.exec.len, &p->x), 0);
}

static void parse_env(struct parsed *p, const char *json, const char *env, size_t env_len)
{
	const struct service s = {.env = env,
	    .env_len = env_len,
	    .limits = &limits,
	    .default_cwd = "",
	    .default_user = ""};

	parse_for(p, json, &s);
}

static void parse(struct parsed *p, const char *json)
{
	parse_env(p, json, box_env, sizeof(box_env));
}

static void done(struct parsed *p)
{
	run_request_free(&p->r);
	free(p->x);
}

static bool has_env(const struct parsed *p, const char *entry)
{
	int found = 0;

	for (char **e = p->x->envp; *e; e++) {
		if (!strncmp(*e, entry, strcspn(entry, "=") + 1))
			found += strcmp(*e, entry) ? 100 : 1; /* only that value, and once */
	}
	return found == 1;
}

static void test_shell_command(void **state)
{
	struct parsed p;

	(void)state;
	parse(&p, "{\"command\":\"echo $A | cat\"}");
	assert_int_equal(p.rc, 0);
	assert_int_equal(p.x->head.flags, AGENT_EXEC_SHELL | AGENT_EXEC_NO_STDIN);
	assert_int_equal(p.x->head.argc, 1);
	assert_string_equal(p.x->argv[0], "echo $A | cat");
	assert_string_equal(p.x->cwd, "");
	assert_string_equal(p.x->user, "");
	assert_int_equal(p.r.timeout_ns, 0);
	assert_int_equal(p.r.max_output, RUN_OUTPUT_DEFAULT);
	assert_false(p.r.has_stdin);
	done(&p);
}

static void test_everything(void **state)
{
	struct parsed p;

	(void)state;
	parse(&p,
	    "{\"argv\":[\"prog\",\"\",\"a b\"],\"cwd\":\"/tmp\",\"user\":\"nobody\",\"tty\":true,"
	    "\"stdin_base64\":\"AAEC\",\"timeout_seconds\":1.5,\"max_output_bytes\":7}");
	assert_int_equal(p.rc, 0);
	assert_int_equal(p.x->head.flags, AGENT_EXEC_TTY);
	assert_int_equal(p.x->head.argc, 3);
	assert_string_equal(p.x->argv[1], "");
	assert_string_equal(p.x->argv[2], "a b");
	assert_string_equal(p.x->cwd, "/tmp");
	assert_string_equal(p.x->user, "nobody");
	assert_int_equal(p.r.timeout_ns, 1500 * NS_PER_MS);
	assert_int_equal(p.r.max_output, 7);
	assert_true(p.r.has_stdin);
	assert_int_equal(p.r.stdin_len, 3);
	assert_memory_equal(p.r.stdin_data, "\0\1\2", 3);
	done(&p);
	parse(&p, "{\"argv\":[\"x\"],\"stdin\":\"\"}");
	assert_int_equal(p.rc, 0);
	assert_true(p.r.has_stdin); /* empty is not absent */
	assert_int_equal(p.r.stdin_len, 0);
	done(&p);
}

static void test_environment(void **state)
{
	struct parsed p;

	(void)state;
	parse(&p, "{\"argv\":[\"x\"],\"env\":{\"B\":\"mine\",\"C_1\":\"a=b\",\"_\":\"\"}}");
	assert_int_equal(p.rc, 0);
	assert_true(has_env(&p, "A=box"));
	assert_true(has_env(&p, "B=mine"));
	assert_true(has_env(&p, "C_1=a=b"));
	assert_true(has_env(&p, "_="));
	assert_true(has_env(&p, "LANG=de_DE"));
	assert_int_equal(p.x->head.envc, 5);
	done(&p);
	parse_env(&p, "{\"argv\":[\"x\"]}", "", 0);
	assert_true(has_env(&p, "LANG=C.UTF-8"));
	done(&p);
	parse_env(&p, "{\"argv\":[\"x\"],\"env\":{\"LANG\":\"\"}}", "", 0);
	assert_true(has_env(&p, "LANG="));
	done(&p);
}

/* What the box was made with stands where the request says nothing. */
static void test_defaults_of_the_box(void **state)
{
	const struct service s = {
	    .env = "", .limits = &limits, .default_cwd = "/srv", .default_user = "1000:1000"};
	struct parsed p;

	(void)state;
	parse_for(&p, "{\"argv\":[\"x\"]}", &s);
	assert_string_equal(p.x->cwd, "/srv");
	assert_string_equal(p.x->user, "1000:1000");
	done(&p);
	parse_for(&p, "{\"argv\":[\"x\"],\"cwd\":\"/tmp\",\"user\":\"\"}", &s);
	assert_string_equal(p.x->cwd, "/tmp");
	assert_string_equal(p.x->user, "");
	done(&p);
}

static const struct {
	const char *json;
	enum api_error e;
	const char *text; /* what the message must name */
} refused[] = {
    {"nonsense", API_MALFORMED, "line 1"},
    {"[]", API_MALFORMED, ""},
    {"{\"command\":\"a\",\"command\":\"b\"}", API_MALFORMED, ""},
    {"{}", API_INVALID_ARGUMENT, "command"},
    {"{\"command\":\"a\",\"argv\":[\"a\"]}", API_INVALID_ARGUMENT, "argv"},
    {"{\"command\":\"\"}", API_INVALID_ARGUMENT, "command"},
    {"{\"command\":7}", API_INVALID_ARGUMENT, "command"},
    {"{\"argv\":[]}", API_INVALID_ARGUMENT, "argv"},
    {"{\"argv\":[\"\"]}", API_INVALID_ARGUMENT, "argv"},
    {"{\"argv\":[\"a\",1]}", API_INVALID_ARGUMENT, "argv"},
    {"{\"argv\":\"a\"}", API_INVALID_ARGUMENT, "argv"},
    {"{\"command\":\"a\",\"env\":[]}", API_INVALID_ARGUMENT, "env"},
    {"{\"command\":\"a\",\"env\":{\"1A\":\"\"}}", API_INVALID_ARGUMENT, "1A"},
    {"{\"command\":\"a\",\"env\":{\"A B\":\"\"}}", API_INVALID_ARGUMENT, "A B"},
    {"{\"command\":\"a\",\"env\":{\"\":\"\"}}", API_INVALID_ARGUMENT, "env"},
    {"{\"command\":\"a\",\"env\":{\"A\":null}}", API_INVALID_ARGUMENT, "A"},
    {"{\"command\":\"a\",\"cwd\":\"tmp\"}", API_INVALID_PATH, "cwd"},
    {"{\"command\":\"a\",\"user\":1}", API_INVALID_ARGUMENT, "user"},
    {"{\"command\":\"a\",\"stdin\":\"\",\"stdin_base64\":\"\"}", API_INVALID_ARGUMENT, "stdin"},
    {"{\"command\":\"a\",\"stdin_base64\":\"?\"}", API_INVALID_ARGUMENT, "stdin_base64"},
    {"{\"command\":\"a\",\"timeout_seconds\":0}", API_INVALID_ARGUMENT, "timeout_seconds"},
    {"{\"command\":\"a\",\"timeout_seconds\":-1}", API_INVALID_ARGUMENT, "timeout_seconds"},
    {"{\"command\":\"a\",\"timeout_seconds\":\"1\"}", API_INVALID_ARGUMENT, "timeout_seconds"},
    {"{\"command\":\"a\",\"max_output_bytes\":-1}", API_INVALID_ARGUMENT, "max_output_bytes"},
    {"{\"command\":\"a\",\"max_output_bytes\":1.5}", API_INVALID_ARGUMENT, "max_output_bytes"},
    {"{\"command\":\"a\",\"tty\":1}", API_INVALID_ARGUMENT, "tty"},
};

static void test_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		struct parsed p;

		parse(&p, refused[i].json);
		if (p.rc == 0 || p.e != refused[i].e || !strstr(p.err.text, refused[i].text))
			fail_msg("%s: rc %d, error %d, \"%s\"", refused[i].json, p.rc, (int)p.e,
			    p.err.text);
		done(&p);
	}
}

static void test_too_long_arguments(void **state)
{
	char *json = malloc(AGENT_REQUEST_MAX + 64);
	struct parsed p;
	int n;

	(void)state;
	assert_non_null(json);
	n = sprintf(json, "{\"command\":\"");
	memset(json + n, 'x', AGENT_REQUEST_MAX);
	(void)strcpy(json + n + AGENT_REQUEST_MAX, "\"}");
	parse(&p, json);
	assert_int_not_equal(p.rc, 0);
	assert_int_equal(p.e, API_TOO_LARGE);
	done(&p);
	free(json);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_shell_command),
	    cmocka_unit_test(test_everything),
	    cmocka_unit_test(test_environment),
	    cmocka_unit_test(test_defaults_of_the_box),
	    cmocka_unit_test(test_refused),
	    cmocka_unit_test(test_too_long_arguments),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
