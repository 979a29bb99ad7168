/*
 * layer: our own layer of an image, which lies in every box that is made of it. Janitor.
 */
#ifndef SBXD_DRIVERS_NAMESPACE_LAYER_H
#define SBXD_DRIVERS_NAMESPACE_LAYER_H

#include "drivers/driver.h"
#include "drivers/namespace/prepared.h"
#include "lib/err.h"

/* Makes our layer for `image` in a new directory below dir and sets the layers of *prep. 0 or
 * -errno; the directory stays in both cases. */
int layer_make(const char *dir, const char *image, struct ns_prepared *prep, struct err *err);

/*
 * Sets the layers of *prep for `image`, whose root is site->root: those that this instance has
 * already, else they are made in its directory, which must be there. What lies over a root is the
 * same for all: one layer does for them. Layers that were not made to their end go. 0 or -errno.
 */
int layer_get(
    const struct driver_site *site, const char *image, struct ns_prepared *prep, struct err *err);

/* Sets the layers of *prep for any image that this instance has layers of. 0, -ENOENT or -errno. */
int layer_find_any(const struct driver_site *site, struct ns_prepared *prep);

#endif
