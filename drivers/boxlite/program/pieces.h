/*
 * pieces: the agent's stream as a box's output brings it (wire/piece.h), taken out of its pieces.
 */
#ifndef SBXD_DRIVERS_BOXLITE_PROGRAM_PIECES_H
#define SBXD_DRIVERS_BOXLITE_PROGRAM_PIECES_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/buf.h"
#include "wire/piece.h"

struct pieces {
	struct piece_way way;
	char text[PIECE_CHARS]; /* of a piece that is not whole */
	size_t len;
	struct piece_fault fault; /* once something was wrong */
	bool told;		  /* it was the other way, and the agent says so */
};

void pieces_begin(struct pieces *p);

/* Takes n characters, cut anywhere, and appends what whole pieces hold. 0; -EPROTO: the stream is
 * wrong from there on, p->fault says how; -ENOBUFS or -ENOMEM. */
int pieces_take(struct pieces *p, const char *text, size_t n, struct buf *out);

/* What was wrong, for people, from p->fault. */
void pieces_explain(const struct pieces *p, char *out, size_t size);

#endif
