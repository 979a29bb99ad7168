/*
 * base64: bytes as text, in the standard alphabet with padding (RFC 4648).
 */
#ifndef SBXD_WIRE_BASE64_H
#define SBXD_WIRE_BASE64_H

#include <stddef.h>
#include <stdint.h>

/* Characters of n bytes as base64, and writing them (not NUL-terminated). */
static inline size_t base64_len(size_t n)
{
	return (n / 3 + (n % 3 != 0)) * 4;
}
void base64_encode(const uint8_t *bytes, size_t n, char *out);

/* Decodes standard base64 (padding required). Returns a malloc()ed block and its length, or NULL
 * with errno. */
uint8_t *base64_decode(const char *text, size_t n, size_t *out_len);

#endif
