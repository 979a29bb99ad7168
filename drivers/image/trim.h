/*
 * trim: what is in the store, and what of it goes: leftovers of crashes, images that were not used
 * for longest when there are too many, and those that somebody wants gone. `sbx-worker image`.
 */
#ifndef SBXD_DRIVERS_IMAGE_TRIM_H
#define SBXD_DRIVERS_IMAGE_TRIM_H

#include <stddef.h>

#include "drivers/image/store.h"

struct image_entry {
	char id[IMAGE_DIGEST_LEN];
	uint64_t size;
	uint64_t files;
	uint64_t made_wall_ms;
	uint64_t used_wall_ms; /* when a box was last to be made of it */
	bool in_use;	       /* a box is made of it, or may be at any moment */
};

struct image_census {
	struct image_entry *images; /* owned */
	size_t count;
	struct image_name *names; /* owned; each names one of the images */
	size_t name_count;
	uint64_t size; /* of all images */
};

/* Looks at everything. 0 or -errno; *out is the caller's to free. */
int image_census_take(const struct image_store *s, struct image_census *out);
void image_census_free(struct image_census *c);

/* What all images take, as their notes say; 0 where none was ever pulled. 0 or -errno. */
int image_store_bytes(const char *state_dir, uint64_t *bytes);

/* Removes what died on its way, and names that name nothing. The lock is held; what takes long is
 * left to image_empty_gone(). 0 or -errno. */
int image_sweep(const struct image_store *s);

/* Takes an image and its names out of the store; as image_sweep(). 0, -ENOENT, -EBUSY (in use) or
 * -errno. */
int image_take_out(const struct image_store *s, const char *id);

/*
 * Takes out what is not in use, the longest unused first, until no more than `most` bytes are left.
 * `keep` (an id; "" none) stays. The lock is held. 0, or -ENOSPC when more is in use, or -errno.
 * *count and *bytes: what went, added.
 */
int image_make_room(
    const struct image_store *s, const char *keep, uint64_t most, uint32_t *count, uint64_t *bytes);

/* Deletes what was taken out. Without the lock: it may take long. 0 or -errno. */
int image_empty_gone(const struct image_store *s);

#endif
