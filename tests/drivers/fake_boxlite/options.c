/* options: what a box shall be, and where a server is. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/drivers/fake_boxlite/fake.h"

static void set_text(char **place, const char *text)
{
	if (!text)
		return;
	free(*place);
	*place = strdup(text);
}

enum blx_code boxlite_options_new(const char *image, struct options **out, struct blx_error *err)
{
	enum blx_code code = call_check(out, "out_opts", NULL, false, err);

	if (code == BLX_OK)
		code = call_check(image, "image", NULL, false, err);
	if (code == BLX_OK)
		code = call_begin(KNOB_OPTIONS, err);
	if (code != BLX_OK)
		return code;
	*out = calloc(1, sizeof(**out));
	if (!*out)
		abort();
	(*out)->image = strdup(image);
	(*out)->network = true;
	(*out)->auto_remove = true;
	return BLX_OK;
}

void boxlite_options_free(struct options *o)
{
	if (!o)
		return;
	free(o->image);
	free(o->rootfs);
	free(o->workdir);
	free(o->env);
	free(o);
}

void boxlite_options_set_rootfs_path(struct options *o, const char *path)
{
	if (o)
		set_text(&o->rootfs, path);
}

void boxlite_options_set_name(struct options *o, const char *name)
{
	if (o && name)
		(void)snprintf(o->name, sizeof(o->name), "%s", name);
}

void boxlite_options_set_cpus(struct options *o, int cpus)
{
	if (o && cpus > 0)
		o->cpus = cpus;
}

void boxlite_options_set_memory(struct options *o, int mib)
{
	if (o && mib > 0)
		o->memory_mib = mib;
}

void boxlite_options_set_disk_size_gb(struct options *o, int gb)
{
	if (o && gb > 0)
		o->disk_gb = gb;
}

void boxlite_options_set_workdir(struct options *o, const char *dir)
{
	if (o)
		set_text(&o->workdir, dir);
}

void boxlite_options_add_env(struct options *o, const char *key, const char *value)
{
	char *env = NULL;

	if (!o || !key || !value)
		return;
	if (asprintf(&env, "%s%s=%s\n", o->env ? o->env : "", key, value) < 0)
		abort();
	free(o->env);
	o->env = env;
}

void boxlite_options_set_network_enabled(struct options *o)
{
	if (o)
		o->network = true;
}

void boxlite_options_set_network_disabled(struct options *o)
{
	if (o)
		o->network = false;
}

/* Nothing comes in here anyway. */
void boxlite_options_set_network_inbound_disabled(struct options *o)
{
	(void)o;
}

void boxlite_options_set_auto_remove(struct options *o, int on)
{
	if (o)
		o->auto_remove = on;
}

/* Only servers look after what is idle. */
void boxlite_options_set_auto_stop_interval(struct options *o, uint32_t seconds)
{
	(void)o;
	(void)seconds;
}

void boxlite_options_set_auto_delete_interval(struct options *o, uint32_t seconds)
{
	(void)o;
	(void)seconds;
}

void boxlite_options_set_auto_resume_enabled(struct options *o, int on)
{
	(void)o;
	(void)on;
}

void boxlite_options_set_detach(struct options *o, int on)
{
	if (o)
		o->detach = on;
}

/* What the box runs by itself: here nothing, whatever is asked for. */
void boxlite_options_set_entrypoint(struct options *o, const char *const *args, int argc)
{
	(void)args;
	if (o)
		o->command |= argc > 0;
}

void boxlite_options_set_cmd(struct options *o, const char *const *args, int argc)
{
	boxlite_options_set_entrypoint(o, args, argc);
}

enum blx_code boxlite_api_key_credential_new(
    const char *key, struct credential **out, struct blx_error *err)
{
	enum blx_code code = call_check(out, "out_credential", NULL, false, err);

	if (code == BLX_OK)
		code = call_check(key, "key", NULL, false, err);
	if (code != BLX_OK)
		return code;
	*out = calloc(1, sizeof(**out));
	if (!*out)
		abort();
	(*out)->key = strdup(key);
	return BLX_OK;
}

void boxlite_credential_free(struct credential *c)
{
	if (!c)
		return;
	free(c->key);
	free(c);
}

enum blx_code boxlite_rest_options_new(
    const char *url, struct rest_options **out, struct blx_error *err)
{
	enum blx_code code = call_check(out, "out_options", NULL, false, err);

	if (code == BLX_OK)
		code = call_check(url, "url", NULL, false, err);
	if (code != BLX_OK)
		return code;
	*out = calloc(1, sizeof(**out));
	if (!*out)
		abort();
	(*out)->url = strdup(url);
	return BLX_OK;
}

void boxlite_rest_options_set_credential(struct rest_options *o, const struct credential *c)
{
	if (o && c)
		set_text(&o->key, c->key);
}

void boxlite_rest_options_set_path_prefix(struct rest_options *o, const char *prefix)
{
	if (o)
		set_text(&o->prefix, prefix);
}

void boxlite_rest_options_free(struct rest_options *o)
{
	if (!o)
		return;
	free(o->url);
	free(o->key);
	free(o->prefix);
	free(o);
}
