/* lines: the bytes of a file as lines of text. sbx-files; pure functions, nothing is lost here. */
#include "guest/files/lines.h"

#include <string.h>

#include "lib/utf8.h"

#define DOTS "..."
#define DOTS_LEN (sizeof(DOTS) - 1)

/* How many bytes at the start of what is no UTF-8 are the beginning of a character; 1 when they are
 * not even that. */
static size_t broken_len(const uint8_t *p, size_t n)
{
	bool incomplete = true;
	size_t len = 0;

	while (len < n && len < 3 && incomplete) {
		(void)utf8_valid_prefix(p, len + 1, &incomplete);
		len += incomplete;
	}
	return len > 0 ? len : 1;
}

size_t lines_repair(const uint8_t *bytes, size_t n, uint8_t *to)
{
	size_t at = 0;
	size_t done = 0;

	for (;;) {
		size_t good = utf8_valid_prefix(bytes + at, n - at, NULL);

		memcpy(to + done, bytes + at, good);
		at += good;
		done += good;
		if (at == n)
			return done;
		memcpy(to + done, UTF8_REPLACEMENT, sizeof(UTF8_REPLACEMENT) - 1);
		done += sizeof(UTF8_REPLACEMENT) - 1;
		at += broken_len(bytes + at, n - at);
	}
}

/* Where the character with that number (from 0) begins, or n. */
static size_t character_at(const uint8_t *line, size_t n, size_t number)
{
	for (size_t i = 0; i < n; i++) {
		if ((line[i] & 0xc0U) == 0x80U)
			continue;
		if (number-- == 0)
			return i;
	}
	return n;
}

bool lines_is_longer(const uint8_t *line, size_t n, size_t most)
{
	/* A character takes one to four bytes. */
	return n > most && (n > 4 * most || character_at(line, n, most) < n);
}

size_t lines_cut(const uint8_t *line, size_t n, uint8_t to[LINES_PRINTED_MAX])
{
	if (!lines_is_longer(line, n, LINES_PRINTED)) {
		memcpy(to, line, n);
		return n;
	}
	n = character_at(line, n, LINES_PRINTED - DOTS_LEN);
	memcpy(to, line, n);
	memcpy(to + n, DOTS, DOTS_LEN);
	return n + DOTS_LEN;
}
