/* config_print: the effective settings as YAML, for --check-config. sbxd, at start; holds no state.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "supervisor/config_table.h"

/* Code points that YAML takes as they are between double quotes. */
static bool printable(uint32_t c)
{
	return (c >= 0x20 && c <= 0x7e) || (c >= 0xa0 && c <= 0x2027) ||
	       (c >= 0x202a && c <= 0xfefe) || (c >= 0xff00 && c <= 0xfffd) || c >= 0x10000;
}

/* Decodes one character of valid UTF-8. Returns its bytes. */
static size_t decode(const char *s, uint32_t *c)
{
	const unsigned char *u = (const unsigned char *)s;
	size_t n = u[0] < 0x80 ? 1 : u[0] < 0xe0 ? 2 : u[0] < 0xf0 ? 3 : 4;
	uint32_t value = n == 1 ? u[0] : u[0] & (0x7fU >> n);

	for (size_t i = 1; i < n; i++)
		value = value << 6 | (u[i] & 0x3fU);
	*c = value;
	return n;
}

int config_put_quoted(struct buf *out, const char *text)
{
	int rc = buf_puts(out, "\"");

	while (*text && rc == 0) {
		uint32_t c;
		size_t n = decode(text, &c);

		if (c == '$')
			rc = buf_puts(out, "$$");
		else if (c == '"' || c == '\\')
			rc = buf_printf(out, "\\%c", (char)c);
		else if (printable(c))
			rc = buf_append(out, text, n);
		else
			rc = buf_printf(out, "\\u%04x", c);
		text += n;
	}
	return rc < 0 ? rc : buf_puts(out, "\"");
}

static int print_environment(const struct config_environment *e, struct buf *out)
{
	int rc = buf_puts(out, e->count ? "environment:\n" : "environment: {}\n");

	for (size_t at = 0; at < e->len && rc == 0; at += strlen(e->data + at) + 1) {
		const char *value = strchr(e->data + at, '=') + 1;

		rc = buf_printf(
		    out, "  \"%.*s\": ", (int)(value - 1 - (e->data + at)), e->data + at);
		if (rc == 0)
			rc = config_put_quoted(out, value);
		if (rc == 0)
			rc = buf_puts(out, "\n");
	}
	return rc;
}

/* Begins a new section where the row before belongs to another one. */
static int print_section(
    const struct config_key *row, const struct config_key *before, const char *dot, struct buf *out)
{
	size_t len = (size_t)(dot - row->name);

	if (before && strncmp(before->name, row->name, len + 1) == 0)
		return 0;
	return buf_printf(out, "%.*s:\n", (int)len, row->name);
}

int config_print(const struct config *c, struct buf *out)
{
	const struct config_key *before = NULL;
	int rc = 0;

	for (size_t i = 0; i < CONFIG_KEYS && rc == 0; i++) {
		const struct config_key *row = &config_keys[i];
		const char *dot = strchr(row->name, '.');

		if (row->type == CONFIG_ENVIRONMENT) {
			rc = print_environment(&c->environment, out);
		} else {
			if (dot)
				rc = print_section(row, before, dot, out);
			if (rc == 0)
				rc = buf_printf(
				    out, "%s%s: ", dot ? "  " : "", dot ? dot + 1 : row->name);
			if (rc == 0)
				rc = config_value_print(row, c, out);
			if (rc == 0)
				rc = buf_puts(out, "\n");
		}
		before = row;
	}
	return rc;
}
