/* plan: from the janitor to workers. Holds no state. */
#include "drivers/qemu/plan.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

int qemu_plan_save(const struct driver_site *site, const struct qemu_plan *plan, struct err *err)
{
	if (ftruncate(site->prepared, 0) < 0 ||
	    pwrite(site->prepared, plan, sizeof(*plan), 0) != (ssize_t)sizeof(*plan))
		return err_sys(err, errno ? errno : EIO, "write what was prepared");
	return 0;
}

struct qemu_plan *qemu_plan_load(const struct driver_site *site, struct err *err)
{
	struct qemu_plan *plan = calloc(1, sizeof(*plan));
	ssize_t n = plan ? pread(site->prepared, plan, sizeof(*plan), 0) : -1;

	if (n == (ssize_t)sizeof(*plan) && plan->magic == QEMU_MAGIC && plan->size == sizeof(*plan))
		return plan;
	free(plan);
	(void)err_set(err, EINVAL, "the qemu driver was not prepared");
	return NULL;
}
