/* top_prompt: a question on the last line, and its answer. sbxtop; holds no state but the app's. */
#include <limits.h>
#include <ncurses.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

#include "shm/slot.h"
#include "tools/top_app.h"
#include "tools/top_screen.h"

#define KEY_CTRL(c) ((c)&0x1f)

/* ---- what each kind asks, and does ---- */

static void change_filter(struct top_app *a)
{
	(void)snprintf(a->s.rows.filter, sizeof(a->s.rows.filter), "%s", a->prompt.text);
	top_app_relist(a);
}

static void cancel_filter(struct top_app *a)
{
	a->prompt.text[0] = '\0';
	change_filter(a);
}

static void change_search(struct top_app *a)
{
	(void)snprintf(a->search, sizeof(a->search), "%s", a->prompt.text);
	if (*a->search)
		(void)top_rows_find(&a->s.rows, a->search, true); /* else it stays where it is */
}

static void accept_search(struct top_app *a)
{
	if (*a->search && !top_rows_find(&a->s.rows, a->search, true))
		top_app_say(a, true, "no box with \"%s\" in it", a->search);
}

static void accept_interval(struct top_app *a)
{
	double seconds;

	if (*a->prompt.text == '\0')
		return;
	if (top_parse_interval(a->prompt.text, &seconds) < 0) {
		top_app_say(a, true, "the interval is 0.1 to 3600 seconds");
		return;
	}
	a->s.interval = seconds;
	a->set->interval = seconds;
	a->set->changed = true;
	a->stale = true;
}

/* The box that is asked about; NULL when it is no more. */
static const struct top_box *box_asked(const struct top_app *a)
{
	const struct top_model *m = a->s.model;
	const struct top_box *b;

	if (a->prompt.slot >= m->slot_count)
		return NULL;
	b = &m->slots[a->prompt.slot];
	return b->there && b->seen.sup.generation == a->prompt.generation ? b : NULL;
}

static void accept_order(struct top_app *a)
{
	const struct top_prompt *p = &a->prompt;
	struct err err;

	/* What was asked about is what is done. */
	if (!box_asked(a))
		top_app_say(a, true, "that box is no more");
	else if (top_act_begin(&a->act, &p->order, &err) < 0)
		top_app_say(a, true, "%s", err.text);
	else
		top_app_say(a, false, "%s of %s ...", top_act_name(p->order.kind), p->order.token);
}

typedef void prompt_fn(struct top_app *a);

static const struct {
	const char *label;
	prompt_fn *change; /* after each key; NULL */
	prompt_fn *accept;
	prompt_fn *cancel;
} prompts[PROMPTS] = {
    [PROMPT_NONE] = {"", NULL, NULL, NULL},
    [PROMPT_FILTER] = {"Filter: ", change_filter, NULL, cancel_filter},
    [PROMPT_SEARCH] = {"Search: ", change_search, accept_search, NULL},
    [PROMPT_INTERVAL] = {"Seconds between snapshots: ", NULL, accept_interval, NULL},
    [PROMPT_CONFIRM] = {"", NULL, accept_order, NULL},
};

void top_prompt_open(struct top_app *a, enum top_prompt_kind kind, const char *text)
{
	a->prompt = (struct top_prompt){.kind = kind};
	(void)snprintf(a->prompt.text, sizeof(a->prompt.text), "%s", text);
}

void top_prompt_confirm(struct top_app *a, enum top_act_kind kind)
{
	const struct top_box *b = top_rows_selected(&a->s.rows);
	struct top_prompt *p = &a->prompt;

	if (!b) {
		top_app_say(a, true, "no box is selected");
		return;
	}
	if (a->s.replaying) {
		top_app_say(
		    a, true, "this is a replay: there is nothing to %s", top_act_name(kind));
		return;
	}
	if (b->seen.sup.token[0] == '\0') {
		top_app_say(a, true, "it is nobody's yet, and so has no name");
		return;
	}
	*p = (struct top_prompt){
	    .kind = PROMPT_CONFIRM, .slot = b->seen.slot, .generation = b->seen.sup.generation};
	p->order = (struct top_order){.kind = kind,
	    .uid = b->seen.sup.owner_uid,
	    .supervisor = a->s.model->sum.pid,
	    .socket = a->options->socket,
	    .instance = a->options->instance,
	    .env = environ};
	memcpy(p->order.token, b->seen.sup.token, sizeof(p->order.token));
}

