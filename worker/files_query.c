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
	char why[96];
	int rc = http_query_flag(h->query, key, out);

	if (rc >= 0)
		return rc;
	(void)snprintf(why, sizeof(why), "\"%s\" must be 0, 1, true or false", key);
	conn_fail(c, API_INVALID_ARGUMENT, why);
	return rc;
}

/* What a number may be. */
static void number_refuse(struct conn *c, const char *key, int base, uint64_t least, uint64_t most)
{
	char why[128];
	int n = snprintf(why, sizeof(why),
	    base == 8 ? "\"%s\" must be an octal number" : "\"%s\" must be a decimal number", key);

	if (most < INT64_MAX)
		(void)snprintf(why + n, sizeof(why) - (size_t)n,
		    base == 8 ? " from %llo to %llo" : " from %llu to %llu",
		    (unsigned long long)least, (unsigned long long)most);
	else if (least > 0)
		(void)snprintf(
		    why + n, sizeof(why) - (size_t)n, ", at least %llu", (unsigned long long)least);
	conn_fail(c, API_INVALID_ARGUMENT, why);
}

int files_take_number(struct conn *c, const struct http_head *h, const char *key, int base,
    uint64_t least, uint64_t most, uint64_t *out)
{
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
	number_refuse(c, key, base, least, most);
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
