/*
 * text: short texts and numbers without stdio. sbx-guest; pure functions, nothing is lost here.
 */
#include "guest/text.h"

#include <errno.h>
#include <string.h>

void text_clear(struct text *t)
{
	t->len = 0;
	t->s[0] = '\0';
}

static void text_put(struct text *t, const char *s, size_t n)
{
	size_t room = sizeof(t->s) - 1 - t->len;

	if (n > room)
		n = room;
	memcpy(t->s + t->len, s, n);
	t->len += n;
	t->s[t->len] = '\0';
}

void text_add(struct text *t, const char *s)
{
	text_put(t, s, strlen(s));
}

void text_add_quoted(struct text *t, const char *s, size_t max)
{
	size_t n = strnlen(s, max + 1);
	size_t from = t->len;

	if (n > max) {
		n = max;
		while (n > 0 && ((unsigned char)s[n] & 0xc0U) == 0x80U)
			n--;
	}
	text_put(t, s, n);
	for (; from < t->len; from++)
		if ((unsigned char)t->s[from] < 0x20 || t->s[from] == 0x7f)
			t->s[from] = '?';
	if (s[n] != '\0')
		text_add(t, "...");
}

void text_add_uint(struct text *t, uint64_t n)
{
	char digits[20];
	size_t at = sizeof(digits);

	do {
		digits[--at] = (char)('0' + n % 10);
		n /= 10;
	} while (n != 0);
	text_put(t, digits + at, sizeof(digits) - at);
}

int text_parse_uint(const char *s, size_t len, uint64_t max, uint64_t *out)
{
	uint64_t n = 0;

	if (len == 0)
		return -EINVAL;
	for (size_t i = 0; i < len; i++) {
		uint64_t digit = (uint64_t)(unsigned char)s[i] - '0';

		if (digit > 9 || digit > max || n > (max - digit) / 10)
			return -EINVAL;
		n = n * 10 + digit;
	}
	*out = n;
	return 0;
}
