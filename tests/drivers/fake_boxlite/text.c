/*
 * text: the library carries a command's output as text. Bytes that are no UTF-8 are lost: each
 * wrong sequence becomes one U+FFFD. With `hold`, as newer versions do it, a sequence that the
 * chunk's end cuts is kept for the next one; without, it is lost too.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/drivers/fake_boxlite/fake.h"

static const uint8_t replacement[] = {0xef, 0xbf, 0xbd};

/* The length of the valid sequence at p; 0 when p[0 .. *bad-1] is none; -1 when the end cuts it. */
static int sequence(const uint8_t *p, size_t len, size_t *bad)
{
	size_t want = p[0] < 0x80 ? 1 : p[0] < 0xc2 ? 0 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
	uint8_t low = 0x80;
	uint8_t high = 0xbf;

	*bad = 1;
	if (want == 0 || p[0] > 0xf4)
		return 0;
	if (p[0] == 0xe0)
		low = 0xa0;
	if (p[0] == 0xed)
		high = 0x9f;
	if (p[0] == 0xf0)
		low = 0x90;
	if (p[0] == 0xf4)
		high = 0x8f;
	for (size_t i = 1; i < want; i++) {
		if (i == len)
			return -1;
		if (p[i] < low || p[i] > high) {
			*bad = i;
			return 0;
		}
		low = 0x80;
		high = 0xbf;
	}
	return (int)want;
}

uint8_t *text_decode(struct text *t, const uint8_t *data, size_t len, bool hold, size_t *out_len)
{
	size_t total = t->held_len + len;
	uint8_t *in = malloc(total + 1);
	uint8_t *out = malloc(3 * total + 1);
	size_t bad;
	size_t at = 0;
	size_t o = 0;
	int n;

	if (!in || !out)
		abort();
	memcpy(in, t->held, t->held_len);
	if (len)
		memcpy(in + t->held_len, data, len);
	t->held_len = 0;
	while (at < total) {
		n = sequence(in + at, total - at, &bad);
		if (n > 0) {
			memcpy(out + o, in + at, (size_t)n);
			o += (size_t)n;
			at += (size_t)n;
			continue;
		}
		if (n < 0 && hold) {
			t->held_len = total - at;
			memcpy(t->held, in + at, t->held_len);
			break;
		}
		memcpy(out + o, replacement, sizeof(replacement));
		o += sizeof(replacement);
		at += n < 0 ? total - at : bad;
	}
	free(in);
	*out_len = o;
	return out;
}

uint8_t *text_end(struct text *t, size_t *out_len)
{
	return text_decode(t, NULL, 0, false, out_len);
}
