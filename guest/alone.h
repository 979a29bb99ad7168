/*
 * alone: sbx-guest takes over a box in which another one ran, whose worker died: what that left
 * running is ended first.
 *
 *   sbx-guest relay-alone [HELPER]
 */
#ifndef SBXD_GUEST_ALONE_H
#define SBXD_GUEST_ALONE_H

#include "guest/tree.h"

/*
 * Kills every process of the box but its first and ourselves, and waits until they are gone; t is
 * room to look for them in. Only where we have come into the box's pid namespace from outside: what
 * can be seen then is the box's. 0; -EXDEV: we have not; -EBUSY: something does not end; or -errno.
 */
int alone_make(struct tree *t);

#endif
