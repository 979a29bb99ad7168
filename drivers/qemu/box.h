/* box: a running box in its worker's hands. */
#ifndef SBXD_DRIVERS_QEMU_BOX_H
#define SBXD_DRIVERS_QEMU_BOX_H

#include <stdbool.h>

#include "drivers/driver.h"
#include "drivers/namespace/cgroup.h"
#include "drivers/qemu/machine.h"
#include "drivers/qemu/qmp.h"

struct driver_box {
	struct machine machine;
	struct qmp qmp;
	struct cgroup_set cgroups;
	int cpu; /* /proc/PID/stat and statm of QEMU, where no cgroup counts; -1: not open */
	int memory;
};

#endif
