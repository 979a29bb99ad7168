/*
 * template: a machine that has booted, as files that any number of others begin with. Worker.
 *
 *   template-KEY/memory   its memory; pages of zeros are holes
 *   template-KEY/state    its devices, as QEMU writes them when it migrates
 *   template-KEY/note     what the two must look like to be whole
 *   template-KEY/about    what it is, see template_about.h
 *
 * The key has all that makes a difference: QEMU, kernel, modules, sbx-guest, sbx-files, image,
 * memory, processors, accelerator, host. Nobody ever writes to a template that has its name: QEMU
 * maps it through a descriptor for reading, and what a box writes is its own. The descriptor keeps
 * it in the store (store_hold()).
 */
#ifndef SBXD_DRIVERS_QEMU_TEMPLATE_H
#define SBXD_DRIVERS_QEMU_TEMPLATE_H

#include "drivers/qemu/machine.h"
#include "drivers/qemu/store.h"

struct template
{
	int memory; /* open for reading, owned, as state */
	int state;
	bool made; /* it was not there */
	struct store_entry entry;
};

/*
 * Finds the template for such a box, or makes it: then it boots a machine. Who wants the same
 * meanwhile waits. One that is damaged is made anew. 0, -EDQUOT with *err: there is no room to keep
 * it; or -errno with *err.
 */
int template_get(const struct driver_site *site, const struct qemu_plan *plan,
    const struct driver_spec *spec, uid_t base, struct template *t, struct err *err);

void template_close(struct template *t);

/* Boots a machine for the box as it is: what a template is made of. The initial file system is made
 * of sbx-guest and sbx-files. *m as by machine_launch(), its guest has said hello. */
int template_boot(const struct machine_spec *like, const struct driver_spec *spec, uid_t base,
    const struct machine_hooks *hooks, struct machine *m, struct err *err);

#endif
