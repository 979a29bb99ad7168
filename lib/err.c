/* err: an error that a person will read. Any process; holds no state. */
#include "lib/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

__attribute__((format(printf, 3, 0))) static void err_format(
    struct err *e, int code, const char *fmt, va_list ap)
{
	e->code = code;
	(void)vsnprintf(e->text, sizeof(e->text), fmt, ap); /* a cut text is still a text */
}

int err_set(struct err *e, int code, const char *fmt, ...)
{
	va_list ap;

	if (e) {
		va_start(ap, fmt);
		err_format(e, code, fmt, ap);
		va_end(ap);
	}
	return -code;
}

int err_sys(struct err *e, int code, const char *fmt, ...)
{
	va_list ap;
	size_t len;

	if (e) {
		va_start(ap, fmt);
		err_format(e, code, fmt, ap);
		va_end(ap);
		len = strlen(e->text);
		(void)snprintf(e->text + len, sizeof(e->text) - len, ": %s", strerror(code));
	}
	return -code;
}
