/*
 * top_line: a line of output: text, and the style that each part of it has. Built without knowing
 * where it goes: a terminal shows the styles, a file only the text.
 */
#ifndef SBXD_TOOLS_TOP_LINE_H
#define SBXD_TOOLS_TOP_LINE_H

#include <stddef.h>
#include <stdint.h>

#include "shm/layout.h"

enum top_style {
	STYLE_PLAIN,
	STYLE_LABEL,
	STYLE_STRONG,
	STYLE_GOOD,
	STYLE_WARN,
	STYLE_BAD,
	STYLE_FAINT,
	STYLE_HEADING,
	STYLE_SORTED, /* the heading of the column that decides the order */
	STYLE_SELECTED,
	STYLE_KEY,   /* the name of a key on the bar at the bottom */
	STYLE_STATE, /* plus enum slot_state */
	STYLES = STYLE_STATE + SLOT_STATES,
};

#define TOP_LINE_COLUMNS 512 /* no terminal is wider */
#define TOP_LINE_BYTES 6144
#define TOP_LINE_SPANS 160

/* From this byte on it is this style. */
struct top_span {
	uint16_t from;
	uint16_t style;
};

struct top_line {
	size_t len;
	int columns;
	size_t spans;
	struct top_span span[TOP_LINE_SPANS];
	char text[TOP_LINE_BYTES]; /* ends in NUL */
};

void top_line_clear(struct top_line *l);

/* Appends what printf() makes of it; what does not fit any more is cut. */
void top_line_put(struct top_line *l, enum top_style style, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Appends any text in exactly so many columns: cut with '~', or padded on the right, or on the
 * left.
 */
void top_line_left(struct top_line *l, enum top_style style, const char *text, int columns);
void top_line_right(struct top_line *l, enum top_style style, const char *text, int columns);

/* Appends blanks up to that column. */
void top_line_pad(struct top_line *l, enum top_style style, int column);

/* Drops what stands past so many columns. */
void top_line_cut(struct top_line *l, int columns);

/* STYLE_STATE of a state; STYLE_PLAIN when it is none. */
enum top_style top_style_of_state(uint32_t state);

#endif
