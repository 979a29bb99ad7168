/*
 * words: copying private structs to and from shared memory, 8 bytes at a time.
 *
 * Every store is a release and every load an acquire, instead of relaxed ones between fences: the
 * same instructions on x86, and a reader that met one new word is certain to see the sequence
 * counter that was made odd before it. No fence also means that ThreadSanitizer understands it.
 */
#ifndef SBXD_SHM_WORDS_H
#define SBXD_SHM_WORDS_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define WORDS_OF(type) (sizeof(type) / sizeof(uint64_t))

/* Stores words [from, to) of the private struct `part`; only those that differ dirty their line. */
static inline void words_store(_Atomic uint64_t *shared, const void *part, size_t from, size_t to)
{
	for (size_t i = from; i < to; i++) {
		uint64_t word;

		memcpy(&word, (const char *)part + i * sizeof(word), sizeof(word));
		if (atomic_load_explicit(&shared[i], memory_order_relaxed) != word)
			atomic_store_explicit(&shared[i], word, memory_order_release);
	}
}

static inline void words_load(uint64_t *out, const _Atomic uint64_t *shared, size_t count)
{
	for (size_t i = 0; i < count; i++)
		out[i] = atomic_load_explicit(&shared[i], memory_order_acquire);
}

#endif
