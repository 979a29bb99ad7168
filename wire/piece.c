/*
 * piece: making and checking pieces of a relayed stream. sbx-boxlite and sbx-guest; holds no state
 * but its struct's. What comes is believed only as far as its checksums go.
 */
#include "wire/piece.h"

#include <string.h>

_Static_assert(sizeof(struct piece_head) == PIECE_HEAD_LEN, "no padding");
_Static_assert(sizeof(struct piece_fault) == 16, "no padding");
_Static_assert(PIECE_TEXT_MAX % 3 == 0 && PIECE_TEXT_MAX <= PIECE_MAX, "a full one has no padding");

void piece_begin(struct piece_way *w)
{
	*w = (struct piece_way){.crc = crc32c_pick()};
}

void piece_seal(struct piece_way *w, enum piece_kind kind, uint8_t *piece, size_t n)
{
	struct piece_head head = {
	    .version = PIECE_VERSION,
	    .kind = (uint8_t)kind,
	    .size = (uint32_t)n,
	    .offset = w->offset,
	    .check = w->crc(0, piece + PIECE_HEAD_LEN, n),
	};

	memcpy(head.mark, PIECE_MARK, sizeof(head.mark));
	head.head_check = w->crc(0, &head, offsetof(struct piece_head, head_check));
	memcpy(piece, &head, sizeof(head));
	if (kind == PIECE_DATA)
		w->offset += n;
}

struct piece_fault piece_take_head(
    const struct piece_way *w, const uint8_t *bytes, struct piece_head *head)
{
	struct piece_head h;

	memcpy(&h, bytes, sizeof(h));
	if (memcmp(h.mark, PIECE_MARK, sizeof(h.mark)) != 0)
		return (struct piece_fault){.wrong = PIECE_FOREIGN};
	/* Of another version nothing more is known, not even where its checksum is. Only the first
	 * piece can be of one. */
	if (h.version != PIECE_VERSION && w->offset == 0)
		return (struct piece_fault){.wrong = PIECE_VERSIONS, .number = h.version};
	if (h.version != PIECE_VERSION ||
	    h.head_check != w->crc(0, &h, offsetof(struct piece_head, head_check)) || h.kind == 0 ||
	    h.kind >= PIECE_KINDS || h.size == 0 || h.size > PIECE_MAX - PIECE_HEAD_LEN)
		return (struct piece_fault){.wrong = PIECE_DAMAGED};
	if (h.offset > w->offset)
		return (struct piece_fault){.wrong = PIECE_LOST, .number = h.offset - w->offset};
	if (h.offset < w->offset)
		return (struct piece_fault){
		    .wrong = PIECE_REPEATED, .number = w->offset - h.offset};
	*head = h;
	return (struct piece_fault){.wrong = PIECE_RIGHT};
}

struct piece_fault piece_take_data(
    struct piece_way *w, const struct piece_head *head, const uint8_t *bytes, size_t n)
{
	if (n < head->size)
		return (struct piece_fault){.wrong = PIECE_LOST, .number = head->size - n};
	if (n > head->size || w->crc(0, bytes, n) != head->check)
		return (struct piece_fault){.wrong = PIECE_DAMAGED};
	if (head->kind == PIECE_DATA)
		w->offset += n;
	return (struct piece_fault){.wrong = PIECE_RIGHT};
}
