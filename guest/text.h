/*
 * text: short texts for error frames, put together without stdio (whose pages we never touch).
 * sbx-guest. A text that is too long is cut.
 */
#ifndef SBXD_GUEST_TEXT_H
#define SBXD_GUEST_TEXT_H

#include <stddef.h>
#include <stdint.h>

#include "wire/agent.h"

struct text {
	size_t len;
	char s[AGENT_ERROR_TEXT + 1]; /* NUL-terminated */
};

void text_clear(struct text *t);
void text_add(struct text *t, const char *s);

/* At most `max` bytes of s, which is not cut within a UTF-8 sequence; control bytes become '?'. */
void text_add_quoted(struct text *t, const char *s, size_t max);

void text_add_uint(struct text *t, uint64_t n);

/* Decimal digits of s, the whole of it, at most `max`. 0 or -EINVAL. */
int text_parse_uint(const char *s, size_t len, uint64_t max, uint64_t *out);

#endif