/* ---- the line ---- */

/* What is asked stands first: names may be long. */
static int confirm_line(const struct top_app *a, struct top_line *l)
{
	const struct top_box *b = box_asked(a);
	const struct slot_sup *s = b ? &b->seen.sup : NULL;
	int cursor;

	top_line_put(l, STYLE_BAD, "%s %s? (y/n) ", top_act_name(a->prompt.order.kind),
	    a->prompt.order.token);
	cursor = l->columns;
	if (!s)
		top_line_put(l, STYLE_WARN, "  it is no more");
	else
		top_line_put(l, STYLE_PLAIN, "  %s, %u lease%s, %s of %s",
		    slot_state_name(s->state), s->leases, s->leases == 1 ? "" : "s",
		    s->flags & SLOT_FLAG_ANONYMOUS ? "-" : s->thread,
		    s->flags & SLOT_FLAG_NO_USER ? "-" : s->user);
	return cursor;
}

int top_prompt_line(const struct top_app *a, struct top_line *l)
{
	if (a->prompt.kind == PROMPT_CONFIRM)
		return confirm_line(a, l);
	top_line_put(l, STYLE_LABEL, "%s", prompts[a->prompt.kind].label);
	top_line_put(l, STYLE_STRONG, "%s", a->prompt.text);
	return l->columns;
}

/* ---- keys ---- */

static void append(struct top_prompt *p, int key)
{
	char bytes[MB_LEN_MAX + 1];
	mbstate_t state = {0};
	size_t len = strlen(p->text);
	size_t n = wcrtomb(bytes, (wchar_t)key, &state);

	if (n == (size_t)-1 || len + n >= sizeof(p->text))
		return;
	memcpy(p->text + len, bytes, n);
	p->text[len + n] = '\0';
}

/* The last character, all of its bytes. */
static void drop_last(struct top_prompt *p)
{
	size_t len = strlen(p->text);

	while (len > 0 && ((unsigned char)p->text[len - 1] & 0xc0) == 0x80)
		len--;
	p->text[len > 0 ? len - 1 : 0] = '\0';
}

static void finish(struct top_app *a, prompt_fn *fn)
{
	if (fn)
		fn(a);
	a->prompt.kind = PROMPT_NONE;
}

static void edit(struct top_app *a, int key)
{
	struct top_prompt *p = &a->prompt;

	if (key == TOP_KEY(KEY_BACKSPACE))
		drop_last(p);
	else if (key == KEY_CTRL('u'))
		p->text[0] = '\0';
	else if (key >= 0x20 && !(key & TOP_KEY_FUNCTION))
		append(p, key);
	else
		return;
	if (prompts[p->kind].change)
		prompts[p->kind].change(a);
}

void top_prompt_key(struct top_app *a, int key)
{
	enum top_prompt_kind kind = a->prompt.kind;

	if (kind == PROMPT_CONFIRM)
		finish(a, key == 'y' || key == 'Y' ? prompts[kind].accept : NULL);
	else if (key == TOP_KEY_ENTER)
		finish(a, prompts[kind].accept);
	else if (key == TOP_KEY_ESCAPE)
		finish(a, prompts[kind].cancel);
	else if (kind == PROMPT_SEARCH && key == TOP_KEY(KEY_F(3)))
		(void)top_rows_find(&a->s.rows, a->search, false); /* the next one, if any */
	else
		edit(a, key);
}
