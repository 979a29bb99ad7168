/*
 * tar_head: the header of one member of a tar archive. sbx-worker and sbxctl; pure functions over
 * bytes.
 *
 * ustar, with a pax header before it only where ustar cannot say it: names that are too long, large
 * numbers, times before 1970. A file with holes has an old GNU header (type S), because of all the
 * ways to write one it is the only one that every reader with a notion of holes takes: BoxLite's
 * clients unpack the later pax forms as garbage, without an error.
 *
 * Not libarchive: it writes holes in that pax form only, and not at all for a file that is one
 * hole; it marks every name past ASCII as binary unless a UTF-8 locale is loaded; and its pax
 * writer draws in all its other writers, with five compressors, libxml2 and nettle.
 */
#ifndef SBXD_WIRE_TAR_HEAD_H
#define SBXD_WIRE_TAR_HEAD_H

#include <stddef.h>
#include <stdint.h>

#include "lib/buf.h"
#include "wire/entry.h"

#define TAR_BLOCK 512U

struct tar_head {
	const struct entry_member *member;
	const char *path;		    /* NUL-terminated; of a directory it ends in a slash */
	const char *link;		    /* NUL-terminated */
	const struct entry_extent *extents; /* member->extents of them */
	uint64_t data;			    /* bytes that will follow */
};

/* Appends it. 0, -ENOBUFS, -ENOMEM. */
int tar_head_put(struct buf *out, const struct tar_head *h) __attribute__((warn_unused_result));

/* Appends n zero bytes. 0, -ENOBUFS, -ENOMEM. */
int tar_zeros_put(struct buf *out, size_t n) __attribute__((warn_unused_result));

#endif
