/* settings: what the configuration says of images. `sbx-worker image`; holds no state. */
#include <stdlib.h>
#include <string.h>

#include "drivers/image/pull.h"
#include "lib/clock.h"

#define MIB (1024ULL * 1024ULL)

static double number(const struct driver_options *o, const char *key)
{
	const char *text = driver_option(o, key);

	return text ? strtod(text, NULL) : 0;
}

void image_settings_read(const struct driver_options *options, struct image_settings *out)
{
	*out = (struct image_settings){
	    .cache_bytes = (uint64_t)number(options, "images.cache_mib") * MIB,
	    .pull_ns = clock_seconds_to_ns(number(options, "images.pull_timeout")),
	    .auth = driver_option(options, "images.auth_file"),
	    .insecure = driver_option(options, "images.insecure_registries"),
	};
}

bool image_settings_is_insecure(const struct image_settings *set, const char *registry)
{
	size_t want = strlen(registry);

	for (const char *at = set->insecure; at && *at;) {
		size_t len = strcspn(at, ",");
		size_t skip = strspn(at, " ");

		if (skip <= len && len - skip == want && !strncmp(at + skip, registry, want))
			return true;
		at += len + (at[len] == ',');
	}
	return false;
}
