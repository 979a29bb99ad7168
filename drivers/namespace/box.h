/*
 * box: a running box in its worker's hands.
 */
#ifndef SBXD_DRIVERS_NAMESPACE_BOX_H
#define SBXD_DRIVERS_NAMESPACE_BOX_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "drivers/driver.h"
#include "drivers/namespace/cgroup.h"
#include "drivers/namespace/prepared.h"

struct driver_box {
	const struct ns_prepared *prep; /* mapped until unprivileged() or free() */
	struct cgroup_set cgroups;
	int pidfd; /* of the box's first process, our child */
	pid_t pid;
	bool reaped;
};

/* Ends the box's first process, and by that every other, and waits for it. 0, -ETIMEDOUT, -errno.
 */
int ns_box_kill(struct driver_box *box, uint64_t deadline_ns);

/*
 * Starts a box from *prep as driver.start does. With `trial` the child goes all the way but does
 * not execute sbx-guest, and the box is gone again at return; *out and *stream are left alone.
 */
int ns_box_start(const struct driver_site *site, const struct ns_prepared *prep,
    const struct driver_spec *spec, bool trial, struct driver_box **out, int *stream,
    struct err *err);

#endif
