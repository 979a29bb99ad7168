/*
 * reconcile: what a new supervisor does about what a dead one left behind.
 */
#ifndef SBXD_SUPERVISOR_RECONCILE_H
#define SBXD_SUPERVISOR_RECONCILE_H

#include "lib/err.h"

struct sbxd;

/*
 * Opens s->seg: takes over the table of a supervisor that is gone, or makes a new one. What stands
 * under the name and cannot be used is said and replaced; boxes of such a table are found by their
 * names (CTL_SWEEP), their workers by reconcile_strays(). -EBUSY when a supervisor lives there; or
 * -errno, with *err.
 */
int reconcile_table(struct sbxd *s, struct err *err);

/* Ends every worker of this instance that is not in s->workers, and removes its socket. */
void reconcile_strays(struct sbxd *s);

/*
 * A memfd with the names of all boxes that are in the table, as CTL_SWEEP takes those that it shall
 * keep. The caller's; or -errno.
 */
int reconcile_kept(const struct sbxd *s);

#endif
