/* lifecycle: what moves sbxd as a whole: signals and the heartbeat. */
#ifndef SBXD_SUPERVISOR_LIFECYCLE_H
#define SBXD_SUPERVISOR_LIFECYCLE_H

#include "lib/err.h"
#include "lib/loop.h"

struct sbxd;

/* Blocks SIGTERM, SIGINT, SIGHUP, SIGUSR2 and SIGPIPE, and handles all but the last in the loop. 0
 * or -errno with *err. */
int lifecycle_watch_signals(struct sbxd *s, struct err *err);

/* A loop_timer_fn for s->heartbeat: shows in the table that the loop turns, and sets itself again.
 */
loop_timer_fn lifecycle_beat;

/* From now on the service manager hears in time that the loop turns, if it wants to. */
void lifecycle_watchdog(struct sbxd *s);

#endif
