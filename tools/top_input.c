/* top_input: what keys and mouse do while the list is shown. sbxtop; holds no state but the app's.
 */
#include <ncurses.h>

#include "tools/top_app.h"
#include "tools/top_screen.h"

#define WHEEL 3 /* rows */

/* ---- what is done ---- */

static long page(const struct top_app *a)
{
	struct top_places p;

	top_places(a, &p);
	return p.body_lines > 1 ? p.body_lines - 1 : 1;
}

static void move_up(struct top_app *a)
{
	top_rows_move(&a->s.rows, -1);
}

static void move_down(struct top_app *a)
{
	top_rows_move(&a->s.rows, 1);
}

static void page_up(struct top_app *a)
{
	top_rows_move(&a->s.rows, -page(a));
}

static void page_down(struct top_app *a)
{
	top_rows_move(&a->s.rows, page(a));
}

static void move_home(struct top_app *a)
{
	top_rows_move(&a->s.rows, -(long)a->s.rows.selected);
}

static void move_end(struct top_app *a)
{
	top_rows_select(&a->s.rows, a->s.rows.count);
}

static void scroll_left(struct top_app *a)
{
	if (a->first > 0)
		a->first--;
}

static void scroll_right(struct top_app *a)
{
	if (a->first + 1 < a->s.layout.count)
		a->first++;
}

/* To the column beside the one that decides the order. */
static void sort_beside(struct top_app *a, size_t step)
{
	const struct top_layout *l = &a->s.layout;
	size_t at = 0;

	while (at < l->count && l->column[at] != a->s.rows.sort)
		at++;
	at = at < l->count ? (at + step) % l->count : 0;
	top_rows_sort_by(&a->s.rows, l->column[at]);
	top_app_reorder(a);
}

static void sort_left(struct top_app *a)
{
	sort_beside(a, a->s.layout.count - 1);
}

static void sort_right(struct top_app *a)
{
	sort_beside(a, 1);
}

static void sort_inverted(struct top_app *a)
{
	a->s.rows.descending = !a->s.rows.descending;
	top_app_reorder(a);
}

static void open_sort(struct top_app *a)
{
	top_panel_open(a, &top_panel_sort);
	a->panel_at = (size_t)a->s.rows.sort;
}

static void open_columns(struct top_app *a)
{
	top_panel_open(a, &top_panel_columns);
}

static void open_help(struct top_app *a)
{
	top_panel_open(a, &top_panel_help);
}

static void open_events(struct top_app *a)
{
	top_panel_open(a, &top_panel_events);
}

static void open_details(struct top_app *a)
{
	const struct top_box *b = top_rows_selected(&a->s.rows);

	if (!b)
		return;
	a->details_slot = b->seen.slot;
	a->details_generation = b->seen.sup.generation;
	top_panel_open(a, &top_panel_details);
	a->s.shows_all = true; /* from the next snapshot on */
	a->stale = !a->paused;
}

/* None, a few, many, none. */
static void cycle_events(struct top_app *a)
{
	static const int steps[] = {0, 4, 12};
	int next = steps[0];

	for (size_t i = sizeof(steps) / sizeof(steps[0]); i-- > 0;) {
		if (steps[i] > a->set->event_lines)
			next = steps[i];
	}
	a->set->event_lines = next;
	a->set->changed = true;
}

static void ask_filter(struct top_app *a)
{
	top_prompt_open(a, PROMPT_FILTER, a->s.rows.filter);
}

static void ask_search(struct top_app *a)
{
	top_prompt_open(a, PROMPT_SEARCH, "");
}

static void search_on(struct top_app *a)
{
	if (!*a->search)
		ask_search(a);
	else if (!top_rows_find(&a->s.rows, a->search, false))
		top_app_say(a, true, "no box with \"%s\" in it", a->search);
}

static void ask_interval(struct top_app *a)
{
	top_prompt_open(a, PROMPT_INTERVAL, "");
}

static void ask_release(struct top_app *a)
{
	top_prompt_confirm(a, ACT_RELEASE);
}

static void ask_kill(struct top_app *a)
{
	top_prompt_confirm(a, ACT_KILL);
}

static void refresh_now(struct top_app *a)
{
	a->stale = true;
}

static void step(struct top_app *a, long by)
{
	struct err err;

	if (!a->s.replaying)
		top_app_say(a, true, "only a replay can go back: sbxtop --replay");
	else if (top_session_step(&a->s, by, &err) < 0)
		top_app_say(a, true, "%s", err.text);
	a->paused = a->paused || a->s.replaying;
}

static void step_back(struct top_app *a)
{
	step(a, -1);
}

static void step_on(struct top_app *a)
{
	step(a, 1);
}

static long far(const struct top_app *a)
{
	return (long)(a->s.model->events.count / 20 + 1);
}

static void step_far_back(struct top_app *a)
{
	step(a, -far(a));
}

static void step_far_on(struct top_app *a)
{
	step(a, far(a));
}

static void quit(struct top_app *a)
{
	a->quit = true;
}

/* ---- keys ---- */

