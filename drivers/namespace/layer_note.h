/*
 * layer_note: what is kept of a layer so that a later prepare() finds it again. Janitor.
 *
 *   image-XXXXXX        a layer
 *   image-XXXXXX.made   next to it: how it was made; from its rename on boxes may use the layer
 *   image-XXXXXX.new    one that is being written
 *
 * A note counts only for the program, the boot and the instance that wrote it, and only as long as
 * what the layer was made of is the same. One that counts no more stays with its layer, which
 * live boxes may use.
 */
#ifndef SBXD_DRIVERS_NAMESPACE_LAYER_NOTE_H
#define SBXD_DRIVERS_NAMESPACE_LAYER_NOTE_H

#include <stdint.h>

#include "drivers/driver.h"
#include "drivers/namespace/prepared.h"
#include "lib/err.h"

#define LAYER_PREFIX "image-"
#define LAYER_RANDOM "XXXXXX"
#define LAYER_NAME (sizeof(LAYER_PREFIX LAYER_RANDOM) - 1) /* length of a layer's own name */

/* Notes the layer that *prep describes. stamp: image_stamp() of before it was made. 0 or -errno. */
int layer_note_write(const struct driver_site *site, const struct ns_prepared *prep, uint64_t stamp,
    struct err *err);

/* Finds a layer in dir that was made for `image`, of any image when that is NULL, and fills *prep
 * as when it was noted. 0, -ENOENT or -errno. */
int layer_note_find(
    const struct driver_site *site, const char *dir, const char *image, struct ns_prepared *prep);

/* Removes the layers in dir that have no note, so no box: whoever made them died. 0 or -errno. */
int layer_note_sweep(const char *dir);

#endif
