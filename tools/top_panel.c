/* top_panel: panels over the list: moving in them, and those of order, columns and help. sbxtop;
 * holds no state but the app's. */
#include <ncurses.h>
#include <stdio.h>
#include <string.h>

#include "tools/top_app.h"
#include "tools/top_screen.h"

/* ---- moving ---- */

static size_t body_lines(const struct top_app *a)
{
	struct top_places p;

	top_places(a, &p);
	return (size_t)p.body_lines;
}

static size_t last_scroll(const struct top_app *a)
{
	size_t count = a->panel->count(a);
	size_t lines = body_lines(a);

	return count > lines ? count - lines : 0;
}

void top_panel_settle(struct top_app *a)
{
	size_t count = a->panel->count(a);
	size_t lines = body_lines(a);

	if (a->panel->chooses) {
		if (a->panel_at >= count)
			a->panel_at = count ? count - 1 : 0;
		if (a->panel_at < a->panel_scroll)
			a->panel_scroll = a->panel_at;
		if (lines && a->panel_at >= a->panel_scroll + lines)
			a->panel_scroll = a->panel_at - lines + 1;
	}
	if (a->panel_scroll > last_scroll(a) || (a->panel->from_end && a->panel_ends))
		a->panel_scroll = last_scroll(a);
	a->panel_ends = a->panel_scroll == last_scroll(a);
}

static void move_by(struct top_app *a, long by)
{
	size_t *at = a->panel->chooses ? &a->panel_at : &a->panel_scroll;
	size_t back = by < 0 ? (size_t)-by : 0;

	if (by >= 0)
		*at += (size_t)by;
	else
		*at = *at > back ? *at - back : 0;
	a->panel_ends = false;
	top_panel_settle(a);
}

void top_panel_open(struct top_app *a, const struct top_panel *p)
{
	a->panel = p;
	a->panel_at = 0;
	a->panel_scroll = 0;
	a->panel_ends = p->from_end;
	top_panel_settle(a);
}

void top_panel_close(struct top_app *a)
{
	a->panel = NULL;
	a->s.shows_all = false;
}

static const struct {
	int key;
	int lines; /* 0: a page */
	int sign;
} moves[] = {
    {TOP_KEY(KEY_UP), 1, -1},
    {TOP_KEY(KEY_DOWN), 1, 1},
    {TOP_KEY(KEY_PPAGE), 0, -1},
    {TOP_KEY(KEY_NPAGE), 0, 1},
    {TOP_KEY(KEY_HOME), 1 << 20, -1},
    {TOP_KEY(KEY_END), 1 << 20, 1},
};

static bool take_move(struct top_app *a, int key)
{
	for (size_t i = 0; i < sizeof(moves) / sizeof(moves[0]); i++) {
		long page = (long)body_lines(a);

		if (moves[i].key != key)
			continue;
		move_by(a, moves[i].sign * (moves[i].lines ? moves[i].lines : page));
		return true;
	}
	return false;
}

static void take_mouse(struct top_app *a)
{
	struct top_places p;
	struct top_mouse mouse;
	size_t line;

	top_places(a, &p);
	top_screen_mouse(&mouse);
	if (mouse.kind == MOUSE_WHEEL_UP || mouse.kind == MOUSE_WHEEL_DOWN) {
		move_by(a, mouse.kind == MOUSE_WHEEL_UP ? -3 : 3);
	} else if (mouse.kind == MOUSE_CLICK && mouse.y == p.bar) {
		top_panel_close(a);
	} else if (mouse.kind == MOUSE_CLICK && mouse.y >= p.body && a->panel->chooses) {
		line = a->panel_scroll + (size_t)(mouse.y - p.body);
		if (line >= a->panel->count(a))
			return;
		/* A second click on it is Enter. */
		if (line == a->panel_at && a->panel->key)
			a->panel->key(a, TOP_KEY_ENTER);
		else
			a->panel_at = line;
	}
}

void top_panel_key(struct top_app *a, int key)
{
	if (key == TOP_KEY_ESCAPE || key == 'q' || key == TOP_KEY(KEY_F(10)))
		top_panel_close(a);
	else if (key == TOP_KEY(KEY_MOUSE))
		take_mouse(a);
	else if (key == 'p' || key == 'Z' || key == TOP_KEY(KEY_F(8)))
		top_app_toggle_pause(a);
	else if (!take_move(a, key) && a->panel->key)
		a->panel->key(a, key);
}

/* ---- order ---- */

static size_t count_columns(const struct top_app *a)
{
	(void)a;
	return top_columns_count();
}

static void sort_line(const struct top_app *a, size_t i, struct top_line *l)
{
	const struct top_column *c = top_column_at(i);

	top_line_put(l, STYLE_STRONG, "%c ", (int)i == a->s.rows.sort ? '*' : ' ');
	top_line_left(l, STYLE_STRONG, c->title, 14);
	top_line_put(l, STYLE_PLAIN, "%s", c->help);
}

