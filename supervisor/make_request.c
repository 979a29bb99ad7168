/* make_request: what a box can be made of. Runs in sbxd; holds no state. */
#include "supervisor/make_request.h"

#include <errno.h>
#include <string.h>

#include "lib/env.h"
#include "shm/slot.h"
#include "wire/control.h"
#include "wire/json.h"

/* ---- what cannot be had ---- */

enum verdict {
	TAKEN, /* it means what is done anyway, or does no harm */
	UNSUPPORTED,
	MALFORMED,
};

static enum verdict only_empty(const json_t *v)
{
	if (!json_is_array(v))
		return MALFORMED;
	return json_array_size(v) == 0 ? TAKEN : UNSUPPORTED;
}

static enum verdict never(const json_t *v)
{
	return json_is_string(v) ? UNSUPPORTED : MALFORMED;
}

static enum verdict any_bool(const json_t *v)
{
	return json_is_boolean(v) ? TAKEN : MALFORMED;
}

static enum verdict only_true(const json_t *v)
{
	if (!json_is_boolean(v))
		return MALFORMED;
	return json_is_true(v) ? TAKEN : UNSUPPORTED;
}

/* A box is not stopped or paused for being idle: whoever counts on that loses nothing by it. */
static enum verdict any_seconds(const json_t *v)
{
	return json_is_integer(v) && json_integer_value(v) >= 0 ? TAKEN : MALFORMED;
}

static enum verdict only_zero(const json_t *v)
{
	if (any_seconds(v) != TAKEN)
		return MALFORMED;
	return json_integer_value(v) == 0 ? TAKEN : UNSUPPORTED;
}

/* There is one way in which boxes are isolated, with everything that it has. */
static enum verdict isolation_preset(const json_t *v)
{
	const char *preset = json_string_value(v);

	if (preset && (!strcmp(preset, "standard") || !strcmp(preset, "maximum")))
		return TAKEN;
	return preset && !strcmp(preset, "development") ? UNSUPPORTED : MALFORMED;
}

/* What is passed over is not what was asked for. */
static bool has_only(const json_t *v, const char *const *names, size_t count)
{
	size_t known = 0;

	for (size_t i = 0; i < count; i++)
		known += json_object_get(v, names[i]) != NULL;
	return json_is_object(v) && json_object_size(v) == known;
}

static enum verdict worse(enum verdict a, enum verdict b)
{
	return a > b ? a : b;
}

/* One direction, or both at once: {"mode": "enabled" | "disabled", "allow_net": [...]}. Enabled is
 * what clients send that say nothing; which network there is, the configuration says. */
static enum verdict network_mode(const json_t *v)
{
	const char *mode = json_string_value(json_object_get(v, "mode"));
	const json_t *allowed = json_object_get(v, "allow_net");

	if (!mode || (strcmp(mode, "enabled") != 0 && strcmp(mode, "disabled") != 0))
		return MALFORMED;
	return !allowed || json_is_null(allowed) ? TAKEN : only_empty(allowed);
}

static enum verdict network(const json_t *v)
{
	static const char *const directions[] = {"outbound", "inbound"};
	static const char *const known[] = {"outbound", "inbound", "mode", "allow_net"};
	enum verdict verdict = TAKEN;
	bool any = false;

	if (!has_only(v, known, sizeof(known) / sizeof(known[0])))
		return MALFORMED;
	for (size_t i = 0; i < sizeof(directions) / sizeof(directions[0]); i++) {
		const json_t *one = json_object_get(v, directions[i]);

		if (!one || json_is_null(one))
			continue;
		any = true;
		if (!has_only(one, known + 2, 2))
			return MALFORMED;
		verdict = worse(verdict, network_mode(one));
	}
	return any && !json_object_get(v, "mode") ? verdict : worse(verdict, network_mode(v));
}

static enum verdict capabilities(const json_t *v)
{
	static const char *const lists[] = {"add", "drop"};
	enum verdict verdict =
	    has_only(v, lists, sizeof(lists) / sizeof(lists[0])) ? TAKEN : MALFORMED;

	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		const json_t *list = json_object_get(v, lists[i]);

		if (list && !json_is_null(list))
			verdict = worse(verdict, only_empty(list));
	}
	return verdict;
}

static enum verdict advanced(const json_t *v)
{
	static const char *const known[] = {"capabilities"};
	const json_t *caps = json_object_get(v, known[0]);

	if (!has_only(v, known, 1))
		return MALFORMED;
	return !caps || json_is_null(caps) ? TAKEN : capabilities(caps);
}

