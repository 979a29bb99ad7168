/*
 * entry: checked decoding of what sbx-files says. Linked into sbx-worker; pure functions over
 * bytes, no state of their own, so nothing is lost if we die here.
 */
#include "wire/entry.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "lib/utf8.h"
#include "wire/agent.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "structs are sent as they lie in memory");
_Static_assert(sizeof(struct entry_head) == ENTRY_HEAD_LEN, "the head has no padding");
_Static_assert(sizeof(struct entry_done) == 16, "no padding");
_Static_assert(sizeof(struct entry_alive) == 8, "no padding");
_Static_assert(sizeof(struct entry_item) == 40, "no padding");
_Static_assert(sizeof(struct entry_path) == 8, "no padding");
_Static_assert(sizeof(struct entry_line) == 16, "no padding");
_Static_assert(sizeof(struct entry_problem) == 16, "no padding");
_Static_assert(sizeof(struct entry_member) == 48, "no padding");
_Static_assert(sizeof(struct entry_extent) == 16, "no padding");

/* The next n bytes, where they lie. 0 or -EBADMSG. */
static int take_bytes(struct agent_cursor *c, size_t n, const uint8_t **out)
{
	if (n > c->left)
		return -EBADMSG;
	*out = c->p;
	c->p += n;
	c->left -= n;
	return 0;
}

/* The path and the text that follow the fixed part. */
static int take_texts(struct entry *e, struct agent_cursor *c, uint32_t path_len, uint32_t text_len)
{
	e->path_len = path_len;
	e->text_len = text_len;
	if (path_len > ENTRY_PATH_MAX || take_bytes(c, path_len, &e->path) != 0 ||
	    take_bytes(c, text_len, &e->text) != 0)
		return -EBADMSG;
	if (memchr(e->path, '\0', path_len) != NULL)
		return -EBADMSG;
	return 0;
}

static bool text_is_utf8(const struct entry *e)
{
	return utf8_valid_prefix(e->text, e->text_len, NULL) == e->text_len;
}

static int parse_item(struct entry *e, struct agent_cursor *c)
{
	struct entry_item *i = &e->u.item;

	if (agent_get_bytes(c, i, sizeof(*i)) != 0 || i->reserved != 0 || i->path_len == 0 ||
	    i->size > INT64_MAX || i->link_len > ENTRY_PATH_MAX ||
	    take_texts(e, c, i->path_len, i->link_len) != 0)
		return -EBADMSG;
	return memchr(e->text, '\0', e->text_len) == NULL ? 0 : -EBADMSG;
}

static int parse_path(struct entry *e, struct agent_cursor *c)
{
	struct entry_path *p = &e->u.path;

	if (agent_get_bytes(c, p, sizeof(*p)) != 0 || p->reserved != 0 || p->path_len == 0)
		return -EBADMSG;
	return take_texts(e, c, p->path_len, 0);
}

static int parse_line(struct entry *e, struct agent_cursor *c)
{
	struct entry_line *l = &e->u.line;

	if (agent_get_bytes(c, l, sizeof(*l)) != 0 || l->number == 0 || l->number > INT64_MAX ||
	    l->path_len == 0 || l->text_len > ENTRY_LINE_MAX ||
	    take_texts(e, c, l->path_len, l->text_len) != 0)
		return -EBADMSG;
	return text_is_utf8(e) ? 0 : -EBADMSG;
}

static int parse_problem(struct entry *e, struct agent_cursor *c)
{
	struct entry_problem *p = &e->u.problem;

	if (agent_get_bytes(c, p, sizeof(*p)) != 0 || p->reserved != 0 || p->code == AGENT_OK ||
	    p->code >= AGENT_CODES || p->text_len > AGENT_ERROR_TEXT ||
	    take_texts(e, c, p->path_len, p->text_len) != 0)
		return -EBADMSG;
	return text_is_utf8(e) ? 0 : -EBADMSG;
}

static int parse_member(struct entry *e, struct agent_cursor *c)
{
	struct entry_member *m = &e->u.member;
	bool linked;

	if (agent_get_bytes(c, m, sizeof(*m)) != 0 || m->kind == ENTRY_KIND_NONE ||
	    m->kind >= ENTRY_KINDS || m->mode > 07777 || m->mtime_nsec > 999999999)
		return -EBADMSG;
	linked = m->kind == ENTRY_SYMLINK || m->kind == ENTRY_HARDLINK;
	if (m->size > INT64_MAX || m->extents > ENTRY_EXTENTS_MAX ||
	    (m->kind != ENTRY_FILE && (m->size != 0 || m->extents != 0)))
		return -EBADMSG;
	if (m->path_len == 0 || m->link_len > ENTRY_PATH_MAX || linked != (m->link_len > 0) ||
	    take_texts(e, c, m->path_len, m->link_len) != 0)
		return -EBADMSG;
	return memchr(e->text, '\0', e->text_len) == NULL ? 0 : -EBADMSG;
}

static int parse_extents(struct entry *e, struct agent_cursor *c)
{
	e->text_len = c->left;
	if (c->left == 0 || c->left % sizeof(struct entry_extent) != 0)
		return -EBADMSG;
	return take_bytes(c, c->left, &e->text);
}

