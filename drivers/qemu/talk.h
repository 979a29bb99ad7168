/*
 * talk: what is said to sbx-guest before a worker serves it: a few frames, one after the other.
 */
#ifndef SBXD_DRIVERS_QEMU_TALK_H
#define SBXD_DRIVERS_QEMU_TALK_H

#include "drivers/qemu/machine.h"

/* All return 0, -ETIMEDOUT, -EPIPE, -EBADMSG or -errno, with *err. */

/* Waits for the guest of a machine that boots. */
int talk_hello(const struct machine *m, uint64_t deadline_ns, struct err *err);

/* Has a line run by the box's shell, or sbx-files say its version, and waits for the end; how it
 * ends does not matter. `channel` was not used before. */
int talk_run(const struct machine *m, uint32_t channel, const char *line, uint64_t deadline_ns,
    struct err *err);
int talk_run_helper(
    const struct machine *m, uint32_t channel, uint64_t deadline_ns, struct err *err);

/*
 * Makes a box of its own of the machine: clock, random state, names, limits. When it returns the
 * guest has confirmed all of that, and its next frame is AGENT_HELLO.
 */
int talk_wake(
    const struct machine *m, const struct driver_spec *spec, uint64_t deadline_ns, struct err *err);

#endif
