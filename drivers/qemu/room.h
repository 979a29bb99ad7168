/* room: what images, their disks and templates may take together. Janitor and worker. */
#ifndef SBXD_DRIVERS_QEMU_ROOM_H
#define SBXD_DRIVERS_QEMU_ROOM_H

#include "drivers/driver.h"

/* images.cache_mib, in bytes; 0: no limit. */
uint64_t room_limit(const struct driver_options *o);

/*
 * Room for `need` bytes of a disk or a template: of those that no machine has, and then of images
 * that no box is made of, the longest unused go. 0, -EDQUOT with *err: what is in use leaves none;
 * or -errno.
 */
int room_make(const struct driver_site *site, uint64_t limit, uint64_t need, struct err *err);

/*
 * trim() of the driver: what no machine has goes, until no more than `most` bytes are left, and
 * what was being made by those who have died of it.
 */
int room_trim(const struct driver_site *site, uint64_t most, uint64_t *left, struct err *err);

#endif
