/*
 * prepare: the part of prepare() that probe() uses for its trial. Janitor.
 */
#ifndef SBXD_DRIVERS_NAMESPACE_PREPARE_H
#define SBXD_DRIVERS_NAMESPACE_PREPARE_H

#include "drivers/namespace/prepared.h"
#include "lib/err.h"

/* Sets what does not depend on site or image: masks and filter. 0 or -errno. */
int prepare_fill(struct ns_prepared *prep, struct err *err);

#endif
