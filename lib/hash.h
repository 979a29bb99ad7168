/*
 * hash: FNV-1a, for tables in memory and for telling whether something has changed. Whoever chooses
 * what is hashed can make hashes collide: nothing may depend on their being different.
 */
#ifndef SBXD_LIB_HASH_H
#define SBXD_LIB_HASH_H

#include <stddef.h>
#include <stdint.h>

#define HASH32_START 2166136261U
#define HASH64_START 0xcbf29ce484222325ULL
#define HASH64_PRIME 0x100000001b3ULL

/* Goes on from `hash`, which begins with HASH32_START, over n bytes. */
static inline uint32_t hash32(uint32_t hash, const void *bytes, size_t n)
{
	const uint8_t *p = (const uint8_t *)bytes;

	for (size_t i = 0; i < n; i++)
		hash = (hash ^ p[i]) * 16777619U;
	return hash;
}

/* The same with 64 bits, which begins with HASH64_START. */
static inline uint64_t hash64(uint64_t hash, const void *bytes, size_t n)
{
	const uint8_t *p = (const uint8_t *)bytes;

	for (size_t i = 0; i < n; i++)
		hash = (hash ^ p[i]) * HASH64_PRIME;
	return hash;
}

#endif
