/* options: arguments of a command, NAME=VALUE each. sbx-files; they come from the worker. */
#include <stdbool.h>
#include <string.h>

#include "guest/files/files.h"

static const struct option_field *option_find(
    const struct option_field *fields, size_t count, const char *arg, size_t name_len)
{
	for (size_t i = 0; i < count; i++)
		if (strncmp(fields[i].name, arg, name_len) == 0 && fields[i].name[name_len] == '\0')
			return &fields[i];
	return NULL;
}

/* 0 or -EINVAL. */
static int option_set(const struct option_field *f, const char *value)
{
	uint64_t n;
	int rc;

	if (f->type == OPTION_TEXT) {
		*(const char **)f->out = value;
		return 0;
	}
	rc = text_parse_uint(value, strlen(value), f->type == OPTION_FLAG ? 1 : UINT64_MAX, &n);
	if (rc != 0)
		return rc;
	if (f->type == OPTION_FLAG)
		*(bool *)f->out = n != 0;
	else
		*(uint64_t *)f->out = n;
	return 0;
}

int options_take(char *const *args, const struct option_field *fields, size_t count)
{
	for (; *args != NULL; args++) {
		size_t name_len = strcspn(*args, "=");
		const struct option_field *f = option_find(fields, count, *args, name_len);
		struct text why;

		if (f != NULL && (*args)[name_len] == '=' &&
		    option_set(f, *args + name_len + 1) == 0)
			continue;
		text_clear(&why);
		text_add(&why, "sbx-files does not understand the argument ");
		text_add_quoted(&why, *args, 64);
		return emit_failure(AGENT_E_INVALID, &why);
	}
	return 0;
}
