/* json_in: reading requests with jansson. Any process; a request that is no JSON is refused. */
#include <errno.h>
#include <string.h>

#include "wire/json.h"

/* Strings need no more than their quotes and backslashes understood: text that is not JSON is found
 * later. */
int json_check_depth(const uint8_t *s, size_t n, unsigned int max, struct err *err)
{
	unsigned int line = 1;
	unsigned int depth = 0;
	size_t line_start = 0;
	bool in_string = false;

	for (size_t i = 0; i < n; i++) {
		uint8_t c = s[i];

		if (c == '\n') {
			line++;
			line_start = i + 1;
		}
		if (in_string) {
			if (c == '\\')
				i++;
			else if (c == '"')
				in_string = false;
		} else if (c == '"') {
			in_string = true;
		} else if (c == '{' || c == '[') {
			if (++depth > max)
				return err_set(err, EINVAL,
				    "line %u, column %zu: nested deeper than %u levels", line,
				    i - line_start + 1, max);
		} else if ((c == '}' || c == ']') && depth > 0) {
			depth--;
		}
	}
	return 0;
}

json_t *json_parse_object(const uint8_t *data, size_t n, struct err *err)
{
	json_error_t wrong;
	json_t *o;

	if (n == 0) {
		o = json_object();
		if (!o)
			(void)err_set(err, ENOMEM, "no memory for a JSON object");
		return o;
	}
	if (json_check_depth(data, n, JSON_DEPTH_MAX, err) < 0)
		return NULL;
	o = json_loadb((const char *)data, n, JSON_REJECT_DUPLICATES, &wrong);
	if (!o) {
		(void)err_set(
		    err, EINVAL, "line %d, column %d: %s", wrong.line, wrong.column, wrong.text);
	} else if (!json_is_object(o)) {
		(void)err_set(err, EINVAL, "line 1, column 1: not a JSON object");
		json_decref(o);
		o = NULL;
	}
	return o;
}

static const char *const json_expected[] = {
    [JSON_FIELD_STRING] = "a string without NUL",
    [JSON_FIELD_NUMBER] = "a number",
    [JSON_FIELD_INT] = "an integer",
    [JSON_FIELD_BOOL] = "true or false",
    [JSON_FIELD_ARRAY] = "an array",
    [JSON_FIELD_OBJECT] = "an object",
    [JSON_FIELD_OTHER] = "anything",
};

static bool json_has_type(const json_t *v, enum json_field_type type)
{
	switch (type) {
	case JSON_FIELD_STRING:
		return json_is_string(v) && strlen(json_string_value(v)) == json_string_length(v);
	case JSON_FIELD_NUMBER:
		return json_is_number(v);
	case JSON_FIELD_INT:
		return json_is_integer(v);
	case JSON_FIELD_BOOL:
		return json_is_boolean(v);
	case JSON_FIELD_ARRAY:
		return json_is_array(v);
	case JSON_FIELD_OBJECT:
		return json_is_object(v);
	case JSON_FIELD_OTHER:
		return true;
	}
	return false;
}

static int json_check_field(const json_t *v, const struct json_field *f, struct err *err)
{
	bool ranged =
	    f->min < f->max && (f->type == JSON_FIELD_NUMBER || f->type == JSON_FIELD_INT);

	if (!json_has_type(v, f->type))
		return err_set(err, EINVAL, "\"%s\" must be %s", f->name, json_expected[f->type]);
	if (ranged && !(json_number_value(v) >= f->min && json_number_value(v) <= f->max))
		return err_set(err, EINVAL, "\"%s\" must be %s from %.15g to %.15g", f->name,
		    json_expected[f->type], f->min, f->max);
	return 0;
}

static void json_store_field(json_t *v, const struct json_field *f)
{
	switch (f->type) {
	case JSON_FIELD_STRING:
		*(const char **)f->out = json_string_value(v);
		break;
	case JSON_FIELD_NUMBER:
		*(double *)f->out = json_number_value(v);
		break;
	case JSON_FIELD_INT:
		*(int64_t *)f->out = json_integer_value(v);
		break;
	case JSON_FIELD_BOOL:
		*(bool *)f->out = json_is_true(v);
		break;
	case JSON_FIELD_ARRAY:
	case JSON_FIELD_OBJECT:
		*(json_t **)f->out = v;
		break;
	case JSON_FIELD_OTHER:
		break;
	}
}

static int json_check_known(
    json_t *o, const struct json_field *fields, size_t count, struct err *err)
{
	const char *name;
	json_t *value;

	json_object_foreach(o, name, value)
	{
		size_t i = 0;

		while (i < count && strcmp(fields[i].name, name) != 0)
			i++;
		if (i == count && !json_is_null(value))
			return err_set(err, EINVAL, "\"%.40s\" is not known here", name);
	}
	return 0;
}

int json_take(json_t *o, const struct json_field *fields, size_t count, struct err *err)
{
	if (json_check_known(o, fields, count, err) < 0)
		return -EINVAL;
	for (size_t i = 0; i < count; i++) {
		const json_t *v = json_object_get(o, fields[i].name);

		if (v && !json_is_null(v) && json_check_field(v, &fields[i], err) < 0)
			return -EINVAL;
	}
	for (size_t i = 0; i < count; i++) {
		json_t *v = json_object_get(o, fields[i].name);

		if (v && !json_is_null(v))
			json_store_field(v, &fields[i]);
	}
	return 0;
}
