/*
 * driver_start: makes the driver ready at sbxd's start, after what the last supervisor left was
 * taken over or cleaned up.
 */
#ifndef SBXD_SUPERVISOR_DRIVER_START_H
#define SBXD_SUPERVISOR_DRIVER_START_H

#include "lib/err.h"

struct sbxd;

/*
 * Starts the janitor, takes over the boxes in s->seg, removes those that nobody knows, and prepares
 * the configured image. Waits, within the janitor's bounds; events are served meanwhile. 0 or
 * -errno with *err.
 */
int driver_begin(struct sbxd *s, struct err *err);

/* A start that came to nothing leaves nothing of the driver's, unless boxes need it. */
void driver_abandon(struct sbxd *s);

#endif
