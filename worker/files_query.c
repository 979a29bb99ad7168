/* files_query: what file requests say in their query. sbx-worker; holds no state. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wire/agent.h"
#include "wire/http.h"
#include "worker/conn.h"
#include "worker/files.h"

static int path_refuse(struct conn *c, const char *why)
{
	conn_fail(c, API_INVALID_PATH, why);
	return -EINVAL;
}

/* NULL, or what is wrong with it. */
static const char *path_fault(const char *path)
{
	if (*path != '/')
		return "must be absolute";
	for (const char *p = path; p; p = strchr(p + 1, '/')) {
		if (!strncmp(p, "/..", 3) && (p[3] == '/' || p[3] == '\0'))
			return "must not contain \"..\"";
	}
	return NULL;
}

int files_take_path(struct conn *c, const struct http_head *h, char out[PATH_MAX])
{
	int n = http_query_get(h->query, "path", out, PATH_MAX);
	const char *fault;
	char why[64];

	if (n == -ENOENT || n == 0)
		return path_refuse(c, "\"path\" is missing");
	if (n == -ENAMETOOLONG)
		return path_refuse(c, "\"path\" is too long");
	if (n < 0)
		return path_refuse(c, "\"path\" is given twice or badly escaped");
	fault = path_fault(out);
	if (!fault)
		return n;
	(void)snprintf(why, sizeof(why), "\"path\" %s", fault);
	return path_refuse(c, why);
}

static void drop_slashes(char *path)
{
	size_t n = strlen(path);

	while (n > 1 && path[n - 1] == '/')
		path[--n] = '\0';
}

int files_take_directory(struct conn *c, const struct http_head *h, char out[PATH_MAX])
{
	int n = files_take_path(c, h, out);

	if (n < 0)
		return n;
	drop_slashes(out);
	return (int)strlen(out);
}

const char *files_check_path(char *path)
{
	if (strlen(path) >= PATH_MAX)
		return "is too long";
	drop_slashes(path);
	return path_fault(path);
}

int files_take_text(struct conn *c, const struct http_head *h, const char *key, char *out,
    size_t size, enum api_error e)
{
	char why[96];
	int n = http_query_get(h->query, key, out, size);

	if (n == -ENOENT)
		return 0;
	if (n > 0)
		return 1;
	(void)snprintf(why, sizeof(why), "\"%s\" %s", key,
	    n == 0		 ? "is empty"
	    : n == -ENAMETOOLONG ? "is too long"
				 : "is given twice or badly escaped");
	conn_fail(c, e, why);
	return -EINVAL;
}

int files_take_flag(struct conn *c, const struct http_head *h, const char *key, bool *out)
{
	static const char *const names[] = {"0", "false", "1", "true"};
	char why[96];
	char text[8];
	int n = http_query_get(h->query, key, text, sizeof(text));

	if (n == -ENOENT)
		return 0;
	for (size_t i = 0; n > 0 && i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(text, names[i]))
			continue;
		*out = i >= 2;
		return 1;
	}
	(void)snprintf(why, sizeof(why), "\"%s\" must be 0, 1, true or false", key);
	conn_fail(c, API_INVALID_ARGUMENT, why);
	return -EINVAL;
}

int files_take_number(struct conn *c, const struct http_head *h, const char *key, int base,
    uint64_t least, uint64_t most, uint64_t *out)
{
	char why[96];
	char text[24];
	uint64_t value = 0;
	char *end = text;
	int n = http_query_get(h->query, key, text, sizeof(text));

	if (n == -ENOENT)
		return 0;
	errno = 0;
	if (n > 0 && text[0] >= '0' && text[0] <= '9')
		value = strtoull(text, &end, base);
	if (n > 0 && end == text + n && errno == 0 && value >= least && value <= most) {
		*out = value;
		return 1;
	}
	(void)snprintf(why, sizeof(why), "\"%s\" must be %s number", key,
	    base == 8 ? "an octal" : "a decimal");
	conn_fail(c, API_INVALID_ARGUMENT, why);
	return -EINVAL;
}

void files_refuse(struct conn *c, int rc)
{
	if (rc == -EPIPE)
		conn_fail(c, API_BOX_DIED, "the box died");
	else
		conn_fail(c, API_BOX_RESOURCES, "too many operations in the box");
}

enum api_error files_error(uint32_t code)
{
	return api_error_by_reason(agent_code_name(code));
}
