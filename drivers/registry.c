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
