/* bench_table: tables as text, Markdown and CSV. sbxbench; holds no state. */
#include "tools/bench_table.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "tools/bench.h"

#define SEPARATOR "  "

void bench_table_init(struct bench_table *t, size_t columns, size_t left)
{
	*t = (struct bench_table){.columns = columns, .left = left};
}

void bench_table_add(struct bench_table *t, const char *fmt, ...)
{
	va_list ap;

	if (t->count == t->cap) {
		t->cap = t->cap ? t->cap * 2 : 64;
		t->cells = reallocarray(t->cells, t->cap, sizeof(*t->cells));
		if (!t->cells)
			bench_die("reallocarray");
	}
	va_start(ap, fmt);
	if (vasprintf(&t->cells[t->count], fmt, ap) < 0)
		bench_die("vasprintf");
	va_end(ap);
	t->count++;
}

void bench_table_free(struct bench_table *t)
{
	for (size_t i = 0; i < t->count; i++)
		free(t->cells[i]);
	free(t->cells);
	*t = (struct bench_table){.columns = t->columns, .left = t->left};
}

/* In characters, not bytes: text is UTF-8. */
static size_t width_of(const char *text)
{
	size_t n = 0;

	for (; *text; text++)
		n += ((unsigned char)*text & 0xc0) != 0x80;
	return n;
}

static size_t column_width(const struct bench_table *t, size_t column)
{
	size_t widest = 0;

	for (size_t i = column; i < t->count; i += t->columns) {
		size_t n = *t->cells[i] ? width_of(t->cells[i]) : 1;

		widest = n > widest ? n : widest;
	}
	return widest;
}

static void put_padded(const char *text, size_t width, bool left, FILE *f)
{
	size_t n = width_of(text);
	int pad = n < width ? (int)(width - n) : 0;

	if (left)
		(void)fprintf(f, "%s%*s", text, pad, "");
	else
		(void)fprintf(f, "%*s%s", pad, "", text);
}

static void put_quoted(const char *text, FILE *f)
{
	if (!strpbrk(text, ",\"\r\n")) {
		(void)fputs(text, f);
		return;
	}
	(void)fputc('"', f);
	for (; *text; text++)
		(void)fprintf(f, "%s%c", *text == '"' ? "\"" : "", *text);
	(void)fputc('"', f);
}

static void print_row_of(const struct bench_table *t, size_t row, enum bench_form form, FILE *f)
{
	(void)fputs(form == BENCH_MARKDOWN ? "| " : "", f);
	for (size_t k = 0; k < t->columns; k++) {
		const char *text = t->cells[row * t->columns + k];
		const char *between = form == BENCH_CSV	       ? ","
				      : form == BENCH_MARKDOWN ? " | "
							       : SEPARATOR;

		(void)fputs(k ? between : "", f);
		if (form == BENCH_CSV)
			put_quoted(text, f);
		else
			put_padded(*text ? text : "-", column_width(t, k), k < t->left, f);
	}
	(void)fputs(form == BENCH_MARKDOWN ? " |\n" : form == BENCH_CSV ? "\r\n" : "\n", f);
}

void bench_table_print(const struct bench_table *t, enum bench_form form, FILE *f)
{
	for (size_t row = 0; (row + 1) * t->columns <= t->count; row++) {
		print_row_of(t, row, form, f);
		if (row > 0 || form != BENCH_MARKDOWN)
			continue;
		(void)fputs("|", f);
		for (size_t k = 0; k < t->columns; k++)
			(void)fputs(k < t->left ? "---|" : "---:|", f);
		(void)fputc('\n', f);
	}
}
