/* exec_request: what POST exec, signal, resize and the orders of an attached client take, refuse,
 * and make of it. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/clock.h"
#include "wire/agent.h"
#include "worker/exec_request.h"
#include "worker/service.h"

static const char box_env[] = "A=box\0LANG=de_DE";

struct parsed {
	struct exec_request r;
	struct agent_exec_request *x;
	enum api_error e;
	struct err err;
	int rc;
};

static void parse(struct parsed *p, const char *json)
{
	const struct service s = {
	    .env = box_env, .env_len = sizeof(box_env), .default_cwd = "", .default_user = ""};

	memset(p, 0, sizeof(*p));
	p->rc = exec_request_parse((const uint8_t *)json, strlen(json), &s, &p->r, &p->e, &p->err);
	if (p->rc == 0)
		assert_int_equal(agent_parse_exec(buf_head(&p->r.exec), p->r.exec.len, &p->x), 0);
}

static void done(struct parsed *p)
{
	exec_request_free(&p->r);
	free(p->x);
}

static void test_least(void **state)
{
	struct parsed p;

	(void)state;
	parse(&p, "{\"command\":\"python3\",\"env\":null,\"args\":null}");
	assert_int_equal(p.rc, 0);
	assert_int_equal(p.x->head.flags, AGENT_EXEC_NARROW);
	assert_int_equal(p.x->head.argc, 1);
	assert_string_equal(p.x->argv[0], "python3");
	assert_string_equal(p.x->cwd, "");
	assert_string_equal(p.x->user, "");
	assert_int_equal(p.x->head.cols, 80);
	assert_int_equal(p.x->head.rows, 24);
	assert_int_equal(p.r.timeout_ns, 0);
	assert_true(p.r.has_stdin);
	assert_false(p.r.tty);
	assert_string_equal(p.r.command, "python3");
	done(&p);
}

static void test_everything(void **state)
{
	struct parsed p;

	(void)state;
	parse(&p, "{\"command\":\"sh\",\"args\":[\"-c\",\"echo $0\",\"\"],\"env\":{\"A\":\"mine\"},"
		  "\"working_dir\":\"/tmp\",\"user\":\"1000:1001\",\"timeout_seconds\":0.5,"
		  "\"tty\":true,\"stdin\":true,\"cols\":120,\"rows\":40}");
	assert_int_equal(p.rc, 0);
	assert_int_equal(p.x->head.flags, AGENT_EXEC_NARROW | AGENT_EXEC_TTY);
	assert_int_equal(p.x->head.argc, 4);
	assert_string_equal(p.x->argv[2], "echo $0");
	assert_string_equal(p.x->argv[3], "");
	assert_string_equal(p.x->cwd, "/tmp");
	assert_string_equal(p.x->user, "1000:1001");
	assert_string_equal(p.x->envp[0], "LANG=de_DE");
	assert_string_equal(p.x->envp[1], "A=mine");
	assert_int_equal(p.x->head.cols, 120);
	assert_int_equal(p.x->head.rows, 40);
	assert_int_equal(p.r.timeout_ns, NS_PER_S / 2);
	assert_string_equal(p.r.command, "sh -c echo $0 ");
	done(&p);
	parse(&p, "{\"command\":\"sh\",\"stdin\":false,\"timeout_seconds\":0.0}");
	assert_int_equal(p.x->head.flags, AGENT_EXEC_NARROW | AGENT_EXEC_NO_STDIN);
	assert_int_equal(p.r.timeout_ns, 0);
	done(&p);
}

/* The command line that is shown is cut, at a character. */
static void test_label(void **state)
{
	char json[1024] = "{\"command\":\"c\",\"args\":[\"";
	struct parsed p;

	(void)state;
	for (int i = 0; i < 200; i++)
		strcat(json, "\xc3\xa9");
	strcat(json, "\"]}");
	parse(&p, json);
	assert_int_equal(p.rc, 0);
	assert_int_equal(strlen(p.r.command), 2 + (EXEC_COMMAND_LEN - 3) / 2 * 2);
	assert_memory_equal(p.r.command, "c \xc3\xa9\xc3\xa9", 6);
	done(&p);
}

