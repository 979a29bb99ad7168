/*
 * files_path_request: what a request says of names. sbx-worker; holds no state. In a query a name
 * may have any bytes, in JSON it is text.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "wire/agent.h"
#include "wire/http.h"
#include "wire/json.h"
#include "worker/files.h"
#include "worker/files_path.h"

int path_take_query(
    struct path_request *r, const struct path_form *f, struct conn *c, const struct http_head *h)
{
	uint64_t mode = 0;
	bool flag = false;
	int rc = files_take_text(c, h, f->from, r->from, sizeof(r->from), API_INVALID_PATH);

	if (rc >= 0 && f->to)
		rc = files_take_text(c, h, f->to, r->to, sizeof(r->to), API_INVALID_PATH);
	if (rc >= 0 && f->flag_name)
		rc = files_take_flag(c, h, f->flag_name, &flag);
	if (rc >= 0 && f->mode)
		rc = files_take_number(c, h, "mode", 8, 0, 07777, &mode);
	if (rc < 0)
		return rc;
	r->mode = (uint32_t)mode;
	r->flags = (flag ? f->flag : 0) | (f->mode && rc > 0 ? AGENT_PATH_MODE : 0);
	return 0;
}

/* A member of the body as a path. 0, or -EINVAL with *err. */
static int take_name(const char *text, const char *name, char to[PATH_MAX], struct err *err)
{
	if (!text)
		return 0;
	if (*to)
		return err_set(err, EINVAL, "\"%s\" is given in the query and in the body", name);
	if (strlen(text) >= PATH_MAX)
		return err_set(err, EINVAL, "\"%s\" is too long", name);
	memcpy(to, text, strlen(text) + 1);
	return 0;
}

static int take_mode(const char *text, uint32_t *mode, struct err *err)
{
	char *end;
	unsigned long value;

	errno = 0;
	value = strtoul(text, &end, 8);
	if (*text < '0' || *text > '7' || *end || errno || value > 07777)
		return err_set(err, EINVAL, "\"mode\" must be an octal number in a string");
	*mode = (uint32_t)value;
	return 0;
}

static int take_members(struct path_request *r, const struct path_form *f, json_t *json,
    enum api_error *e, struct err *err)
{
	const char *from = NULL;
	const char *to = NULL;
	const char *mode = NULL;
	bool flag = (r->flags & f->flag) != 0;
	const struct json_field fields[] = {
	    {f->from, JSON_FIELD_STRING, &from, 0, 0},
	    {f->flag_name, JSON_FIELD_BOOL, &flag, 0, 0},
	    {f->to ? f->to : "mode", JSON_FIELD_STRING, f->to ? &to : &mode, 0, 0},
	};

	*e = API_INVALID_ARGUMENT;
	if (json_take(json, fields, sizeof(fields) / sizeof(fields[0]), err) < 0)
		return -EINVAL;
	r->flags = flag ? r->flags | f->flag : r->flags & ~f->flag;
	if (f->mode && mode) {
		r->flags |= AGENT_PATH_MODE;
		if (take_mode(mode, &r->mode, err) < 0)
			return -EINVAL;
	}
	*e = API_INVALID_PATH;
	if (take_name(from, f->from, r->from, err) < 0)
		return -EINVAL;
	return take_name(to, f->to, r->to, err);
}

int path_take_body(struct path_request *r, const struct path_form *f, const uint8_t *body, size_t n,
    enum api_error *e, struct err *err)
{
	json_t *json = json_parse_object(body, n, err);
	int rc;

	*e = API_MALFORMED;
	if (!json)
		return -EINVAL;
	rc = take_members(r, f, json, e, err);
	json_decref(json);
	return rc;
}

int path_check(struct path_request *r, const struct path_form *f, struct err *err)
{
	const char *const names[] = {f->from, f->to};
	char *const paths[] = {r->from, r->to};

	for (int i = 0; i < 2 && names[i]; i++) {
		const char *fault = *paths[i] ? files_check_path(paths[i]) : "is missing";

		if (fault)
			return err_set(err, EINVAL, "\"%s\" %s", names[i], fault);
	}
	return 0;
}
