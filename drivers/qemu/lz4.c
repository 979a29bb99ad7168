/* lz4: unpacking of legacy frames. Janitor, on files that only root can write; still, every length
 * is checked. Holds no state. */
#include "drivers/qemu/lz4.h"

#include <errno.h>
#include <string.h>

#define LZ4_MIN_MATCH 4U
#define LZ4_LONG 15U /* a length that goes on in further bytes */

struct span {
	const uint8_t *at;
	const uint8_t *end;
};

struct target {
	uint8_t *start;
	uint8_t *at;
	uint8_t *end;
};

static uint32_t get_u32(const uint8_t *p)
{
	return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static int get_length(struct span *in, size_t *length)
{
	uint8_t byte = UINT8_MAX;

	if (*length != LZ4_LONG)
		return 0;
	while (byte == UINT8_MAX) {
		if (in->at == in->end)
			return -EBADMSG;
		byte = *in->at++;
		*length += byte;
	}
	return 0;
}

static int put_literals(struct span *in, struct target *out, size_t length)
{
	if (length > (size_t)(in->end - in->at) || length > (size_t)(out->end - out->at))
		return -EBADMSG;
	memcpy(out->at, in->at, length);
	in->at += length;
	out->at += length;
	return 0;
}

/* It may overlap what it writes: byte by byte, then. */
static int put_match(struct target *out, size_t offset, size_t length)
{
	const uint8_t *from = out->at - offset;

	if (offset == 0 || offset > (size_t)(out->at - out->start) ||
	    length > (size_t)(out->end - out->at))
		return -EBADMSG;
	if (offset >= length) {
		memcpy(out->at, from, length);
		out->at += length;
		return 0;
	}
	while (length-- > 0)
		*out->at++ = *from++;
	return 0;
}

static int unpack_block(struct span in, struct target *out)
{
	struct target block = {out->at, out->at, out->end};
	size_t length;
	size_t offset;
	uint8_t token;

	while (in.at < in.end) {
		token = *in.at++;
		length = token >> 4;
		if (get_length(&in, &length) < 0 || put_literals(&in, &block, length) < 0)
			return -EBADMSG;
		if (in.at == in.end)
			break; /* the last sequence has no match */
		if (in.end - in.at < 2)
			return -EBADMSG;
		offset = (size_t)in.at[0] | (size_t)in.at[1] << 8;
		in.at += 2;
		length = token & LZ4_LONG;
		if (get_length(&in, &length) < 0 ||
		    put_match(&block, offset, length + LZ4_MIN_MATCH) < 0)
			return -EBADMSG;
	}
	out->at = block.at;
	return 0;
}

long lz4_unpack(const uint8_t *in, size_t n, uint8_t *out, size_t size)
{
	struct span all = {in, in + n};
	struct target to = {out, out, out + size};
	uint32_t length;

	if (n < 4 || get_u32(in) != LZ4_LEGACY_MAGIC)
		return -EBADMSG;
	all.at += 4;
	while (all.end - all.at > 4) {
		length = get_u32(all.at);
		if (length == LZ4_LEGACY_MAGIC) { /* another frame */
			all.at += 4;
			continue;
		}
		if (length == 0 || length > (size_t)(all.end - all.at) - 4)
			break; /* not ours any more: the kernel's build appends its size */
		if (unpack_block((struct span){all.at + 4, all.at + 4 + length}, &to) < 0)
			return -EBADMSG;
		all.at += 4 + length;
	}
	return to.at - to.start;
}
