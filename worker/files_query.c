/* files_query: what file requests say in their query. sbx-worker; holds no state. */
#include <errno.h>
#include <stdio.h>
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
	int rc = files_take_text(c, h, "path", out, PATH_MAX, API_INVALID_PATH);
	const char *fault;
	char why[64];

	if (rc == 0)
		return path_refuse(c, "\"path\" is missing");
	if (rc < 0)
		return rc;
	fault = path_fault(out);
	if (!fault)
		return (int)strlen(out);
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

/* What http_query_*() said, once the client was told what is wrong. */
static int take(struct conn *c, int rc, enum api_error e, const struct err *err)
{
	if (rc < 0)
		conn_fail(c, e, err->text);
	return rc;
}

int files_take_text(struct conn *c, const struct http_head *h, const char *key, char *out,
    size_t size, enum api_error e)
{
	struct err err = {0};

	return take(c, http_query_text(h->query, key, out, size, &err), e, &err);
}

int files_take_flag(struct conn *c, const struct http_head *h, const char *key, bool *out)
{
	struct err err = {0};

	return take(c, http_query_flag(h->query, key, out, &err), API_INVALID_ARGUMENT, &err);
}

int files_take_number(struct conn *c, const struct http_head *h, const char *key, int base,
    uint64_t least, uint64_t most, uint64_t *out)
{
	struct err err = {0};

	return take(c, http_query_number(h->query, key, base, least, most, out, &err),
	    API_INVALID_ARGUMENT, &err);
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
