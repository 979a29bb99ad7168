/* jail_root: the small root of a jail. In the jail's first process only. */
#ifndef SBXD_DRIVERS_IMAGE_JAIL_ROOT_H
#define SBXD_DRIVERS_IMAGE_JAIL_ROOT_H

#include "drivers/image/jail.h"

/* Builds the root and enters it; nothing else of the host is to be reached then. 0, or -errno with
 * *step, what it was at. */
int jail_root_enter(const struct jail_spec *spec, const char **step);

#endif
