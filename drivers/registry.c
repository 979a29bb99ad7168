/* registry: the drivers there are, in order of preference. Worker and janitor; holds no state. */
#include <stddef.h>
#include <string.h>

#include "drivers/boxlite/boxlite.h"
#include "drivers/driver.h"
#include "drivers/namespace/namespace.h"
#include "drivers/qemu/qemu.h"

static const struct driver *const drivers[] = {
    &driver_boxlite,
    &driver_qemu,
    &driver_namespace,
};

#define DRIVERS (sizeof(drivers) / sizeof(drivers[0]))

const struct driver *driver_at(unsigned int n)
{
	return n < DRIVERS ? drivers[n] : NULL;
}

const struct driver *driver_find(const char *name)
{
	for (size_t i = 0; i < DRIVERS; i++) {
		if (!strcmp(drivers[i]->name, name))
			return drivers[i];
	}
	return NULL;
}

int driver_trim_all(const struct driver_site *site, uint64_t most, uint64_t *left, struct err *err)
{
	uint64_t all = 0;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < DRIVERS; i++) {
		uint64_t one = 0;

		if (drivers[i]->trim)
			rc = drivers[i]->trim(site, most > all ? most - all : 0, &one, err);
		all += one;
	}
	*left = all;
	return rc;
}
