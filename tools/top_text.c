/* top_text: text in columns, and numbers. sbxtop; holds no state. */
#include "tools/top_text.h"

#include <langinfo.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <wchar.h>

#include "lib/clock.h"
#include "lib/utf8.h"

#define MARKS_MAX 4 /* over one character; a terminal shows no more */

/* One character of a text: what is shown for it. */
struct shown {
	const char *bytes;
	size_t len;
	size_t source; /* bytes of the text that it stands for */
	int columns;   /* 0: a mark over the one before */
};

/* What no reader can see, but a terminal obeys: it changes the order or the width of what is shown.
 */
static const struct {
	uint32_t from;
	uint32_t to;
} unseen[] = {
    {0x00ad, 0x00ad},
    {0x061c, 0x061c},
    {0x180e, 0x180e},
    {0x200b, 0x200f},
    {0x2028, 0x202e},
    {0x2060, 0x206f},
    {0xfe00, 0xfe0f},
    {0xfeff, 0xfeff},
    {0xe0000, 0xe0fff},
};

static bool is_unseen(uint32_t code)
{
	for (size_t i = 0; i < sizeof(unseen) / sizeof(unseen[0]); i++) {
		if (code >= unseen[i].from && code <= unseen[i].to)
			return true;
	}
	return false;
}

static bool locale_has_utf8(void)
{
	return strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

static uint32_t decode(const unsigned char *s, size_t len)
{
	uint32_t code = len == 1 ? s[0] : s[0] & (0xffU >> (len + 1));

	for (size_t i = 1; i < len; i++)
		code = code << 6 | (s[i] & 0x3fU);
	return code;
}

/* Bytes of the valid character that text begins with; 0 when there is none. */
static size_t valid_length(const char *text)
{
	size_t n = strnlen(text, 4);
	unsigned char lead = (unsigned char)text[0];
	size_t len = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;

	return utf8_valid_prefix((const uint8_t *)text, n, NULL) >= len ? len : 0;
}

static struct shown show_next(const char *text, bool utf8)
{
	static const char unknown[] = "?";
	size_t len = valid_length(text);
	uint32_t code = len ? decode((const unsigned char *)text, len) : 0;
	struct shown c = {.bytes = unknown, .len = 1, .source = len ? len : 1, .columns = 1};

	if (code >= 0x20 && code < 0x7f) {
		c.bytes = text;
		return c;
	}
	if (!utf8 || code < 0xa0 || is_unseen(code))
		return c;
	c.columns = wcwidth((wchar_t)code);
	if (c.columns < 0) {
		c.columns = 1;
		return c;
	}
	c.bytes = text;
	c.len = len;
	return c;
}

/* As far as it fits into so many columns and bytes, nothing marking the cut. */
static struct top_piece put(
    const char *text, int columns, char *out, size_t size, bool utf8, bool *whole)
{
	struct top_piece done = {0};
	int marks = 0;

	while (*text) {
		struct shown c = show_next(text, utf8);

		marks = c.columns ? 0 : marks + 1;
		if (c.columns == 0 && (marks > MARKS_MAX || done.columns == 0)) {
			text += c.source; /* more than it can carry, or nothing to stand over */
			continue;
		}
		if (done.columns + c.columns > columns || done.bytes + c.len >= size)
			break;
		memcpy(out + done.bytes, c.bytes, c.len);
		done.bytes += c.len;
		done.columns += c.columns;
		text += c.source;
	}
	out[done.bytes] = '\0';
	*whole = *text == '\0';
	return done;
}

struct top_piece top_text_fit(const char *text, int columns, char *out, size_t size)
{
	bool utf8 = locale_has_utf8();
	struct top_piece done;
	bool whole;

	if (size == 0 || columns <= 0) {
		if (size)
			*out = '\0';
		return (struct top_piece){0};
	}
	done = put(text, columns, out, size, utf8, &whole);
	if (whole || size < 2)
		return done;
	done = put(text, columns - 1, out, size - 1, utf8, &whole);
	out[done.bytes++] = '~';
	out[done.bytes] = '\0';
	done.columns++;
	return done;
}

int top_text_columns(const char *text)
{
	bool utf8 = locale_has_utf8();
	int columns = 0;

	while (*text) {
		struct shown c = show_next(text, utf8);

		columns += c.columns;
		text += c.source;
	}
	return columns;
}

size_t top_text_within(const char *text, int columns)
{
	bool utf8 = locale_has_utf8();
	const char *at = text;

	while (*at) {
		struct shown c = show_next(at, utf8);

		if (c.columns > columns)
			break;
		columns -= c.columns;
		at += c.source;
	}
	return (size_t)(at - text);
}

bool top_text_has(const char *text, const char *part)
{
	return strcasestr(text, part) != NULL;
}

/* Three digits that count: "1.23", "12.3", "123". */
static void format_three(double value, const char *unit, char out[TOP_NUMBER])
{
	int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;

	(void)snprintf(out, TOP_NUMBER, "%.*f%s", decimals, value, unit);
}

void top_format_latency(uint64_t ns, char out[TOP_NUMBER])
{
	uint64_t us = ns / NS_PER_US;

	if (ns == 0)
		(void)snprintf(out, TOP_NUMBER, "-");
	else if (us == 0)
		(void)snprintf(out, TOP_NUMBER, "<1us");
	else if (us < 1000)
		(void)snprintf(out, TOP_NUMBER, "%uus", (unsigned int)us);
	else if (us < 999500)
		format_three((double)us / 1e3, "ms", out);
	else
		format_three((double)us / 1e6, "s", out);
}

void top_format_rate(double value, char out[TOP_NUMBER])
{
	(void)snprintf(out, TOP_NUMBER, value < 999.95 ? "%.1f" : "%.0f", value);
}

void top_format_count(uint64_t value, int columns, char out[TOP_NUMBER])
{
	static const char *const units[] = {"", "k", "M", "G", "T", "P", "E"};
	int n = snprintf(out, TOP_NUMBER, "%llu", (unsigned long long)value);
	double scaled = (double)value;
	size_t unit = 0;

	if (n <= columns)
		return;
	while (scaled >= 999.5) {
		scaled /= 1000;
		unit++;
	}
	format_three(scaled, units[unit], out);
}
