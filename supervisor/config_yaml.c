/* config_yaml: what the keys of the configuration file mean. sbxd, at start and on SIGHUP; holds no
 * state. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "supervisor/config_table.h"
#include "supervisor/yaml_file.h"

struct reader {
	struct yaml_file file; /* first */
	char *const *env;
	struct config *c;
	struct config_origins *origins;
	size_t lines[CONFIG_KEYS]; /* 0: not given in this file */
	size_t sandbox_line;
};

static struct reader *reader_of(struct yaml_file *f)
{
	return (struct reader *)(void *)f;
}

static int set_scalar(struct reader *r, const struct config_key *key, const yaml_event_t *ev)
{
	struct err inner;
	char allowed[120];
	char *text = NULL;
	int rc;

	config_value_allowed(key, allowed, sizeof(allowed));
	if (ev->type != YAML_SCALAR_EVENT)
		return yaml_file_fail(&r->file, yaml_file_line(ev),
		    "%s: a list or mapping is not allowed; give %s", key->name, allowed);
	if (yaml_file_is_null(ev))
		return yaml_file_fail(
		    &r->file, yaml_file_line(ev), "%s: has no value; give %s", key->name, allowed);
	if (config_env_expand(yaml_file_text(ev), r->env, &text, &inner) < 0)
		return yaml_file_fail(
		    &r->file, yaml_file_line(ev), "%s: %s", key->name, inner.text);
	rc = config_value_parse(key, text, r->c, &inner);
	free(text);
	return rc < 0 ? yaml_file_fail(&r->file, yaml_file_line(ev), "%s", inner.text) : 0;
}

static int set_variable(
    struct yaml_file *f, const void *ctx, const yaml_event_t *key, const yaml_event_t *ev)
{
	struct reader *r = reader_of(f);
	const char *name = yaml_file_text(key);
	struct err inner;
	char *text = NULL;
	int rc;

	(void)ctx;
	if (ev->type != YAML_SCALAR_EVENT || yaml_file_is_null(ev))
		return yaml_file_fail(&r->file, yaml_file_line(ev),
		    "environment: %.40s: give text (\"\" for empty text)", name);
	if (config_env_expand(yaml_file_text(ev), r->env, &text, &inner) < 0)
		return yaml_file_fail(
		    &r->file, yaml_file_line(ev), "environment: %.40s: %s", name, inner.text);
	rc = config_environment_add(&r->c->environment, name, text, &inner);
	free(text);
	return rc < 0 ? yaml_file_fail(&r->file, yaml_file_line(key), "environment: %s", inner.text)
		      : 0;
}

static int set_key(struct reader *r, int i, const yaml_event_t *key, const yaml_event_t *value)
{
	const struct config_key *row = &config_keys[i];

	if (r->lines[i])
		return yaml_file_fail(&r->file, yaml_file_line(key),
		    "%s: is given twice, first in line %zu", row->name, r->lines[i]);
	r->lines[i] = yaml_file_line(key);
	(void)snprintf(r->origins->place[i], sizeof(r->origins->place[i]), "%s:%zu", r->file.place,
	    yaml_file_line(key));
	if (row->type == CONFIG_ENVIRONMENT)
		return yaml_file_mapping(&r->file, set_variable, NULL, row->name, value);
	return set_scalar(r, row, value);
}

static int fail_unknown(struct reader *r, const char *section, const yaml_event_t *key)
{
	const char *name = yaml_file_text(key);
	const char *guess = config_key_guess(section, name);
	const char *dot = *section ? "." : "";

	if (guess)
		return yaml_file_fail(&r->file, yaml_file_line(key),
		    "unknown key '%s%s%.40s'; did you mean '%s%s%s'?", section, dot, name, section,
		    dot, guess);
	return yaml_file_fail(&r->file, yaml_file_line(key),
	    "unknown key '%s%s%.40s'; sbxd --check-config without a file prints all keys", section,
	    dot, name);
}

static int section_entry(
    struct yaml_file *f, const void *ctx, const yaml_event_t *key, const yaml_event_t *value)
{
	struct reader *r = reader_of(f);
	const char *section = ctx;
	int i = config_key_find(section, yaml_file_text(key));

	return i < 0 ? fail_unknown(r, section, key) : set_key(r, i, key, value);
}

static int sandbox_entry(
    struct yaml_file *f, const void *ctx, const yaml_event_t *key, const yaml_event_t *value)
{
	struct reader *r = reader_of(f);
	const char *name = yaml_file_text(key);
	int i = config_key_find("", name);

	if (i >= 0)
		return set_key(r, i, key, value);
	if (config_section_known(name))
		return yaml_file_mapping(&r->file, section_entry, name, name, value);
	if (ctx && config_key_ignored(name))
		return yaml_file_skip(&r->file, value);
	return fail_unknown(r, "", key);
}

static int top_entry(
    struct yaml_file *f, const void *ctx, const yaml_event_t *key, const yaml_event_t *value)
{
	struct reader *r = reader_of(f);

	if (strcmp(yaml_file_text(key), "sandbox") != 0)
		return sandbox_entry(f, ctx, key, value);
	if (r->sandbox_line)
		return yaml_file_fail(&r->file, yaml_file_line(key),
		    "sandbox: is given twice, first in line %zu", r->sandbox_line);
	r->sandbox_line = yaml_file_line(key);
	return yaml_file_mapping(&r->file, sandbox_entry, "sandbox", "sandbox", value);
}

int config_yaml_read(const char *path, char *const *env, struct config *c,
    struct config_origins *origins, struct err *err)
{
	struct reader r = {.env = env, .c = c, .origins = origins};

	return yaml_file_read(&r.file, path, top_entry, NULL, err);
}
