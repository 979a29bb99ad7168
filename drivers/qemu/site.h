/*
 * site: what the qemu driver keeps on the host.
 *
 *   <runtime_dir>/qemu-<instance>/
 *       cgroups      the directories that hold boxes' cgroups, one a line
 *       boxes/NAME   "pid start" of a box's QEMU
 *   <state_dir>/qemu/
 *       the store, see store.h: shared by all instances of the state directory
 */
#ifndef SBXD_DRIVERS_QEMU_SITE_H
#define SBXD_DRIVERS_QEMU_SITE_H

#include "drivers/driver.h"
#include "drivers/qemu/plan.h"
#include "drivers/record.h"

/* Writes the path of the instance's directory. 0 or -ENAMETOOLONG. */
int qemu_site_path(const struct driver_site *site, char out[QEMU_PATH]);

/* The same for the store. */
int qemu_store_path(const struct driver_site *site, char out[QEMU_PATH]);

/* Makes the instance's directory (and boxes/ in it) and opens it. Descriptor (caller's) or -errno.
 */
int qemu_site_make(const struct driver_site *site, struct err *err);

/* Opens it if it is there. Descriptor (caller's) or -errno. */
int qemu_site_open(const struct driver_site *site);

/* "DIR/NAME" and `more` behind it. 0 or -ENAMETOOLONG. */
int qemu_path_join(char out[QEMU_PATH], const char *dir, const char *name, const char *more);

#endif
