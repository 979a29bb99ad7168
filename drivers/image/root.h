/*
 * root: from the name of an image to the directory that holds its root. Janitor.
 */
#ifndef SBXD_DRIVERS_IMAGE_ROOT_H
#define SBXD_DRIVERS_IMAGE_ROOT_H

#include <stdbool.h>

#include "drivers/image/store.h"

struct image_root {
	char path[STORE_PATH]; /* "" of `host` */
	int hold; /* the caller's: keeps it in the store while it is open; -1: it is not of the
		     store */
	struct buf config; /* the caller's: as the tail of CTL_DONE; empty of no store's image */
};

/*
 * 0; -ENODATA with *err: it has to be pulled first; or -errno with *err: there is no such image.
 * *out is to be freed in any case.
 */
int image_root_get(
    const char *state_dir, const char *image, struct image_root *out, struct err *err);

/* Where the root of an image is now, for who only looks: nothing keeps it there. As
 * image_root_get(); -EINVAL: it has none. */
int image_root_peek(
    const char *state_dir, const char *image, char out[STORE_PATH], struct err *err);

void image_root_free(struct image_root *r);

/* For drivers' takes(): a name of an image that has a root, which `host` is not. */
bool image_root_takes(const char *image);

#endif
