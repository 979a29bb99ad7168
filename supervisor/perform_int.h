/* perform_int: the actions that have a file of their own, as perform.c calls them. */
#ifndef SBXD_SUPERVISOR_PERFORM_INT_H
#define SBXD_SUPERVISOR_PERFORM_INT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pool_action;
struct sbxd;

/* POOL_CLEAN: has the janitor prove a box gone, then makes its slot usable again; pool_cleaned()
 * follows. */
void perform_clean(struct sbxd *s, const struct pool_action *a);

/* Makes the slot of a box usable for its next worker, when its last one may have died at anything.
 * False: it cannot be, and *why (`size` bytes) says so. */
bool perform_recover(struct sbxd *s, uint32_t slot, char *why, size_t size);

#endif
