/* log: one line per event to stderr. Any process; a line that cannot be written is lost, nothing
 * else. */
#include "lib/log.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/clock.h"
#include "lib/utf8.h"

#define LOG_LINE_MAX 2048
#define LOG_LINE_END 3 /* kept free: a quote, a brace and the line feed */

static struct {
	const char *program;
	enum log_format format;
	enum log_level least;
} sink = {.program = "sbxd", .format = LOG_TEXT, .least = LOG_INFO};

static const char *const level_names[] = {
    [LOG_DEBUG] = "debug",
    [LOG_INFO] = "info",
    [LOG_WARN] = "warn",
    [LOG_ERROR] = "error",
};

void log_init(const char *program, enum log_format format, enum log_level least)
{
	sink.program = program;
	sink.format = format;
	sink.least = least;
}

struct line {
	char text[LOG_LINE_MAX];
	size_t len;
};

/* All of it or, when the line is full, nothing: a cut escape would break the JSON. */
static bool put(struct line *l, const char *s, size_t n)
{
	if (l->len + n > sizeof(l->text) - LOG_LINE_END)
		return false;
	memcpy(l->text + l->len, s, n);
	l->len += n;
	return true;
}

static bool put_control(struct line *l, unsigned int c, bool json)
{
	char escaped[8];

	(void)snprintf(escaped, sizeof(escaped), json ? "\\u%04x" : "\\x%02x", c & 0xff);
	return put(l, escaped, strlen(escaped));
}

/* One character of valid UTF-8, n bytes. */
static bool put_character(struct line *l, const char *s, size_t n, bool json)
{
	unsigned char c = (unsigned char)s[0];

	if (c < 0x20 || c == 0x7f)
		return put_control(l, c, json);
	if (c == 0xc2 && (unsigned char)s[1] < 0xa0) /* terminals obey these too */
		return put_control(l, (unsigned char)s[1], json);
	if (json && (c == '"' || c == '\\')) {
		const char escaped[2] = {'\\', s[0]};

		return put(l, escaped, sizeof(escaped));
	}
	return put(l, s, n);
}

/* Text from outside must neither forge a line nor break the JSON, which is UTF-8. */
static void put_escaped(struct line *l, const char *s, bool json)
{
	size_t left = strlen(s);
	bool fits = true;

	while (left > 0 && fits) {
		size_t valid = utf8_valid_prefix((const uint8_t *)s, left, NULL);
		size_t n = 1;

		left -= valid;
		for (const char *end = s + valid; s < end && fits; s += n) {
			unsigned char c = (unsigned char)*s;

			n = c < 0x80 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
			fits = put_character(l, s, n, json);
		}
		if (left > 0 && fits) {
			fits = json ? put(l, UTF8_REPLACEMENT, sizeof(UTF8_REPLACEMENT) - 1)
				    : put_control(l, (unsigned char)*s, json);
			s++;
			left--;
		}
	}
}

void log_escape(const char *text, char *out, size_t size)
{
	struct line l = {.len = 0};

	put_escaped(&l, text, false);
	(void)snprintf(out, size, "%.*s", (int)l.len, l.text); /* a cut text is still a text */
}

static void put_field(struct line *l, const char *key, const char *value)
{
	bool json = sink.format == LOG_JSON;
	char before[32];

	if (!value || !*value)
		return;
	(void)snprintf(
	    before, sizeof(before), json ? ",\"%s\":\"" : " %s=", key); /* keys are short */
	if (!put(l, before, strlen(before)))
		return;
	put_escaped(l, value, json);
	if (json)
		l->text[l->len++] = '"';
}

void log_line(enum log_level level, const struct log_ctx *ctx, const char *fmt, ...)
{
	struct line l = {.len = 0};
	char when[CLOCK_RFC3339_LEN];
	char message[1024];
	char head[128];
	va_list ap;

	if (level < sink.least)
		return;
	va_start(ap, fmt);
	(void)vsnprintf(message, sizeof(message), fmt, ap); /* a cut message is still a message */
	va_end(ap);
	clock_format_rfc3339(clock_wall_ms(), when);
	(void)snprintf(head, sizeof(head),
	    sink.format == LOG_JSON
		? "{\"time\":\"%s\",\"level\":\"%s\",\"program\":\"%s\",\"pid\":%d,\"message\":\""
		: "%s %s %s[%d]: ",
	    when, level_names[level], sink.program, (int)getpid());
	(void)put(&l, head, strlen(head)); /* always fits */
	put_escaped(&l, message, sink.format == LOG_JSON);
	if (sink.format == LOG_JSON)
		l.text[l.len++] = '"';
	if (ctx) {
		put_field(&l, "box", ctx->box);
		put_field(&l, "request_id", ctx->request_id);
		put_field(&l, "traceparent", ctx->traceparent);
	}
	if (sink.format == LOG_JSON)
		l.text[l.len++] = '}';
	l.text[l.len++] = '\n';
	if (write(STDERR_FILENO, l.text, l.len) < 0)
		return; /* nobody left to tell */
}

void log_panic(const char *file, int line, const char *what)
{
	log_error("invariant broken at %s:%d: %s", file, line, what);
	abort();
}
