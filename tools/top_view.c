/* top_view: draws all of it: summary, list or panel, events, bar. sbxtop; holds no state. */
#include <stdio.h>
#include <string.h>

#include "tools/top_app.h"
#include "tools/top_screen.h"
#include "tools/top_summary.h"

#define TALL 34	     /* lines from which on the summary is the long one */
#define LIST_LEAST 3 /* lines of the list that events may not take */
		     /* of each key on the bar */
#define SUMMARY_SMALL 3

/* ---- where everything is ---- */

static int summary_lines(int rows)
{
	if (rows >= TALL)
		return TOP_SUMMARY_LONG;
	/* Smaller than anybody should use: the list is what matters. */
	return rows >= TOP_SUMMARY_SHORT + LIST_LEAST + 2 ? TOP_SUMMARY_SHORT : SUMMARY_SMALL;
}

void top_places(const struct top_app *a, struct top_places *out)
{
	int rows = top_screen_rows();
	int events = a->panel ? 0 : a->set->event_lines;
	int left;

	out->bar = rows - 1;
	out->summary = summary_lines(rows);
	out->titles = out->summary;
	out->body = out->titles + 1;
	left = out->bar - out->body;
	out->event_lines = 0;
	out->events = -1;
	if (events > 0 && left - LIST_LEAST > 1) {
		out->event_lines = left - LIST_LEAST - 1 < events ? left - LIST_LEAST - 1 : events;
		out->events = out->bar - out->event_lines - 1;
		left -= out->event_lines + 1;
	}
	out->body_lines = left > 0 ? left : 0;
}

/* ---- the parts ---- */

/* What the first line says besides how sbxd is. */
static void format_mode(const struct top_app *a, char *out, size_t size)
{
	const struct top_events *e = &a->s.model->events;
	char replay[64] = "";

	if (a->s.replaying)
		(void)snprintf(replay, sizeof(replay), "%s event %zu of %zu ",
		    a->paused ? "REPLAY" : "PLAYING", top_events_count(e), e->count);
	(void)snprintf(out, size, "%s%s%s%s", replay, a->paused && !a->s.replaying ? "PAUSED " : "",
	    *a->s.rows.filter ? "FILTER " : "", a->s.rows.filter);
}

static void draw_summary(const struct top_app *a, const struct top_places *p)
{
	struct top_line lines[TOP_SUMMARY_LONG];
	char mode[TOP_FILTER + 96];
	struct top_notice notice = {.table = a->s.table.trouble, .mode = mode};

	format_mode(a, mode, sizeof(mode));
	top_summary_lines(a->s.model, &notice, (size_t)p->summary, top_screen_columns(), lines);
	for (int i = 0; i < p->summary; i++)
		top_screen_line(i, &lines[i], STYLE_PLAIN);
}

/* So that the selected row is among those that are shown. */
static void follow_selected(struct top_app *a, size_t lines)
{
	size_t selected = a->s.rows.selected;
	size_t count = a->s.rows.count;

	if (selected < a->scroll)
		a->scroll = selected;
	if (lines && selected >= a->scroll + lines)
		a->scroll = selected - lines + 1;
	if (a->scroll + lines > count)
		a->scroll = count > lines ? count - lines : 0;
}

static void draw_titles(const struct top_app *a, const struct top_widths *w, int y)
{
	struct top_line line;

	top_layout_titles(&a->s.layout, w, a->s.rows.sort, a->s.rows.descending, &line);
	top_line_pad(&line, STYLE_HEADING, top_screen_columns());
	top_screen_line(y, &line, STYLE_PLAIN);
}

static void draw_list(struct top_app *a, const struct top_places *p)
{
	struct top_widths w;
	struct top_line line;

	top_layout_fit(&a->s.layout, a->first, top_screen_columns(), &w);
	follow_selected(a, (size_t)p->body_lines);
	draw_titles(a, &w, p->titles);
	for (int i = 0; i < p->body_lines; i++) {
		size_t row = a->scroll + (size_t)i;
		bool selected = row == a->s.rows.selected;

		top_line_clear(&line);
		if (row < a->s.rows.count)
			top_layout_line(&a->s.layout, &w, a->s.rows.row[row], &line);
		top_screen_line(p->body + i, &line,
		    selected && row < a->s.rows.count ? STYLE_SELECTED : STYLE_PLAIN);
	}
}

static void draw_events(const struct top_app *a, const struct top_places *p)
{
	const struct top_events *e = &a->s.model->events;
	struct top_line line;

	if (p->events < 0)
		return;
	top_line_clear(&line);
	top_line_put(&line, STYLE_HEADING, "EVENTS");
	if (e->lost)
		top_line_put(&line, STYLE_HEADING, "  %llu were too fast to be read",
		    (unsigned long long)e->lost);
	top_line_pad(&line, STYLE_HEADING, top_screen_columns());
	top_screen_line(p->events, &line, STYLE_PLAIN);
	for (int i = 0; i < p->event_lines; i++) {
		const struct shm_event *ev = top_events_back(e, (size_t)(p->event_lines - 1 - i));

		top_line_clear(&line);
		if (ev)
			top_event_line(ev, &line);
		top_screen_line(p->events + 1 + i, &line, STYLE_PLAIN);
	}
}

static void draw_panel(struct top_app *a, const struct top_places *p)
{
	const struct top_panel *panel = a->panel;
	size_t count = panel->count(a);
	struct top_line line;

	top_panel_settle(a);
	top_line_clear(&line);
	top_line_put(&line, STYLE_HEADING, "%s", panel->title);
	top_line_pad(&line, STYLE_HEADING, top_screen_columns());
	top_screen_line(p->titles, &line, STYLE_PLAIN);
	for (int i = 0; i < p->body_lines; i++) {
		size_t at = a->panel_scroll + (size_t)i;

		top_line_clear(&line);
		if (at < count)
			panel->line(a, at, &line);
		top_screen_line(p->body + i, &line,
		    panel->chooses && at == a->panel_at ? STYLE_SELECTED : STYLE_PLAIN);
	}
}

/* ---- the last line ---- */

static void put_panel_bar(const struct top_panel *panel, struct top_line *l)
{
	top_line_put(l, STYLE_STRONG, "Esc");
	top_line_put(l, STYLE_KEY, "Back ");
	if (panel->keys)
		top_line_put(l, STYLE_PLAIN, " %s", panel->keys);
}

/* Returns where the cursor is, -1 nowhere. */
static int draw_bar(const struct top_app *a, int y)
{
	struct top_line line;
	int cursor = -1;

	top_line_clear(&line);
	if (a->prompt.kind != PROMPT_NONE)
		cursor = top_prompt_line(a, &line);
	else if (*a->message)
		top_line_put(&line, a->message_bad ? STYLE_BAD : STYLE_GOOD, "%s", a->message);
	else if (a->panel)
		put_panel_bar(a->panel, &line);
	else
		top_bar_line(&line);
	top_screen_line(y, &line, STYLE_PLAIN);
	return cursor;
}

void top_view_draw(struct top_app *a)
{
	struct top_places p;
	int cursor;

	top_places(a, &p);
	draw_summary(a, &p);
	if (a->panel) {
		draw_panel(a, &p);
	} else {
		draw_list(a, &p);
		draw_events(a, &p);
	}
	cursor = draw_bar(a, p.bar);
	top_screen_cursor(p.bar, cursor);
	top_screen_flush();
}
