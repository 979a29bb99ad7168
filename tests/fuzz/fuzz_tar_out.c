/*
 * Fuzz target of what a helper says when a tree is packed. Whatever it says, what comes of it is
 * the beginning of an archive that our own reader takes; and the whole one, if it was believed.
 *
 * Input: one byte for the size of the pieces, then records.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worker/tar_in.h"
#include "worker/tar_out.h"

#define REQUIRE(cond) ((cond) ? (void)0 : (fprintf(stderr, "not so: %s\n", #cond), abort()))
#define ARCHIVE_MAX (64U << 20)

/* Does our reader take the archive, as far as it goes? */
static void read_back(const struct buf *archive, bool whole)
{
	struct tar_in *t = tar_in_create();
	const uint8_t *p = archive->len > 0 ? buf_head(archive) : NULL;
	size_t n = archive->len;
	enum tar_in_state state = TAR_IN_HUNGRY;

	REQUIRE(t != NULL);
	while (n > 0 && state != TAR_IN_DONE && state != TAR_IN_FAILED) {
		size_t room = tar_in_room(t);

		room = room < n ? room : n;
		tar_in_put(t, p, room);
		p += room;
		n -= room;
		while ((state = tar_in_run(t)) == TAR_IN_FULL)
			buf_consume(tar_in_records(t), tar_in_records(t)->len);
	}
	REQUIRE(state != TAR_IN_FAILED);
	if (whole)
		REQUIRE(state == TAR_IN_DONE || (tar_in_end(t), tar_in_run(t)) != TAR_IN_FAILED);
	tar_in_free(t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct tar_out *t = calloc(1, sizeof(*t));
	size_t piece = n > 0 ? (size_t)data[0] * 5 + 1 : 1;
	struct buf archive;
	int rc = 0;

	REQUIRE(t != NULL);
	buf_init(&archive, ARCHIVE_MAX);
	for (size_t at = 1; at < n && rc == 0; at += piece) {
		size_t before = archive.len;
		size_t now = n - at < piece ? n - at : piece;

		rc = tar_out_feed(t, data + at, now, &archive);
		REQUIRE(rc == 0 || rc == -EBADMSG);
		REQUIRE(archive.len - before <= TAR_OUT_FACTOR * (now + ENTRY_SIZE_MAX));
	}
	read_back(&archive, t->state == TAR_OUT_DONE && rc == 0);
	buf_free(&archive);
	free(t);
	return 0;
}
