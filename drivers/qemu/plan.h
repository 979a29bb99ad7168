/*
 * plan: what the janitor's prepare() found out and made for an image, for every start() of it.
 *
 * Written into the memfd by the janitor, read by workers of the same build: so a plain struct.
 */
#ifndef SBXD_DRIVERS_QEMU_PLAN_H
#define SBXD_DRIVERS_QEMU_PLAN_H

#include <stdint.h>

#include "drivers/driver.h"
#include "drivers/namespace/prepared.h"
#include "lib/digest.h"

#define QEMU_MAGIC 0x32504d51U /* "QMP2" */
#define QEMU_PATH NS_PATH
#define QEMU_CPU 128

#define QEMU_F_KVM 1U	    /* else emulated */
#define QEMU_F_TEMPLATES 2U /* boxes are clones; else each boots */

/* All by which templates differ, but for the size of the machine. */
enum template_part {
	PART_FORMAT, /* what is done to make one */
	PART_QEMU,
	PART_KERNEL,
	PART_MODULES,
	PART_CPU, /* its model, and what computes it */
	PART_HOST,
	PART_IMAGE,
	PART_AGENT, /* sbx-guest and sbx-files */
	TEMPLATE_PARTS,
};

struct qemu_plan {
	uint32_t magic;
	uint32_t size;
	uint32_t flags;	      /* QEMU_F_* */
	uint32_t tsc_khz;     /* of this host */
	uint64_t cache_bytes; /* images.cache_mib; 0: no limit */
	char image[QEMU_PATH];
	char root[QEMU_PATH]; /* the directory that holds the image's root */
	char binary[QEMU_PATH];
	char version[32];	 /* of QEMU */
	char release[96];	 /* of the kernel; "" unknown */
	char prefix[QEMU_PATH];	 /* the directory that it was installed to; "" when that is /usr */
	char cpu[QEMU_CPU];	 /* -cpu */
	char kernel[QEMU_PATH];	 /* ELF image in the store, or the kernel's own file */
	char modules[QEMU_PATH]; /* part of the initial file system */
	char disk[QEMU_PATH];	 /* the image as a read-only file system */
	uint8_t parts[TEMPLATE_PARTS]
		     [DIGEST_LEN]; /* those of the box are 0: see template_parts.h */
	struct ns_prepared limits; /* of this only the cgroups count */
};

/* Writes it to site->prepared. 0 or -errno. */
int qemu_plan_save(const struct driver_site *site, const struct qemu_plan *plan, struct err *err);

/* Reads it back; the caller's to free(). NULL with *err. */
struct qemu_plan *qemu_plan_load(const struct driver_site *site, struct err *err);

#endif
