/*
 * tar_in: a tar archive, as it arrives, made into records for `sbx-files unpack` (wire/entry.h).
 * sbx-worker only.
 *
 * Reads ustar, pax and GNU, whatever wrote them. Names are passed on as the bytes they are: whether
 * they may be used is for the helper to say, which sees where they lead. What belongs to no file
 * system of ours (owners, attributes, access lists) is left out; devices and fifos are refused, and
 * so is an archive that ends without its mark, since it may have been cut between two members.
 *
 * Neither the archive nor a member is ever held as a whole: input and output are buffers of a fixed
 * size, and what a member's headers may amount to is bounded.
 */
#ifndef SBXD_WORKER_TAR_IN_H
#define SBXD_WORKER_TAR_IN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/buf.h"
#include "wire/api_error.h"

struct tar_in;

enum tar_in_state {
	TAR_IN_HUNGRY, /* it wants more of the archive */
	TAR_IN_FULL,   /* it wants its records to be taken */
	TAR_IN_DONE,   /* the last record is there; what may still come is ignored */
	TAR_IN_FAILED, /* see tar_in_error() */
};

/* NULL when there is no memory. */
struct tar_in *tar_in_create(void);
void tar_in_free(struct tar_in *t);

/* How much of the archive tar_in_put() takes; 0 while little room is left. */
size_t tar_in_room(const struct tar_in *t);

/* At most tar_in_room() bytes since it was asked, in any number of parts. */
void tar_in_put(struct tar_in *t, const uint8_t *p, size_t n);

/* The archive has no more bytes. */
void tar_in_end(struct tar_in *t);

/* Goes on as far as it can. */
enum tar_in_state tar_in_run(struct tar_in *t);

/* The records that are made: the caller consumes them. */
struct buf *tar_in_records(struct tar_in *t);

/* After TAR_IN_FAILED: why, for the client. *text lives as long as t. */
enum api_error tar_in_error(const struct tar_in *t, const char **text);

#endif
