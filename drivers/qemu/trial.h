/*
 * trial: does a kernel boot with KVM here? Janitor.
 */
#ifndef SBXD_DRIVERS_QEMU_TRIAL_H
#define SBXD_DRIVERS_QEMU_TRIAL_H

#include <stdbool.h>
#include <stdint.h>

#include "drivers/qemu/probe.h"

#define TRIAL_KVM "/dev/kvm"
#define TRIAL_WHY 200
/* What did not boot is tried again after so long: the host may have been busy, or have been mended.
 */
#define TRIAL_AGAIN_S 600

struct trial_how {
	uint64_t patience_ns; /* for a kernel that boots */
	uint64_t deadline_ns; /* for all of it */
	bool again;	      /* that it did not boot before is no answer */
	bool look;	      /* only what is noted, however old */
};

struct trial {
	bool boots;
	char why[TRIAL_WHY]; /* it does not; "" when it does */
};

/*
 * Boots plan->kernel, with the processor of the plan, or finds noted what came of that. That it
 * boots holds until the host starts anew, that it does not for TRIAL_AGAIN_S. What was cut short
 * by the deadline, or killed by somebody, says nothing and is not noted. 0 or -errno with *err.
 */
int trial_kvm(const struct driver_site *site, const struct qemu_plan *plan,
    const struct found *found, const struct trial_how *how, struct trial *out, struct err *err);

#endif
