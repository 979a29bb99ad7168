/*
 * repair: what makes a slot usable again after somebody died in the middle of changing it. sbxd
 * only.
 */
#ifndef SBXD_SHM_REPAIR_H
#define SBXD_SHM_REPAIR_H

#include "shm/layout.h"

/*
 * A scope_repair_fn, for sbxd, when no live worker has the page. ctx: `const uint32_t *`, the
 * number of its slot. Mends the sequence counter and clears the worker part, the connection words
 * and in_flight: whatever the dead worker was at, nothing of it is left. Returns 0, or -EINVAL when
 * the page says that it is another slot's: then it is not to be trusted any more.
 */
int repair_page(struct shm_page *page, void *ctx);

/* 0 when the part could have been written by a correct supervisor, else -EINVAL. `slots` bounds the
 * links. */
int repair_check_sup(const struct slot_sup *part, uint32_t slots);

#endif
