/*
 * regex: a pattern of PCRE2, or a plain text, looked for in one line after the other. sbx-files.
 */
#ifndef SBXD_GUEST_FILES_REGEX_H
#define SBXD_GUEST_FILES_REGEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "guest/text.h"

struct regex; /* opaque */

#define REGEX_LITERAL 1U  /* no character of the pattern is special */
#define REGEX_ANY_CASE 2U /* upper and lower case are the same, in all of Unicode */

/* NULL with *why: what is wrong with the pattern, and at which of its characters, from 0. */
struct regex *regex_compile(const char *pattern, unsigned int flags, struct text *why);

/*
 * Whether it is found in n bytes of valid UTF-8 without a line's end. 1, 0, or -1: nobody knows, as
 * it takes too many steps to find out.
 */
int regex_find(struct regex *r, const uint8_t *line, size_t n);

void regex_free(struct regex *r);

#endif
