/*
 * command_request: the fields of a command, and what the guest is asked. sbx-worker; a request that
 * makes no sense is refused here.
 */
#include "worker/command_request.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "lib/env.h"
#include "wire/agent.h"
#include "worker/arg_limits.h"
#include "worker/service.h"

int command_check_env(json_t *env, struct err *err)
{
	const char *name;
	json_t *value;

	json_object_foreach(env, name, value)
	{
		if (!env_name_is_sound(name))
			return err_set(err, EINVAL,
			    "\"env\": \"%s\" is no name for a variable ([A-Za-z_][A-Za-z0-9_]*)",
			    name);
		if (!json_is_string(value))
			return err_set(err, EINVAL, "\"env\": \"%s\" must be a string", name);
	}
	return 0;
}

int command_check_strings(const char *name, json_t *array, struct err *err)
{
	json_t *value;
	size_t i;

	json_array_foreach(array, i, value)
	{
		if (!json_is_string(value))
			return err_set(err, EINVAL, "\"%s\"[%zu] must be a string", name, i);
	}
	return 0;
}

int command_check_cwd(const char *name, const char *cwd, enum api_error *e, struct err *err)
{
	if (!cwd || *cwd == '/')
		return 0;
	*e = API_INVALID_PATH;
	return err_set(err, EINVAL, "\"%s\" must be an absolute path", name);
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

enum api_error command_error(uint32_t code)
{
	static const enum api_error errors[AGENT_CODES] = {
	    [AGENT_E_INVALID_PATH] = API_INVALID_PATH,
	    [AGENT_E_INVALID] = API_INVALID_ARGUMENT,
	    [AGENT_E_TOO_LARGE] = API_TOO_LARGE,
	    [AGENT_E_NO_SPACE] = API_NO_SPACE,
	    [AGENT_E_RESOURCES] = API_BOX_RESOURCES,
	};
	enum api_error e = code < AGENT_CODES ? errors[code] : API_OK;

	return e ? e : API_EXECUTION_FAILED;
}

int command_build(struct buf *b, const struct command_fields *f, const struct service *s,
    enum api_error *e, struct err *err)
{
	struct agent_exec head = {
	    .flags = f->flags,
	    .cols = f->cols,
	    .rows = f->rows,
	    .argc = (f->first ? 1 : 0) + (uint32_t)json_array_size(f->rest),
	};
	json_t *value;
	size_t i;
	int rc = buf_append(b, &head, sizeof(head));

	put_string(b, &rc, f->user ? f->user : s->default_user);
	put_string(b, &rc, f->cwd ? f->cwd : s->default_cwd);
	if (f->first)
		put_string(b, &rc, f->first);
	json_array_foreach(f->rest, i, value) put_string(b, &rc, json_string_value(value));
	head.envc = put_env(b, &rc, s->env, s->env_len, f->env);
	if (rc < 0) {
		*e = API_TOO_LARGE;
		return err_set(err, -rc, "arguments and environment are too long");
	}
	memcpy(b->data + b->off, &head, sizeof(head));
	rc = arg_limits_check(buf_head(b), b->len, err);
	if (rc < 0)
		*e = API_TOO_LARGE;
	return rc;
}
