/*
 * tar_out: what `sbx-files pack` says (wire/entry.h) as a tar archive. sbx-worker only.
 *
 * The archive is well-formed whatever the box says: a record that breaks the rules ends it.
 */
#ifndef SBXD_WORKER_TAR_OUT_H
#define SBXD_WORKER_TAR_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/buf.h"
#include "wire/entry.h"

enum tar_out_state {
	TAR_OUT_MEMBER, /* a member, or the end, comes next */
	TAR_OUT_EXTENTS,
	TAR_OUT_DATA,
	TAR_OUT_DONE, /* the archive is complete */
};

/* Zero at the beginning. */
struct tar_out {
	enum tar_out_state state;
	struct buf *to;
	struct entry_member member;
	uint64_t at;	 /* offset of the next byte of the file that may come */
	uint64_t data;	 /* of its bytes in the archive */
	uint32_t extent; /* the extent that `at` is in */
	uint32_t known;	 /* extents that have come */
	struct entry_extent extents[ENTRY_EXTENTS_MAX];
	char path[ENTRY_PATH_MAX + 2];
	char link[ENTRY_PATH_MAX + 1];
	struct entry_reader reader;
};

/* How much longer the archive gets at most by one byte of records. */
#define TAR_OUT_FACTOR 32U

/*
 * Takes the next n bytes of records and appends to `to` what they make. 0; -EBADMSG: the box does
 * not keep the rules; -ENOBUFS, -ENOMEM.
 */
int tar_out_feed(struct tar_out *t, const uint8_t *p, size_t n, struct buf *to);

#endif
