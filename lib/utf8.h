/*
 * utf8: strict UTF-8 (RFC 3629): no overlong forms, no surrogates, nothing past U+10FFFF.
 */
#ifndef SBXD_LIB_UTF8_H
#define SBXD_LIB_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * How many of n bytes, from the start, are whole valid UTF-8 characters. *incomplete (may be NULL)
 * is set when the rest (at most 3 bytes) could still become valid with more input.
 */
size_t utf8_valid_prefix(const uint8_t *s, size_t n, bool *incomplete);

/* U+FFFD, which stands for bytes that are not UTF-8. */
#define UTF8_REPLACEMENT "\xef\xbf\xbd"

#endif
