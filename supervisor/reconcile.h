/* reconcile: what a new supervisor does about what a dead one left behind. */
#ifndef SBXD_SUPERVISOR_RECONCILE_H
#define SBXD_SUPERVISOR_RECONCILE_H

#include "lib/err.h"

struct sbxd;

/*
 * Looks at the segment under s->segment_name. None: nothing to do. A live supervisor's: -EBUSY. A
 * dead one's: ends its workers and boxes, each proven by pid and start time, and removes the
 * segment. Not ours or not readable: removed when it is ours, else -EPERM. Waits, bounded: only at
 * start. 0 or -errno with *err.
 */
int reconcile_segment(struct sbxd *s, struct err *err);

#endif
