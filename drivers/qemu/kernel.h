/*
 * kernel: the kernel that machines boot, and its modules. Janitor.
 */
#ifndef SBXD_DRIVERS_QEMU_KERNEL_H
#define SBXD_DRIVERS_QEMU_KERNEL_H

#include "drivers/qemu/plan.h"

struct kernel_files {
	char image[QEMU_PATH];	 /* vmlinuz */
	char modules[QEMU_PATH]; /* /lib/modules/VERSION */
	char version[96];
};

/*
 * Finds a kernel that fits: the one that qemu.kernel names, else the newest cloud kernel in /boot,
 * else the newest there; and its modules, where qemu.modules says, else below /lib/modules, else
 * where the kernel's own package was unpacked to. 0 or -errno with *err, which says what is missing
 * and which package has it.
 */
int kernel_find(const struct driver_options *o, struct kernel_files *out, struct err *err);

/* Unpacks the kernel into the store, and writes plan->kernel. A kernel that is packed otherwise
 * than we know is taken as it is. 0 or -errno. */
int kernel_unpack(const struct driver_site *site, const struct kernel_files *files,
    struct qemu_plan *plan, uint64_t deadline_ns, struct err *err);

/* Puts the modules into the store as part of an initial file system, and writes plan->modules. 0 or
 * -errno. */
int kernel_pack_modules(const struct driver_site *site, const struct kernel_files *files,
    struct qemu_plan *plan, uint64_t deadline_ns, struct err *err);

#endif
