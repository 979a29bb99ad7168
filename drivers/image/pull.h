/*
 * pull: an image comes into the store: fetched by skopeo, unpacked by umoci, both in jails.
 * `sbx-worker image`.
 */
#ifndef SBXD_DRIVERS_IMAGE_PULL_H
#define SBXD_DRIVERS_IMAGE_PULL_H

#include "drivers/driver.h"
#include "drivers/image/run.h"
#include "drivers/image/store.h"

enum pull_stage {
	PULL_RESOLVING,
	PULL_FETCHING,
	PULL_UNPACKING,
	PULL_KEEPING,
	PULL_STAGES,
};

struct pull_progress {
	enum pull_stage stage;
	uint64_t done;	/* bytes of that stage */
	uint64_t total; /* 0: not known */
};

/* For people and clients: "fetching" etc. */
const char *pull_stage_name(enum pull_stage stage);

/* The settings of images, out of what drivers are told. */
struct image_settings {
	uint64_t cache_bytes;
	uint64_t pull_ns;     /* how long a pull may take */
	const char *auth;     /* a file of credentials; NULL none */
	const char *insecure; /* registries without TLS, with commas between; NULL none */
};

void image_settings_read(const struct driver_options *options, struct image_settings *out);

/* True when that registry is among those without TLS. */
bool image_settings_is_insecure(const struct image_settings *set, const char *registry);

struct pull_order {
	const char *reference;
	struct image_ref ref; /* of it: of a kind that can be pulled */
	struct image_settings settings;
	uid_t uid; /* whom what comes from a registry is fetched as; 0: we are no root */
	int hangup;
	void (*progress)(void *ctx, const struct pull_progress *p);
	void *ctx;
};

/*
 * Pulls it: its name in the store is the registry's present image then. 0 with *id; or -errno with
 * *err, the store being as it was, short of images that were removed to make room.
 */
int image_pull(const struct driver_site *site, const struct pull_order *order,
    char id[IMAGE_DIGEST_LEN], struct err *err);

/* Can it be done here? 0, or -ENOENT with *err: what is to be installed. */
int image_pull_probe(struct err *err);

#endif
