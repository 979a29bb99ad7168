/* crc32c: by the processor's own instruction where it has one. Any process; holds no state. */
#include "lib/crc32c.h"

#include <string.h>
#ifdef __x86_64__
#include <cpuid.h>
#endif

/* What half a byte does to the checksum: the polynomial 0x1edc6f41, bits reversed. */
static const uint32_t halves[16] = {
    0x00000000,
    0x105ec76f,
    0x20bd8ede,
    0x30e349b1,
    0x417b1dbc,
    0x5125dad3,
    0x61c69362,
    0x7198540d,
    0x82f63b78,
    0x92a8fc17,
    0xa24bb5a6,
    0xb21572c9,
    0xc38d26c4,
    0xd3d3e1ab,
    0xe330a81a,
    0xf36e6f75,
};

uint32_t crc32c_plain(uint32_t crc, const void *bytes, size_t n)
{
	const uint8_t *p = bytes;

	crc = ~crc;
	for (; n; n--, p++) {
		crc ^= *p;
		crc = crc >> 4 ^ halves[crc & 15];
		crc = crc >> 4 ^ halves[crc & 15];
	}
	return ~crc;
}

#ifdef __x86_64__
__attribute__((target("sse4.2"))) static uint32_t crc32c_sse(
    uint32_t crc, const void *bytes, size_t n)
{
	const uint8_t *p = bytes;
	uint64_t wide = (uint32_t)~crc;

	for (; n >= sizeof(uint64_t); n -= sizeof(uint64_t), p += sizeof(uint64_t)) {
		uint64_t word;

		memcpy(&word, p, sizeof(word));
		wide = __builtin_ia32_crc32di(wide, word);
	}
	crc = (uint32_t)wide;
	for (; n; n--, p++)
		crc = __builtin_ia32_crc32qi(crc, *p);
	return ~crc;
}
#endif

crc32c_fn *crc32c_pick(void)
{
#ifdef __x86_64__
	unsigned int a;
	unsigned int b;
	unsigned int c;
	unsigned int d;

	if (__get_cpuid(1, &a, &b, &c, &d) && (c & bit_SSE4_2))
		return crc32c_sse;
#endif
	return crc32c_plain;
}
