/*
 * template_parts: of what a template is made: its key, and what tells one from another. Worker and
 * `sbx-worker image`.
 */
#ifndef SBXD_DRIVERS_QEMU_TEMPLATE_PARTS_H
#define SBXD_DRIVERS_QEMU_TEMPLATE_PARTS_H

#include "drivers/qemu/plan.h"

/* All that makes a difference, as numbers: another one is another template. */
struct template_parts {
	uint8_t of[TEMPLATE_PARTS][DIGEST_LEN];
	uint32_t memory_mib; /* of the machine */
	uint32_t cpus;
};

/* What a part is called, for people. */
const char *template_part_name(enum template_part part);

/* The digest of one part. 0 or -errno. */
int template_part_set(uint8_t out[DIGEST_LEN], const void *data, size_t len);

/* sbx-guest and sbx-files, open for reading (-1: missing): what is in them counts, not where they
 * lie. 0 or -errno. */
int template_part_set_agent(uint8_t out[DIGEST_LEN], int guest, int helper);

/* Those of a box of the plan. 0 or -errno. */
int template_parts_fill(
    const struct qemu_plan *plan, const struct driver_spec *spec, struct template_parts *out);

/* The key of a template. 0 or -errno. */
int template_parts_digest(const struct template_parts *parts, uint8_t out[DIGEST_LEN]);

#endif
