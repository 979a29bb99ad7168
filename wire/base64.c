/* base64: the standard alphabet with padding (RFC 4648), strictly. Any process; holds no state. */
#include "wire/base64.h"

#include <errno.h>
#include <stdlib.h>

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void base64_encode(const uint8_t *s, size_t n, char *out)
{
	for (; n >= 3; n -= 3, s += 3) {
		*out++ = alphabet[s[0] >> 2];
		*out++ = alphabet[(s[0] & 3) << 4 | s[1] >> 4];
		*out++ = alphabet[(s[1] & 15) << 2 | s[2] >> 6];
		*out++ = alphabet[s[2] & 63];
	}
	if (n == 0)
		return;
	*out++ = alphabet[s[0] >> 2];
	*out++ = alphabet[(s[0] & 3) << 4 | (n == 2 ? s[1] >> 4 : 0)];
	*out++ = n == 2 ? alphabet[(s[1] & 15) << 2] : '=';
	*out = '=';
}

/* What to add to a digit to get its value; 0: not a digit. */
static const int8_t shifts[256] = {
    ['A' ... 'Z'] = -'A',
    ['a' ... 'z'] = 26 - 'a',
    ['0' ... '9'] = 52 - '0',
    ['+'] = 62 - '+',
    ['/'] = 63 - '/',
};

static int32_t base64_value(char c)
{
	int8_t shift = shifts[(uint8_t)c];

	return shift ? c + shift : -1;
}

/* Of four digits: their 24 bits, or -1 when one is no digit. */
static int32_t base64_quad(const char *text)
{
	int32_t a = base64_value(text[0]);
	int32_t b = base64_value(text[1]);
	int32_t c = base64_value(text[2]);
	int32_t d = base64_value(text[3]);

	if ((a | b | c | d) < 0)
		return -1;
	return a << 18 | b << 12 | c << 6 | d;
}

/* The last four characters may end in one or two '='. Bytes written, or -1. */
static int base64_last(const char *text, uint8_t *out)
{
	int pad = text[3] != '=' ? 0 : text[2] != '=' ? 1 : 2;
	char filled[4] = {text[0], text[1], pad == 2 ? 'A' : text[2], pad ? 'A' : text[3]};
	int32_t bits = base64_quad(filled);

	/* Bits that no byte holds must be zero, so that every block has one spelling. */
	if (bits < 0 || (pad == 1 && bits & 0xff) || (pad == 2 && bits & 0xffff))
		return -1;
	out[0] = (uint8_t)(bits >> 16);
	if (pad < 2)
		out[1] = (uint8_t)(bits >> 8);
	if (pad < 1)
		out[2] = (uint8_t)bits;
	return 3 - pad;
}

uint8_t *base64_decode(const char *text, size_t n, size_t *out_len)
{
	uint8_t *out = malloc(n / 4 * 3 + 1);
	size_t len = 0;
	int32_t bits = 0;
	int last = 0;

	if (!out)
		return NULL;
	for (size_t i = 0; n % 4 == 0 && bits >= 0 && i + 4 < n; i += 4) {
		bits = base64_quad(text + i);
		out[len++] = (uint8_t)(bits >> 16);
		out[len++] = (uint8_t)(bits >> 8);
		out[len++] = (uint8_t)bits;
	}
	if (n % 4 == 0 && n > 0 && bits >= 0)
		last = base64_last(text + n - 4, out + len);
	if (n % 4 != 0 || bits < 0 || last < 0) {
		free(out);
		errno = EINVAL;
		return NULL;
	}
	*out_len = len + (size_t)last;
	return out;
}
