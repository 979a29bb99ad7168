/*
 * place: what the BoxLite driver keeps on the host for one instance, by name.
 *
 *   <runtime_dir>/boxlite-<instance>/boxes/NAME  "pid start" of the sbx-boxlite that has the box
 *   <state_dir>/boxlite-<instance>/              is there while anything of the driver's may be
 *   ROOT/homes/NAME   local mode: the home directory of a box's BoxLite runtime
 *   ROOT/images/HASH  local mode: one that has a pulled image, and no box
 *
 * ROOT is <boxlite.home>/<instance>, by default <state_dir>/boxlite-<instance>. A runtime locks its
 * home directory: so that each worker owns its own, as it owns its box, each box has a home. It
 * begins as a copy of the image's, whose large files it shares as hard links.
 */
#ifndef SBXD_DRIVERS_BOXLITE_PLACE_H
#define SBXD_DRIVERS_BOXLITE_PLACE_H

#include <limits.h>
#include <stdbool.h>

#include "drivers/driver.h"

#define PLACE_LEN 256 /* fits struct eng_open */

struct place {
	bool remote;
	char records[PLACE_LEN]; /* <runtime_dir>/boxlite-<instance> */
	char state[PLACE_LEN];	 /* <state_dir>/boxlite-<instance> */
	char root[PLACE_LEN];
	bool own_root; /* root is not in the state directory: images in it are kept */
};

/* Works out the places. 0 or -ENAMETOOLONG with *err. */
int place_fill(const struct driver_site *site, const struct driver_options *options,
    struct place *out, struct err *err);

/* Has anything been prepared, and not finished? */
bool place_in_use(const struct place *p);

/* Makes the directories. 0 or -errno with *err. */
int place_make(const struct place *p, struct err *err);

/* Removes them, and what is in them; images of an own root stay. Idempotent. 0 or -errno. */
int place_remove(const struct place *p, struct err *err);

/* The home directories of a box, and of an image. 0 or -ENAMETOOLONG. */
int place_home(const struct place *p, const char *name, char out[PLACE_LEN]);
int place_image(const struct place *p, const char *image, char out[PLACE_LEN]);

/* Makes a box's home from an image's. 0 or -errno with *err; then nothing is left. */
int place_make_home(const char *image, const char *home, struct err *err);

#endif
