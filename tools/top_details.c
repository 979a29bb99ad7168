/* top_details: the panels with all about one box, and with all events. sbxtop; holds no state but
 * the app's. */
#include <stdio.h>
#include <string.h>

#include "tools/top_app.h"
#include "tools/top_screen.h"

#define LABEL 14 /* columns */

/* ---- a box ---- */

/* NULL when it is no more. */
static const struct top_box *shown_box(const struct top_app *a)
{
	const struct top_model *m = a->s.model;
	const struct top_box *b;

	if (a->details_slot >= m->slot_count)
		return NULL;
	b = &m->slots[a->details_slot];
	return b->there && b->seen.sup.generation == a->details_generation ? b : NULL;
}

static int value_columns(void)
{
	int columns = top_screen_columns() - LABEL - 2;

	return columns > 8 ? columns : 8;
}

/* Lines that a text takes. */
static size_t wrapped_lines(const char *text)
{
	int all = top_text_columns(text);
	int each = value_columns();

	return all <= each ? 1 : (size_t)((all + each - 1) / each);
}

/* Its line number n; a character of two columns that does not fit leaves a blank. */
static const char *wrapped_part(const char *text, size_t n)
{
	while (n-- > 0)
		text += top_text_within(text, value_columns());
	return text;
}

static void put_value(const struct top_column *c, const char *text, size_t part, struct top_line *l)
{
	const char *from = wrapped_part(text, part);
	char one[TOP_LINE_BYTES];

	(void)snprintf(one, sizeof(one), "%.*s", (int)top_text_within(from, value_columns()), from);
	top_line_left(l, STYLE_LABEL, part == 0 ? c->title : "", LABEL);
	top_line_put(l, STYLE_STRONG, "%s", one);
}

static size_t count_values(const struct top_box *b)
{
	size_t n = 0;

	for (size_t i = 0; i < top_columns_count(); i++) {
		char buf[TOP_NUMBER];

		n += wrapped_lines(top_column_text(top_column_at(i), b, buf));
	}
	return n;
}

static void value_line(const struct top_box *b, size_t line, struct top_line *l)
{
	for (size_t i = 0; i < top_columns_count(); i++) {
		const struct top_column *c = top_column_at(i);
		char buf[TOP_NUMBER];
		const char *text = top_column_text(c, b, buf);
		size_t lines = wrapped_lines(text);

		if (line < lines) {
			put_value(c, text, line, l);
			return;
		}
		line -= lines;
	}
}

static bool is_about(const struct top_app *a, const struct shm_event *ev)
{
	return ev->slot == a->details_slot && ev->generation == a->details_generation;
}

static size_t count_own_events(const struct top_app *a)
{
	const struct top_events *e = &a->s.model->events;
	size_t n = 0;

	for (size_t i = 0; i < top_events_count(e); i++)
		n += is_about(a, top_events_back(e, i));
	return n;
}

/* The newest first. */
static void own_event_line(const struct top_app *a, size_t n, struct top_line *l)
{
	const struct top_events *e = &a->s.model->events;

	for (size_t i = 0; i < top_events_count(e); i++) {
		const struct shm_event *ev = top_events_back(e, i);

		if (is_about(a, ev) && n-- == 0) {
			top_event_line(ev, l);
			return;
		}
	}
}

static size_t details_count(const struct top_app *a)
{
	const struct top_box *b = shown_box(a);

	return (b ? count_values(b) : 1) + 2 + count_own_events(a);
}

static void details_line(const struct top_app *a, size_t i, struct top_line *l)
{
	const struct top_box *b = shown_box(a);
	size_t values = b ? count_values(b) : 1;

	if (!b && i == 0)
		top_line_put(l, STYLE_WARN, "this box is no more");
	else if (i < values)
		value_line(b, i, l);
	else if (i == values + 1)
		top_line_put(l, STYLE_LABEL, "Its events, the newest first:");
	else if (i > values + 1)
		own_event_line(a, i - values - 2, l);
}

static void details_key(struct top_app *a, int key)
{
	if (key == TOP_KEY_ENTER)
		top_panel_close(a);
}

const struct top_panel top_panel_details = {
    .title = "BOX",
    .keys = "Enter: back",
    .count = details_count,
    .line = details_line,
    .key = details_key,
};

/* ---- all events ---- */

static size_t events_count(const struct top_app *a)
{
	return top_events_count(&a->s.model->events);
}

static void events_line(const struct top_app *a, size_t i, struct top_line *l)
{
	const struct top_events *e = &a->s.model->events;
	const struct shm_event *ev = top_events_back(e, top_events_count(e) - 1 - i);

	if (ev)
		top_event_line(ev, l);
}

const struct top_panel top_panel_events = {
    .title = "EVENTS",
    .keys = "the newest are at the end",
    .from_end = true,
    .count = events_count,
    .line = events_line,
};
