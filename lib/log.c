/* log: one line per event to stderr. Any process; a line that cannot be written is lost, nothing
 * else. */
#include "lib/log.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/clock.h"

#define LOG_LINE_MAX 2048

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

static void put(struct line *l, const char *s, size_t n)
{
	if (n > sizeof(l->text) - 2 - l->len)
		n = sizeof(l->text) - 2 - l->len;
	memcpy(l->text + l->len, s, n);
	l->len += n;
}

/* Text from outside must neither forge a line nor break the JSON. */
static void put_escaped(struct line *l, const char *s, bool json)
{
	char hex[8];

	for (; *s; s++) {
		unsigned char c = (unsigned char)*s;

		if (c < 0x20 || c == 0x7f) {
			(void)snprintf(hex, sizeof(hex), json ? "\\u%04x" : "\\x%02x", c);
			put(l, hex, strlen(hex));
		} else if (json && (c == '"' || c == '\\')) {
			put(l, "\\", 1);
			put(l, s, 1);
		} else {
			put(l, s, 1);
		}
	}
}

static void put_field(struct line *l, const char *key, const char *value)
{
	bool json = sink.format == LOG_JSON;

	if (!value || !*value)
		return;
	put(l, json ? ",\"" : " ", json ? 2 : 1);
	put(l, key, strlen(key));
	put(l, json ? "\":\"" : "=", json ? 3 : 1);
	put_escaped(l, value, json);
	if (json)
		put(l, "\"", 1);
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
	put(&l, head, strlen(head));
	put_escaped(&l, message, sink.format == LOG_JSON);
	if (sink.format == LOG_JSON)
		put(&l, "\"", 1);
	if (ctx) {
		put_field(&l, "box", ctx->box);
		put_field(&l, "request_id", ctx->request_id);
		put_field(&l, "traceparent", ctx->traceparent);
	}
	if (sink.format == LOG_JSON)
		put(&l, "}", 1);
	l.text[l.len++] = '\n';
	if (write(STDERR_FILENO, l.text, l.len) < 0)
		return; /* nobody left to tell */
}

void log_panic(const char *file, int line, const char *what)
{
	log_error("invariant broken at %s:%d: %s", file, line, what);
	abort();
}
