/*
 * target: what the suite runs over: each driver, in each way in which it can have boxes. One row
 * says what is different there; everything else holds for all.
 */
#ifndef SBXD_TESTS_DRIVERS_TARGET_H
#define SBXD_TESTS_DRIVERS_TARGET_H

#include <stdbool.h>
#include <stddef.h>

#include "drivers/driver.h"
#include "tests/drivers/faults.h"

/* Limits and isolation are the driver's own work, its own descriptor of sbx-guest is what it boots,
 * and what it makes a box of is a directory. */
#define TARGET_OWN_WORK 1U
/* The first box leaves what all others find: the numbers of the quiet host are taken after one. */
#define TARGET_WARM_UP 2U
/* A box may outlive its worker: the janitor ends it. */
#define TARGET_OUTLIVES 4U

struct target {
	const char *name;
	const char *variable; /* it is there only where this is in the environment; NULL: always */
	const char *driver;
	const char *image;
	const char *image_variable; /* of the environment, where it is a directory that is made */
	unsigned int traits;
	const struct fault_steps *steps;
	const char *const *bad_images;

	/* Sets up what the driver needs that is not of this host; writes its settings as struct
	 * driver_options has them. dir is the fixture's. NULL: nothing. */
	size_t (*set_up)(const char *dir, char *options, size_t size);
	void (*tear_down)(const char *dir);
};

/* The n-th, or NULL past the last. */
const struct target *target_at(unsigned int n);

bool target_is_there(const struct target *t);

#endif
