/* top_line: building a line of styled text. sbxtop; holds no state. */
#include "tools/top_line.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tools/top_text.h"

void top_line_clear(struct top_line *l)
{
	l->len = 0;
	l->columns = 0;
	l->spans = 0;
	l->text[0] = '\0';
}

static void begin_style(struct top_line *l, enum top_style style)
{
	if (l->spans && l->span[l->spans - 1].style == style)
		return;
	if (l->spans && l->span[l->spans - 1].from == l->len)
		l->spans--;
	if (l->spans == TOP_LINE_SPANS)
		return; /* the rest looks like what stands before it */
	l->span[l->spans++] = (struct top_span){(uint16_t)l->len, (uint16_t)style};
}

static struct top_piece append(struct top_line *l, const char *text, int columns)
{
	int room = TOP_LINE_COLUMNS - l->columns;
	struct top_piece p = top_text_fit(
	    text, columns < room ? columns : room, l->text + l->len, sizeof(l->text) - l->len);

	l->len += p.bytes;
	l->columns += p.columns;
	return p;
}

static void append_blanks(struct top_line *l, int n)
{
	while (n-- > 0 && l->columns < TOP_LINE_COLUMNS && l->len + 1 < sizeof(l->text)) {
		l->text[l->len++] = ' ';
		l->columns++;
	}
	l->text[l->len] = '\0';
}

void top_line_put(struct top_line *l, enum top_style style, const char *fmt, ...)
{
	char text[TOP_LINE_COLUMNS + 1];
	va_list ap;

	begin_style(l, style);
	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	(void)append(l, text, TOP_LINE_COLUMNS);
}

void top_line_left(struct top_line *l, enum top_style style, const char *text, int columns)
{
	begin_style(l, style);
	append_blanks(l, columns - append(l, text, columns).columns);
}

void top_line_right(struct top_line *l, enum top_style style, const char *text, int columns)
{
	begin_style(l, style);
	append_blanks(l, columns - top_text_columns(text));
	(void)append(l, text, columns);
}

void top_line_pad(struct top_line *l, enum top_style style, int column)
{
	begin_style(l, style);
	append_blanks(l, column - l->columns);
}

void top_line_cut(struct top_line *l, int columns)
{
	if (l->columns <= columns)
		return;
	l->len = top_text_within(l->text, columns);
	l->text[l->len] = '\0';
	l->columns = columns;
	while (l->spans && l->span[l->spans - 1].from >= l->len)
		l->spans--;
}

enum top_style top_style_of_state(uint32_t state)
{
	return state < SLOT_STATES ? (enum top_style)(STYLE_STATE + state) : STYLE_PLAIN;
}
