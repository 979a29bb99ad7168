/*
 * top_screen: the terminal: styles, lines, and giving it back as it was, whatever happens.
 */
#ifndef SBXD_TOOLS_TOP_SCREEN_H
#define SBXD_TOOLS_TOP_SCREEN_H

#include <stdbool.h>
#include <stdio.h>

#include "lib/err.h"
#include "tools/top_line.h"

/* Takes the terminal behind `in` and `out`; type NULL: as TERM says. 0 or -errno with *err. */
int top_screen_open(const char *type, FILE *out, FILE *in, bool color, struct err *err);

/* Gives it back. Harmless when it is not taken. */
void top_screen_close(void);

/* Gives it back for a while, as when the process is stopped; and takes it again, drawn anew. */
void top_screen_suspend(void);
void top_screen_resume(void);

/* Asks the terminal for its size; true when that has changed. Then everything is to be drawn. */
bool top_screen_resize(void);
void top_screen_set_size(int rows, int columns);
int top_screen_rows(void);
int top_screen_columns(void);

/* Draws a line, over the whole width: the rest of it, and with `over` not STYLE_PLAIN all of it, in
 * that style. Cuts *l. */
void top_screen_line(int y, struct top_line *l, enum top_style over);

/* Puts the cursor there, or (x < 0) hides it. */
void top_screen_cursor(int y, int x);

/* Sends what has changed. */
void top_screen_flush(void);

/* A key that is no character has this bit, and is one of ncurses' KEY_*. */
#define TOP_KEY_FUNCTION 0x1000000
#define TOP_KEY(code) (TOP_KEY_FUNCTION | (code))
#define TOP_KEY_ESCAPE 27
#define TOP_KEY_ENTER '\n'

/* The next key that was pressed, Enter and Backspace made alike on all terminals; -1: none. */
int top_screen_key(void);

/* What the mouse did. */
enum top_mouse_kind {
	MOUSE_NONE,
	MOUSE_CLICK,
	MOUSE_WHEEL_UP,
	MOUSE_WHEEL_DOWN,
};

struct top_mouse {
	enum top_mouse_kind kind;
	int y;
	int x;
};

/* After TOP_KEY(KEY_MOUSE). */
void top_screen_mouse(struct top_mouse *out);

#endif
