/*
 * image_ref: what an image is called. Pure: no file is looked at.
 *
 *   host                     the host's own system
 *   /DIR                     a directory that holds a root
 *   oci:/PATH[:TAG]          an OCI image layout on this host
 *   sha256:HEX               an image of the store, by its digest
 *   [REGISTRY/]NAME[:TAG][@sha256:HEX]   an image of a registry; without REGISTRY docker.io's
 */
#ifndef SBXD_LIB_IMAGE_REF_H
#define SBXD_LIB_IMAGE_REF_H

#include <stdbool.h>

#include "lib/err.h"

#define IMAGE_REF_MAX 127    /* bytes of a reference, as the table has room for */
#define IMAGE_DIGEST_LEN 72  /* "sha256:", 64 hex digits and a NUL */
#define IMAGE_NORMAL_LEN 400 /* a reference in full, with what was left out */
#define IMAGE_PART_LEN 160

enum image_kind {
	IMAGE_KIND_HOST,
	IMAGE_KIND_DIR,
	IMAGE_KIND_OCI,
	IMAGE_KIND_ID,
	IMAGE_KIND_REGISTRY,
};

struct image_ref {
	enum image_kind kind;
	char name[IMAGE_PART_LEN]; /* REGISTRY/PATH in full, or the path of the layout or directory
				    */
	char tag[IMAGE_PART_LEN];  /* of a registry's image "latest" unless it has one; may be "" */
	char digest[IMAGE_DIGEST_LEN]; /* "" without */
	bool loopback;		       /* its registry is this host */
};

/* 0, or -EINVAL with *err: what is wrong, and where in the text. */
int image_ref_parse(const char *text, struct image_ref *out, struct err *err);

/* The reference in full: two that mean the same have the same. */
void image_ref_print(const struct image_ref *ref, char out[IMAGE_NORMAL_LEN]);

/* Its registry: what stands before the first slash of its name. Into out. */
void image_ref_registry(const struct image_ref *ref, char out[IMAGE_PART_LEN]);

/* "sha256:" and 64 lowercase hex digits, and nothing more. */
bool image_digest_is_sound(const char *text);

#endif
