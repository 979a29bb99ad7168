/* Calls of sbx-mcp's tools against a service that answers what is written down here. */
#include "tests/unit/tools/fake_service.h"

#include <errno.h>

#include "lib/clock.h"
#include "tools/mcp_call.h"
#include "tools/mcp_tools.h"

#define BOX "{\"box_id\":\"b1\",\"lease_id\":\"l\",\"source\":\"cold\"}"
#define BOX2 "{\"box_id\":\"b2\",\"lease_id\":\"l\",\"source\":\"cold\"}"
#define BOX_OF(generation, source)                                                                 \
	"{\"box_id\":\"b1\",\"lease_id\":\"l\",\"generation\":" generation ",\"source\":\"" source \
	"\"}"
#define INITIALIZE                                                                                 \
	"{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{\"protocolVersion\":" \
	"\"2025-11-25\",\"capabilities\":{}}}"
#define CALL(id, tool, args)              \
	"{\"jsonrpc\":\"2.0\",\"id\":" id \
	",\"method\":\"tools/call\",\"params\":{\"name\":\"" tool "\",\"arguments\":{" args "}}}"
#define CHUNKED "HTTP/1.1 200 OK\r\nContent-Type: x\r\nTransfer-Encoding: chunked\r\n\r\n"
#define LOST(m) "{\"error\":{\"message\":\"" m "\",\"reason\":\"not_found\"}}"

struct world {
	struct fake f;
	struct loop *l;
	struct mcp_options o;
	struct mcp *m;
};

static void open_world(struct world *w, const struct fake_answer answers[FAKE_ANSWERS])
{
	struct err err;

	fake_start(&w->f, answers);
	w->l = loop_create();
	w->o = (struct mcp_options){.where.socket = w->f.socket,
	    .user = "u",
	    .thread = "t",
	    .wait_s = 10,
	    .answer_s = 20,
	    .command_s = 5,
	    .output_bytes = 1000};
	w->m = mcp_create(&w->o, w->l, &err);
	assert_non_null(w->m);
	mcp_take_line(w->m, (const uint8_t *)INITIALIZE, strlen(INITIALIZE));
	assert_true(w->m->out.len > 0);
	buf_clear(&w->m->out);
}

static void close_world(struct world *w)
{
	mcp_free(w->m);
	loop_destroy(w->l);
	fake_stop(&w->f);
}

static void say(struct world *w, const char *line)
{
	mcp_take_line(w->m, (const uint8_t *)line, strlen(line));
}

/* What was said, when no call is under way any more; the caller's to free(). */
static char *hear(struct world *w)
{
	uint64_t end = clock_now_ns() + 30 * NS_PER_S;
	char *text;

	while (w->m->calls) {
		assert_true(clock_now_ns() < end);
		assert_int_equal(loop_step(w->l, NS_PER_S), 0);
	}
	text = strndup((const char *)buf_head(&w->m->out), w->m->out.len);
	buf_clear(&w->m->out);
	return text;
}

static void expect(struct world *w, const char *part)
{
	char *text = hear(w);

	if (!strstr(text, part))
		fail_msg("not in %s: %s", text, part);
	free(text);
}

static void test_a_call(void **state)
{
	static const struct fake_answer answers[FAKE_ANSWERS] = {
	    {.json = BOX},
	    {.bytes = CHUNKED "8\r\none\ntwo\n\r\n0\r\n\r\n"},
	};
	struct world w;

	(void)state;
	open_world(&w, answers);
	say(&w, CALL("\"x\"", "read_file", "\"path\":\"a b\""));
	expect(&w,
	    "{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"result\":{\"content\":[{\"type\":\"text\","
	    "\"text\":"
	    "\"one\\ntwo\\n\"}],\"structuredContent\":{\"path\":\"/mnt/user-data/workspace/a b\"");
	assert_non_null(strstr(w.f.log->asked,
	    "{\"user_id\":\"u\",\"thread_id\":\"t\",\"release_on_disconnect\":true,"
	    "\"wait_seconds\":10.000}"));
	assert_non_null(strstr(w.f.log->asked,
	    "GET /v1/boxes/b1/fs/read?path=/mnt/user-data/workspace/a%20b&start_line=1 HTTP/1.1"));
	close_world(&w);
}

