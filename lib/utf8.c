/* utf8: strict UTF-8 (RFC 3629). Any process; holds no state. */
#include "lib/utf8.h"

#include <string.h>

/* The second byte is what tells overlong forms, surrogates and values past U+10FFFF. */
struct utf8_form {
	uint8_t size; /* 0: no character begins with this byte */
	uint8_t second_min;
	uint8_t second_max;
};

static struct utf8_form utf8_form_of(uint8_t lead)
{
	if (lead >= 0xc2 && lead <= 0xdf)
		return (struct utf8_form){2, 0x80, 0xbf};
	if (lead == 0xe0)
		return (struct utf8_form){3, 0xa0, 0xbf};
	if (lead == 0xed)
		return (struct utf8_form){3, 0x80, 0x9f};
	if (lead >= 0xe1 && lead <= 0xef)
		return (struct utf8_form){3, 0x80, 0xbf};
	if (lead == 0xf0)
		return (struct utf8_form){4, 0x90, 0xbf};
	if (lead >= 0xf1 && lead <= 0xf3)
		return (struct utf8_form){4, 0x80, 0xbf};
	if (lead == 0xf4)
		return (struct utf8_form){4, 0x80, 0x8f};
	return (struct utf8_form){0, 0, 0};
}

/* Skips ASCII, eight bytes at a time where it can. */
static size_t utf8_skip_ascii(const uint8_t *s, size_t i, size_t n)
{
	uint64_t word;

	while (n - i >= sizeof(word)) {
		memcpy(&word, s + i, sizeof(word));
		if (word & 0x8080808080808080ULL)
			break;
		i += sizeof(word);
	}
	while (i < n && s[i] < 0x80)
		i++;
	return i;
}

size_t utf8_valid_prefix(const uint8_t *s, size_t n, bool *incomplete)
{
	size_t i = 0;
	bool cut = false;

	while ((i = utf8_skip_ascii(s, i, n)) < n) {
		struct utf8_form form = utf8_form_of(s[i]);
		size_t have = 1;

		if (form.size == 0)
			break;
		while (have < form.size && have < n - i) {
			uint8_t min = have == 1 ? form.second_min : 0x80;
			uint8_t max = have == 1 ? form.second_max : 0xbf;

			if (s[i + have] < min || s[i + have] > max)
				break;
			have++;
		}
		if (have < form.size) {
			cut = have == n - i;
			break;
		}
		i += form.size;
	}
	if (incomplete)
		*incomplete = cut;
	return i;
}
