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

int files_take_path(struct conn *c, const struct http_head *h, char out[PATH_MAX])
{
	int n = http_query_get(h->query, "path", out, PATH_MAX);

	if (n == -ENOENT || n == 0)
		return path_refuse(c, "\"path\" is missing");
	if (n == -ENAMETOOLONG)
		return path_refuse(c, "\"path\" is too long");
	if (n < 0)
		return path_refuse(c, "\"path\" is given twice or badly escaped");
	if (*out != '/')
		return path_refuse(c, "\"path\" must be absolute");
	for (const char *p = out; p; p = strchr(p + 1, '/')) {
		if (!strncmp(p, "/..", 3) && (p[3] == '/' || p[3] == '\0'))
			return path_refuse(c, "\"path\" must not contain \"..\"");
	}
	return n;
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