static void test_the_trace_goes_on(void **state)
{
	static const struct fake_answer answers[FAKE_ANSWERS] = {{.json = BOX},
	    {.json = "{\"matches\":[],\"truncated\":false}"},
	    {.json = "{\"matches\":[],\"truncated\":false}"}};
	static const char sound[] = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
	static const char *const given[] = {
	    "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0\\n", sound};
	char line[512];
	struct world w;

	(void)state;
	open_world(&w, answers);
	for (int i = 0; i < 2; i++) {
		assert_null(strstr(w.f.log->asked, "traceparent"));
		snprintf(line, sizeof(line),
		    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/"
		    "call\",\"params\":{\"name\":\"glob\","
		    "\"arguments\":{\"pattern\":\"*\"},\"_meta\":{\"traceparent\":\"%s\"}}}",
		    given[i]);
		say(&w, line);
		expect(&w, "(nothing)");
	}
	assert_non_null(strstr(w.f.log->asked, sound));
	close_world(&w);
}

static void test_a_box_that_is_gone(void **state)
{
	static const struct fake_answer answers[FAKE_ANSWERS] = {
	    {.json = BOX},
	    {.json = LOST("box not found: b1"), .status = "404 Not Found"},
	    {.json = BOX2},
	    {.json = "{\"matches\":[\"f\"],\"truncated\":false}"},
	    {.json = LOST("no such file"), .status = "404 Not Found"},
	    {.json = "{\"error\":{\"message\":\"it died\",\"reason\":\"box_died\"}}",
		.status = "410 Gone"},
	    {.json = BOX},
	    {.json = LOST("box not found: b1"), .status = "404 Not Found"},
	};
	struct world w;

	(void)state;
	open_world(&w, answers);
	say(&w, CALL("1", "glob", "\"pattern\":\"*\""));
	expect(&w, "the sandbox was lost and this is a new one"); /* begun anew, once */
	assert_int_equal(w.f.log->requests, 4);
	say(&w, CALL("2", "glob", "\"pattern\":\"*\""));
	expect(&w, "\"glob: no such file (not_found)\"}],\"isError\":true");
	assert_int_equal(w.m->box.state, MCP_BOX_HELD);
	say(&w, CALL("3", "glob", "\"pattern\":\"*\""));
	expect(&w, "glob: it died (box_died)"); /* it may have begun: not again */
	assert_int_equal(w.f.log->requests, 6);
	assert_int_equal(w.m->box.state, MCP_BOX_NONE);
	close_world(&w);
}

static void test_an_edit_is_not_begun_anew_in_the_middle(void **state)
{
	static const struct fake_answer answers[FAKE_ANSWERS] = {
	    {.json = BOX},
	    {.bytes = CHUNKED "3\r\nold\r\n0\r\n\r\n"},
	    {.json = LOST("box not found: b1"), .status = "404 Not Found"},
	};
	struct world w;

	(void)state;
	open_world(&w, answers);
	say(&w, CALL("1", "edit_file", "\"path\":\"f\",\"old_text\":\"old\",\"new_text\":\"new\""));
	expect(&w, "edit_file: box not found: b1 (not_found)");
	assert_int_equal(w.f.log->requests, 3);
	assert_non_null(strstr(
	    w.f.log->asked, "PUT /v1/boxes/b1/fs/write?path=/mnt/user-data/workspace/f HTTP"));
	close_world(&w);
}

static void test_a_box_that_another_one_has_followed(void **state)
{
	static const struct fake_answer answers[FAKE_ANSWERS] = {
	    {.json = BOX_OF("7", "cold")},
	    {.json = "{\"error\":{\"message\":\"another\",\"reason\":\"stale_generation\"}}",
		.status = "410 Gone",
		.hang_up = true},
	    {.json = BOX_OF("8", "active")},
	    {.json = "{\"matches\":[\"f\"],\"truncated\":false}"},
	};
	struct world w;

	(void)state;
	open_world(&w, answers);
	say(&w, CALL("1", "glob", "\"pattern\":\"*\""));
	expect(&w, "the sandbox was lost and this is a new one"); /* though others had it first */
	assert_int_equal(w.f.log->requests, 4);
	assert_non_null(strstr(w.f.log->asked, "X-Box-Generation: 7\r\n"));
	assert_non_null(strstr(w.f.log->asked, "X-Box-Generation: 8\r\n"));
	close_world(&w);
}

