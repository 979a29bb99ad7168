/* images_int: what the files of prepared images share among themselves. */
#ifndef SBXD_SUPERVISOR_IMAGES_INT_H
#define SBXD_SUPERVISOR_IMAGES_INT_H

#include <bsd/sys/queue.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/buf.h"
#include "shm/layout.h"
#include "supervisor/images.h"

struct image_wait {
	TAILQ_ENTRY(image_wait) link;
	image_ready_fn *fn;
	uint64_t ctx;
};

enum image_state {
	IMAGE_PREPARING,
	IMAGE_PULLING, /* then it is prepared once more */
	IMAGE_READY,
};

struct image {
	TAILQ_ENTRY(image) link;
	struct sbxd *s;
	char name[SHM_IMAGE_LEN];
	int prepared;	   /* memfd */
	int hold;	   /* keeps it in the store; -1: it is not of the store */
	struct buf config; /* as the tail of CTL_DONE */
	enum image_state state;
	bool pulled;
	char passed[CTL_WHY]; /* as of the last CTL_DONE */
	TAILQ_HEAD(, image_wait) waiting;
};

/* NULL when nobody has needed it. */
struct image *image_find(const struct sbxd *s, const char *name);

/* It is prepared, and all who waited for it know. */
bool image_is_idle(const struct image *i);

/* Forgets it; nobody waits for it. */
void image_drop(struct image *i);

#endif
