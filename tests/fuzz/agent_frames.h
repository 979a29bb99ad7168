/*
 * agent_frames: turns a fuzzer's bytes into a stream of frames of wire/agent.h. Most get a head
 * that passes its check, or nothing behind the check would ever be reached; some bytes go out raw.
 */
#ifndef SBXD_TESTS_FUZZ_AGENT_FRAMES_H
#define SBXD_TESTS_FUZZ_AGENT_FRAMES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "wire/agent.h"

#define FRAMES_RAW 0xf0U  /* first byte of a record from here on: bytes as they are */
#define FRAMES_LONG 0xe8U /* and from here on: a frame of one byte, over and over */

struct frames {
	const uint8_t *p;
	size_t left;
};

static inline uint8_t frames_byte(struct frames *f)
{
	if (f->left == 0)
		return 0;
	f->left--;
	return *f->p++;
}

static inline size_t frames_bytes(struct frames *f, uint8_t *to, size_t n)
{
	size_t take = n < f->left ? n : f->left;

	if (take > 0)
		memcpy(to, f->p, take);
	f->p += take;
	f->left -= take;
	return take;
}

/*
 * The next piece of the stream, at most AGENT_HEAD_LEN + AGENT_PAYLOAD_MAX bytes, its type one of
 * types[]. Returns its length, 0 at the end.
 */
static inline size_t frames_next(
    struct frames *f, const uint8_t *types, size_t type_count, uint8_t *to)
{
	uint8_t first;
	uint8_t mix;
	size_t size;
	size_t got;

	if (f->left == 0)
		return 0;
	first = frames_byte(f);
	if (first >= FRAMES_RAW)
		return frames_bytes(f, to, 1U + frames_byte(f));
	mix = frames_byte(f);
	size = frames_byte(f);
	if (first >= FRAMES_LONG) {
		/* A short input can say much. */
		size = size << 8 | 0xffU;
		memset(to + AGENT_HEAD_LEN, frames_byte(f), size);
	} else {
		if ((mix & 0x80U) != 0)
			size |= (size_t)frames_byte(f) << 8; /* the rest is zeros */
		got = frames_bytes(f, to + AGENT_HEAD_LEN, size);
		memset(to + AGENT_HEAD_LEN + got, 0, size - got);
	}
	agent_put_head(to, (enum agent_type)types[first % type_count], (mix & 0x40U) != 0,
	    (mix >> 4) & 3U, mix & 0xfU, (uint32_t)size);
	return AGENT_HEAD_LEN + size;
}

#endif
