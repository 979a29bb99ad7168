/*
 * probe: what of QEMU, of a kernel and of an accelerator this host has. Janitor.
 */
#ifndef SBXD_DRIVERS_QEMU_PROBE_H
#define SBXD_DRIVERS_QEMU_PROBE_H

#include "drivers/qemu/kernel.h"
#include "drivers/qemu/plan.h"
#include "drivers/qemu/store.h"

struct found {
	struct kernel_files files;
	char version[32];		 /* of QEMU */
	uint64_t binary[STORE_IDENTITY]; /* what its file is */
	char no_kvm[200];		 /* why machines are emulated; "" when they are not */
};

/*
 * Fills all of the plan that does not depend on an image, and *found. 0 or -errno with *err: what
 * is missing, and which package has it.
 */
int probe_host(const struct driver_site *site, struct qemu_plan *plan, struct found *found,
    uint64_t deadline_ns, struct err *err);

/* The same, but tries nothing: found->version is "", and of KVM it knows what is noted. For who
 * only compares. */
int probe_look(const struct driver_site *site, struct qemu_plan *plan, struct found *found,
    uint64_t deadline_ns, struct err *err);

/* prepare.c: what of the plan, and of what was found, templates differ by. 0 or -errno. */
int qemu_plan_parts(struct qemu_plan *plan, const struct found *found);

#endif