static int parse_piece(struct entry *e, struct agent_cursor *c)
{
	struct entry_piece *p = &e->u.piece;

	if (agent_get_bytes(c, p, sizeof(*p)) != 0 || p->offset > INT64_MAX - c->left)
		return -EBADMSG;
	e->text_len = c->left;
	return take_bytes(c, c->left, &e->text);
}

static int parse_done(struct entry *e, struct agent_cursor *c)
{
	if (agent_get_bytes(c, &e->u.done, sizeof(e->u.done)) != 0)
		return -EBADMSG;
	if (e->u.done.version != AGENT_VERSION || e->u.done.count > INT64_MAX ||
	    (e->u.done.flags & ~ENTRY_DONE_TRUNCATED) != 0)
		return -EBADMSG;
	return 0;
}

static int parse_alive(struct entry *e, struct agent_cursor *c)
{
	return agent_get_bytes(c, &e->u.alive, sizeof(e->u.alive));
}

/* Each takes the whole payload of its type. 0 or -EBADMSG. */
static int (*const parsers[ENTRY_TYPES])(struct entry *e, struct agent_cursor *c) = {
    [ENTRY_DONE] = parse_done,
    [ENTRY_ALIVE] = parse_alive,
    [ENTRY_ITEM] = parse_item,
    [ENTRY_PATH] = parse_path,
    [ENTRY_LINE] = parse_line,
    [ENTRY_PROBLEM] = parse_problem,
    [ENTRY_MEMBER] = parse_member,
    [ENTRY_EXTENTS] = parse_extents,
    [ENTRY_PIECE] = parse_piece,
};

static int entry_parse(const struct entry_head *h, const uint8_t *payload, struct entry *e)
{
	struct agent_cursor c = {.p = payload, .left = h->size};

	if (h->type >= ENTRY_TYPES || parsers[h->type] == NULL)
		return -EBADMSG;
	*e = (struct entry){.type = (enum entry_type)h->type};
	if (parsers[h->type](e, &c) != 0 || c.left != 0)
		return -EBADMSG;
	return 0;
}

/* The head of the record that begins at bytes. 1: it is whole; 0: more bytes are needed;
 * -EBADMSG. */
static int entry_whole(const uint8_t *bytes, size_t n, struct entry_head *h)
{
	if (n < ENTRY_HEAD_LEN)
		return 0;
	memcpy(h, bytes, sizeof(*h));
	if (h->size > ENTRY_SIZE_MAX || h->reserved != 0)
		return -EBADMSG;
	return n >= ENTRY_HEAD_LEN + h->size;
}

/* What repeats itself does not work. 0 or -EBADMSG. */
static int entry_is_alive(struct entry_reader *r, const struct entry *e)
{
	if (e->u.alive.steps <= r->steps)
		return -EBADMSG;
	r->steps = e->u.alive.steps;
	return 0;
}

/* The whole records at the start of bytes; *used of them are dealt with. */
static int entry_take(
    struct entry_reader *r, const uint8_t *bytes, size_t n, entry_fn *fn, void *ctx, size_t *used)
{
	struct entry_head h;
	struct entry e;
	int rc;

	for (;;) {
		rc = entry_whole(bytes + *used, n - *used, &h);
		if (rc <= 0)
			return rc;
		rc = entry_parse(&h, bytes + *used + ENTRY_HEAD_LEN, &e);
		if (rc == 0)
			rc = e.type == ENTRY_ALIVE ? entry_is_alive(r, &e) : fn(ctx, &e);
		if (rc != 0)
			return rc;
		*used += ENTRY_HEAD_LEN + h.size;
	}
}

/* Completes the record that the last bytes began; *used of n bytes go into it. */
static int entry_complete(
    struct entry_reader *r, const uint8_t *bytes, size_t n, entry_fn *fn, void *ctx, size_t *used)
{
	size_t done = 0;
	struct entry_head h;
	size_t want = ENTRY_HEAD_LEN;
	int rc;

	if (entry_whole(r->part, r->len, &h) == 0 && r->len >= ENTRY_HEAD_LEN)
		want += h.size;
	want -= r->len;
	if (want > n)
		want = n;
	memcpy(r->part + r->len, bytes, want);
	r->len += want;
	*used = want;
	rc = entry_take(r, r->part, r->len, fn, ctx, &done);
	if (done > 0)
		r->len = 0;
	return rc;
}

int entry_feed(struct entry_reader *r, const uint8_t *bytes, size_t n, entry_fn *fn, void *ctx)
{
	size_t used;
	int rc = 0;

	while (rc == 0 && r->len > 0 && n > 0) {
		rc = entry_complete(r, bytes, n, fn, ctx, &used);
		bytes += used;
		n -= used;
	}
	if (rc != 0 || n == 0)
		return rc;
	used = 0;
	rc = entry_take(r, bytes, n, fn, ctx, &used);
	if (rc != 0)
		return rc;
	r->len = n - used; /* less than a record */
	memcpy(r->part, bytes + used, r->len);
	return 0;
}
