/*
 * image: what a box is made of, as a disk that machines share. Janitor, worker, `sbx-worker image`.
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

/* Where the disk of the directory as it is now would be in the store. Makes nothing. 0 or -errno
 * with *err. */
int image_disk_path(
    const struct driver_site *site, const char *root, char out[QEMU_PATH], struct err *err);

/* Makes the disk of plan->root in the store, unless it is there, and writes plan->disk. 0, -EDQUOT
 * with *err: it has no room; or -errno with *err. */
int image_make_disk(
    const struct driver_site *site, struct qemu_plan *plan, uint64_t deadline_ns, struct err *err);

/* Opens plan->disk for a machine, which keeps it in the store. fd (the caller's), -ESTALE with
 * *err: it went from there; or -errno with *err. */
int image_open_disk(const struct qemu_plan *plan, uint64_t deadline_ns, struct err *err);

/* The same, but one that went is made anew, which may take minutes. */
int image_need_disk(
    const struct driver_site *site, struct qemu_plan *plan, uint64_t deadline_ns, struct err *err);

#endif
