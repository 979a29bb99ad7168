/* config: puts the settings together from their sources and checks them as a whole. sbxd, at start
 * and on SIGHUP; a failure leaves the settings in use as they are. */
#include "supervisor/config.h"

#include <bsd/string.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/driver.h"
#include "lib/env.h"
#include "lib/log.h"
#include "supervisor/config_table.h"

static void set_defaults(struct config *c)
{
	struct err err;

	for (size_t i = 0; i < CONFIG_KEYS; i++) {
		if (config_keys[i].text)
			INVARIANT(
			    config_value_parse(&config_keys[i], config_keys[i].text, c, &err) == 0);
	}
}

/* Reads the file that is named, or the default one if there is one. */
static int load_file(const struct config_sources *src, struct config *c,
    struct config_origins *origins, struct err *err)
{
	const char *named = src->path;
	int rc;

	if (!named)
		named = env_get(src->env, "SBXD_CONFIG", strlen("SBXD_CONFIG"));
	if (named)
		return config_yaml_read(named, src->env, c, origins, err);
	if (!src->default_path)
		return 0;
	rc = config_yaml_read(src->default_path, src->env, c, origins, err);
	return rc == -ENOENT ? 0 : rc;
}

static int apply_overrides(const struct config_sources *src, struct config *c,
    struct config_origins *origins, struct err *err)
{
	struct err inner;

	for (size_t n = 0; n < src->override_count; n++) {
		const struct config_override *o = &src->overrides[n];
		int i = config_key_find("", o->key);

		INVARIANT(i >= 0);
		if (config_value_parse(&config_keys[i], o->value, c, &inner) < 0)
			return err_set(err, EINVAL, "%s: %s", o->flag, inner.text);
		(void)strlcpy(origins->place[i], o->flag, sizeof(origins->place[i]));
	}
	return 0;
}

static const char *place(const struct config_origins *origins, const char *key)
{
	const char *p = origins->place[config_key_find("", key)];

	return *p ? p : "default";
}

int config_check(const struct config *c, const struct config_origins *origins, struct err *err)
{
	/* One more: templates are made by none of them. */
	uint64_t uids_end = c->namespace_uid_base + ((uint64_t)c->max_boxes + 1) * DRIVER_UIDS;

	if (c->network == CONFIG_NETWORK_USER)
		return err_set(err, EINVAL,
		    "%s: network: 'user' is not available yet, it comes with a later version; give "
		    "none",
		    place(origins, "network"));
	if (c->listen_tcp.set && !*c->token_file)
		return err_set(err, EINVAL,
		    "%s: listen_tcp: needs token_file, so that not every local process is served",
		    place(origins, "listen_tcp"));
	if (!c->listen_tcp.set && *c->token_file)
		return err_set(err, EINVAL, "%s: token_file: is of no use without listen_tcp",
		    place(origins, "token_file"));
	if (c->listen_tcp.set && !c->listen_tcp_public &&
	    !config_listen_is_loopback(&c->listen_tcp))
		return err_set(err, EINVAL,
		    "%s: listen_tcp: is no loopback address, and what is sent there is not "
		    "encrypted; give one of 127.0.0.0/8 or [::1], or listen_tcp_public: true",
		    place(origins, "listen_tcp"));
	if (c->replicas > c->max_boxes)
		return err_set(err, EINVAL, "%s: replicas: %u is more than max_boxes (%u)",
		    place(origins, "replicas"), c->replicas, c->max_boxes);
	if (c->prewarm > c->replicas)
		return err_set(err, EINVAL, "%s: prewarm: %u is more than replicas (%u)",
		    place(origins, "prewarm"), c->prewarm, c->replicas);
	if (uids_end > UINT32_MAX)
		return err_set(err, EINVAL,
		    "%s: max_boxes: %u boxes of %u uids from namespace.uid_base (%u), and as many "
		    "for "
		    "making templates, go past the last uid",
		    place(origins, "max_boxes"), c->max_boxes, DRIVER_UIDS, c->namespace_uid_base);
	return 0;
}

int config_load(const struct config_sources *src, struct config *out, struct err *err)
{
	struct config_origins *origins = calloc(1, sizeof(*origins));
	struct config c = {0};
	int rc;

	if (!origins)
		return err_sys(err, ENOMEM, "configuration");
	set_defaults(&c);
	rc = load_file(src, &c, origins, err);
	if (rc == 0)
		rc = config_env_apply(src->env, &c, origins, err);
	if (rc == 0)
		rc = apply_overrides(src, &c, origins, err);
	if (rc == 0)
		rc = config_check(&c, origins, err);
	if (rc == 0)
		*out = c;
	else
		config_free(&c);
	free(origins);
	return rc;
}

void config_free(struct config *c)
{
	free(c->environment.data);
	*c = (struct config){0};
}

/* Copies what may change while running; the merged whole must still make sense. */
static int merge(
    const struct config *current, const struct config *fresh, struct config *out, struct err *err)
{
	static const struct config_origins nowhere;
	struct config c = *current;

	for (size_t i = 0; i < CONFIG_KEYS; i++) {
		const struct config_key *row = &config_keys[i];

		if (row->reloadable && row->type != CONFIG_ENVIRONMENT)
			memcpy((char *)&c + row->offset, (const char *)fresh + row->offset,
			    config_value_size(row));
	}
	*out = c;
	return config_check(&c, &nowhere, err);
}

int config_reload(struct config *current, const struct config *fresh, config_change_fn *fn,
    void *ctx, struct err *err)
{
	struct config merged;
	struct config old = *current;
	int rc = merge(current, fresh, &merged, err);

	if (rc < 0)
		return rc;
	merged.environment = fresh->environment;
	if (fresh->environment.len) {
		merged.environment.data = malloc(fresh->environment.len);
		if (!merged.environment.data)
			return err_sys(err, ENOMEM, "environment");
		memcpy(merged.environment.data, fresh->environment.data, fresh->environment.len);
	}
	*current = merged;
	for (size_t i = 0; i < CONFIG_KEYS; i++) {
		if (!config_value_equal(&config_keys[i], &old, fresh))
			fn(ctx, config_keys[i].name, config_keys[i].reloadable);
	}
	config_free(&old);
	return 0;
}
