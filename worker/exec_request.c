/*
 * exec_request: what clients ask of executions. sbx-worker; a request that makes no sense is
 * refused here.
 */
#include "worker/exec_request.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "lib/clock.h"
#include "wire/agent.h"
#include "wire/json.h"
#include "wire/limits.h"
#include "worker/command_request.h"

#define EXEC_SIDE_MAX 65535 /* columns, rows */

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* KILL is DELETE's; STOP and CONT would stop what nobody sees stopped. */
static const int signals[] = {
    SIGHUP, SIGINT, SIGQUIT, SIGABRT, SIGUSR1, SIGUSR2, SIGTERM, SIGWINCH};

struct fields {
	const char *command;
	json_t *args;
	json_t *env;
	const char *working_dir;
	const char *user;
	double timeout;
	bool tty;
	bool has_stdin;
	int64_t cols;
	int64_t rows;
};

static json_t *parse_body(const uint8_t *body, size_t n, enum api_error *e, struct err *err)
{
	json_t *json = json_parse_object(body, n, err);

	*e = json ? API_INVALID_ARGUMENT : API_MALFORMED;
	return json;
}

static int take_fields(json_t *json, struct fields *f, struct err *err)
{
	const struct json_field table[] = {
	    {"command", JSON_FIELD_STRING, &f->command, 0, 0},
	    {"args", JSON_FIELD_ARRAY, &f->args, 0, 0},
	    {"env", JSON_FIELD_OBJECT, &f->env, 0, 0},
	    {"working_dir", JSON_FIELD_STRING, &f->working_dir, 0, 0},
	    {"user", JSON_FIELD_STRING, &f->user, 0, 0},
	    {"timeout_seconds", JSON_FIELD_NUMBER, &f->timeout, 0, LIMIT_COMMAND_SECONDS},
	    {"tty", JSON_FIELD_BOOL, &f->tty, 0, 0},
	    {"stdin", JSON_FIELD_BOOL, &f->has_stdin, 0, 0},
	    {"cols", JSON_FIELD_INT, &f->cols, 1, EXEC_SIDE_MAX},
	    {"rows", JSON_FIELD_INT, &f->rows, 1, EXEC_SIDE_MAX},
	};

	return json_take(json, table, COUNT(table), err);
}

static int check_fields(const struct fields *f, enum api_error *e, struct err *err)
{
	if (!f->command || !*f->command)
		return err_set(err, EINVAL, "\"command\" must be a program");
	if (f->tty && !f->has_stdin)
		return err_set(err, EINVAL, "\"stdin\": a terminal has one");
	if (command_check_cwd("working_dir", f->working_dir, e, err) < 0 ||
	    command_check_strings("args", f->args, err) < 0)
		return -EINVAL;
	return f->env ? command_check_env(f->env, err) : 0;
}

/* What is shown of the command line: whole characters, as many as fit. */
static void put_label(char out[EXEC_COMMAND_LEN], const struct fields *f)
{
	size_t len = 0;
	json_t *value;
	size_t i;

	for (const char *s = f->command; *s && len < EXEC_COMMAND_LEN - 1; s++)
		out[len++] = *s;
	json_array_foreach(f->args, i, value)
	{
		const char *s = json_string_value(value);

		if (len < EXEC_COMMAND_LEN - 1)
			out[len++] = ' ';
		for (; *s && len < EXEC_COMMAND_LEN - 1; s++)
			out[len++] = *s;
	}
	out[utf8_valid_prefix((const uint8_t *)out, len, NULL)] = '\0';
}

static int build(struct exec_request *out, const struct fields *f, const struct service *s,
    enum api_error *e, struct err *err)
{
	const struct command_fields command = {
	    .first = f->command,
	    .rest = f->args,
	    .env = f->env,
	    .cwd = f->working_dir,
	    .user = f->user,
	    .flags = AGENT_EXEC_NARROW | (f->tty ? AGENT_EXEC_TTY : 0) |
		     (f->has_stdin ? 0 : AGENT_EXEC_NO_STDIN),
	    .cols = (uint16_t)f->cols,
	    .rows = (uint16_t)f->rows,
	};

	out->timeout_ns = clock_seconds_to_ns(f->timeout);
	out->tty = f->tty;
	out->has_stdin = f->has_stdin;
	put_label(out->command, f);
	return command_build(&out->exec, &command, s, e, err);
}

