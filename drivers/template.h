/*
 * template: what a driver keeps so that boxes begin as copies: the contract of a driver that does.
 *
 * All of it is done by `sbx-worker image`, a process of its own that holds sbxd's privileges; it
 * may be killed anywhere, and leaves what the driver's trim() removes.
 */
#ifndef SBXD_DRIVERS_TEMPLATE_H
#define SBXD_DRIVERS_TEMPLATE_H

#include "drivers/driver.h"

#define DRIVER_TEMPLATE_KEY 40

enum driver_template_state {
	DRIVER_TEMPLATE_CURRENT, /* a box of its kind would begin with it */
	DRIVER_TEMPLATE_STALE,	 /* no box does any more */
	DRIVER_TEMPLATE_DAMAGED, /* a box of its kind would have it made anew */
};

/* What is known of one. */
struct driver_template {
	char key[DRIVER_TEMPLATE_KEY];
	enum driver_template_state state;
	char why[256];	     /* it is not current; "" where it is */
	char image[128];     /* "" and 0 below where it is damaged so that nobody knows */
	uint32_t memory_mib; /* of the machine */
	uint32_t cpus;
	char accelerator[8]; /* kvm, tcg */
	char cpu_model[128];
	char version[32]; /* of what runs it */
	char kernel[96];
	uint32_t boxes; /* that are copies of it and live */
	uint64_t bytes; /* on the disk */
	uint64_t made_wall_ms;
	uint64_t used_wall_ms;
};

typedef int driver_template_fn(void *ctx, const struct driver_template *t);

struct driver_templates {
	/*
	 * Calls fn for each. guest, helper: as in driver_spec, those of boxes that would be made
	 * now. 0, fn's result, or -errno with *err.
	 */
	int (*each)(const struct driver_site *site, int guest, int helper, driver_template_fn *fn,
	    void *ctx, struct err *err);

	/*
	 * Makes the one that a box of the spec would begin with, unless it is there. site->prepared
	 * is as prepare() of the image has left it; spec->slot is no box's. *made: it was not
	 * there. 0, -EOPNOTSUPP: the configuration has none made; or -errno with *err.
	 */
	int (*build)(const struct driver_site *site, const struct driver_spec *spec,
	    char key[DRIVER_TEMPLATE_KEY], bool *made, struct err *err);

	/* Removes one. *bytes: what it took. 0; -ENOENT; -EBUSY: boxes are copies of it; or -errno,
	 * with *err. */
	int (*remove)(
	    const struct driver_site *site, const char *key, uint64_t *bytes, struct err *err);
};

#endif
