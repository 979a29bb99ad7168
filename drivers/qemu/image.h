/*
 * image: what a box is made of, as a disk that machines share. Janitor.
 */
#ifndef SBXD_DRIVERS_QEMU_IMAGE_H
#define SBXD_DRIVERS_QEMU_IMAGE_H

#include "drivers/qemu/plan.h"

/* The directory that holds the root of the image, which must have one: `host` has none. 0 or -errno
 * with *err. */
int image_root(
    const struct driver_site *site, const char *image, char out[QEMU_PATH], struct err *err);

/* Can disks be made here? 0, or -ENOENT with what is to be installed. */
int image_probe(struct err *err);

/* Makes the disk of the directory in the store, unless it is there, and writes plan->disk. 0 or
 * -errno with *err. */
int image_make_disk(const struct driver_site *site, const char *root, struct qemu_plan *plan,
    uint64_t deadline_ns, struct err *err);

#endif
