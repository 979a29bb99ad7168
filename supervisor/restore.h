/*
 * restore: from the table that a dead supervisor left to a pool that goes on with it.
 */
#ifndef SBXD_SUPERVISOR_RESTORE_H
#define SBXD_SUPERVISOR_RESTORE_H

#include <stdint.h>

struct sbxd;

/*
 * Takes over every slot of s->seg, which was just attached, into s->pool and s->parts, and connects
 * to the workers that live. Answers come later: see worker_adopt.h. Returns how many boxes have a
 * live worker. Actions are left in the pool, to be performed once the driver is ready.
 */
uint32_t restore_boxes(struct sbxd *s);

#endif