int exec_request_parse(const uint8_t *body, size_t n, const struct service *s,
    struct exec_request *out, enum api_error *e, struct err *err)
{
	struct fields f = {.has_stdin = true, .cols = COMMAND_COLS, .rows = COMMAND_ROWS};
	json_t *json = parse_body(body, n, e, err);
	int rc = -EINVAL;

	*out = (struct exec_request){.timeout_ns = 0};
	buf_init(&out->exec, AGENT_REQUEST_MAX);
	if (!json)
		return -EINVAL;
	if (take_fields(json, &f, err) == 0 && check_fields(&f, e, err) == 0)
		rc = build(out, &f, s, e, err);
	json_decref(json);
	return rc;
}

void exec_request_free(struct exec_request *r)
{
	buf_free(&r->exec);
}

static int set_signal(struct exec_order *out, const char *name, int64_t number, struct err *err)
{
	for (size_t i = 0; i < COUNT(signals); i++) {
		if (signals[i] != number)
			continue;
		*out = (struct exec_order){.type = EXEC_ORDER_SIGNAL, .signal = signals[i]};
		return 0;
	}
	return err_set(err, EINVAL,
	    "\"%s\": %lld is not allowed; 1 HUP, 2 INT, 3 QUIT, 6 ABRT, 10 USR1, 12 USR2, 15 TERM "
	    "and 28 WINCH are, and DELETE of the execution kills",
	    name, (long long)number);
}

static int set_size(struct exec_order *out, int64_t cols, int64_t rows, struct err *err)
{
	if (cols == 0 || rows == 0)
		return err_set(err, EINVAL, "\"%s\" is missing", cols == 0 ? "cols" : "rows");
	*out = (struct exec_order){
	    .type = EXEC_ORDER_RESIZE, .cols = (uint16_t)cols, .rows = (uint16_t)rows};
	return 0;
}

int exec_signal_parse(
    const uint8_t *body, size_t n, struct exec_order *out, enum api_error *e, struct err *err)
{
	int64_t number = 0;
	const struct json_field table[] = {{"signal", JSON_FIELD_INT, &number, 0, 0}};
	json_t *json = parse_body(body, n, e, err);
	int rc;

	if (!json)
		return -EINVAL;
	rc = json_take(json, table, COUNT(table), err);
	json_decref(json);
	return rc < 0 ? rc : set_signal(out, "signal", number, err);
}

int exec_resize_parse(
    const uint8_t *body, size_t n, struct exec_order *out, enum api_error *e, struct err *err)
{
	int64_t cols = 0;
	int64_t rows = 0;
	const struct json_field table[] = {
	    {"cols", JSON_FIELD_INT, &cols, 1, EXEC_SIDE_MAX},
	    {"rows", JSON_FIELD_INT, &rows, 1, EXEC_SIDE_MAX},
	};
	json_t *json = parse_body(body, n, e, err);
	int rc;

	if (!json)
		return -EINVAL;
	rc = json_take(json, table, COUNT(table), err);
	json_decref(json);
	return rc < 0 ? rc : set_size(out, cols, rows, err);
}

int exec_order_parse(const uint8_t *text, size_t n, struct exec_order *out, struct err *err)
{
	const char *type = NULL;
	int64_t number = 0;
	int64_t cols = 0;
	int64_t rows = 0;
	const struct json_field table[] = {
	    {"type", JSON_FIELD_STRING, &type, 0, 0},
	    {"sig", JSON_FIELD_INT, &number, 0, 0},
	    {"cols", JSON_FIELD_INT, &cols, 1, EXEC_SIDE_MAX},
	    {"rows", JSON_FIELD_INT, &rows, 1, EXEC_SIDE_MAX},
	};
	json_t *json = json_parse_object(text, n, err);
	int rc;

	if (!json)
		return -EINVAL;
	rc = json_take(json, table, COUNT(table), err);
	if (rc < 0)
		; /* *err says it */
	else if (type && !strcmp(type, "resize"))
		rc = set_size(out, cols, rows, err);
	else if (type && !strcmp(type, "signal"))
		rc = set_signal(out, "sig", number, err);
	else if (type && !strcmp(type, "stdin_eof"))
		*out = (struct exec_order){.type = EXEC_ORDER_STDIN_EOF};
	else
		rc = err_set(
		    err, EINVAL, "\"type\" must be \"resize\", \"signal\" or \"stdin_eof\"");
	json_decref(json);
	return rc;
}
