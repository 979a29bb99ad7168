/*
 * repair: what makes a slot usable again after somebody died in the middle of changing it. sbxd
 * only.
 */
#ifndef SBXD_SHM_REPAIR_H
#define SBXD_SHM_REPAIR_H

#include "shm/layout.h"

/*
 * A scope_repair_fn. ctx: the supervisor's private `const struct slot_sup *` of this slot, the
 * truth to restore; with NULL the published part itself is validated (a successor has no mirror
 * yet). Mends both sequence counters, rewrites the supervisor part from the mirror, clears the
 * worker part, the connection words and in_flight (their worker is dead). Returns 0, or -EINVAL
 * when what is there cannot be trusted.
 */
int repair_slot(struct shm_slot *slot, void *ctx);

/* 0 when the part could have been written by a correct supervisor, else -EINVAL. `slots` bounds the
 * links. */
int repair_check_sup(const struct slot_sup *part, uint32_t slots);

#endif
