/*
 * namespace: the driver, and its functions that other files hold. See drivers/driver.h for what
 * each must do.
 */
#ifndef SBXD_DRIVERS_NAMESPACE_NAMESPACE_H
#define SBXD_DRIVERS_NAMESPACE_NAMESPACE_H

#include "drivers/driver.h"

extern const struct driver driver_namespace;

int namespace_probe(const struct driver_site *site, struct driver_facts *facts, struct err *err);
int namespace_prepare(const struct driver_site *site, const char *image, struct err *err);
int namespace_list(const struct driver_site *site, driver_list_fn *fn, void *ctx);
int namespace_adopt(const struct driver_site *site, const char *name, struct err *err);
int namespace_cleanup(
    const struct driver_site *site, const char *name, pid_t pid, uint64_t start, struct err *err);
int namespace_finish(const struct driver_site *site, struct err *err);

#endif
