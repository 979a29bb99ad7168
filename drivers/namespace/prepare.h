/*
 * prepare: the parts of prepare() that probe() uses for its trial. Janitor.
 */
#ifndef SBXD_DRIVERS_NAMESPACE_PREPARE_H
#define SBXD_DRIVERS_NAMESPACE_PREPARE_H

#include "drivers/namespace/prepared.h"
#include "lib/err.h"

/* Makes our layer for `image` in a new directory below dir and sets the layers of *prep. 0 or
 * -errno; the directory stays in both cases. */
int prepare_layers(const char *dir, const char *image, struct ns_prepared *prep, struct err *err);

/* Sets what does not depend on site or image: masks and filter. 0 or -errno. */
int prepare_fill(struct ns_prepared *prep, struct err *err);

#endif