static void test_an_edit_does_not_go_on_in_another_box(void **state)
{
	static const struct fake_answer answers[FAKE_ANSWERS] = {
	    {.json = BOX_OF("7", "cold")},
	    {.bytes = CHUNKED "3\r\nold\r\n0\r\n\r\n"},
	};
	struct world w;

	(void)state;
	for (int dropped = 0; dropped < 2; dropped++) {
		open_world(&w, answers);
		say(&w, CALL("1", "edit_file",
			    "\"path\":\"f\",\"old_text\":\"old\",\"new_text\":\"new\""));
		while (w.m->box.state != MCP_BOX_HELD)
			assert_int_equal(loop_step(w.l, NS_PER_S), 0);
		if (dropped) /* before the file was read */
			mcp_box_drop(w.m);
		else
			w.m->box.generation++;
		expect(&w, "edit_file: the sandbox was lost in the middle of it");
		assert_int_equal(w.f.log->requests, 2);
		close_world(&w);
	}
}

static void test_answers_that_make_no_sense(void **state)
{
	static const struct {
		const char *acquired;
		const char *found;
		const char *said;
	} cases[] = {
	    {"[]", NULL, "glob: no sandbox: "},
	    {"{\"box_id\":5}", NULL, "glob: no sandbox: the answer of the service names no box"},
	    {BOX, "", "glob: "},
	    {BOX, "[]", "glob: "},
	    {BOX, "{\"matches\":5}", "glob: "},
	    {BOX, "{\"matches\":[5]}", "glob: "},
	    {BOX, "{\"matches\":[", "glob: "},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct fake_answer answers[FAKE_ANSWERS] = {
		    {.json = cases[i].acquired}, {.json = cases[i].found}};
		struct world w;

		open_world(&w, answers);
		say(&w, CALL("1", "glob", "\"pattern\":\"*\""));
		expect(&w, cases[i].said);
		close_world(&w);
	}
}

static void test_output_of_a_command(void **state)
{
	static const struct {
		const char *lines;
		const char *said;
	} cases[] = {
	    {"{\"exit_code\":0,\"signal\":null,\"timed_out\":false}\n",
		"\"text\":\"(no output)\"}],"},
	    {"{\"stream\":\"stdout\",\"data\":\"/"
	     "w==\",\"encoding\":\"base64\"}\n{\"exit_code\":1}\n",
		"\"text\":\"\xef\xbf\xbd\"},{\"type\":\"text\",\"text\":\"[exit code 1]\"}],"},
	    {"{\"error\":{\"message\":\"m\",\"reason\":\"box_died\"}}\n",
		"run_command: m (box_died)"},
	    {"nonsense\n", "run_command: a line that is no JSON object"},
	    {"{\"stream\":\"stdout\",\"data\":\"x\"}\n",
		"run_command: the answer ended before the command did"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct fake_answer answers[FAKE_ANSWERS] = {
		    {.json = BOX}, {.json = cases[i].lines}};
		struct world w;

		open_world(&w, answers);
		say(&w, CALL("1", "run_command", "\"command\":\"x\""));
		expect(&w, cases[i].said);
		close_world(&w);
	}
}

static void test_schemas_are_json(void **state)
{
	struct json_out j;
	struct buf b;
	json_t *o;

	(void)state;
	buf_init(&b, 1U << 20);
	json_out_init(&j, &b);
	json_object_begin(&j, NULL);
	mcp_tools_put(&j, true);
	json_object_end(&j);
	assert_int_equal(json_out_error(&j), 0);
	o = json_parse_object(buf_head(&b), b.len, NULL);
	assert_int_equal(json_array_size(json_object_get(o, "tools")), 9);
	json_decref(o);
	buf_free(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_a_call),
	    cmocka_unit_test(test_the_trace_goes_on),
	    cmocka_unit_test(test_a_box_that_is_gone),
	    cmocka_unit_test(test_an_edit_is_not_begun_anew_in_the_middle),
	    cmocka_unit_test(test_a_box_that_another_one_has_followed),
	    cmocka_unit_test(test_an_edit_does_not_go_on_in_another_box),
	    cmocka_unit_test(test_answers_that_make_no_sense),
	    cmocka_unit_test(test_output_of_a_command),
	    cmocka_unit_test(test_schemas_are_json),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
