/* lines: the bytes of a file as lines of text. sbx-files. */
#ifndef SBXD_GUEST_FILES_LINES_H
#define SBXD_GUEST_FILES_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LINES_LONGEST 2000U    /* characters; a longer line is passed over */
#define LINES_PRINTED 200U     /* characters of a line that are shown */
#define LINES_PRINTED_MAX 800U /* bytes that these take at most */

/* What n bytes take at most when they are made UTF-8. */
#define LINES_REPAIRED_MAX(n) (3U * (n))

/*
 * n bytes as UTF-8, in `to`: what is none becomes U+FFFD, one for each piece of a character as is
 * usual (the Unicode standard, 3.9). Returns the length.
 */
size_t lines_repair(const uint8_t *bytes, size_t n, uint8_t *to);

/* Whether n bytes of UTF-8 have more than `most` characters. */
bool lines_is_longer(const uint8_t *line, size_t n, size_t most);

/* A line as it is shown: cut to LINES_PRINTED characters, the last three of them dots if it is. The
 * length of what is in `to`. */
size_t lines_cut(const uint8_t *line, size_t n, uint8_t to[LINES_PRINTED_MAX]);

#endif
