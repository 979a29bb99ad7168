/*
 * images: what the driver prepared for each image in use: one memfd, written by the janitor before
 * the first box of that image boots, given to every worker of it.
 */
#ifndef SBXD_SUPERVISOR_IMAGES_H
#define SBXD_SUPERVISOR_IMAGES_H

#include <stdint.h>

#include "wire/control.h"

struct sbxd;

/* Called once, now or from the loop: prepared is the memfd (still ours), or -1 with *done saying
 * why. */
typedef void image_ready_fn(
    struct sbxd *s, uint64_t ctx, int prepared, const struct ctl_done *done);

/* Has `image` prepared unless it is already, then calls fn. */
void image_need(struct sbxd *s, const char *image, image_ready_fn *fn, uint64_t ctx);

/* Forgets all; nobody is called any more. */
void images_free(struct sbxd *s);

#endif
