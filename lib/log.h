/*
 * log: one line per event to stderr, as text or as JSON.
 *
 * The sink (format, level, program name) is the only mutable state that is global. Never called
 * while a shared lock is held. A line is one write(2), so that lines of several processes do not
 * mix.
 */
#ifndef SBXD_LIB_LOG_H
#define SBXD_LIB_LOG_H

#include <stddef.h>

enum log_level {
	LOG_DEBUG,
	LOG_INFO,
	LOG_WARN,
	LOG_ERROR,
};

enum log_format {
	LOG_TEXT,
	LOG_JSON,
};

/* program is kept, not copied. */
void log_init(const char *program, enum log_format format, enum log_level least);

/* What a line is about; any of them may be NULL. */
struct log_ctx {
	const char *box;	 /* box name or token */
	const char *request_id;	 /* X-Request-Id */
	const char *traceparent; /* W3C trace context */
};

void log_line(enum log_level level, const struct log_ctx *ctx, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* `text` as it would stand in a line of LOG_TEXT: a terminal obeys nothing in it. Cut to size. */
void log_escape(const char *text, char *out, size_t size);

#define log_debug(...) log_line(LOG_DEBUG, NULL, __VA_ARGS__)
#define log_info(...) log_line(LOG_INFO, NULL, __VA_ARGS__)
#define log_warn(...) log_line(LOG_WARN, NULL, __VA_ARGS__)
#define log_error(...) log_line(LOG_ERROR, NULL, __VA_ARGS__)

/* For our own broken invariant: logs and aborts. */
void log_panic(const char *file, int line, const char *what) __attribute__((noreturn));

#define INVARIANT(cond) ((cond) ? (void)0 : log_panic(__FILE__, __LINE__, #cond))

#endif
