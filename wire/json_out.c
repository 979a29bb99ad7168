/* json_out: JSON written straight into a buf. Any process; holds no state of its own. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "wire/json.h"

void json_out_init(struct json_out *j, struct buf *b)
{
	*j = (struct json_out){.b = b};
}

int json_out_error(const struct json_out *j)
{
	return j->error;
}

static void out_put(struct json_out *j, const void *bytes, size_t n)
{
	if (j->error == 0)
		j->error = buf_append(j->b, bytes, n);
}

#define OUT_PUT(j, literal) out_put(j, literal, sizeof(literal) - 1)

#define ONES 0x0101010101010101ULL
#define HIGHS 0x8080808080808080ULL

/* The high bit of each byte that is zero; exact for the lowest such byte, which is enough. */
static uint64_t out_zero_bytes(uint64_t w)
{
	return (w - ONES) & ~w & HIGHS;
}

static bool out_needs_escape(uint8_t c)
{
	return c < 0x20 || c == '"' || c == '\\';
}

/* How many bytes from the start can be copied as they are. */
static size_t out_plain_run(const uint8_t *s, size_t n)
{
	size_t i = 0;
	uint64_t w;

	while (n - i >= sizeof(w)) {
		memcpy(&w, s + i, sizeof(w));
		if (((w - ONES * 0x20) & ~w & HIGHS) || out_zero_bytes(w ^ ONES * '"') ||
		    out_zero_bytes(w ^ ONES * '\\'))
			break;
		i += sizeof(w);
	}
	while (i < n && !out_needs_escape(s[i]))
		i++;
	return i;
}

static size_t out_escape(uint8_t c, char *to)
{
	static const char hex[] = "0123456789abcdef";
	static const char shorts[0x20] = {
	    ['\b'] = 'b',
	    ['\t'] = 't',
	    ['\n'] = 'n',
	    ['\f'] = 'f',
	    ['\r'] = 'r',
	};

	to[0] = '\\';
	if (c >= 0x20 || shorts[c]) {
		to[1] = c >= 0x20 ? (char)c : shorts[c];
		return 2;
	}
	to[1] = 'u';
	to[2] = '0';
	to[3] = '0';
	to[4] = hex[c >> 4];
	to[5] = hex[c & 15];
	return 6;
}

static void out_put_text(struct json_out *j, const uint8_t *s, size_t n)
{
	char escaped[192];

	while (n > 0 && j->error == 0) {
		size_t run = out_plain_run(s, n);
		size_t len = 0;

		out_put(j, s, run);
		s += run;
		n -= run;
		while (n > 0 && out_needs_escape(*s) && len + 6 <= sizeof(escaped)) {
			len += out_escape(*s++, escaped + len);
			n--;
		}
		out_put(j, escaped, len);
	}
}

static void out_put_key(struct json_out *j, const char *key)
{
	if (j->comma)
		OUT_PUT(j, ",");
	j->comma = true;
	if (!key)
		return;
	OUT_PUT(j, "\"");
	out_put_text(j, (const uint8_t *)key, strlen(key));
	OUT_PUT(j, "\":");
}

void json_object_begin(struct json_out *j, const char *key)
{
	out_put_key(j, key);
	OUT_PUT(j, "{");
	j->comma = false;
}

void json_object_end(struct json_out *j)
{
	OUT_PUT(j, "}");
	j->comma = true;
}

void json_array_begin(struct json_out *j, const char *key)
{
	out_put_key(j, key);
	OUT_PUT(j, "[");
	j->comma = false;
}

void json_array_end(struct json_out *j)
{
	OUT_PUT(j, "]");
	j->comma = true;
}

void json_put_string(struct json_out *j, const char *key, const char *value)
{
	const uint8_t *s = (const uint8_t *)value;
	size_t n;

	if (!value) {
		json_put_null(j, key);
		return;
	}
	n = strlen(value);
	out_put_key(j, key);
	OUT_PUT(j, "\"");
	while (n > 0 && j->error == 0) {
		size_t valid = utf8_valid_prefix(s, n, NULL);

		out_put_text(j, s, valid);
		s += valid;
		n -= valid;
		if (n > 0) {
			OUT_PUT(j, UTF8_REPLACEMENT);
			s++;
			n--;
		}
	}
	OUT_PUT(j, "\"");
}

void json_put_bytes(struct json_out *j, const char *key, const void *utf8, size_t n)
{
	out_put_key(j, key);
	OUT_PUT(j, "\"");
	out_put_text(j, utf8, n);
	OUT_PUT(j, "\"");
}

void json_put_base64(struct json_out *j, const char *key, const void *bytes, size_t n)
{
	size_t len = base64_len(n);
	uint8_t *to;

	out_put_key(j, key);
	OUT_PUT(j, "\"");
	if (j->error == 0 && len > 0) {
		to = buf_reserve(j->b, len);
		if (to) {
			base64_encode(bytes, n, (char *)to);
			buf_commit(j->b, len);
		} else {
			j->error = len > buf_room(j->b) ? -ENOBUFS : -ENOMEM;
		}
	}
	OUT_PUT(j, "\"");
}

static void out_put_token(struct json_out *j, const char *key, const char *text)
{
	out_put_key(j, key);
	out_put(j, text, strlen(text));
}

/* Most of an answer is numbers: no printf for them. */
static void out_put_number(struct json_out *j, const char *key, bool negative, uint64_t mag)
{
	char text[24];
	char *p = text + sizeof(text);

	do {
		*--p = (char)('0' + mag % 10);
		mag /= 10;
	} while (mag);
	if (negative)
		*--p = '-';
	out_put_key(j, key);
	out_put(j, p, (size_t)(text + sizeof(text) - p));
}

void json_put_int(struct json_out *j, const char *key, int64_t value)
{
	out_put_number(j, key, value < 0, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

void json_put_uint(struct json_out *j, const char *key, uint64_t value)
{
	out_put_number(j, key, false, value);
}

void json_put_double(struct json_out *j, const char *key, double value)
{
	char text[400];
	char *p = text + 32;
	double mag = fabs(value);
	uint64_t milli;

	if (!isfinite(value)) {
		json_put_null(j, key);
		return;
	}
	if (mag >= 9e15) {
		(void)snprintf(text, sizeof(text), "%.0f.000", value); /* 314 at most */
		out_put_token(j, key, text);
		return;
	}
	/* In integers, for a locale must not choose the decimal point; from the last digit on. */
	milli = (uint64_t)(mag * 1000 + 0.5);
	for (int digits = 0; digits < 4 || milli; digits++) {
		if (digits == 3)
			*--p = '.';
		*--p = (char)('0' + milli % 10);
		milli /= 10;
	}
	if (value < 0 && mag * 1000 + 0.5 >= 1)
		*--p = '-';
	out_put_key(j, key);
	out_put(j, p, (size_t)(text + 32 - p));
}

void json_put_bool(struct json_out *j, const char *key, bool value)
{
	out_put_token(j, key, value ? "true" : "false");
}

void json_put_null(struct json_out *j, const char *key)
{
	out_put_token(j, key, "null");
}

void json_put_written(struct json_out *j, const char *key, const void *json, size_t n)
{
	out_put_key(j, key);
	out_put(j, json, n);
}
