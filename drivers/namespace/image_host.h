/*
 * image_host: our own layer of a box's root, made once per instance.
 *
 * For every image it has the mount points and the directories that each box has. For the image
 * `host` it also has the links of the host's top level (bin, lib, ...) and a small /etc: what
 * programs need to run, nothing that is not readable by everybody, no credentials.
 */
#ifndef SBXD_DRIVERS_NAMESPACE_IMAGE_HOST_H
#define SBXD_DRIVERS_NAMESPACE_IMAGE_HOST_H

#include <stdint.h>

#include "drivers/namespace/prepared.h"
#include "lib/err.h"

#define IMAGE_HOST "host"
#define IMAGE_ROOTED "" /* any that has a root of its own */

/* Makes the layer of an image directory at dirfd, which is empty. 0 or -errno. */
int image_build_base(int dirfd, struct err *err);

/*
 * Makes the layer of `host`. prep->binds gets the host's top-level program directories that are
 * real ones, on hosts without a merged /usr. 0 or -errno.
 */
int image_build_host(int dirfd, struct ns_prepared *prep, struct err *err);

/*
 * A number that is another when the layer of the image would be: of `host` when /usr is another
 * one, or the files of /etc that are copied have changed.
 */
uint64_t image_stamp(const char *image);

#endif
