/* config_env: settings from SBXD_* variables, variables inside values, and the variables that boxes
 * get. sbxd, at start and on SIGHUP; holds no state. */
#include <bsd/string.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/buf.h"
#include "lib/env.h"
#include "supervisor/config_table.h"
#include "wire/json.h"

#define EXPANDED_MAX (1U << 20)

static bool name_start(char c)
{
	return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
}

/* Bytes of the POSIX variable name that text begins with. */
static size_t name_length(const char *text)
{
	size_t n = 0;

	if (!name_start(text[0]))
		return 0;
	while (name_start(text[n]) || (text[n] >= '0' && text[n] <= '9'))
		n++;
	return n;
}

/* Appends what the reference at *text (after the $) stands for and moves past it. 0 or -errno. */
static int expand_one(const char **text, char *const *env, struct buf *out, struct err *err)
{
	const char *p = *text;
	bool braced = *p == '{';
	const char *name = p + braced;
	size_t len = name_length(name);
	const char *value;

	if (*p == '$') {
		*text = p + 1;
		return buf_puts(out, "$");
	}
	if (braced && (len == 0 || name[len] != '}'))
		return err_set(err, EINVAL, "'$%.20s': ${ must be followed by a name and }", p);
	if (len == 0)
		return buf_puts(out, "$");
	value = env_get(env, name, len);
	if (!value)
		return err_set(err, EINVAL, "the variable %.*s is not set in the environment",
		    (int)(len > 64 ? 64 : len), name);
	*text = name + len + braced;
	return buf_puts(out, value);
}

int config_env_expand(const char *text, char *const *env, char **out, struct err *err)
{
	struct buf b;
	int rc = 0;

	buf_init(&b, EXPANDED_MAX);
	while (*text && rc == 0) {
		size_t plain = strcspn(text, "$");

		rc = buf_append(&b, text, plain);
		text += plain;
		if (rc == 0 && *text == '$') {
			text++;
			rc = expand_one(&text, env, &b, err);
		}
	}
	if (rc == 0)
		rc = buf_append(&b, "", 1);
	if (rc == -ENOBUFS || rc == -ENOMEM)
		(void)err_sys(err, -rc, "the value with its variables replaced");
	if (rc == 0)
		*out = strdup((const char *)buf_head(&b));
	buf_free(&b);
	if (rc == 0 && !*out)
		return err_sys(err, ENOMEM, "the value with its variables replaced");
	return rc;
}

/* SBXD_NAMESPACE_UID_BASE for namespace.uid_base. */
static void variable_name(const struct config_key *key, char *out, size_t size)
{
	(void)snprintf(out, size, "SBXD_%s", key->name);
	for (char *p = out; *p; p++)
		*p = *p == '.' ? '_' : (char)toupper((unsigned char)*p);
}

int config_env_apply(
    char *const *env, struct config *c, struct config_origins *origins, struct err *err)
{
	struct err inner;

	for (size_t i = 0; i < CONFIG_KEYS; i++) {
		char name[64];
		const char *value;

		if (config_keys[i].type == CONFIG_ENVIRONMENT)
			continue;
		variable_name(&config_keys[i], name, sizeof(name));
		value = env_get(env, name, strlen(name));
		if (!value)
			continue;
		if (config_value_parse(&config_keys[i], value, c, &inner) < 0)
			return err_set(err, EINVAL, "%s: %s", name, inner.text);
		(void)strlcpy(origins->place[i], name, sizeof(origins->place[i]));
	}
	return 0;
}

int config_environment_add(
    struct config_environment *e, const char *name, const char *value, struct err *err)
{
	size_t name_len = strlen(name);
	size_t value_len = strlen(value);
	size_t add = name_len + value_len + 2;
	char *data;

	if (name_len == 0 || name_length(name) != name_len)
		return err_set(err, EINVAL,
		    "'%.40s' is no variable name; give letters, digits and _, no digit first",
		    name);
	if (utf8_valid_prefix((const uint8_t *)value, value_len, NULL) != value_len)
		return err_set(err, EINVAL, "%.40s: the value is no UTF-8 text", name);
	for (size_t at = 0; at < e->len; at += strlen(e->data + at) + 1) {
		if (strncmp(e->data + at, name, name_len) == 0 && e->data[at + name_len] == '=')
			return err_set(err, EINVAL, "%.40s is given twice", name);
	}
	if (add > CONFIG_ENVIRONMENT_MAX - e->len)
		return err_set(err, EINVAL, "%.40s: more than %u bytes in all variables", name,
		    CONFIG_ENVIRONMENT_MAX);
	data = realloc(e->data, e->len + add);
	if (!data)
		return err_sys(err, ENOMEM, "%.40s", name);
	(void)snprintf(data + e->len, add, "%s=%s", name, value);
	e->data = data;
	e->len += add;
	e->count++;
	return 0;
}
