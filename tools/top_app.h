/*
 * top_app: sbxtop on a terminal: what the files of view and input share. Model and list know
 * nothing of it.
 */
#ifndef SBXD_TOOLS_TOP_APP_H
#define SBXD_TOOLS_TOP_APP_H

#include "tools/top_act.h"
#include "tools/top_session.h"

struct top_app;

/* ---- panels: what is shown in place of the list ---- */

struct top_panel {
	const char *title;
	const char *keys; /* what else can be pressed, for the bar at the bottom */
	bool chooses;	  /* one of its lines is chosen; else it is only looked through */
	bool from_end;	  /* opened, it shows its end, and stays there as it grows */
	size_t (*count)(const struct top_app *a);
	void (*line)(const struct top_app *a, size_t i, struct top_line *l);
	void (*key)(struct top_app *a, int key); /* that means nothing to all panels; NULL: none */
};

extern const struct top_panel top_panel_help;
extern const struct top_panel top_panel_sort;
extern const struct top_panel top_panel_columns;
extern const struct top_panel top_panel_details;
extern const struct top_panel top_panel_events;

void top_panel_open(struct top_app *a, const struct top_panel *p);
void top_panel_close(struct top_app *a);

/* Keeps what is shown of it within it; to be called when it may have changed. */
void top_panel_settle(struct top_app *a);
void top_panel_key(struct top_app *a, int key);

/* ---- prompts: a question on the last line ---- */

enum top_prompt_kind {
	PROMPT_NONE,
	PROMPT_FILTER,
	PROMPT_SEARCH,
	PROMPT_INTERVAL,
	PROMPT_CONFIRM, /* yes or no */
	PROMPTS,
};

struct top_prompt {
	enum top_prompt_kind kind;
	char text[TOP_FILTER];
	struct top_order order; /* what is confirmed */
	uint32_t slot;		/* and of which box */
	uint64_t generation;
};

void top_prompt_open(struct top_app *a, enum top_prompt_kind kind, const char *text);

/* Asks whether that shall be done with the selected box. */
void top_prompt_confirm(struct top_app *a, enum top_act_kind kind);
void top_prompt_key(struct top_app *a, int key);

/* Its line, and where the cursor stands in it. */
int top_prompt_line(const struct top_app *a, struct top_line *l);

/* ---- the whole ---- */

struct top_app {
	const struct top_options *options;
	struct top_settings *set;
	struct top_session s;

	size_t scroll; /* the first row of the list that is shown */
	size_t first;  /* the first column */
	bool paused;
	bool quit;
	bool stale; /* a new snapshot is wanted at once */

	const struct top_panel *panel; /* NULL: the list */
	size_t panel_at;	       /* the chosen line */
	size_t panel_scroll;	       /* the first line that is shown */
	bool panel_ends;	       /* its end is shown, and shall be */
	uint32_t details_slot;
	uint64_t details_generation;

	struct top_prompt prompt;
	char search[TOP_FILTER]; /* the last one */
	struct top_act act;
	char message[256]; /* on the last line, until the next key */
	bool message_bad;
};

/* Shows a text on the last line. */
void top_app_say(struct top_app *a, bool bad, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Lists the boxes anew, after the filter has changed. */
void top_app_relist(struct top_app *a);

/* The same after the order has, which is kept for the next run. */
void top_app_reorder(struct top_app *a);

void top_app_toggle_pause(struct top_app *a);

/* Runs it on the terminal until it is left. 0 or -errno with *err. */
int top_app_run(struct top_app *a, struct err *err);

/* ---- view ---- */

/* Where everything is on a screen of that size. */
struct top_places {
	int summary; /* lines of it, from the top */
	int titles;  /* line of the titles of the list, or of a panel */
	int body;    /* its first line, and how many there are */
	int body_lines;
	int events; /* line above the last events; -1: they are not shown */
	int event_lines;
	int bar; /* the last line */
};

void top_places(const struct top_app *a, struct top_places *out);
void top_view_draw(struct top_app *a);

/* ---- input ---- */

/* What a key does while the list is shown; the help lists the same table. */
struct top_binding {
	int keys[4]; /* 0: no more */
	const char *names;
	const char *help;
	void (*run)(struct top_app *a);
};

extern const struct top_binding top_bindings[];
extern const size_t top_binding_count;

/* The bar at the bottom: F1 to F10. */
void top_bar_line(struct top_line *l);

/* Which of them, from 1, stands at that column; 0 none. */
int top_bar_hit(int x);

void top_input_key(struct top_app *a, int key);

#endif
