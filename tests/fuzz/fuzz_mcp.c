/*
 * Fuzz target of the lines that sbx-mcp's client sends. Whatever they are, it goes on: each message
 * that it writes is one line of JSON of the protocol, an answer has the id of a request, and calls
 * that cannot have a box end with an error.
 *
 * Input: lines. There is no service.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/log.h"
#include "tools/mcp_call.h"
#include "tools/mcp_stdio.h"

#define REQUIRE(cond) ((cond) ? (void)0 : (fprintf(stderr, "not so: %s\n", #cond), abort()))
#define LINE_MAX_FUZZ 4096

static const struct mcp_options options = {
    .where.socket = "/nonexistent/sbxd.sock",
    .wait_s = 1,
    .answer_s = 1,
    .command_s = 1,
    .output_bytes = 1000,
};

static void check_error(const json_t *error)
{
	json_int_t code = json_integer_value(json_object_get(error, "code"));

	REQUIRE(json_is_string(json_object_get(error, "message")));
	REQUIRE(code == MCP_PARSE_ERROR || code == MCP_INVALID_REQUEST ||
		code == MCP_METHOD_NOT_FOUND || code == MCP_INVALID_PARAMS ||
		code == MCP_INTERNAL_ERROR || code == MCP_UNSUPPORTED_VERSION);
}

static void check_message(const uint8_t *line, size_t n)
{
	json_t *o =
	    json_loadb((const char *)line, n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
	const json_t *id = json_object_get(o, "id");
	const json_t *result = json_object_get(o, "result");
	const json_t *error = json_object_get(o, "error");
	const json_t *method = json_object_get(o, "method");

	REQUIRE(json_is_object(o));
	REQUIRE(strcmp(json_string_value(json_object_get(o, "jsonrpc")), "2.0") == 0);
	REQUIRE(!id || json_is_string(id) || json_is_integer(id));
	REQUIRE((result != NULL) + (error != NULL) + (method != NULL) == 1);
	REQUIRE(!result || (id && json_is_object(result)));
	if (error)
		check_error(error);
	json_decref(o);
}

static void check_out(struct mcp *m)
{
	const uint8_t *at = buf_head(&m->out);
	size_t left = m->out.len;

	while (left > 0) {
		const uint8_t *end = memchr(at, '\n', left);

		REQUIRE(end != NULL);
		check_message(at, (size_t)(end - at));
		left -= (size_t)(end - at) + 1;
		at = end + 1;
	}
	buf_clear(&m->out);
}

/* Only what waits for the client's roots, or listens, is still there. */
static void check_calls(const struct mcp *m)
{
	size_t n = 0;

	for (const struct mcp_call *call = m->calls; call; call = call->next, n++)
		REQUIRE(call->stage == MCP_CALL_OPEN || m->scope.asked);
	REQUIRE(n == m->call_count && n <= MCP_CALLS_MAX);
	REQUIRE(m->box.state == MCP_BOX_NONE && !m->broken);
}

static void take(struct mcp *m, struct mcp_lines *l)
{
	const uint8_t *line = NULL;
	size_t n = 0;
	int rc;

	while ((rc = mcp_lines_next(l, &line, &n)) != 0) {
		if (rc < 0)
			mcp_refuse_line(m, LINE_MAX_FUZZ);
		else
			mcp_take_line(m, line, n);
		check_out(m);
		check_calls(m);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct loop *l = loop_create();
	struct mcp_lines lines;
	struct err err;
	struct mcp *m = l ? mcp_create(&options, l, &err) : NULL;

	REQUIRE(m != NULL);
	log_init("fuzz_mcp", LOG_TEXT, LOG_ERROR);
	mcp_lines_init(&lines, LINE_MAX_FUZZ);
	while (n > 0) {
		size_t part = n < buf_room(&lines.b) ? n : buf_room(&lines.b);

		REQUIRE(part > 0 && buf_append(&lines.b, data, part) == 0);
		data += part;
		n -= part;
		take(m, &lines);
	}
	mcp_lines_free(&lines);
	mcp_free(m);
	loop_destroy(l);
	return 0;
}
