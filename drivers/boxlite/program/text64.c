/* text64: base64 as it comes. sbx-boxlite; holds no state but its struct's. */
#include "drivers/boxlite/program/text64.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "wire/base64.h"

/* Whole groups of four, the last of which may be padded. */
static int decode_run(const char *text, size_t n, struct buf *out)
{
	size_t len = 0;
	uint8_t *bytes;
	int rc;

	if (n == 0)
		return 0;
	bytes = base64_decode(text, n, &len);
	if (!bytes)
		return -errno;
	rc = buf_append(out, bytes, len);
	free(bytes);
	return rc;
}

/* The same, where each padded group ends a piece. */
static int decode_pieces(const char *text, size_t n, struct buf *out)
{
	const char *pad;
	int rc = 0;

	while (rc == 0 && (pad = memchr(text, '=', n))) {
		size_t run = (size_t)(pad - text) / 4 * 4 + 4;

		rc = decode_run(text, run, out);
		text += run;
		n -= run;
	}
	return rc == 0 ? decode_run(text, n, out) : rc;
}

/* Without line breaks. */
static int decode_line(struct text64 *t, const char *text, size_t n, struct buf *out)
{
	size_t whole;
	int rc = 0;

	while (rc == 0 && n && t->len) {
		t->text[t->len++] = *text++;
		n--;
		if (t->len == sizeof(t->text)) {
			t->len = 0;
			rc = decode_run(t->text, sizeof(t->text), out);
		}
	}
	whole = n / 4 * 4;
	if (rc == 0)
		rc = decode_pieces(text, whole, out);
	if (rc == 0 && n > whole) {
		memcpy(t->text, text + whole, n - whole);
		t->len = n - whole;
	}
	return rc;
}

int text64_decode(struct text64 *t, const char *text, size_t n, struct buf *out)
{
	int rc = 0;

	while (rc == 0 && n) {
		size_t line = 0;

		while (line < n && text[line] != '\n' && text[line] != '\r')
			line++;
		rc = decode_line(t, text, line, out);
		line += line < n;
		text += line;
		n -= line;
	}
	return rc;
}
