/* run_request: the body of POST run. sbx-worker; a request that makes no sense is refused here. */
#include "worker/run_request.h"

#include <errno.h>
#include <string.h>

#include "lib/clock.h"
#include "wire/agent.h"
#include "wire/json.h"
#include "worker/service.h"

#define RUN_TIMEOUT_MAX 1e9 /* seconds */
#define RUN_COLS 80
#define RUN_ROWS 24

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

static int take_fields(const json_t *json, struct fields *f, struct err *err)
{
	const struct json_field table[] = {
	    {"command", JSON_FIELD_STRING, &f->command, 0, 0},
	    {"argv", JSON_FIELD_ARRAY, &f->argv, 0, 0},
	    {"env", JSON_FIELD_OBJECT, &f->env, 0, 0},
	    {"cwd", JSON_FIELD_STRING, &f->cwd, 0, 0},
	    {"user", JSON_FIELD_STRING, &f->user, 0, 0},
	    {"stdin", JSON_FIELD_STRING, &f->stdin_text, 0, 0},
	    {"stdin_base64", JSON_FIELD_STRING, &f->stdin_base64, 0, 0},
	    {"timeout_seconds", JSON_FIELD_NUMBER, &f->timeout, 0.001, RUN_TIMEOUT_MAX},
	    {"max_output_bytes", JSON_FIELD_INT, &f->max_output, 0, RUN_OUTPUT_MAX},
	    {"tty", JSON_FIELD_BOOL, &f->tty, 0, 0},
	};

	return json_take(json, table, sizeof(table) / sizeof(table[0]), err);
}

static bool env_name_is_good(const char *s)
{
	static const char first[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_";
	static const char rest[] =
	    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";

	return *s && strchr(first, *s) && s[strspn(s, rest)] == '\0';
}

static int check_env(json_t *env, struct err *err)
{
	const char *name;
	json_t *value;

	json_object_foreach(env, name, value)
	{
		if (!env_name_is_good(name))
			return err_set(err, EINVAL,
			    "\"env\": \"%s\" is no name for a variable ([A-Za-z_][A-Za-z0-9_]*)",
			    name);
		if (!json_is_string(value))
			return err_set(err, EINVAL, "\"env\": \"%s\" must be a string", name);
	}
	return 0;
}

static int check_argv(json_t *argv, struct err *err)
{
	json_t *value;
	size_t i;

	json_array_foreach(argv, i, value)
	{
		if (!json_is_string(value))
			return err_set(err, EINVAL, "\"argv\"[%zu] must be a string", i);
	}
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
	if (f->cwd && *f->cwd != '/') {
		*e = API_INVALID_PATH;
		return err_set(err, EINVAL, "\"cwd\" must be an absolute path");
	}
	if (f->argv && check_argv(f->argv, err) < 0)
		return -EINVAL;
	return f->env ? check_env(f->env, err) : 0;
}

/* A length-prefixed string of two parts. Errors stick in *rc. */
static void put_pair(struct buf *b, int *rc, const char *a, size_t a_len, const char *z)
{
	size_t z_len = strlen(z);
	uint32_t len = (uint32_t)(a_len + z_len);

	if (*rc == 0)
		*rc = buf_append(b, &len, sizeof(len));
	if (*rc == 0)
		*rc = buf_append(b, a, a_len);
	if (*rc == 0)
		*rc = buf_append(b, z, z_len);
}

static void put_string(struct buf *b, int *rc, const char *s)
{
	put_pair(b, rc, "", 0, s ? s : "");
}

/* The box's environment, then the request's, without what is overridden. Returns how many. */
static uint32_t put_env(struct buf *b, int *rc, const char *env, size_t env_len, json_t *own)
{
	bool lang = json_object_get(own, "LANG") != NULL;
	uint32_t count = 0;
	const char *name;
	json_t *value;

	for (const char *at = env; at < env + env_len; at += strlen(at) + 1) {
		size_t name_len = strcspn(at, "=");

		if (at[name_len] != '=' || json_object_getn(own, at, name_len))
			continue;
		lang |= name_len == 4 && !memcmp(at, "LANG", 4);
		put_string(b, rc, at);
		count++;
	}
	json_object_foreach(own, name, value)
	{
		char text[256];
		size_t len = strlen(name);

		if (len + 1 >= sizeof(text)) {
			*rc = -E2BIG;
			continue;
		}
		memcpy(text, name, len);
		text[len] = '=';
		put_pair(b, rc, text, len + 1, json_string_value(value));
		count++;
	}
	if (!lang) {
		put_string(b, rc, "LANG=C.UTF-8");
		count++;
	}
	return count;
}

static int build_exec(
    struct buf *b, const struct fields *f, bool has_stdin, const struct service *s)
{
	struct agent_exec head = {
	    .flags = (f->tty ? AGENT_EXEC_TTY : 0) | (f->command ? AGENT_EXEC_SHELL : 0) |
		     (has_stdin ? 0 : AGENT_EXEC_NO_STDIN),
	    .cols = RUN_COLS,
	    .rows = RUN_ROWS,
	    .argc = f->command ? 1 : (uint32_t)json_array_size(f->argv),
	};
	json_t *value;
	size_t i;
	int rc = buf_append(b, &head, sizeof(head));

	put_string(b, &rc, f->user ? f->user : s->default_user);
	put_string(b, &rc, f->cwd ? f->cwd : s->default_cwd);
	if (f->command)
		put_string(b, &rc, f->command);
	json_array_foreach(f->argv, i, value) put_string(b, &rc, json_string_value(value));
	head.envc = put_env(b, &rc, s->env, s->env_len, f->env);
	if (rc == 0)
		memcpy(b->data + b->off, &head, sizeof(head));
	return rc;
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

int run_request_parse(const uint8_t *body, size_t n, const struct service *s,
    struct run_request *out, enum api_error *e, struct err *err)
{
	struct fields f = {.max_output = RUN_OUTPUT_DEFAULT};
	int rc;

	*out = (struct run_request){.json = NULL};
	buf_init(&out->exec, AGENT_REQUEST_MAX);
	*e = API_MALFORMED;
	out->json = json_parse_object(body, n, err);
	if (!out->json)
		return -EINVAL;
	*e = API_INVALID_ARGUMENT;
	if (take_fields(out->json, &f, err) < 0 || check_fields(&f, e, err) < 0 ||
	    take_stdin(out, &f, err) < 0)
		return -EINVAL;
	out->timeout_ns = clock_seconds_to_ns(f.timeout);
	out->max_output = (size_t)f.max_output;
	rc = build_exec(&out->exec, &f, out->has_stdin, s);
	if (rc < 0) {
		*e = API_TOO_LARGE;
		return err_set(err, -rc, "arguments and environment are too long");
	}
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