const struct top_binding top_bindings[] = {
    {{TOP_KEY(KEY_UP)}, "Up", "the box above", move_up},
    {{TOP_KEY(KEY_DOWN)}, "Down", "the box below", move_down},
    {{TOP_KEY(KEY_PPAGE)}, "PgUp", "a page up", page_up},
    {{TOP_KEY(KEY_NPAGE)}, "PgDn", "a page down", page_down},
    {{TOP_KEY(KEY_HOME)}, "Home", "the first box", move_home},
    {{TOP_KEY(KEY_END)}, "End", "the last box", move_end},
    {{TOP_KEY(KEY_LEFT)}, "Left", "columns to the left", scroll_left},
    {{TOP_KEY(KEY_RIGHT)}, "Right", "columns to the right", scroll_right},
    {{TOP_KEY_ENTER}, "Enter", "all about the selected box", open_details},
    {{TOP_KEY(KEY_F(1)), 'h', '?'}, "F1 h ?", "this help", open_help},
    {{TOP_KEY(KEY_F(2)), 'C', 'f'}, "F2 C f", "choose columns", open_columns},
    {{TOP_KEY(KEY_F(3)), 'L'}, "F3 L", "search", ask_search},
    {{'n', '&'}, "n &", "search on", search_on},
    {{TOP_KEY(KEY_F(4)), '/', '\\'}, "F4 / \\", "filter; Esc ends it", ask_filter},
    {{TOP_KEY(KEY_F(5)), 'e'}, "F5 e", "events below the list: more, or none", cycle_events},
    {{'E'}, "E", "all events", open_events},
    {{TOP_KEY(KEY_F(6)), 's', '.'}, "F6 s .", "sort by a column", open_sort},
    {{'<', ','}, "< ,", "sort by the column to the left", sort_left},
    {{'>'}, ">", "sort by the column to the right", sort_right},
    {{'I', 'R'}, "I R", "the other way round", sort_inverted},
    {{TOP_KEY(KEY_F(7)), 'r'}, "F7 r", "release the selected box: it is parked", ask_release},
    {{TOP_KEY(KEY_F(8)), 'p', 'Z'}, "F8 p Z", "pause, and go on; in a replay: play",
	top_app_toggle_pause},
    {{'['}, "[", "in a replay: one event back", step_back},
    {{']'}, "]", "in a replay: one event on", step_on},
    {{'{'}, "{", "in a replay: a twentieth back", step_far_back},
    {{'}'}, "}", "in a replay: a twentieth on", step_far_on},
    {{TOP_KEY(KEY_F(9)), 'k'}, "F9 k", "kill the selected box", ask_kill},
    {{'d'}, "d", "seconds between snapshots", ask_interval},
    {{' '}, "Space", "a new snapshot now", refresh_now},
    {{TOP_KEY(KEY_F(10)), 'q', 'Q'}, "F10 q", "quit", quit},
};

const size_t top_binding_count = sizeof(top_bindings) / sizeof(top_bindings[0]);

static void run_binding(struct top_app *a, int key)
{
	for (size_t i = 0; i < top_binding_count; i++) {
		for (size_t k = 0; k < 4 && top_bindings[i].keys[k]; k++) {
			if (top_bindings[i].keys[k] == key) {
				top_bindings[i].run(a);
				return;
			}
		}
	}
}

/* ---- mouse ---- */

static void click_title(struct top_app *a, int x)
{
	struct top_widths w;
	int hit;

	top_layout_fit(&a->s.layout, a->first, top_screen_columns(), &w);
	hit = top_layout_hit(&a->s.layout, &w, x);
	if (hit < 0)
		return;
	if (a->s.layout.column[hit] == a->s.rows.sort) {
		sort_inverted(a);
		return;
	}
	top_rows_sort_by(&a->s.rows, a->s.layout.column[hit]);
	top_app_reorder(a);
}

static void click_row(struct top_app *a, size_t row)
{
	if (row >= a->s.rows.count)
		return;
	if (a->s.rows.chosen && row == a->s.rows.selected)
		open_details(a);
	else
		top_rows_select(&a->s.rows, row);
}

static void click(struct top_app *a, const struct top_mouse *mouse)
{
	struct top_places p;

	top_places(a, &p);
	if (mouse->y == p.bar && top_bar_hit(mouse->x) > 0)
		run_binding(a, TOP_KEY(KEY_F(top_bar_hit(mouse->x))));
	else if (mouse->y == p.titles)
		click_title(a, mouse->x);
	else if (mouse->y >= p.body && mouse->y < p.body + p.body_lines)
		click_row(a, a->scroll + (size_t)(mouse->y - p.body));
}

static void take_mouse(struct top_app *a)
{
	struct top_mouse mouse;

	top_screen_mouse(&mouse);
	if (mouse.kind == MOUSE_WHEEL_UP || mouse.kind == MOUSE_WHEEL_DOWN)
		top_rows_move(&a->s.rows, mouse.kind == MOUSE_WHEEL_UP ? -WHEEL : WHEEL);
	else if (mouse.kind == MOUSE_CLICK)
		click(a, &mouse);
}

void top_input_key(struct top_app *a, int key)
{
	a->message[0] = '\0';
	if (a->prompt.kind != PROMPT_NONE)
		top_prompt_key(a, key);
	else if (a->panel)
		top_panel_key(a, key);
	else if (key == TOP_KEY(KEY_MOUSE))
		take_mouse(a);
	else
		run_binding(a, key);
}
