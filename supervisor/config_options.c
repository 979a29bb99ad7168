/*
 * config_options: what the configuration says to drivers alone, on its way to them. sbxd does not
 * know what it means. Runs in sbxd, at start; holds no state.
 */
#include <string.h>

#include "supervisor/config_table.h"

/* The sections that are told: each a driver's, or the image store's. */
static const char *const sections[] = {"boxlite.", "images.", "qemu."};

static bool is_told(const struct config_key *key)
{
	for (size_t i = 0; i < sizeof(sections) / sizeof(sections[0]); i++) {
		if (!strncmp(key->name, sections[i], strlen(sections[i])))
			return true;
	}
	return false;
}

/* "KEY=VALUE" and a NUL, or nothing when the value is empty. */
static int put_option(const struct config_key *key, const struct config *c, struct buf *out)
{
	size_t before = out->len;
	size_t empty;
	int rc = buf_printf(out, "%s=", key->name);

	empty = out->len;
	if (rc == 0)
		rc = config_value_put(key, c, out);
	if (rc < 0)
		return rc;
	if (out->len == empty) {
		out->len = before;
		return 0;
	}
	return buf_append(out, "", 1);
}

int config_options(const struct config *c, struct buf *out)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < CONFIG_KEYS; i++) {
		if (is_told(&config_keys[i]))
			rc = put_option(&config_keys[i], c, out);
	}
	return rc;
}
