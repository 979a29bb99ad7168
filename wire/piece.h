/*
 * piece: the worker's stream to an agent in the box, where what lies between does not keep it
 * whole.
 *
 * BoxLite's client may connect anew without a word, and what was on its way is lost, or comes
 * again. So each way the stream is sent in pieces: struct piece_head and `size` bytes. A piece says
 * where in the stream it begins, which tells what is missing, repeated or out of order; checksums
 * tell what is damaged. Nothing is mended: the first piece that is wrong is the end of the stream.
 *
 * Towards the box pieces follow each other as they are. From the box each is base64 (RFC 4648, with
 * its padding) and PIECE_END, because text is all that comes through there; line breaks between
 * them count for nothing, whoever has put them there. A piece that was lost is noticed with the
 * next one; worker and agent have something to say at least while somebody waits (AGENT_PING).
 */
#ifndef SBXD_WIRE_PIECE_H
#define SBXD_WIRE_PIECE_H

#include <stddef.h>
#include <stdint.h>

#include "lib/crc32c.h"

#define PIECE_VERSION 1U
#define PIECE_MARK "\xb0\x7c" /* no agent_head begins so */
#define PIECE_HEAD_LEN 24U
#define PIECE_MAX 65536U      /* bytes of a piece, its head included */
#define PIECE_TEXT_MAX 24576U /* and of one that is sent as text: a multiple of three */
#define PIECE_END '.'	      /* no digit of base64 */
#define PIECE_CHARS (PIECE_TEXT_MAX / 3 * 4)

enum piece_kind {
	PIECE_DATA = 1, /* of the stream */
	PIECE_FAULT,	/* from the box, the last one: struct piece_fault, of the other way */
	PIECE_KINDS,
};

struct piece_head {
	uint8_t mark[2];
	uint8_t version;
	uint8_t kind;	     /* enum piece_kind */
	uint32_t size;	     /* bytes that follow; never 0 */
	uint64_t offset;     /* bytes of the stream before this piece */
	uint32_t check;	     /* CRC32C of the bytes that follow */
	uint32_t head_check; /* CRC32C of what is before this member */
};

enum piece_wrong {
	PIECE_RIGHT = 0,
	PIECE_FOREIGN,	/* it is no piece */
	PIECE_VERSIONS, /* the first one is of version `number` */
	PIECE_DAMAGED,
	PIECE_LOST,	/* `number` bytes are missing */
	PIECE_REPEATED, /* `number` bytes were there already */
	PIECE_WRONGS,
};

struct piece_fault {
	uint32_t wrong; /* enum piece_wrong */
	uint32_t reserved;
	uint64_t number;
};

/* One end of one way. */
struct piece_way {
	crc32c_fn *crc;
	uint64_t offset; /* bytes of the stream so far */
};

/* At the beginning of the stream. */
void piece_begin(struct piece_way *w);

/* Makes a piece of the n bytes (1 or more) that are at piece + PIECE_HEAD_LEN. */
void piece_seal(struct piece_way *w, enum piece_kind kind, uint8_t *piece, size_t n);

/* Takes the head of the next piece. Unless PIECE_RIGHT, *head is not filled. */
struct piece_fault piece_take_head(
    const struct piece_way *w, const uint8_t *bytes, struct piece_head *head);

/* Takes its data, the n bytes that came instead of the head->size that were to come. */
struct piece_fault piece_take_data(
    struct piece_way *w, const struct piece_head *head, const uint8_t *bytes, size_t n);

#endif