static const struct {
	const char *json;
	enum api_error e;
	const char *says;
} refused[] = {
    {"", API_INVALID_ARGUMENT, "\"command\""},
    {"{}", API_INVALID_ARGUMENT, "\"command\""},
    {"[]", API_MALFORMED, "not a JSON object"},
    {"{\"command\":1}", API_INVALID_ARGUMENT, "\"command\" must be a string"},
    {"{\"command\":\"\"}", API_INVALID_ARGUMENT, "\"command\""},
    {"{\"command\":\"a\",\"args\":\"x\"}", API_INVALID_ARGUMENT, "\"args\" must be an array"},
    {"{\"command\":\"a\",\"args\":[\"x\",1]}", API_INVALID_ARGUMENT, "\"args\"[1]"},
    {"{\"command\":\"a\",\"env\":[]}", API_INVALID_ARGUMENT, "\"env\" must be an object"},
    {"{\"command\":\"a\",\"env\":{\"A B\":\"x\"}}", API_INVALID_ARGUMENT, "\"A B\" is no name"},
    {"{\"command\":\"a\",\"env\":{\"A\":1}}", API_INVALID_ARGUMENT, "\"A\" must be a string"},
    {"{\"command\":\"a\",\"working_dir\":\"tmp\"}", API_INVALID_PATH, "\"working_dir\""},
    {"{\"command\":\"a\",\"working_dir\":1}", API_INVALID_ARGUMENT, "\"working_dir\""},
    {"{\"command\":\"a\",\"timeout_seconds\":-1}", API_INVALID_ARGUMENT, "\"timeout_seconds\""},
    {"{\"command\":\"a\",\"timeout_seconds\":\"1\"}", API_INVALID_ARGUMENT, "\"timeout_seconds\""},
    {"{\"command\":\"a\",\"timeout_seconds\":1e300}", API_INVALID_ARGUMENT, "\"timeout_seconds\""},
    {"{\"command\":\"a\",\"tty\":1}", API_INVALID_ARGUMENT, "\"tty\""},
    {"{\"command\":\"a\",\"stdin\":\"x\"}", API_INVALID_ARGUMENT, "\"stdin\""},
    {"{\"command\":\"a\",\"stdin\":false,\"tty\":true}", API_INVALID_ARGUMENT, "\"stdin\""},
    {"{\"command\":\"a\",\"user\":5}", API_INVALID_ARGUMENT, "\"user\""},
    {"{\"command\":\"a\",\"cols\":0}", API_INVALID_ARGUMENT, "\"cols\""},
    {"{\"command\":\"a\",\"rows\":65536}", API_INVALID_ARGUMENT, "\"rows\""},
    {"{\"command\":\"a\",\"cwd\":\"/tmp\"}", API_INVALID_ARGUMENT, "\"cwd\" is not known"},
    {"{\"command\":\"a\",\"Tty\":true}", API_INVALID_ARGUMENT, "\"Tty\" is not known"},
};

static void test_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		struct parsed p;

		parse(&p, refused[i].json);
		assert_int_equal(p.rc, -EINVAL);
		if (p.e != refused[i].e || !strstr(p.err.text, refused[i].says))
			fail_msg("%s: %d, %s", refused[i].json, (int)p.e, p.err.text);
		done(&p);
	}
}

static void test_too_large(void **state)
{
	static char json[5U << 20];
	struct parsed p;
	size_t n;

	(void)state;
	n = (size_t)snprintf(json, sizeof(json), "{\"command\":\"a\",\"args\":[\"");
	memset(json + n, 'x', AGENT_REQUEST_MAX);
	strcpy(json + n + AGENT_REQUEST_MAX, "\"]}");
	parse(&p, json);
	assert_true(p.rc < 0);
	assert_int_equal(p.e, API_TOO_LARGE);
	done(&p);
}

/* ---- orders ---- */

static void test_signals(void **state)
{
	static const int allowed[] = {
	    SIGHUP, SIGINT, SIGQUIT, SIGABRT, SIGUSR1, SIGUSR2, SIGTERM, SIGWINCH};
	struct exec_order o;
	enum api_error e;
	struct err err;
	char json[64];
	size_t found = 0;

	(void)state;
	for (int sig = -1; sig < 70; sig++) {
		bool good = false;
		int n = snprintf(json, sizeof(json), "{\"signal\":%d}", sig);
		int rc = exec_signal_parse((const uint8_t *)json, (size_t)n, &o, &e, &err);

		for (size_t i = 0; i < sizeof(allowed) / sizeof(allowed[0]); i++)
			good |= allowed[i] == sig;
		assert_int_equal(rc, good ? 0 : -EINVAL);
		found += good;
		if (good)
			assert_int_equal(o.signal, sig);
		else
			assert_non_null(strstr(err.text, "\"signal\""));
	}
	assert_int_equal(found, 8);
}

