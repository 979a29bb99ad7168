/*
 * credentials: what registries want to be told (images.auth_file). `sbx-worker image`, which gives
 * skopeo's jail a copy and nobody else anything of it.
 */
#ifndef SBXD_DRIVERS_IMAGE_CREDENTIALS_H
#define SBXD_DRIVERS_IMAGE_CREDENTIALS_H

#include "lib/buf.h"
#include "lib/err.h"

#define CREDENTIALS_MAX 65536U /* bytes of a file */

/*
 * Reads the file, which must be a regular one of root's or of our own user's, that neither its
 * group nor others may read or write, with what looks like a JSON object in
 * it. 0 with *out, which is the caller's
 * to credentials_free(); or -errno with *err, which names the file and nothing that is in it.
 */
int credentials_read(const char *path, struct buf *out, struct err *err);

/* Wipes and frees it. Harmless when it is empty. */
void credentials_free(struct buf *b);

#endif
