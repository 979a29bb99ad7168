/*
 * template_size: how large a template was for which there was no room: it is not made again in
 * vain. Worker and `sbx-worker image`.
 */
#ifndef SBXD_DRIVERS_QEMU_TEMPLATE_SIZE_H
#define SBXD_DRIVERS_QEMU_TEMPLATE_SIZE_H

#include "drivers/qemu/plan.h"

/* Bytes on the disk; 0: not known. */
uint64_t template_size_read(const struct driver_site *site, const uint8_t digest[DIGEST_LEN]);

void template_size_note(
    const struct driver_site *site, const uint8_t digest[DIGEST_LEN], uint64_t bytes);

#endif
