/*
 * Fuzz target of archives that clients send. Whatever an archive is, it ends well or is refused
 * with a reason, the same way whatever the parts are that it comes in; its records are those that
 * wire/entry.h promises to the helper; and no buffer grows.
 *
 * Input: one byte for the size of the parts, then the archive.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/hash.h"
#include "wire/agent.h"
#include "wire/entry.h"
#include "worker/tar_in.h"

#define REQUIRE(cond) ((cond) ? (void)0 : (fprintf(stderr, "not so: %s\n", #cond), abort()))
#define RECORDS_MAX (128U * 1024U)

/* What was heard so far. */
struct heard {
	bool growing; /* a file has pieces to come */
	bool done;
	uint64_t size; /* of that file */
	uint64_t end;  /* of its last piece */
	uint64_t members;
	uint64_t sum; /* of all of it; how data is cut into pieces does not count */
	struct entry_reader reader;
};

static void add(struct heard *h, const void *p, size_t n)
{
	h->sum = hash64(h->sum, p, n);
}

static void hear_piece(struct heard *h, const struct entry *e)
{
	REQUIRE(h->growing && e->u.piece.offset >= h->end);
	REQUIRE(e->u.piece.offset + e->text_len <= h->size);
	if (e->u.piece.offset > h->end)
		add(h, &e->u.piece.offset, sizeof(e->u.piece.offset));
	add(h, e->text, e->text_len);
	h->end = e->u.piece.offset + e->text_len;
	h->growing = e->text_len > 0;
}

static int hear(void *ctx, const struct entry *e)
{
	struct heard *h = ctx;

	REQUIRE(!h->done);
	if (e->type == ENTRY_PIECE) {
		hear_piece(h, e);
		return 0;
	}
	REQUIRE(!h->growing);
	if (e->type == ENTRY_DONE) {
		REQUIRE(e->u.done.count == h->members);
		h->done = true;
		return 0;
	}
	REQUIRE(e->type == ENTRY_MEMBER && e->u.member.extents == 0);
	h->members++;
	h->growing = e->u.member.kind == ENTRY_FILE;
	h->size = e->u.member.size;
	h->end = 0;
	add(h, &e->u.member, sizeof(e->u.member));
	add(h, e->path, e->path_len);
	add(h, e->text, e->text_len);
	return 0;
}

static enum tar_in_state read_archive(
    const uint8_t *p, size_t n, size_t part, struct heard *h, enum api_error *error)
{
	struct tar_in *t = tar_in_create();
	enum tar_in_state state = TAR_IN_HUNGRY;
	const char *why = "";

	REQUIRE(t != NULL);
	while (state != TAR_IN_DONE && state != TAR_IN_FAILED) {
		struct buf *records = tar_in_records(t);
		size_t room = tar_in_room(t);

		if (state == TAR_IN_HUNGRY && n > 0) {
			REQUIRE(room > 0);
			room = room < part ? room : part;
			room = room < n ? room : n;
			tar_in_put(t, p, room);
			p += room;
			n -= room;
		} else if (state == TAR_IN_HUNGRY) {
			tar_in_end(t);
		}
		state = tar_in_run(t);
		REQUIRE(records->len < RECORDS_MAX);
		if (records->len == 0)
			continue;
		REQUIRE(entry_feed(&h->reader, buf_head(records), records->len, hear, h) == 0);
		buf_consume(records, records->len);
	}
	*error = tar_in_error(t, &why);
	REQUIRE(
	    (state == TAR_IN_FAILED) == (*error != API_OK) && (*why != '\0') == (*error != API_OK));
	tar_in_free(t);
	return state;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static struct heard whole;
	static struct heard parts;
	enum api_error errors[2];
	enum tar_in_state state;

	if (n < 1)
		return 0;
	memset(&whole, 0, sizeof(whole));
	memset(&parts, 0, sizeof(parts));
	state = read_archive(data + 1, n - 1, n, &whole, &errors[0]);
	REQUIRE(
	    read_archive(data + 1, n - 1, (size_t)data[0] * 3 + 1, &parts, &errors[1]) == state);
	REQUIRE(errors[0] == errors[1]);
	REQUIRE(whole.done == (state == TAR_IN_DONE) && parts.done == whole.done);
	if (whole.done)
		REQUIRE(whole.sum == parts.sum && whole.members == parts.members);
	return 0;
}