struct bad_order {
	int (*parse)(const uint8_t *body, size_t n, struct exec_order *out, enum api_error *e,
	    struct err *err);
	const char *json;
	const char *says;
};

static int parse_text(
    const uint8_t *text, size_t n, struct exec_order *out, enum api_error *e, struct err *err)
{
	(void)e;
	return exec_order_parse(text, n, out, err);
}

static const struct bad_order bad_orders[] = {
    {exec_signal_parse, "{}", "\"signal\""},
    {exec_signal_parse, "{\"signal\":\"TERM\"}", "\"signal\" must be an integer"},
    {exec_signal_parse, "{\"signal\":15,\"sig\":15}", "\"sig\" is not known"},
    {exec_signal_parse, "[15]", "not a JSON object"},
    {exec_resize_parse, "{}", "\"cols\""},
    {exec_resize_parse, "{\"cols\":80}", "\"rows\""},
    {exec_resize_parse, "{\"cols\":0,\"rows\":1}", "\"cols\""},
    {exec_resize_parse, "{\"cols\":80,\"rows\":70000}", "\"rows\""},
    {exec_resize_parse, "{\"cols\":80,\"rows\":24,\"x\":1}", "\"x\" is not known"},
    {parse_text, "", "\"type\""},
    {parse_text, "nonsense", "line 1"},
    {parse_text, "{\"type\":\"kill\"}", "\"type\""},
    {parse_text, "{\"type\":7}", "\"type\" must be a string"},
    {parse_text, "{\"type\":\"signal\"}", "\"sig\""},
    {parse_text, "{\"type\":\"signal\",\"sig\":9}", "\"sig\": 9"},
    {parse_text, "{\"type\":\"resize\",\"cols\":80}", "\"rows\""},
    {parse_text, "{\"type\":\"signal\",\"sig\":2,\"later\":{}}", "\"later\" is not known"},
};

static void test_bad_orders(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(bad_orders) / sizeof(bad_orders[0]); i++) {
		const struct bad_order *b = &bad_orders[i];
		enum api_error e = API_OK;
		struct exec_order o;
		struct err err = {0};

		assert_int_equal(
		    b->parse((const uint8_t *)b->json, strlen(b->json), &o, &e, &err), -EINVAL);
		if (!strstr(err.text, b->says))
			fail_msg("%s: %s", b->json, err.text);
	}
}

static void take_text(const char *json, struct exec_order *o)
{
	struct err err = {0};

	if (exec_order_parse((const uint8_t *)json, strlen(json), o, &err) < 0)
		fail_msg("%s: %s", json, err.text);
}

static void test_orders(void **state)
{
	struct exec_order o;
	enum api_error e;
	struct err err;

	(void)state;
	take_text("{\"type\":\"resize\",\"cols\":120,\"rows\":40}", &o);
	assert_int_equal(o.type, EXEC_ORDER_RESIZE);
	assert_int_equal(o.cols, 120);
	assert_int_equal(o.rows, 40);
	take_text("{\"type\":\"signal\",\"sig\":2}", &o);
	assert_int_equal(o.type, EXEC_ORDER_SIGNAL);
	assert_int_equal(o.signal, SIGINT);
	take_text("{\"type\":\"stdin_eof\"}", &o);
	assert_int_equal(o.type, EXEC_ORDER_STDIN_EOF);
	assert_int_equal(
	    exec_resize_parse((const uint8_t *)"{\"cols\":1,\"rows\":65535}", 23, &o, &e, &err), 0);
	assert_int_equal(o.rows, 65535);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_least),
	    cmocka_unit_test(test_everything),
	    cmocka_unit_test(test_label),
	    cmocka_unit_test(test_refused),
	    cmocka_unit_test(test_too_large),
	    cmocka_unit_test(test_signals),
	    cmocka_unit_test(test_bad_orders),
	    cmocka_unit_test(test_orders),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
