/* pieces: text to pieces, checked. sbx-boxlite; holds no state but its struct's. */
#include "drivers/boxlite/program/pieces.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wire/base64.h"

#define MARK_CHARS 4U /* hold the mark and the version of a piece */

void pieces_begin(struct pieces *p)
{
	*p = (struct pieces){.len = 0};
	piece_begin(&p->way);
}

static int pieces_fail(struct pieces *p, struct piece_fault fault)
{
	p->fault = fault;
	return -EPROTO;
}

/* The agent says that something was wrong with what it was told. */
static int pieces_fault(struct pieces *p, const uint8_t *data, size_t n)
{
	struct piece_fault fault = {.wrong = PIECE_DAMAGED};

	if (n == sizeof(fault))
		memcpy(&fault, data, n);
	if (fault.wrong == PIECE_RIGHT || fault.wrong >= PIECE_WRONGS)
		fault.wrong = PIECE_FOREIGN; /* something is, if it says so */
	p->told = true;
	return pieces_fail(p, fault);
}

static int pieces_check(struct pieces *p, const uint8_t *piece, size_t n, struct buf *out)
{
	struct piece_head head;
	struct piece_fault fault = {.wrong = PIECE_DAMAGED};

	if (n >= PIECE_HEAD_LEN)
		fault = piece_take_head(&p->way, piece, &head);
	if (fault.wrong == PIECE_RIGHT)
		fault = piece_take_data(&p->way, &head, piece + PIECE_HEAD_LEN, n - PIECE_HEAD_LEN);
	if (fault.wrong != PIECE_RIGHT)
		return pieces_fail(p, fault);
	if (head.kind == PIECE_FAULT)
		return pieces_fault(p, piece + PIECE_HEAD_LEN, head.size);
	return buf_append(out, piece + PIECE_HEAD_LEN, head.size);
}

static int pieces_whole(struct pieces *p, struct buf *out)
{
	size_t n = 0;
	uint8_t *piece = base64_decode(p->text, p->len, &n);
	int rc;

	p->len = 0;
	if (!piece)
		return errno == ENOMEM
			   ? -ENOMEM
			   : pieces_fail(p, (struct piece_fault){.wrong = PIECE_DAMAGED});
	rc = pieces_check(p, piece, n, out);
	free(piece);
	return rc;
}

/* What is no piece of ours may never come to an end. */
static int pieces_check_mark(struct pieces *p)
{
	const uint8_t mine[] = {(uint8_t)PIECE_MARK[0], (uint8_t)PIECE_MARK[1], PIECE_VERSION};
	struct piece_fault fault = {.wrong = PIECE_FOREIGN};
	char text[MARK_CHARS];
	uint8_t *theirs;
	size_t n = 0;

	base64_encode(mine, sizeof(mine), text);
	if (!memcmp(p->text, text, sizeof(text)))
		return 0;
	theirs = base64_decode(p->text, sizeof(text), &n);
	if (theirs && n == sizeof(mine) && !memcmp(theirs, mine, 2)) {
		fault.wrong = p->way.offset ? PIECE_DAMAGED : PIECE_VERSIONS;
		fault.number = theirs[2];
	}
	free(theirs);
	return pieces_fail(p, fault);
}

static int pieces_add(struct pieces *p, const char *text, size_t n)
{
	size_t before = p->len;

	if (n > sizeof(p->text) - p->len) /* the end of one was lost, and the next has begun */
		return pieces_fail(p, (struct piece_fault){.wrong = PIECE_DAMAGED});
	memcpy(p->text + p->len, text, n);
	p->len += n;
	return before < MARK_CHARS && p->len >= MARK_CHARS ? pieces_check_mark(p) : 0;
}

static bool is_mark(char c)
{
	return c == PIECE_END || c == '\n' || c == '\r';
}

int pieces_take(struct pieces *p, const char *text, size_t n, struct buf *out)
{
	int rc = p->fault.wrong == PIECE_RIGHT ? 0 : -EPROTO;

	while (rc == 0 && n) {
		size_t run = 0;

		while (run < n && !is_mark(text[run]))
			run++;
		rc = pieces_add(p, text, run);
		if (rc == 0 && run < n && text[run] == PIECE_END)
			rc = pieces_whole(p, out);
		run += run < n;
		text += run;
		n -= run;
	}
	return rc;
}

void pieces_explain(const struct pieces *p, char *out, size_t size)
{
	const char *what = p->told ? "the agent was told" : "the agent said";
	unsigned long long number = p->fault.number;

	switch (p->fault.wrong) {
	case PIECE_VERSIONS:
		(void)snprintf(out, size,
		    "the agent in the box is another's: it relays in version %llu, and not %u",
		    number, PIECE_VERSION);
		return;
	case PIECE_LOST:
		(void)snprintf(
		    out, size, "BoxLite's stream lost %llu bytes of what %s", number, what);
		return;
	case PIECE_REPEATED:
		(void)snprintf(
		    out, size, "BoxLite's stream repeated %llu bytes of what %s", number, what);
		return;
	case PIECE_DAMAGED:
		(void)snprintf(out, size, "BoxLite's stream damaged what %s", what);
		return;
	default:
		(void)snprintf(
		    out, size, "BoxLite's stream holds something other than what %s", what);
		return;
	}
}
