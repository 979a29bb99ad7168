/* top_layout: which columns are shown, and how they share a line. sbxtop; holds no state. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tools/top_columns.h"

void top_layout_default(struct top_layout *out)
{
	out->count = 0;
	for (size_t i = 0; i < top_columns_count(); i++) {
		if (!top_column_at(i)->hidden)
			out->column[out->count++] = (uint8_t)i;
	}
}

bool top_layout_has(const struct top_layout *l, int column)
{
	for (size_t i = 0; i < l->count; i++) {
		if (l->column[i] == column)
			return true;
	}
	return false;
}

int top_layout_parse(const char *text, struct top_layout *out, char *bad, size_t size)
{
	struct top_layout l = {0};

	while (*text) {
		char key[32];
		size_t n = strcspn(text, ",");
		int column;

		(void)snprintf(key, sizeof(key), "%.*s", (int)(n < 31 ? n : 31), text);
		column = top_column_find(key);
		if (column < 0 || top_layout_has(&l, column)) {
			if (bad)
				(void)snprintf(bad, size, "%s", key);
			return -EINVAL;
		}
		l.column[l.count++] = (uint8_t)column;
		text += n + (text[n] == ',');
	}
	if (l.count == 0) {
		if (bad)
			(void)snprintf(bad, size, "%s", "");
		return -EINVAL;
	}
	*out = l;
	return 0;
}

void top_layout_format(const struct top_layout *l, char *out, size_t size)
{
	size_t at = 0;

	*out = '\0';
	for (size_t i = 0; i < l->count && at < size; i++)
		at += (size_t)snprintf(
		    out + at, size - at, "%s%s", i ? "," : "", top_column_at(l->column[i])->key);
}

/* ---- widths ---- */

static const struct top_column *column_of(const struct top_layout *l, size_t i)
{
	return top_column_at(l->column[i]);
}

/* What is left over when each has what it needs; numbers are shown whole or not at all. */
static int give_needed(const struct top_layout *l, int columns, struct top_widths *w)
{
	int left = columns;

	for (size_t i = w->first; i < l->count; i++) {
		const struct top_column *c = column_of(l, i);
		int room = left - (i > w->first); /* a blank before it */
		bool whole = room >= c->width;

		if (room <= 0 || (!whole && (top_column_is_number(c) || room < 4)))
			break;
		w->width[i] = whole ? c->width : room;
		left = room - w->width[i];
	}
	return left;
}

/* Each of those that grow gets one in turn. */
static void give_rest(const struct top_layout *l, int left, struct top_widths *w)
{
	bool given = true;

	while (left > 0 && given) {
		given = false;
		for (size_t i = w->first; i < l->count && left > 0; i++) {
			const struct top_column *c = column_of(l, i);

			if (w->width[i] == 0 || w->width[i] >= c->width + c->grows)
				continue;
			w->width[i]++;
			left--;
			given = true;
		}
	}
}

void top_layout_fit(const struct top_layout *l, size_t first, int columns, struct top_widths *out)
{
	*out = (struct top_widths){.first = first};
	give_rest(l, give_needed(l, columns, out), out);
}

/* ---- lines ---- */

void top_layout_titles(const struct top_layout *l, const struct top_widths *w, int sorted,
    bool descending, struct top_line *out)
{
	top_line_clear(out);
	for (size_t i = w->first; i < l->count && w->width[i]; i++) {
		const struct top_column *c = column_of(l, i);
		bool decides = l->column[i] == sorted;
		enum top_style style = decides ? STYLE_SORTED : STYLE_HEADING;
		char title[32];

		if (i > w->first)
			top_line_put(out, STYLE_HEADING, " ");
		(void)snprintf(title, sizeof(title), "%s", c->title);
		/* An arrow where it fits: which way it is sorted. */
		if (decides && (int)strlen(title) < w->width[i])
			(void)snprintf(
			    title, sizeof(title), "%s%c", c->title, descending ? 'v' : '^');
		if (top_column_is_number(c))
			top_line_right(out, style, title, w->width[i]);
		else
			top_line_left(out, style, title, w->width[i]);
	}
}

static enum top_style style_of(const struct top_column *c, const struct top_box *b)
{
	if (c->type == TYPE_STATE)
		return top_style_of_state(b->seen.sup.state);
	if (c->type == TYPE_LOCK && b->lock >= LOCK_DIED)
		return STYLE_BAD;
	return STYLE_PLAIN;
}

void top_layout_line(const struct top_layout *l, const struct top_widths *w,
    const struct top_box *b, struct top_line *out)
{
	top_line_clear(out);
	for (size_t i = w->first; i < l->count && w->width[i]; i++) {
		const struct top_column *c = column_of(l, i);
		enum top_style style = style_of(c, b);
		char buf[TOP_NUMBER];
		const char *text = top_column_text(c, b, buf);

		if (i > w->first)
			top_line_put(out, STYLE_PLAIN, " ");
		if (top_column_is_number(c))
			top_line_right(out, style, text, w->width[i]);
		else
			top_line_left(out, style, text, w->width[i]);
	}
}

int top_layout_hit(const struct top_layout *l, const struct top_widths *w, int x)
{
	for (size_t i = w->first; i < l->count && w->width[i]; i++) {
		if (x < w->width[i])
			return (int)i;
		x -= w->width[i] + 1;
	}
	return -1;
}