static void sort_key(struct top_app *a, int key)
{
	if (key != TOP_KEY_ENTER)
		return;
	top_rows_sort_by(&a->s.rows, (int)a->panel_at);
	top_app_reorder(a);
	top_panel_close(a);
}

const struct top_panel top_panel_sort = {
    .title = "SORT BY",
    .keys = "Enter: sort by that column",
    .chooses = true,
    .count = count_columns,
    .line = sort_line,
    .key = sort_key,
};

/* ---- columns ---- */

/* First those that are shown, in their order; then the others. */
static size_t column_of_line(const struct top_layout *l, size_t line)
{
	bool shown[TOP_COLUMNS_MAX] = {false};
	size_t left = line - l->count;

	if (line < l->count)
		return l->column[line];
	for (size_t i = 0; i < l->count; i++)
		shown[l->column[i]] = true;
	for (size_t i = 0; i < top_columns_count(); i++) {
		if (!shown[i] && left-- == 0)
			return i;
	}
	return 0;
}

static void columns_line(const struct top_app *a, size_t i, struct top_line *l)
{
	const struct top_column *c = top_column_at(column_of_line(&a->s.layout, i));

	top_line_put(l, STYLE_STRONG, "[%c] ", i < a->s.layout.count ? 'x' : ' ');
	top_line_left(l, STYLE_STRONG, c->title, 14);
	top_line_put(l, STYLE_PLAIN, "%s", c->help);
}

static void toggle_column(struct top_layout *l, size_t line)
{
	size_t column = column_of_line(l, line);

	if (line >= l->count) {
		l->column[l->count++] = (uint8_t)column;
	} else if (l->count > 1) { /* one is always shown */
		memmove(l->column + line, l->column + line + 1, l->count - line - 1);
		l->count--;
	}
}

/* Moves a shown column; it stays chosen. */
static void move_column(struct top_app *a, int by)
{
	struct top_layout *l = &a->s.layout;
	size_t from = a->panel_at;
	size_t to = from + (size_t)by; /* below 0 it is past the end */
	uint8_t column;

	if (from >= l->count || to >= l->count)
		return;
	column = l->column[from];
	l->column[from] = l->column[to];
	l->column[to] = column;
	a->panel_at = to;
	top_panel_settle(a);
}

static void columns_key(struct top_app *a, int key)
{
	if (key == TOP_KEY_ENTER || key == ' ')
		toggle_column(&a->s.layout, a->panel_at);
	else if (key == '-')
		move_column(a, -1);
	else if (key == '+')
		move_column(a, 1);
	else
		return;
	if (a->first >= a->s.layout.count)
		a->first = 0;
	a->set->layout = a->s.layout;
	a->set->changed = true;
}

const struct top_panel top_panel_columns = {
    .title = "COLUMNS",
    .keys = "Space: shown or not   - +: moves it left, right",
    .chooses = true,
    .count = count_columns,
    .line = columns_line,
    .key = columns_key,
};

/* ---- help ---- */

static const char *const help_head[] = {
    "sbxtop " SBX_VERSION ": the pool of sbxd, read from its shared table.",
    "",
};

static const char *const help_tail[] = {
    "",
    "Mouse: a title sorts, a click selects, another shows details, the wheel scrolls.",
    "Filter, search: in any text; A|B: either; COLUMN:TEXT: in that column.",
    "Hits: acquires that found a box. /s: since the snapshot before.",
    "LOCK: who is in the middle of a transition. died: sbxd will recover it.",
    "",
};

#define HEAD (sizeof(help_head) / sizeof(help_head[0]))
#define TAIL (sizeof(help_tail) / sizeof(help_tail[0]))

static size_t help_count(const struct top_app *a)
{
	(void)a;
	return HEAD + top_binding_count + TAIL + top_columns_count();
}

static void help_line(const struct top_app *a, size_t i, struct top_line *l)
{
	(void)a;
	if (i < HEAD) {
		top_line_put(l, STYLE_STRONG, "%s", help_head[i]);
		return;
	}
	i -= HEAD;
	if (i < top_binding_count) {
		top_line_put(l, STYLE_STRONG, "  %-22s", top_bindings[i].names);
		top_line_put(l, STYLE_PLAIN, "%s", top_bindings[i].help);
		return;
	}
	i -= top_binding_count;
	if (i < TAIL) {
		top_line_put(l, STYLE_PLAIN, "%s", help_tail[i]);
		return;
	}
	i -= TAIL;
	top_line_put(l, STYLE_STRONG, "  %-12s", top_column_at(i)->title);
	top_line_put(l, STYLE_FAINT, "%-12s", top_column_at(i)->key);
	top_line_put(l, STYLE_PLAIN, "%s", top_column_at(i)->help);
}

const struct top_panel top_panel_help = {
    .title = "HELP",
    .count = help_count,
    .line = help_line,
};
