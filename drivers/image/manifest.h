/*
 * manifest: the JSON of OCI and Docker images. `sbx-worker image`. Nobody vouches for it: what is
 * not as it should be is an error, never more.
 */
#ifndef SBXD_DRIVERS_IMAGE_MANIFEST_H
#define SBXD_DRIVERS_IMAGE_MANIFEST_H

#include <stddef.h>
#include <stdint.h>

#include "drivers/image/note.h"

#define MANIFEST_MAX (4U * 1024U * 1024U) /* bytes: more is refused by registries too */

struct image_manifest {
	char chosen[IMAGE_DIGEST_LEN]; /* of an index: the one for this host; "": it is none */
	char config[IMAGE_DIGEST_LEN]; /* of a manifest; "" when it is of a kind that names none */
	uint64_t bytes;		       /* of its layers, packed; 0 unknown */
};

/* Reads a manifest or an index of several. 0, or -EINVAL with *err. */
int manifest_parse(const uint8_t *text, size_t n, struct image_manifest *out, struct err *err);

/* The digest of the one image in an OCI layout's index.json. 0, or -EINVAL with *err. */
int manifest_parse_layout(
    const uint8_t *text, size_t n, char id[IMAGE_DIGEST_LEN], struct err *err);

/* Takes user, working directory and environment of an image's configuration into *note. 0, or
 * -errno with *err. */
int manifest_parse_config(const uint8_t *text, size_t n, struct image_note *note, struct err *err);

/* "sha256:..." of n bytes. 0 or -EIO. */
int manifest_digest(const void *bytes, size_t n, char out[IMAGE_DIGEST_LEN]);

#endif
