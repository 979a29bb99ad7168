/* arg_limits: what the kernel gives to no program. sbx-worker; holds no state. */
#include "worker/arg_limits.h"

#include <errno.h>
#include <string.h>

#include "wire/agent.h"

#define NAME_SHOWN 40

static int fail_arg(const struct agent_exec *head, uint32_t i, struct err *err)
{
	if (head->flags & AGENT_EXEC_SHELL)
		return err_set(err, E2BIG,
		    "the command line is longer than the kernel takes: %u bytes", ARG_STRING_MAX);
	return err_set(err, E2BIG,
	    "argument %u (the program is 0) is longer than the kernel takes: %u bytes", i,
	    ARG_STRING_MAX);
}

static int fail_variable(const char *text, size_t len, struct err *err)
{
	const char *equals = memchr(text, '=', len);
	size_t name = equals ? (size_t)(equals - text) : len;

	return err_set(err, E2BIG,
	    "the variable %.*s, with its name, is longer than the kernel takes: %u bytes",
	    (int)(name < NAME_SHOWN ? name : NAME_SHOWN), text, ARG_STRING_MAX);
}

int arg_limits_check(const uint8_t *payload, size_t n, struct err *err)
{
	struct agent_cursor c = {payload, n};
	struct agent_exec head = {.argc = 0};
	const char *text = NULL;
	size_t len = 0;
	int rc = agent_get_bytes(&c, &head, sizeof(head));

	for (int i = 0; rc == 0 && i < 2; i++) /* user, cwd */
		rc = agent_get_string(&c, &text, &len);
	for (uint32_t i = 0; rc == 0 && i < head.argc; i++) {
		rc = agent_get_string(&c, &text, &len);
		if (rc == 0 && len > ARG_STRING_MAX)
			return fail_arg(&head, i, err);
	}
	for (uint32_t i = 0; rc == 0 && i < head.envc; i++) {
		rc = agent_get_string(&c, &text, &len);
		if (rc == 0 && len > ARG_STRING_MAX)
			return fail_variable(text, len, err);
	}
	return rc < 0 ? err_set(err, -rc, "the request to the guest is malformed") : 0;
}
