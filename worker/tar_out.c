/*
 * tar_out: checks that records are in order, and writes the archive they stand for. sbx-worker. If
 * we die here, sbxd closes the connection, and the client sees that its answer is cut.
 */
#include "worker/tar_out.h"

#include <errno.h>
#include <string.h>

#include "wire/tar_head.h"

/* ---- a member and where its data lies ---- */

static int out_head(struct tar_out *t)
{
	const struct tar_head h = {
	    .member = &t->member,
	    .path = t->path,
	    .link = t->link,
	    .extents = t->extents,
	    .data = t->data,
	};

	t->at = t->member.extents ? t->extents[0].offset : 0;
	t->extent = 0;
	t->state = t->member.kind == ENTRY_FILE ? TAR_OUT_DATA : TAR_OUT_MEMBER;
	return tar_head_put(t->to, &h);
}

static int out_member(struct tar_out *t, const struct entry *e)
{
	const struct entry_member *m = &e->u.member;

	/* Readers take what ends in a slash for a directory, which has no data. */
	if (e->path[m->path_len - 1] == '/')
		return -EBADMSG;
	t->member = *m;
	memcpy(t->path, e->path, m->path_len);
	t->path[m->path_len] = '\0';
	if (m->kind == ENTRY_DIRECTORY)
		memcpy(t->path + m->path_len, "/", 2);
	memcpy(t->link, e->text, m->link_len);
	t->link[m->link_len] = '\0';
	t->data = m->extents ? 0 : m->size;
	t->known = 0;
	if (m->extents == 0)
		return out_head(t);
	t->state = TAR_OUT_EXTENTS;
	return 0;
}

/* In order, within the file, and none empty but one that says where the file ends. */
static bool extent_is_valid(const struct tar_out *t, const struct entry_extent *e)
{
	const struct entry_extent *last = &t->extents[t->known - (t->known > 0)];
	uint64_t from = t->known ? last->offset + last->length : 0;

	if (e->offset < from || e->offset > t->member.size ||
	    e->length > t->member.size - e->offset)
		return false;
	return e->length > 0 || (t->known + 1 == t->member.extents && e->offset == t->member.size);
}

static int out_extents(struct tar_out *t, const struct entry *e)
{
	struct entry_extent x;

	if (e->text_len / sizeof(x) > t->member.extents - t->known)
		return -EBADMSG;
	for (size_t at = 0; at < e->text_len; at += sizeof(x)) {
		memcpy(&x, e->text + at, sizeof(x));
		if (!extent_is_valid(t, &x))
			return -EBADMSG;
		t->extents[t->known++] = x;
		t->data += x.length;
	}
	return t->known == t->member.extents ? out_head(t) : 0;
}

/* ---- its data ---- */

/* How many bytes may come at t->at. */
static uint64_t out_expected(const struct tar_out *t)
{
	const struct entry_extent *x = &t->extents[t->extent];

	if (t->member.extents == 0)
		return t->member.size - t->at;
	return t->extent < t->member.extents ? x->offset + x->length - t->at : 0;
}

/* Goes on with the next extent when one is full. */
static void out_next_extent(struct tar_out *t)
{
	while (t->extent < t->member.extents && out_expected(t) == 0) {
		t->extent++;
		if (t->extent < t->member.extents)
			t->at = t->extents[t->extent].offset;
	}
}

static int out_piece(struct tar_out *t, const struct entry *e)
{
	out_next_extent(t);
	if (e->text_len == 0) {
		if (out_expected(t) != 0)
			return -EBADMSG;
		t->state = TAR_OUT_MEMBER;
		return tar_zeros_put(t->to, -t->data % TAR_BLOCK);
	}
	if (e->u.piece.offset != t->at || e->text_len > out_expected(t))
		return -EBADMSG;
	t->at += e->text_len;
	return buf_append(t->to, e->text, e->text_len);
}

static int out_done(struct tar_out *t, const struct entry *e)
{
	(void)e; /* how many members there are is seen in the archive */
	t->state = TAR_OUT_DONE;
	return tar_zeros_put(t->to, 2 * TAR_BLOCK);
}

/* ---- which record may come when ---- */

static const struct {
	enum tar_out_state state;
	int (*fn)(struct tar_out *t, const struct entry *e);
} takers[ENTRY_TYPES] = {
    [ENTRY_MEMBER] = {TAR_OUT_MEMBER, out_member},
    [ENTRY_EXTENTS] = {TAR_OUT_EXTENTS, out_extents},
    [ENTRY_PIECE] = {TAR_OUT_DATA, out_piece},
    [ENTRY_DONE] = {TAR_OUT_MEMBER, out_done},
};

static int out_take(void *ctx, const struct entry *e)
{
	struct tar_out *t = ctx;

	if (!takers[e->type].fn || takers[e->type].state != t->state)
		return -EBADMSG;
	return takers[e->type].fn(t, e);
}

int tar_out_feed(struct tar_out *t, const uint8_t *p, size_t n, struct buf *to)
{
	t->to = to;
	return entry_feed(&t->reader, p, n, out_take, t);
}
