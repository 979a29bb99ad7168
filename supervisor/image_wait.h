/*
 * image_wait: acquires, and boxes to be made, whose image is not there yet. They wait here and not
 * in the pool: a pull takes longer than a boot may, and must keep no permit to boot, and no place
 * among the boxes, from others.
 */
#ifndef SBXD_SUPERVISOR_IMAGE_WAIT_H
#define SBXD_SUPERVISOR_IMAGE_WAIT_H

#include <jansson.h>
#include <stdint.h>

struct pool_request;
struct sbxd;

/*
 * pool_acquire(), as soon as the image of q is prepared. When that fails, or takes longer than q
 * may wait, whoever asked is refused as by the pool. body: what the texts of q are part of.
 */
void image_wait_acquire(struct sbxd *s, const struct pool_request *q, json_t *body);

/* Nobody waits for that request any more. */
void image_wait_gone(struct sbxd *s, uint64_t req);

/* sbxd ends: all are refused. */
void image_waits_end(struct sbxd *s);

/* Nobody is told. */
void image_waits_free(struct sbxd *s);

#endif
