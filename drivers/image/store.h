/*
 * store: unpacked images, by digest. Janitor and `sbx-worker image`, of any number of instances
 * that have one state directory.
 *
 *   <state_dir>/images/                0700: what is in images is nobody's on the host
 *       lock                           flock: held while names here change
 *       sha256-HEX/                    an image, whole from the moment it has this name
 *           rootfs/                    its root; nobody changes it
 *           note                       struct image_note; its time is that of the image's last use
 *       ref-KEY                        a reference and which image it names: see struct image_name
 *       new-XXXXXX/                    one on its way, locked (flock) by who makes it
 *       gone-XXXXXX/                   one being removed
 *
 * A shared flock on the directory of an image keeps it: the janitor takes one for sbxd, which keeps
 * it while it may start boxes of the image and gives it to each worker of one. So it goes with the
 * last process that needs it, however that ends. Who removes an image has the lock exclusively.
 * What a crash leaves is not locked, and whoever changes names next removes it.
 */
#ifndef SBXD_DRIVERS_IMAGE_STORE_H
#define SBXD_DRIVERS_IMAGE_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "drivers/image/note.h"
#include "lib/err.h"
#include "lib/image_ref.h"

#define STORE_DIR 224
#define STORE_PATH 320 /* of what is in it */

struct image_store {
	char path[STORE_DIR];
	int dir; /* owned */
};

/* Opens the store, which is made when it is not there and `make` says so. 0, -ENOENT, or -errno
 * with *err. */
int image_store_open(const char *state_dir, bool make, struct image_store *out, struct err *err);
void image_store_close(struct image_store *s);

/* The lock on the names; the caller's to close. Waits, at most to deadline_ns. fd or -errno. */
int image_store_lock(const struct image_store *s, uint64_t deadline_ns);

/* What a reference names. */
struct image_name {
	char reference[IMAGE_REF_MAX + 1]; /* as it was asked for */
	char normal[IMAGE_NORMAL_LEN];
	char id[IMAGE_DIGEST_LEN];
	char source[IMAGE_DIGEST_LEN]; /* of the manifest that its registry has; "" unknown */
};

/* What the store knows of a reference. 0, -ENOENT or -errno. */
int image_store_read_name(
    const struct image_store *s, const struct image_ref *ref, struct image_name *out);

/* From now on it names that image. The lock is held. 0 or -errno. */
int image_store_write_name(const struct image_store *s, const struct image_name *name);

/* The same from a file name of the store. 0 or -errno. */
int image_store_read_name_file(
    const struct image_store *s, const char *file, struct image_name *out);

/* The name of an image's directory. id is sound. */
void image_store_dir_name(const char *id, char out[IMAGE_DIGEST_LEN]);

struct image_found {
	struct image_note note;
	char root[STORE_PATH];
	int hold; /* the caller's: while it is open the image stays */
};

/*
 * The image of a reference, which is used from now on. 0; -ENODATA with *err when it is not in the
 * store; or -errno with *err.
 */
int image_store_find(
    const char *state_dir, const struct image_ref *ref, struct image_found *out, struct err *err);

/* The same, for who only looks: it is not used by that. */
int image_store_peek(
    const char *state_dir, const struct image_ref *ref, struct image_found *out, struct err *err);

/* A place for an image on its way: its directory, locked; the caller's. fd or -errno with *err. */
int image_store_begin(const struct image_store *s, char name[16], struct err *err);

/*
 * What lies in `name` (its rootfs and note whole) gets its own name, on the disk; when the store
 * has that image already this one goes. The lock is held. 0 or -errno with *err.
 */
int image_store_commit(
    const struct image_store *s, const char *name, const char *id, struct err *err);

/* Removes a directory of the store whose name nobody knows any more. 0 or -errno. */
int image_store_discard(const struct image_store *s, const char *name);

#endif
