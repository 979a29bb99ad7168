/* run_request: the body of POST run. sbx-worker; a request that makes no sense is refused here. */
#include "worker/run_request.h"

#include <errno.h>
#include <string.h>

#include "lib/clock.h"
#include "wire/agent.h"
#include "wire/json.h"
#include "wire/limits.h"
#include "worker/command_request.h"
#include "worker/service.h"

struct fields {
	const char *command;
	json_t *argv;
	json_t *env;
	const char *cwd;
	const char *user;
	const char *stdin_text;
	const char *stdin_base64;
	double timeout;
	int64_t max_output;
	bool tty;
};

static int take_fields(
    json_t *json, const struct ctl_limits *limits, struct fields *f, struct err *err)
{
	const struct json_field table[] = {
	    {"command", JSON_FIELD_STRING, &f->command, 0, 0},
	    {"argv", JSON_FIELD_ARRAY, &f->argv, 0, 0},
	    {"env", JSON_FIELD_OBJECT, &f->env, 0, 0},
	    {"cwd", JSON_FIELD_STRING, &f->cwd, 0, 0},
	    {"user", JSON_FIELD_STRING, &f->user, 0, 0},
	    {"stdin", JSON_FIELD_STRING, &f->stdin_text, 0, 0},
	    {"stdin_base64", JSON_FIELD_STRING, &f->stdin_base64, 0, 0},
	    {"timeout_seconds", JSON_FIELD_NUMBER, &f->timeout, 0.001, LIMIT_COMMAND_SECONDS},
	    {"max_output_bytes", JSON_FIELD_INT, &f->max_output, 0, limits->run_output_bytes},
	    {"tty", JSON_FIELD_BOOL, &f->tty, 0, 0},
	};

	return json_take(json, table, sizeof(table) / sizeof(table[0]), err);
}

static int check_argv(json_t *argv, struct err *err)
{
	if (command_check_strings("argv", argv, err) < 0)
		return -EINVAL;
	if (!json_array_size(argv) || !*json_string_value(json_array_get(argv, 0)))
		return err_set(err, EINVAL, "\"argv\" must begin with a program");
	return 0;
}

static int check_fields(const struct fields *f, enum api_error *e, struct err *err)
{
	if (!f->command == !f->argv)
		return err_set(err, EINVAL, "exactly one of \"command\" and \"argv\" is needed");
	if (f->command && !*f->command)
		return err_set(err, EINVAL, "\"command\" is empty");
	if (f->stdin_text && f->stdin_base64)
		return err_set(
		    err, EINVAL, "only one of \"stdin\" and \"stdin_base64\" may be given");
	if (command_check_cwd("cwd", f->cwd, e, err) < 0 ||
	    (f->argv && check_argv(f->argv, err) < 0))
		return -EINVAL;
	return f->env ? command_check_env(f->env, err) : 0;
}

static int take_stdin(struct run_request *r, const struct fields *f, struct err *err)
{
	r->has_stdin = f->stdin_text || f->stdin_base64;
	if (f->stdin_text) {
		r->stdin_data = (const uint8_t *)f->stdin_text;
		r->stdin_len = strlen(f->stdin_text);
	} else if (f->stdin_base64) {
		r->stdin_bytes =
		    base64_decode(f->stdin_base64, strlen(f->stdin_base64), &r->stdin_len);
		if (!r->stdin_bytes)
			return err_set(err, errno, "\"stdin_base64\" is not base64");
		r->stdin_data = r->stdin_bytes;
	}
	return 0;
}

static int64_t default_output(const struct ctl_limits *limits)
{
	return limits->run_output_bytes < RUN_OUTPUT_DEFAULT ? limits->run_output_bytes
							     : RUN_OUTPUT_DEFAULT;
}

int run_request_parse(const uint8_t *body, size_t n, const struct service *s,
    struct run_request *out, enum api_error *e, struct err *err)
{
	struct fields f = {.max_output = default_output(s->limits)};
	struct command_fields command;
	int rc;

	*out = (struct run_request){.json = NULL};
	buf_init(&out->exec, AGENT_REQUEST_MAX);
	*e = API_MALFORMED;
	if (json_check_depth(body, n, s->limits->json_depth, err) < 0)
		return -EINVAL;
	out->json = json_parse_object(body, n, err);
	if (!out->json)
		return -EINVAL;
	*e = API_INVALID_ARGUMENT;
	if (take_fields(out->json, s->limits, &f, err) < 0 || check_fields(&f, e, err) < 0 ||
	    take_stdin(out, &f, err) < 0)
		return -EINVAL;
	out->timeout_ns = clock_seconds_to_ns(f.timeout);
	out->max_output = (size_t)f.max_output;
	command = (struct command_fields){
	    .first = f.command,
	    .rest = f.argv,
	    .env = f.env,
	    .cwd = f.cwd,
	    .user = f.user,
	    .flags = (f.tty ? AGENT_EXEC_TTY : 0) | (f.command ? AGENT_EXEC_SHELL : 0) |
		     (out->has_stdin ? 0 : AGENT_EXEC_NO_STDIN),
	    .cols = COMMAND_COLS,
	    .rows = COMMAND_ROWS,
	};
	rc = command_build(&out->exec, &command, s, e, err);
	if (rc < 0)
		return rc;
	if (!f.stdin_text) {
		json_decref(out->json);
		out->json = NULL;
	}
	return 0;
}

void run_request_sent(struct run_request *r, bool stdin_done)
{
	buf_free(&r->exec);
	if (!stdin_done)
		return;
	json_decref(r->json);
	r->json = NULL;
	free(r->stdin_bytes);
	r->stdin_bytes = NULL;
	r->stdin_data = NULL;
	r->stdin_len = 0;
}

void run_request_free(struct run_request *r)
{
	run_request_sent(r, true);
}
