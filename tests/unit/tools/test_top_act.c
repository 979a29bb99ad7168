/* Tests of tools/top_act.c: what the service is asked, and what is made of its answers. */
#include "tests/unit/tools/fake_service.h"

#include <errno.h>
#include <poll.h>

#include "lib/fd.h"
#include "tools/top_act.h"

#define POOL "{\"supervisor\":{\"pid\":4711,\"generation\":1}}"

static struct top_order order_for(const struct fake *f, enum top_act_kind kind)
{
	struct top_order o = {
	    .kind = kind, .uid = (uint32_t)geteuid(), .supervisor = 4711, .socket = f->socket};

	(void)strcpy(o.token, "0123456789abcdef");
	return o;
}

static void test_release(void **state)
{
	static const struct fake_answer answers[FAKE_ANSWERS] = {
	    {.json = POOL}, {.json = "{\"status\":\"warm\"}"}};
	struct fake f;
	struct top_order o;
	char text[200] = "";
	struct err err;

	(void)state;
	fake_start(&f, answers);
	o = order_for(&f, ACT_RELEASE);
	assert_int_equal(top_act_perform(&o, text, sizeof(text), &err), 0);
	assert_string_equal(text, "0123456789abcdef released: warm");
	assert_non_null(strstr(f.log->asked, "GET /v1/pool"));
	assert_non_null(strstr(f.log->asked, "POST /v1/boxes/0123456789abcdef/release "));
	fake_stop(&f);
}

static void test_kill_of_another_uids_box(void **state)
{
	static const struct fake_answer answers[FAKE_ANSWERS] = {
	    {.json = POOL}, {.json = "", .status = "204 No Content"}};
	struct fake f;
	struct top_order o;
	char text[200] = "";
	struct err err;

	(void)state;
	fake_start(&f, answers);
	o = order_for(&f, ACT_KILL);
	o.uid = (uint32_t)geteuid() + 7;
	assert_int_equal(top_act_perform(&o, text, sizeof(text), &err), 0);
	assert_string_equal(text, "0123456789abcdef killed");
	{
		char line[100];

		(void)snprintf(line, sizeof(line),
		    "DELETE /v1/boxes/%u%%3A0123456789abcdef?force=true ",
		    (unsigned int)geteuid() + 7);
		assert_non_null(strstr(f.log->asked, line));
	}
	fake_stop(&f);
}

/* The box of that name of another sbxd is another box: it is not even asked about. */
static void test_the_socket_of_another_sbxd(void **state)
{
	static const struct fake_answer answers[FAKE_ANSWERS] = {{.json = POOL}, {.json = "{}"}};
	struct fake f;
	struct top_order o;
	char text[200] = "";
	struct err err = {0};

	(void)state;
	fake_start(&f, answers);
	o = order_for(&f, ACT_KILL);
	o.supervisor = 4712;
	assert_int_equal(top_act_perform(&o, text, sizeof(text), &err), -EXDEV);
	assert_non_null(strstr(err.text, "4711"));
	assert_int_equal(f.log->requests, 1);
	assert_null(strstr(f.log->asked, "DELETE"));
	fake_stop(&f);
}

static void test_refusals(void **state)
{
	static const struct fake_answer answers[FAKE_ANSWERS] = {{.json = POOL},
	    {.json = "{\"error\":{\"message\":\"box not found: x\",\"reason\":\"not_found\"}}",
		.status = "404 Not Found"},
	    {.json = POOL}, {.json = "no JSON", .status = "500 Oh"}, {.json = "[1]"}};
	struct fake f;
	struct top_order o;
	char text[200] = "";
	struct err err = {0};

	(void)state;
	fake_start(&f, answers);
	o = order_for(&f, ACT_RELEASE);
	assert_int_equal(top_act_perform(&o, text, sizeof(text), &err), -EIO);
	assert_string_equal(err.text, "box not found: x");
	assert_int_equal(top_act_perform(&o, text, sizeof(text), &err), -EIO);
	assert_string_equal(err.text, "the service answered 500");
	assert_int_equal(top_act_perform(&o, text, sizeof(text), &err), -EXDEV);
	fake_stop(&f);
	assert_true(top_act_perform(&o, text, sizeof(text), &err) < 0); /* nobody listens */
	assert_string_equal(text, "");
}

/* ---- in a child ---- */

static bool await_end(struct top_act *a, char *text, size_t size)
{
	struct pollfd p = {.fd = a->fd, .events = POLLIN};

	assert_int_equal(poll(&p, 1, 60000), 1);
	return top_act_end(a, text, size);
}

static void test_in_the_background(void **state)
{
	static const struct fake_answer answers[FAKE_ANSWERS] = {{.json = POOL},
	    {.json = "{\"status\":\"warm\"}"}, {.json = POOL},
	    {.json = "{\"error\":{\"message\":\"no\"}}", .status = "409 Conflict"}};
	struct top_act a = {.fd = -1};
	int fds = fd_count_open();
	struct fake f;
	struct top_order o;
	char text[200];
	struct err err;

	(void)state;
	fake_start(&f, answers);
	o = order_for(&f, ACT_RELEASE);
	assert_int_equal(top_act_begin(&a, &o, &err), 0);
	assert_int_equal(top_act_begin(&a, &o, &err), -EBUSY);
	assert_non_null(strstr(err.text, "under way"));
	assert_true(await_end(&a, text, sizeof(text)));
	assert_string_equal(text, "0123456789abcdef released: warm");
	assert_int_equal(a.fd, -1);
	assert_int_equal(top_act_begin(&a, &o, &err), 0);
	assert_false(await_end(&a, text, sizeof(text)));
	assert_string_equal(text, "release of 0123456789abcdef: no");
	fake_stop(&f);
	assert_int_equal(fd_count_open(), fds);
}

/* A service that hangs: the screen does not wait for it, and leaves no process. */
static void test_a_service_that_hangs(void **state)
{
	static const struct fake_answer answers[FAKE_ANSWERS] = {{.hang = true}};
	struct top_act a = {.fd = -1};
	struct fake f;
	struct top_order o;
	struct err err;
	pid_t pid;

	(void)state;
	fake_start(&f, answers);
	o = order_for(&f, ACT_KILL);
	assert_int_equal(top_act_begin(&a, &o, &err), 0);
	pid = a.pid;
	top_act_abandon(&a);
	assert_int_equal(a.fd, -1);
	assert_int_equal(kill(pid, 0), -1);
	top_act_abandon(&a); /* harmless */
	fake_stop(&f);
}

static void test_a_child_that_is_killed(void **state)
{
	static const struct fake_answer answers[FAKE_ANSWERS] = {{.hang = true}};
	struct top_act a = {.fd = -1};
	struct fake f;
	struct top_order o;
	char text[200];
	struct err err;

	(void)state;
	fake_start(&f, answers);
	o = order_for(&f, ACT_KILL);
	assert_int_equal(top_act_begin(&a, &o, &err), 0);
	assert_int_equal(kill(a.pid, SIGKILL), 0);
	assert_false(await_end(&a, text, sizeof(text)));
	assert_non_null(strstr(text, "nobody knows"));
	o.token[0] = '\0';
	assert_int_equal(top_act_begin(&a, &o, &err), -EINVAL);
	fake_stop(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_release),
	    cmocka_unit_test(test_kill_of_another_uids_box),
	    cmocka_unit_test(test_the_socket_of_another_sbxd),
	    cmocka_unit_test(test_refusals),
	    cmocka_unit_test(test_in_the_background),
	    cmocka_unit_test(test_a_service_that_hangs),
	    cmocka_unit_test(test_a_child_that_is_killed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
