/*
 * text64: a stream of base64, decoded as it comes: pieces that are each padded, cut anywhere, with
 * line breaks between them or none.
 */
#ifndef SBXD_DRIVERS_BOXLITE_PROGRAM_TEXT64_H
#define SBXD_DRIVERS_BOXLITE_PROGRAM_TEXT64_H

#include <stddef.h>

#include "lib/buf.h"

struct text64 {
	char text[4]; /* not yet decoded */
	size_t len;   /* less than four */
};

/* Appends what n characters more decode to. 0, -EINVAL: that is no base64; -ENOBUFS or -ENOMEM. */
int text64_decode(struct text64 *t, const char *text, size_t n, struct buf *out);

#endif