static const struct {
	const char *name;
	enum verdict (*judge)(const json_t *v);
} judged[] = {
    {"advanced", advanced},
    {"auto_delete", only_zero},
    {"auto_pause", any_seconds},
    {"auto_resume", only_true},
    {"auto_stop", any_seconds},
    {"cmd", only_empty},
    {"detach", any_bool},
    {"entrypoint", only_empty},
    {"network", network},
    {"ports", only_empty},
    {"rootfs_path", never},
    {"secrets", only_empty},
    {"security", isolation_preset},
    {"volumes", only_empty},
};

#define JUDGED (sizeof(judged) / sizeof(judged[0]))

static int judge(const json_t *body, enum api_error *e, struct err *err)
{
	for (size_t i = 0; i < JUDGED; i++) {
		const json_t *v = json_object_get(body, judged[i].name);

		if (!v || json_is_null(v))
			continue;
		switch (judged[i].judge(v)) {
		case TAKEN:
			break;
		case UNSUPPORTED:
			*e = API_UNSUPPORTED;
			return err_set(err, EINVAL, "\"%s\": what it asks for cannot be had here",
			    judged[i].name);
		case MALFORMED:
			return err_set(
			    err, EINVAL, "\"%s\" is not what it should be", judged[i].name);
		}
	}
	return 0;
}

/* ---- what can ---- */

/* Else it could be an id of another box. */
static bool looks_like_an_id(const char *name)
{
	return strlen(name) == 16 && strspn(name, "0123456789abcdef") == 16;
}

static int check_name(const char *name, struct err *err)
{
	if (!slot_box_name_is_sound(name))
		return err_set(err, EINVAL,
		    "\"name\" must be 1 to %u of a-z, A-Z, 0-9, '.', '_' and '-', and begin with a "
		    "letter or a digit",
		    SLOT_BOX_NAME_MAX);
	if (looks_like_an_id(name))
		return err_set(err, EINVAL, "\"name\": 16 hex digits are the form of an id");
	return 0;
}

static int check_working_dir(const char *dir, enum api_error *e, struct err *err)
{
	if (*dir == '/' && strlen(dir) < CTL_WORKING_DIR)
		return 0;
	*e = API_INVALID_PATH;
	return err_set(err, EINVAL,
	    "\"working_dir\" must be an absolute path of less than %d bytes", CTL_WORKING_DIR);
}

static int check_env(json_t *env, struct err *err)
{
	const char *name;
	json_t *value;

	json_object_foreach(env, name, value)
	{
		if (!env_name_is_sound(name))
			return err_set(err, EINVAL,
			    "\"env\": \"%.40s\" is no name for a variable ([A-Za-z_][A-Za-z0-9_]*)",
			    name);
		if (!json_is_string(value) ||
		    strlen(json_string_value(value)) != json_string_length(value))
			return err_set(
			    err, EINVAL, "\"env\": \"%.40s\" must be a string without NUL", name);
	}
	return 0;
}

static int check(const struct make_request *r, enum api_error *e, struct err *err)
{
	if (r->name && check_name(r->name, err) < 0)
		return -EINVAL;
	if (r->user && strlen(r->user) >= CTL_USER)
		return err_set(
		    err, EINVAL, "\"user\": at most %d bytes are expected", CTL_USER - 1);
	if (r->working_dir && check_working_dir(r->working_dir, e, err) < 0)
		return -EINVAL;
	return r->env ? check_env(r->env, err) : 0;
}

#define TAKEN_FIELDS 8

int make_request_take(json_t *body, struct make_request *out, enum api_error *e, struct err *err)
{
	struct make_request r = {.name = NULL};
	struct json_field fields[TAKEN_FIELDS + JUDGED] = {
	    {"name", JSON_FIELD_STRING, &r.name, 0, 0},
	    {"image", JSON_FIELD_STRING, &r.image, 0, 0},
	    {"cpus", JSON_FIELD_INT, &r.cpus, 1, MAKE_CPUS_MAX},
	    {"memory_mib", JSON_FIELD_INT, &r.memory_mib, MAKE_MEMORY_MIB_MIN, MAKE_MEMORY_MIB_MAX},
	    {"disk_size_gb", JSON_FIELD_INT, &r.disk_gb, 1, MAKE_DISK_GB_MAX},
	    {"working_dir", JSON_FIELD_STRING, &r.working_dir, 0, 0},
	    {"user", JSON_FIELD_STRING, &r.user, 0, 0},
	    {"env", JSON_FIELD_OBJECT, &r.env, 0, 0},
	};

	for (size_t i = 0; i < JUDGED; i++)
		fields[TAKEN_FIELDS + i] =
		    (struct json_field){.name = judged[i].name, .type = JSON_FIELD_OTHER};
	*e = API_INVALID_ARGUMENT;
	if (json_take(body, fields, sizeof(fields) / sizeof(fields[0]), err) < 0 ||
	    judge(body, e, err) < 0 || check(&r, e, err) < 0)
		return -EINVAL;
	*out = r;
	return 0;
}
